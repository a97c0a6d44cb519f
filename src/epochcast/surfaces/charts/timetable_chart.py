"""A timetable as bars over time: a row per job, whiskers for the interval of its end, a tick for its deadline."""

from typing import Any

from epochcast.errors import BadInput
from epochcast.schedule.timetable import Timetable
from epochcast.surfaces.charts.chart_file import altair_module

WIDTH, ROW_HEIGHT, LEAST_HEIGHT = 700, 22, 80
LATE = "#e45756"
FURTHER = 0.3
"""Of the whole plan: how far behind its end deadlines are drawn."""


def timetable(answer: Timetable) -> Any:
    """Bars are the plan, coloured by the type of machine; a deadline that is rather missed than met is red."""
    if not answer.lines:
        raise BadInput("nothing to draw: the queue has no jobs")
    alt = altair_module()
    order = [line.job for line in answer.lines]
    clock = answer.clock

    def at(seconds: float) -> str:
        # Without a zone: a chart shows the hours of the queue's clock wherever it is drawn.
        return clock.at(seconds).replace(tzinfo=None).isoformat(timespec="seconds")

    bars = [
        {
            "job": line.job,
            "from": at(stay.start_seconds),
            "to": at(stay.end_seconds),
            "machine": stay.node_type,
            "GPUs": stay.choice.gpus,
            "label": f"{stay.choice.gpus} GPU{'s' * (stay.choice.gpus > 1)}",
            "late": line.late_probability,
        }
        for line in answer.lines
        for stay in line.stays
    ]
    ends = [
        {
            "job": line.job,
            "low": at(line.end.low),
            "end": at(line.end.mid),
            "high": at(line.end.high),
            "start low": at(line.start.low),
            "start high": at(line.start.high),
            "deadline": at(line.deadline_seconds),
            "missed": line.late_probability > 0.5,
        }
        for line in answer.lines
    ]
    # A deadline far behind the last end would leave the bars no room.
    last = max(line.end.high for line in answer.lines)
    horizon = last + FURTHER * (last - answer.now_seconds)
    due = [row for row, line in zip(ends, answer.lines, strict=True) if line.deadline_seconds <= horizon]
    zone = clock.at(answer.now_seconds).strftime("%Z")
    y = alt.Y("job:N", sort=order, title=None)
    axis = alt.Axis(format="%a %H:%M", labelOverlap=True)
    x_title = f"time ({zone})"
    bar = (
        alt.Chart(alt.Data(values=bars))
        .mark_bar(height={"band": 0.62}, stroke="white", strokeWidth=0.5)
        .encode(
            x=alt.X("from:T", title=x_title, axis=axis),
            x2="to:T",
            y=y,
            color=alt.Color("machine:N", title="machine"),
            opacity=alt.Opacity("GPUs:Q", scale=alt.Scale(range=[0.55, 1.0]), legend=None),
            tooltip=["job:N", "machine:N", "GPUs:Q", "from:T", "to:T", "late:Q"],
        )
    )
    whiskers = alt.Chart(alt.Data(values=ends))
    end = whiskers.mark_rule(strokeWidth=2, color="#333333").encode(x="low:T", x2="high:T", y=y)
    caps = [
        whiskers.mark_tick(thickness=2, size=ROW_HEIGHT * 0.4, color="#333333").encode(x=f"{name}:T", y=y)
        for name in ("low", "high")
    ]
    start = whiskers.mark_rule(strokeWidth=2, color="#999999", strokeDash=[2, 2]).encode(
        x="start low:T", x2="start high:T", y=y
    )
    deadlines = (
        alt.Chart(alt.Data(values=due))
        .mark_tick(thickness=3, size=ROW_HEIGHT * 0.9)
        .encode(x="deadline:T", y=y, color=alt.condition("datum.missed", alt.value(LATE), alt.value("#54a24b")))
    )
    title = alt.Title(
        f"Timetable, {answer.policy}",
        subtitle=f"bars: the plan; whiskers: {answer.coverage:.0%} of ends (dashed: of starts); tick: deadline, red "
        "where it is likely missed",
    )
    height = max(LEAST_HEIGHT, ROW_HEIGHT * len(order))
    return alt.layer(bar, start, end, *caps, deadlines).properties(width=WIDTH, height=height, title=title)
