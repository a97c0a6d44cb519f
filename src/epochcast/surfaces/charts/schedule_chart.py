"""A simulated queue: who ran where and when, and what policies cost."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from epochcast.schedule.outcome import JobStay, Rental, SimulationOutcome
from epochcast.schedule.policy_comparison import PolicyComparison
from epochcast.surfaces.charts.chart_file import altair_module

WIDTH = 700
ROW_HEIGHT = 9


def gantt(outcome: SimulationOutcome, deadlines: Mapping[str, float], title: str) -> Any:
    """Bars of jobs on GPUs over time, a row per GPU; a job that ended after its deadline is drawn in another colour.

    A rented machine takes the first place that is free, so that there are as many places as machines at a time.
    """
    altair = altair_module()
    late = {end.job for end in outcome.ends if end.tardiness_seconds > 0}
    kinds = {rental.machine: rental.node_type for rental in outcome.rentals}
    rows = [
        {
            "place": f"{place + 1:03} · {gpu + 1}",
            "machine": f"{kinds[stay.machine]} {stay.machine}",
            "job": stay.job,
            "from": stay.start_seconds / 3600,
            "to": stay.end_seconds / 3600,
            "GPUs": stay.choice.gpus,
            "ended": "late" if stay.job in late else "in time",
            "deadline": deadlines[stay.job] / 3600,
        }
        for stay, place, gpus in _on_gpus(outcome)
        for gpu in gpus
    ]
    return (
        altair.Chart(altair.Data(values=rows), title=title)
        .mark_bar(stroke="white", strokeWidth=0.3)
        .encode(
            x=altair.X("from:Q", title="hours"),
            x2="to:Q",
            y=altair.Y("place:N", title="machine · GPU", axis=altair.Axis(labelFontSize=7)),
            color=altair.Color("ended:N", scale=altair.Scale(domain=["in time", "late"], range=["#4c78a8", "#e45756"])),
            tooltip=["job:N", "machine:N", "GPUs:Q", "from:Q", "to:Q", "deadline:Q"],
        )
        .properties(width=WIDTH, height=max(120, ROW_HEIGHT * len({row["place"] for row in rows})))
    )


def _on_gpus(outcome: SimulationOutcome) -> Iterator[tuple[JobStay, int, list[int]]]:
    """Every stay with its place and the GPUs there: the first that are free."""
    places = _places(outcome.rentals)
    free_at: dict[tuple[int, int], float] = {}
    for stay in sorted(outcome.stays, key=lambda stay: (stay.start_seconds, -stay.choice.gpus)):
        gpus: list[int] = []
        gpu = 0
        while len(gpus) < stay.choice.gpus:
            if free_at.get((stay.machine, gpu), 0.0) <= stay.start_seconds:
                gpus.append(gpu)
                free_at[stay.machine, gpu] = stay.end_seconds
            gpu += 1
        yield stay, places[stay.machine], gpus


def _places(rentals: Sequence[Rental]) -> dict[int, int]:
    """Of every machine a place, none of which has two machines at a time."""
    free_at: list[float] = []
    places = {}
    for rental in sorted(rentals, key=lambda rental: (rental.start_seconds, rental.machine)):
        place = next((n for n, until in enumerate(free_at) if until <= rental.start_seconds), len(free_at))
        free_at[place : place + 1] = [rental.end_seconds]
        places[rental.machine] = place
    return places


def policy_costs(answer: PolicyComparison) -> Any:
    """Machines and lateness of each policy, stacked, the bound as a line; the axis is logarithmic in neither."""
    altair = altair_module()
    rows = [
        {"policy": name, "what": cost, "dollars": dollars}
        for name, outcome in answer.outcomes.items()
        for cost, dollars in (("machines", outcome.machine_dollars), ("lateness", outcome.tardiness_dollars))
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
