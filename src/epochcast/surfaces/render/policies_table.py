"""Queues: policies compared, and the table of policies."""

from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.text import Text

from epochcast.schedule.policies.policy_table import PolicyEntry
from epochcast.schedule.policy_comparison import PolicyComparison
from epochcast.surfaces.render.table_parts import table
from epochcast.units import show_dollars, show_seconds


def simulation(answer: PolicyComparison) -> RenderableType:
    """A row per policy, the cheapest first."""
    rows = []
    for name, outcome in sorted(answer.outcomes.items(), key=lambda item: item[1].dollars):
        rows.append(
            [
                name,
                show_dollars(outcome.dollars),
                show_dollars(outcome.machine_dollars),
                show_dollars(outcome.tardiness_dollars),
                f"{outcome.deadline_misses:,} of {outcome.jobs:,}",
                "" if outcome.gap is None else f"+{outcome.gap:.1%}",
                show_seconds(outcome.mean_completion_seconds),
                f"{outcome.preemptions + outcome.resizes:,}",
                show_seconds(outcome.decision_seconds_p99),
            ]
        )
    columns = (
        "policy | > dollars | > machines | > lateness | > late | > above bound | > mean time | > changes | > decision"
    )
    caption = "changes: jobs stopped or resized; decision: 99 of 100 take at most this"
    pieces: list[RenderableType] = [
        table("Policies on one queue", columns, rows, caption, drop=("changes", "decision", "mean time", "machines"))
    ]
    if answer.bound_dollars is not None:
        pieces.append(Text(_bounds(answer)))
    return Group(*pieces)


def _bounds(answer: "PolicyComparison") -> str:
    assert answer.bound_dollars is not None
    line = f"no policy can pay less than {show_dollars(answer.bound_dollars)}"
    keeping_dollars = answer.keeping_bound_dollars
    if not answer.keeping or keeping_dollars is None or keeping_dollars <= answer.bound_dollars:
        return line
    return f"{line}; one that stops no job, no less than {show_dollars(keeping_dollars)}"


def policies(entries: Mapping[str, PolicyEntry]) -> RenderableType:
    """The names and what they do."""
    rows = [[name, entry.about, "never" if entry.always_keeps else "yes"] for name, entry in entries.items()]
    return table("Policies", "policy | orders by | stops jobs", rows)
