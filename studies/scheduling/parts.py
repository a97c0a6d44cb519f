"""What every part of the study gives: a piece of the page, rows of the table, and what is worse than it may be."""

from dataclasses import dataclass, field

from epochcast.schedule.outcome import SimulationOutcome
from epochcast.schedule.policies.policy_table import PolicyPermissions, policy_named
from epochcast.schedule.simulator import SimulationRules, simulate
from epochcast.schedule.workload_jobs import QueueWorkload

Row = list[object]


@dataclass
class Part:
    """A section with its rows: part, workload, policy, value, and what it is compared with."""

    text: str
    rows: list[Row] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


def played(
    workload: QueueWorkload, name: str, stops: bool = True, rules: SimulationRules | None = None
) -> SimulationOutcome:
    """A workload under a policy of the table."""
    return simulate(workload, policy_named(name, PolicyPermissions(stops, stops)), rules or SimulationRules())


def table(header: str, rows: list[list[str]]) -> str:
    """A table of Markdown."""
    names = header.split(" | ")
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
