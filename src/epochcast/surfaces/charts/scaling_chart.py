"""Throughput, time, cost, speed-up and efficiency against the number of GPUs, with the ideal beside them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from epochcast.decide.scaling import Scaling, ScalingRow
from epochcast.interval import COVERAGE, Interval
from epochcast.surfaces.charts.chart_file import altair_module

WIDTH, HEIGHT, COLUMNS = 250, 190, 4
# By so much the bars of several lines are moved apart.
_ASIDE = 1.03


@dataclass(frozen=True, slots=True)
class Panel:
    """One small chart: what it shows, what an ideal job would show, and whether its axis is logarithmic."""

    title: str
    value: Callable[[ScalingRow], float | None]
    ideal: Callable[[ScalingRow, ScalingRow], float | None]
    is_log: bool = True
    format: str = "~s"
    ends: Callable[[ScalingRow], tuple[float, float] | None] = lambda row: None
    """The interval around the value; None where there is none."""


def _job(row: ScalingRow) -> float | None:
    total = row.forecast.total_seconds
    return None if total is None else total.mid / 3600


def _dollars(row: ScalingRow) -> float | None:
    return None if row.forecast.dollars is None else row.forecast.dollars.mid


def _step(row: ScalingRow) -> float:
    return row.forecast.step_seconds.mid


def _scaled(interval: Interval | None, by: float = 1.0) -> tuple[float, float] | None:
    return None if interval is None else (interval.low / by, interval.high / by)


def _rates(row: ScalingRow) -> tuple[float, float]:
    """Of samples: a short step is a high rate."""
    step, batch = row.forecast.step_seconds, row.forecast.global_batch
    return batch / step.high, batch / step.low


def _relative_batch(row: ScalingRow, first: ScalingRow) -> float:
    """The batch of one GPU, relative to that of the first row."""
    return row.forecast.global_batch / row.case.gpus / (first.forecast.global_batch / first.case.gpus)


def _divided(value: float | None, by: float) -> float | None:
    return None if value is None else value / by


PANELS = (
    Panel(
        "throughput, samples/s",
        lambda row: row.forecast.samples_per_second,
        lambda row, first: first.forecast.samples_per_second * row.case.gpus / first.case.gpus,
        ends=_rates,
    ),
    Panel(
        "step, seconds",
        _step,
        lambda row, first: _step(first) * _relative_batch(row, first),
        format="~g",
        ends=lambda row: _scaled(row.forecast.step_seconds),
    ),
    Panel(
        "job, hours",
        _job,
        lambda row, first: _divided(_job(first), row.case.gpus / first.case.gpus),
        format=",~g",
        ends=lambda row: _scaled(row.forecast.total_seconds, 3600),
    ),
    Panel(
        "cost, dollars",
        _dollars,
        lambda row, first: None,
        is_log=False,
        format="$,~r",
        ends=lambda row: _scaled(row.forecast.dollars),
    ),
    Panel("speed-up", lambda row: row.speedup, lambda row, first: float(row.case.gpus)),
    Panel("efficiency", lambda row: row.efficiency, lambda row, first: 1.0, is_log=False, format="%"),
    Panel(
        "waiting for other GPUs, share of a step",
        lambda row: row.exposed_comm_seconds / _step(row),
        lambda row, first: 0.0,
        is_log=False,
        format="%",
    ),
)


def scaling(answer: Scaling) -> Any:
    """Small charts side by side, a line per regime and all-reduce algorithm; dashes are the ideal."""
    alt = altair_module()
    first = answer.rows[0].forecast
    panels = [_panel(alt, answer, panel) for panel in PANELS]
    charts = [chart for chart in panels if chart is not None]
    title = alt.TitleParams(
        f"{first.model} on {first.device}",
        subtitle=f"{first.precision}, batch {first.batch_per_gpu} per GPU at the start; "
        f"bars: {COVERAGE:.0%} intervals; dashed: ideal",
        anchor="start",
    )
    return alt.concat(*charts, columns=COLUMNS, spacing=28).properties(title=title)


def _panel(alt: Any, answer: Scaling, panel: Panel) -> Any:
    has_several_algorithms = len({series.allreduce for series in answer.series}) > 1
    points: list[dict[str, object]] = []
    for place, series in enumerate(answer.series):
        name = f"{series.regime}, {series.allreduce}" if has_several_algorithms else series.regime
        for row in series.rows:
            value, ideal = panel.value(row), panel.ideal(row, series.rows[0])
            if value is None or (panel.is_log and value <= 0):
                continue
            low, high = panel.ends(row) or (value, value)
            beside = row.case.gpus * _ASIDE ** (place - (len(answer.series) - 1) / 2)
            point = {"gpus": row.case.gpus, "beside": beside, "value": value, "low": low, "high": high}
            points.append({**point, "ideal": ideal, "series": name, "regime": series.regime})
    if not points:
        return None
    counts = sorted({row.case.gpus for row in answer.rows})
    scale = alt.Scale(type="log", base=2, domain=[counts[0], counts[-1]], nice=False)
    x = alt.X("gpus:Q", title="GPUs", scale=scale, axis=alt.Axis(values=counts, format="d", labelOverlap=True))
    y_scale = alt.Scale(type="log") if panel.is_log else alt.Scale(zero=True)
    y = alt.Y("value:Q", title=None, scale=y_scale, axis=alt.Axis(format=panel.format, tickCount=5))
    base = alt.Chart(alt.Data(values=points))
    forecast_lines = base.mark_line(point=alt.OverlayMarkDef(size=36), strokeWidth=2).encode(
        x=x,
        y=y,
        color=alt.Color(
            "series:N", title=None, scale=alt.Scale(scheme="tableau10"), legend=alt.Legend(orient="bottom")
        ),
        tooltip=["series:N", "gpus:Q", "value:Q", "low:Q", "high:Q"],
    )
    bars = base.mark_rule(strokeWidth=1.5, opacity=0.6).encode(
        x=alt.X("beside:Q", scale=scale), y=alt.Y("low:Q", scale=y_scale), y2="high:Q", color=alt.Color("series:N")
    )
    ideal_lines = (
        base.transform_filter("isValid(datum.ideal)")
        .mark_line(color="#777777", strokeDash=[4, 3], strokeWidth=1)
        .encode(x=x, y=alt.Y("ideal:Q", scale=y_scale), detail="regime:N")
    )
    return alt.layer(ideal_lines, bars, forecast_lines).properties(
        width=WIDTH, height=HEIGHT, title=alt.TitleParams(panel.title, anchor="start", fontSize=12)
    )
