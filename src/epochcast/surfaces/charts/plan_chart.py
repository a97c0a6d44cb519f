"""Cost against time of all configurations for a job: the frontier with its intervals, the others, and the limits."""

from typing import Any

from epochcast.decide.plan.candidate import Candidate
from epochcast.decide.plan.plan_answer import Plan
from epochcast.errors import BadInput
from epochcast.interval import COVERAGE
from epochcast.surfaces.charts.chart_file import altair_module
from epochcast.units import show_dollars, show_seconds

WIDTH, HEIGHT = 560, 400
DOMINATED, LINE, LIMIT = "#bbbbbb", "#555555", "#777777"


def plan(answer: Plan) -> Any:
    """Dollars against hours on logarithmic axes; bars are the intervals, a diamond is the chosen configuration."""
    if not answer.candidates:
        raise BadInput(f"nothing to draw: {answer.sentence}")
    alt = altair_module()
    labelled = answer.shown
    rows = [
        _row(candidate) | {"number": number, "label": _label(number, candidate)}
        for number, candidate in enumerate(labelled, 1)
    ]
    scale = alt.Scale(type="log", nice=False, padding=16)
    x = alt.X("hours:Q", title="job, hours", scale=scale, axis=alt.Axis(format="~g", labelOverlap=True))
    y = alt.Y("dollars:Q", title="cost, dollars", scale=scale, axis=alt.Axis(format="$,~g", labelOverlap=True))
    colour = alt.Color(
        "label:N",
        title="cheapest to fastest",
        sort=[row["label"] for row in rows],
        scale=alt.Scale(scheme="viridis"),
        legend=alt.Legend(labelLimit=340, symbolType="circle"),
    )
    tooltip = ["offer:N", "cloud:N", "GPUs:N", "strategy:N", "batch:Q", "hours:Q", "dollars:Q"]

    def chart_of(values: list[dict[str, Any]]) -> Any:
        return alt.Chart(alt.Data(values=values)).encode(x=x, y=y)

    dominated = [_row(candidate) for candidate in answer.candidates if candidate not in labelled]
    chart = chart_of(rows)
    layers = [
        chart_of(dominated).mark_circle(size=16, color=DOMINATED, opacity=0.7).encode(tooltip=tooltip),
        chart_of([_row(candidate) for candidate in answer.frontier]).mark_line(
            color=LINE, strokeWidth=1, interpolate="step-after", strokeDash=[4, 3]
        ),
        chart.mark_rule(opacity=0.6).encode(x="low hours:Q", x2="high hours:Q", y=y, color=colour),
        chart.mark_rule(opacity=0.6).encode(x=x, y="low dollars:Q", y2="high dollars:Q", color=colour),
        chart.mark_circle(size=80, opacity=1).encode(color=colour, tooltip=tooltip),
        chart.mark_text(align="left", dx=7, dy=-8, fontSize=11).encode(text="number:N"),
    ]
    if answer.chosen is not None:
        diamond = chart_of([_row(answer.chosen)]).mark_point(shape="diamond", size=280, strokeWidth=2, color="#d62728")
        layers.append(diamond.encode(tooltip=tooltip))
    layers += _limit_lines(alt, answer)
    return alt.layer(*layers).properties(width=WIDTH, height=HEIGHT, title=_title(alt, answer))


def _label(number: int, candidate: Candidate) -> str:
    time, cost = show_seconds(candidate.total_seconds.mid), show_dollars(candidate.dollars.mid)
    return f"{number}. {candidate.offer.name}, {candidate.offer.instance.cloud}: {time}, {cost}"


def _row(candidate: Candidate) -> dict[str, Any]:
    offer, total, dollars = candidate.offer, candidate.total_seconds, candidate.dollars
    return {
        "offer": offer.name,
        "cloud": offer.instance.cloud,
        "GPUs": f"{offer.gpus} × {offer.instance.device}",
        "strategy": candidate.strategy,
        "batch": candidate.global_batch,
        "hours": total.mid / 3600,
        "low hours": total.low / 3600,
        "high hours": total.high / 3600,
        "dollars": dollars.mid,
        "low dollars": dollars.low,
        "high dollars": dollars.high,
    }


def _limit_lines(alt: Any, answer: Plan) -> list[Any]:
    """A line at the deadline, a line at the budget."""
    lines = []
    if answer.limits.deadline_seconds is not None:
        data = alt.Data(values=[{"hours": answer.limits.deadline_seconds / 3600}])
        lines.append(alt.Chart(data).mark_rule(color=LIMIT, strokeDash=[2, 3]).encode(x="hours:Q"))
    if answer.limits.budget_dollars is not None:
        data = alt.Data(values=[{"dollars": answer.limits.budget_dollars}])
        lines.append(alt.Chart(data).mark_rule(color=LIMIT, strokeDash=[2, 3]).encode(y="dollars:Q"))
    return lines


def _title(alt: Any, answer: Plan) -> Any:
    job = answer.job
    data = f" on {job.dataset}" if job.dataset else ""
    parts = [
        " or ".join(dict.fromkeys(row.forecast.precision for row in answer.shown)),
        f"bars: {COVERAGE:.0%} intervals".replace("%", " %"),
        "grey: dominated",
    ]
    parts += ["diamond: chosen"] if answer.chosen else []
    parts += ["dotted: limits"] if answer.limits else []
    title = f"{answer.model}{data}, {answer.amount}: what to rent"
    return alt.TitleParams(title, subtitle=", ".join(parts), anchor="start")
