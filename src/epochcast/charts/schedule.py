"""A simulated queue: who ran where and when, and what policies cost."""

from collections.abc import Mapping
from typing import Any

from epochcast.charts.save import altair_module
from epochcast.scheduling.comparison import Comparison
from epochcast.scheduling.outcome import Outcome

WIDTH = 700
ROW_HEIGHT = 12


def gantt(outcome: Outcome, deadlines: Mapping[str, float], title: str) -> Any:
    """Bars of jobs on machines over time; a job that ended after its deadline is drawn in another colour."""
    altair = altair_module()
    kinds = {rental.machine: rental.node_type for rental in outcome.rentals}
    late = {end.job for end in outcome.ends if end.tardiness_seconds > 0}
    rows = [
        {
            "machine": f"{kinds.get(stay.machine, '')} {stay.machine:03}",
            "job": stay.job,
            "from": stay.start_seconds / 3600,
            "to": stay.end_seconds / 3600,
            "GPUs": stay.choice.gpus,
            "ended": "late" if stay.job in late else "in time",
            "deadline": deadlines[stay.job] / 3600,
        }
        for stay in outcome.stays
    ]
    return (
        altair.Chart(altair.Data(values=rows), title=title)
        .mark_bar(stroke="white", strokeWidth=0.3)
        .encode(
            x=altair.X("from:Q", title="hours"),
            x2="to:Q",
            y=altair.Y("machine:N", title=None, axis=altair.Axis(labelFontSize=8)),
            color=altair.Color("ended:N", scale=altair.Scale(domain=["in time", "late"], range=["#4c78a8", "#e45756"])),
            opacity=altair.Opacity("GPUs:Q", scale=altair.Scale(range=[0.45, 1.0]), legend=None),
            tooltip=["job:N", "machine:N", "GPUs:Q", "from:Q", "to:Q", "deadline:Q"],
        )
        .properties(width=WIDTH, height=max(120, ROW_HEIGHT * len({row["machine"] for row in rows})))
    )


def policy_costs(answer: Comparison) -> Any:
    """Machines and lateness of each policy, stacked, the bound as a line; the axis is logarithmic in neither."""
    altair = altair_module()
    rows = [
        {"policy": name, "what": what, "dollars": dollars}
        for name, outcome in answer.outcomes.items()
        for what, dollars in (("machines", outcome.machine_dollars), ("lateness", outcome.tardiness_dollars))
    ]
    bars = (
        altair.Chart(altair.Data(values=rows))
        .mark_bar()
        .encode(
            x=altair.X("sum(dollars):Q", title="dollars"),
            y=altair.Y("policy:N", sort="x", title=None),
            color=altair.Color("what:N", title=None, scale=altair.Scale(range=["#e45756", "#4c78a8"])),
            tooltip=["policy:N", "what:N", "dollars:Q"],
        )
        .properties(width=WIDTH)
    )
    if answer.bound_dollars is None:
        return bars
    line = altair.Chart(altair.Data(values=[{"bound": answer.bound_dollars}]))
    return bars + line.mark_rule(strokeDash=[4, 3]).encode(x="bound:Q")
