"""Whether a speed is normal: the verdict, and the likeliest causes."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from epochcast.interval import Interval
from epochcast.observe.check.speed_check import Cause, SpeedCheck
from epochcast.observe.runs.speed_verdict import FASTER, NORMAL, SLOWER
from epochcast.surfaces.render.answer_header import assumed, header, place
from epochcast.surfaces.render.notes_view import Notes
from epochcast.surfaces.render.table_parts import INTERVAL, interval_cells, speed, table
from epochcast.units import show_seconds

_VERDICTS = {
    NORMAL: "normal, inside the forecast's interval",
    SLOWER: "slower than expected",
    FASTER: "faster than expected",
}
_SUSPICIOUS = "suspicious observation: check its unit, the model and the batch"


def speed_check(answer: SpeedCheck) -> RenderableType:
    """The verdict, the numbers behind it, and what to look at first."""
    forecast = answer.forecast
    title = header([place(forecast), f"batch {forecast.global_batch}"], forecast)
    verdict = f"verdict: {_VERDICTS.get(answer.verdict, _SUSPICIOUS)}, {factor_text(answer.factor)} the forecast"
    pieces: list[RenderableType] = [
        Text(verdict, style="bold"),
        Text(),
        table(title, f"| > seconds per step | > {INTERVAL} | ", list(_rows(answer))),
        *assumed(forecast),
    ]
    if answer.causes:
        rows = [_cause(cause) for cause in answer.causes]
        pieces += [Text(), table("likeliest causes", "cause | > likely | > explains | evidence", rows)]
        pieces += [Text(f"to test {cause.name}: {cause.separate_by}") for cause in answer.causes]
    pieces.append(Notes(forecast.warnings))
    return Group(*pieces)


def _rows(answer: SpeedCheck) -> Iterator[tuple[str, str, str, str]]:
    forecast = answer.forecast
    seen = forecast.global_batch / answer.observed_seconds.mid
    observed = " ".join(speed(seen, forecast.fed, forecast.tokens_per_sample))
    expected = " ".join(speed(forecast.samples_per_second, forecast.fed, forecast.tokens_per_sample))
    yield "observed", *interval_cells(answer.observed_seconds, show_seconds), f"{observed} ({answer.observation.text})"
    yield "forecast", *interval_cells(forecast.step_seconds, show_seconds), expected
    if answer.mfu is not None and forecast.mfu is not None:
        yield "MFU", f"{answer.mfu:.1%}", "", f"forecast {forecast.mfu:.1%}"


def factor_text(factor: Interval) -> str:
    """1.42× (1.05 … 1.9)"""
    return f"{factor.mid:.3g}× ({factor.low:.3g} … {factor.high:.3g})"


def _cause(cause: Cause) -> tuple[str, str, str, str]:
    sign = "+" if cause.explained_seconds.mid > 0 else ""
    explained = f"{sign}{show_seconds(cause.explained_seconds.mid)}"
    likely = "measured" if cause.is_measured else f"{cause.probability:.0%}"
    return cause.name, likely, explained, cause.evidence
