"""Collectives alone against what was measured: NVLink 2 to 5, PCI Express without peer access, Infinity Fabric.

    python -m studies collectives            writes docs/accuracy/collectives-accuracy.md and result.csv

The shipped constants were fitted on these rows. Therefore they are refitted without each system, and without each
link, and scored on what was left out; beside it stands a ring at nominal rates. Fails where a refit on all rows is
better than what is shipped by more than a tenth, or where what was left out is worse than the nominal ring.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from epochcast.hardware.catalogue import find_link
from epochcast.hardware.cluster import Group
from epochcast.hardware.link import Link
from epochcast.predict.comm.allreduce import ring
from epochcast.predict.comm.collectives import (
    all_gather_seconds,
    all_reduce_seconds,
    all_to_all_seconds,
    reduce_scatter_seconds,
)
from studies.collectives.fit import MEDIA, fit
from studies.collectives.law import seconds, table
from studies.collectives.rows import BANDS, COLLECTIVES, Measured, across_boxes, measured, size_ratios
from studies.figures_csv import figures_csv

PAGE = Path(__file__).parents[2] / "docs" / "accuracy" / "collectives-accuracy.md"
RESULT = Path(__file__).with_name("result.csv")
SLACK = 1.1
FORECASTS: dict[str, Callable[[float, Group], float]] = {
    "all_reduce": all_reduce_seconds,
    "all_gather": all_gather_seconds,
    "reduce_scatter": reduce_scatter_seconds,
    "all_to_all": all_to_all_seconds,
}
COLUMNS = (
    "link",
    "collective",
    "ranks",
    "band",
    "rows",
    "shipped",
    "shipped_median",
    "bias_median",
    "system_left_out",
    "link_left_out",
    "nominal_ring",
)


@dataclass(frozen=True)
class Scored:
    """A row with its forecasts in seconds; those left out are None where no other row tells of its wire."""

    row: Measured
    shipped: float
    system_left_out: float | None
    link_left_out: float | None
    nominal_ring: float


@dataclass(frozen=True)
class Figure:
    """Errors of a link, a collective, a number of ranks and a band of sizes: means unless said, in percent."""

    link: str
    collective: str
    ranks: int
    band: str
    rows: int
    shipped: float
    shipped_median: float
    bias_median: float
    system_left_out: float | None
    link_left_out: float | None
    nominal_ring: float


def main() -> int:
    """Refit, score, write the page and the table; 1 where the shipped constants are behind."""
    data = Path(os.environ["EPOCHCAST_DATA"])
    rows = measured(data)
    scored = [one for medium in MEDIA for one in scores(medium, rows)]
    pairs = [_scored(row, None, None) for row in rows if row.bridge]
    RESULT.write_text(figures_csv(COLUMNS, figures([*scored, *pairs])), encoding="utf-8")
    PAGE.write_text(page(rows, scored, pairs, across_boxes(data)), encoding="utf-8")
    missed = [*_behind(rows), *_worse(scored)]
    print(
        "\n".join([f"{len(rows)} rows, {100 * np.abs(_errors(scored, 'shipped')).mean():.1f} % in the mean", *missed])
    )
    return 1 if missed else 0


def scores(medium: str, rows: Sequence[Measured]) -> list[Scored]:
    """The rows of a kind of wire, forecast with the shipped constants and with those of rows left out."""
    own = [row for row in rows if row.link in MEDIA[medium] and not row.bridge]
    without_system = _left_out(medium, own, lambda row: row.system)
    without_link = _left_out(medium, own, lambda row: row.link)
    return [_scored(*each) for each in zip(own, without_system, without_link, strict=True)]


def _left_out(medium: str, rows: Sequence[Measured], key: Callable[[Measured], str]) -> list[float | None]:
    """Each row forecast by constants of the rows with another key."""
    found: list[float | None] = [None] * len(rows)
    for left_out in sorted({key(row) for row in rows}):
        kept = [row for row in rows if key(row) != left_out]
        if not kept:
            continue
        places = [place for place, row in enumerate(rows) if key(row) == left_out]
        answers = seconds(table([rows[place] for place in places]), fit(medium, kept))
        for place, answer in zip(places, answers, strict=True):
            found[place] = float(answer)
    return found


def _scored(row: Measured, system_left_out: float | None, link_left_out: float | None) -> Scored:
    shipped = FORECASTS[row.collective](row.size_bytes, row.group)
    return Scored(row, shipped, system_left_out, link_left_out, nominal_ring(row))


def nominal_ring(row: Measured) -> float:
    """A ring at the rate of the data sheet; half of one for all but the all-reduce."""
    link = replace(find_link(row.link), sustained_fraction=1.0, rank_fractions=())
    whole = ring(row.size_bytes, Group(1, row.ranks, link, link))
    return whole if row.collective == "all_reduce" else whole / 2


def _errors(scored: Sequence[Scored], name: str) -> np.ndarray:
    """Relative, with sign."""
    return np.array([getattr(one, name) / one.row.seconds - 1 for one in scored if getattr(one, name) is not None])


def _mean(scored: Sequence[Scored], name: str) -> float | None:
    errors = _errors(scored, name)
    return float(np.abs(errors).mean()) if len(errors) else None


def figures(scored: Sequence[Scored]) -> Iterable[Figure]:
    """Every cell of the table."""
    cells: dict[tuple[str, str, int, int], list[Scored]] = {}
    for one in scored:
        cells.setdefault((one.row.link, one.row.collective, one.row.ranks, one.row.band), []).append(one)
    for (link, collective, ranks, band), group in sorted(cells.items()):
        errors = 100 * _errors(group, "shipped")
        left_out = [_percent(_mean(group, name)) for name in ("system_left_out", "link_left_out", "nominal_ring")]
        yield Figure(
            link,
            collective,
            ranks,
            BANDS[band][0],
            len(group),
            float(np.abs(errors).mean()),
            float(np.median(np.abs(errors))),
            float(np.median(errors)),
            left_out[0],
            left_out[1],
            left_out[2] or 0.0,
        )


def _percent(fraction: float | None) -> float | None:
    return None if fraction is None else 100 * fraction


def _behind(rows: Sequence[Measured]) -> Iterable[str]:
    """Kinds of wires whose constants, fitted again, describe the rows better than the shipped."""
    for medium, links in MEDIA.items():
        own = [row for row in rows if row.link in links and not row.bridge]
        columns = table(own)
        again = float(np.abs(np.log(seconds(columns, fit(medium, own)) / columns.seconds)).mean())
        forecasts = np.array([FORECASTS[row.collective](row.size_bytes, row.group) for row in own])
        shipped = float(np.abs(np.log(forecasts / columns.seconds)).mean())
        if shipped > SLACK * again:
            yield f"{medium}: refitted {again:.3f}, shipped {shipped:.3f} (mean log error)"


def _worse(scored: Sequence[Scored]) -> Iterable[str]:
    """Kinds of sizes in which constants of other systems are no better than a nominal ring."""
    for band, (name, _) in enumerate(BANDS):
        group = [one for one in scored if one.row.band == band and one.system_left_out is not None]
        left_out, nominal = _mean(group, "system_left_out"), _mean(group, "nominal_ring")
        if left_out is not None and nominal is not None and left_out >= nominal:
            yield f"{name}: {left_out:.1%} with the system left out, nominal ring {nominal:.1%}"


def network_fit(rows: Sequence[tuple[str, int, int, float, float]]) -> tuple[float, float]:
    """The bytes per second of a network that forecast these all-reduces of boxes best, and the mean error then."""
    inner = find_link("nvswitch2")

    def error(rate: float) -> float:
        outer = Link(find_link("infiniband_hdr").latency_seconds, rate, medium="rdma")
        forecasts = [
            all_reduce_seconds(size_bytes, Group(boxes, ranks // boxes, inner, outer))
            for _, ranks, boxes, size_bytes, _ in rows
        ]
        return float(np.mean([abs(f / row[4] - 1) for f, row in zip(forecasts, rows, strict=True)]))

    best = min((float(rate) for rate in np.geomspace(1e9, 100e9, 93)), key=error)
    return best, error(best)


def page(
    rows: Sequence[Measured],
    scored: Sequence[Scored],
    pairs: Sequence[Scored],
    boxes: Sequence[tuple[str, int, int, float, float]],
) -> str:
    """docs/accuracy/collectives-accuracy.md."""
    lines = ["# Collectives, measured", "", *INTRODUCTION.splitlines(), "", *_summary(scored), ""]
    lines += ["## By link and collective", "", *BY_LINK.splitlines(), "", *_by_link(scored)]
    lines += ["", "## By size and ranks", "", *_by_size(scored), "", "## By system", "", *BY_SYSTEM.splitlines(), ""]
    lines += [*_by_system(scored), "", "## Pairs on PCI Express with peer access", "", *PAIRS_TEXT.splitlines(), ""]
    lines += [*_pairs(pairs), "", "## Several boxes", "", *BOXES_TEXT.splitlines(), "", *_boxes(boxes)]
    lines += ["", "## What a size means", "", *SIZES_TEXT.splitlines(), "", *_sizes(rows)]
    return "\n".join(lines) + "\n"


def _cells(group: Sequence[Scored]) -> str:
    """n, and the errors of each kind of forecast."""
    means = [_mean(group, name) for name in ("shipped", "system_left_out", "link_left_out", "nominal_ring")]
    shown = ["–" if mean is None else f"{100 * mean:.0f}" for mean in means]
    median = f"{100 * float(np.median(np.abs(_errors(group, 'shipped')))):.0f}"
    return " | ".join([str(len(group)), shown[0], median, *shown[1:]])


HEAD = "rows | ours, on the same rows | median | system left out | link left out | nominal ring |"
RULE = "---|---|---|---|---|---|"


def _table(name: str, groups: Iterable[tuple[str, Sequence[Scored]]]) -> list[str]:
    return [f"| {name} | {HEAD}", f"|---|{RULE}", *(f"| {key} | {_cells(group)} |" for key, group in groups if group)]


def _summary(scored: Sequence[Scored]) -> list[str]:
    large = [one for one in scored if one.row.size_bytes >= 1e6]
    return _table("sizes", [("all", scored), ("above 1 MB", large)])


def _by_link(scored: Sequence[Scored]) -> list[str]:
    large = [one for one in scored if one.row.size_bytes >= 1e6]
    return _table(
        "above 1 MB",
        (
            (f"{link}, {name}", [one for one in large if (one.row.link, one.row.collective) == (link, name)])
            for link in sorted({one.row.link for one in scored})
            for name in COLLECTIVES
        ),
    )


def _by_size(scored: Sequence[Scored]) -> list[str]:
    bands = ((name, [one for one in scored if one.row.band == band]) for band, (name, _) in enumerate(BANDS))
    limits = ((2, 2), (3, 4), (5, 8), (9, 72))
    ranks = (
        (f"{low} to {high} ranks" if low < high else f"{low} ranks", [o for o in scored if low <= o.row.ranks <= high])
        for low, high in limits
    )
    return _table("rows", (*bands, *ranks))


def _by_system(scored: Sequence[Scored]) -> list[str]:
    systems = sorted({(one.row.link, one.row.system) for one in scored})
    return _table(
        "system (link), above 1 MB",
        (
            (f"{name} ({link})", [o for o in scored if o.row.system == name and o.row.size_bytes >= 1e6])
            for link, name in systems
        ),
    )


def _pairs(pairs: Sequence[Scored]) -> list[str]:
    keys = sorted({(one.row.system, one.row.ranks) for one in pairs})
    return _table(
        "system, ranks",
        ((f"{s}, {p}", [o for o in pairs if (o.row.system, o.row.ranks) == (s, p)]) for s, p in keys),
    )


def _boxes(boxes: Sequence[tuple[str, int, int, float, float]]) -> list[str]:
    lines = ["| system | ranks in two boxes | rows | GB/s that fit best | error with it |", "|---|---|---|---|---|"]
    for system, ranks in sorted({(row[0], row[1]) for row in boxes}):
        group = [row for row in boxes if row[:2] == (system, ranks)]
        rate, error = network_fit(group)
        lines.append(f"| {system} | {ranks} | {len(group)} | {rate / 1e9:.1f} | {100 * error:.0f} |")
    return lines


def _sizes(rows: Sequence[Measured]) -> list[str]:
    lines = [
        "| first table | second table | collective | n | if bytes | if values of fp16 |",
        "|---|---|---|---|---|---|",
    ]
    for first, second, collective, count, as_bytes, as_values in size_ratios(rows):
        lines.append(f"| {first} | {second} | {collective} | {count} | {as_bytes:.2f} | {as_values:.2f} |")
    return lines


INTRODUCTION = """\
How long an all-reduce, an all-gather, a reduce-scatter and an all-to-all take by themselves, beside measurements that
others published (aiconfigurator, vTrain, vidur, SuperScaler, openxla): mean error over rows, in percent. By `python -m
studies collectives`; the law is in `predict/comm/nccl.py`, its constants in `predict/comm/fitted.toml`
and `hardware/links.toml`.

'Ours' was fitted on these very rows. 'System left out' refits without the system of the row (its link is then known
from other systems, or has the mean of the other links of its kind); 'link left out' without all systems of the link;
– where nothing of the kind of wire is left. The nominal ring has the rate of the data sheet and the link's latency.
All cells by ranks and size are in `studies/collectives/result.csv`."""

BY_LINK = """\
Messages of at least 1 MB, as gradients and activations are. All-to-alls in a V100's mesh, where not every pair has a
link, are forecast at half of their time. SuperScaler's times are wall clock with copies of tensor lists in them, and
differ from vTrain's by up to a factor of two on the same kind of box: two V100s are joined by one link or by two.
With the link left out, the links of a V100's mesh are counted, not fitted."""

BY_SYSTEM = """\
Small messages differ by who measured: openxla's on an H100 take three times as long as nccl-tests', as a launch is in
them. vidur's below 1 MB are left out, since kernels there mostly wait for each other."""

PAIRS_TEXT = """\
A100 and H100 cards joined in pairs by a bridge; four ranks go over PCI Express with peer access, which sustains 0.75 of
its rate (`pcie4_switch`, `pcie5_switch`: fitted on these rows of four ranks), about twice what cards without peer
access get."""

BOXES_TEXT = """\
The only all-reduces between boxes in these tables are vidur's over a network that it does not name. One rate is fitted
to each number of ranks: what is left says how well the form of the law holds, not how fast a network is. The rates grow
with the ranks of a box, as if each had a card of its own. Rates of InfiniBand and Ethernet are therefore those of other
sources ([many GPUs](scaling-accuracy.md)). Inside a GB200 rack NVLink joins the hosts; these rows, of up to 72 ranks,
are in the tables above."""

SIZES_TEXT = """\
`collectives_modern` has a `message_size` without a unit. Seconds of the same device, wires and collective in it over
those in the other table at equal bytes (median, above 8 MB): it counts values of fp16, so bytes are twice that."""
