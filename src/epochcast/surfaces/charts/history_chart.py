"""The report of `epochcast history compare`: predicted against measured, error by past jobs, effects of columns."""

from collections.abc import Mapping, Sequence
from typing import Any

from epochcast.observe.history.history_compare import HistoryComparison
from epochcast.observe.history.learning_curve import Point
from epochcast.observe.history.models.model_table import MODELS
from epochcast.surfaces.charts.chart_file import altair_module
from epochcast.surfaces.charts.scatter_chart import predicted_against_measured

MOST_COLUMNS = 20


def history_report(
    comparison: HistoryComparison, curve: Sequence[Point], effects: Mapping[str, float], model: str
) -> Any:
    """All charts below each other; `effects` are those of `model`."""
    alt = altair_module()
    scatters = [
        predicted_against_measured(
            tested.measured.tolist(),
            tested.mid.tolist(),
            [result.best] * len(tested.measured),
            f"{comparison.target_name}, split {name}: {result.best}",
        )
        for name, result in comparison.splits.items()
        if result.best is not None
        for tested in [result.models[result.best]]
    ]
    charts = [*scatters, _errors(alt, comparison), _curve(alt, curve), _effects(alt, effects, model)]
    return alt.vconcat(*charts).resolve_scale(color="independent", x="independent", y="independent")


def _errors(alt: Any, comparison: HistoryComparison) -> Any:
    """Mean error of every model, split by split."""
    values = [
        {"split": name, "model": model, "error": tested.scores.mape}
        for name, result in comparison.splits.items()
        for model, tested in result.models.items()
        if tested.scores.mape is not None
    ]
    return (
        alt.Chart(alt.Data(values=values))
        .mark_point(filled=True, size=60)
        .encode(
            x=alt.X("error:Q", title="mean relative error", scale=alt.Scale(type="log"), axis=alt.Axis(format="%")),
            y=alt.Y("model:N", title=None, sort="x"),
            color=alt.Color("split:N", title="split"),
            tooltip=["model:N", "split:N", alt.Tooltip("error:Q", format=".1%")],
        )
        .properties(width=460, title="Error of every model on every split")
    )


def _curve(alt: Any, curve: Sequence[Point]) -> Any:
    values = [{"model": point.model, "jobs": point.jobs, "error": point.mape} for point in curve]
    return (
        alt.Chart(alt.Data(values=values))
        .mark_line(point=True)
        .encode(
            x=alt.X("jobs:Q", title="past jobs", scale=alt.Scale(type="log")),
            y=alt.Y("error:Q", title="mean relative error", scale=alt.Scale(type="log"), axis=alt.Axis(format="%")),
            color=alt.Color("model:N", title="model"),
            tooltip=["model:N", "jobs:Q", alt.Tooltip("error:Q", format=".1%")],
        )
        .properties(width=460, height=260, title="Error against the number of past jobs")
    )


def _effects(alt: Any, effects: Mapping[str, float], model: str) -> Any:
    """Bars begin at 1, a factor that moves nothing."""
    values = [{"column": name, "factor": factor, "one": 1.0} for name, factor in list(effects.items())[:MOST_COLUMNS]]
    beside = ", beside its physics" if model in MODELS and MODELS[model].needs_physics else ""
    most = max([1.01, *effects.values()])
    return (
        alt.Chart(alt.Data(values=values))
        .mark_bar(clip=True)
        .encode(
            x=alt.X(
                "factor:Q",
                title="factor by which it moves a prediction, on average",
                scale=alt.Scale(domain=[1.0, most], zero=False),
            ),
            x2="one:Q",
            y=alt.Y("column:N", title=None, sort="-x"),
        )
        .properties(width=460, title=f"What moves the predictions of {model}{beside}")
    )
