"""A campaign of measurements: what was measured, what failed, and why; links fitted to measured collectives."""

from collections import Counter
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from epochcast.measure.bench.campaign import CampaignReport
from epochcast.measure.bench.link_fit import LinkFit
from epochcast.measure.bench.measurements import Measurement
from epochcast.surfaces.render.table_parts import table
from epochcast.units import show_bytes, show_seconds

# This many rows and reasons are shown in a terminal; the file has them all.
MOST_SHOWN = 30


def campaign(report: CampaignReport, rows: Sequence[Measurement], out: str) -> RenderableType:
    """Counts, then a row per configuration, or per group where there are many."""
    title = f"{out}: {report.measured:,} measured in {show_seconds(report.seconds)}"
    parts = [(report.failed, "failed"), (report.measured_before, "measured before"), (report.left, "left for --resume")]
    pieces: list[RenderableType] = [Text(", ".join([title, *(f"{n:,} {label}" for n, label in parts if n)]))]
    measured = [row for row in rows if row.failed is None]
    if len(measured) <= MOST_SHOWN:
        cells = [
            (_key_text(row), *_figures([row]), show_bytes(row.peak_bytes) if row.peak_bytes else "–")
            for row in measured
        ]
        pieces.append(
            table("", "measurement | > median | > lowest tenth | > spread | > repeats | > peak memory", cells)
        )
    else:
        groups: dict[str, list[Measurement]] = {}
        for row in measured:
            groups.setdefault("/".join(row.key.split("/")[:-1]), []).append(row)
        group_rows = [(name, f"{len(members):,}", _figures(members)[2]) for name, members in sorted(groups.items())]
        pieces.append(table("", "group | > rows | > spread", group_rows))
    reasons = Counter(row.failed for row in rows if row.failed is not None)
    if reasons:
        shown = [(f"{count:,}", str(reason)) for reason, count in reasons.most_common(MOST_SHOWN)]
        pieces.append(table("failed", "> rows | reason", shown))
    return Group(*pieces)


def _key_text(row: Measurement) -> str:
    """The key without its digest."""
    return row.key.rpartition("/")[0]


def _figures(rows: Sequence[Measurement]) -> tuple[str, str, str, str]:
    """Median, lowest tenth, spread and repeats of the middle row."""
    row = sorted(rows, key=lambda r: r.spread or 0.0)[len(rows) // 2]
    assert row.seconds is not None
    low = "–" if row.low_seconds is None else show_seconds(row.low_seconds)
    spread = "–" if row.spread is None else f"{row.spread:.0%}"
    return show_seconds(row.seconds), low, spread, f"{row.repeats:,}"


def link_fits(fits: Sequence[LinkFit]) -> RenderableType:
    """α and B of each collective, then measured and fitted seconds of every size."""
    figures, residuals = [], []
    for fit in fits:
        name = f"{fit.backend} {fit.collective}, {fit.ranks} ranks"
        rate = f"{show_bytes(fit.bytes_per_second)}/s"
        figures.append((name, show_seconds(fit.latency_seconds), rate, f"{fit.error_fraction:.0%}"))
        for residual in fit.residuals:
            times = (show_seconds(residual.measured_seconds), show_seconds(residual.fitted_seconds))
            residuals.append((name, show_bytes(residual.size_bytes), *times, f"{residual.error_fraction:+.0%}"))
    return Group(
        table("ring of links", "collective | > latency | > bandwidth | > error", figures),
        table("measured and fitted", "collective | > size | > measured | > fitted | > error", residuals),
    )
