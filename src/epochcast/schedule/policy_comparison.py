"""Several policies on one workload, beside the lower bound."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from epochcast.schedule.lower_bound import keeping_bound_dollars, lower_bound_dollars
from epochcast.schedule.outcome import SimulationOutcome
from epochcast.schedule.policies.policy_table import POLICIES, Switches, policy_named
from epochcast.schedule.simulator import SimulationRules, simulate
from epochcast.schedule.workload_jobs import QueueWorkload

KEEPING = "_keeping"
"""Behind the name of a policy that was not allowed to stop or resize jobs."""


@dataclass(frozen=True)
class PolicyComparison:
    """Outcomes by name, and what nobody can pay less than (None: not asked for).

    `keeping` are those that stop nobody; what none of them can pay less than is larger.
    """

    outcomes: Mapping[str, SimulationOutcome]
    bound_dollars: float | None
    keeping: frozenset[str] = frozenset()
    keeping_bound_dollars: float | None = None

    def bound_of(self, name: str) -> float | None:
        """The bound of a policy: of all, or of those that stop nobody."""
        return self.keeping_bound_dollars if name in self.keeping else self.bound_dollars

    def gap(self, name: str) -> float | None:
        """By what fraction a policy is above its bound."""
        bound = self.bound_of(name)
        return self.outcomes[name].dollars / bound - 1 if bound else None

    def as_dict(self) -> dict[str, Any]:
        """By the names of the JSON contract."""
        policies = {
            name: {**outcome.as_dict(), "bound_dollars": self.bound_of(name), "gap": self.gap(name)}
            for name, outcome in self.outcomes.items()
        }
        return {"bound_dollars": self.bound_dollars, "policies": policies}


def compare(
    workload: QueueWorkload,
    policies: Sequence[str],
    switches: Sequence[Switches],
    rules: SimulationRules,
    bound: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> PolicyComparison:
    """Every policy under all switches that make a difference to it."""
    todo = [
        (name if one.stops else name + KEEPING, name, one)
        for name in policies
        for one in switches
        if one.stops or not POLICIES[name].always_keeps or len(switches) == 1
    ]
    outcomes: dict[str, SimulationOutcome] = {}
    for number, (label, name, one) in enumerate(todo):
        if progress is not None:
            progress(number, len(todo))
        outcomes[label] = simulate(workload, policy_named(name, one), rules)
    keeping = frozenset(label for label, name, one in todo if not one.stops or POLICIES[name].always_keeps)
    if not bound:
        return PolicyComparison(outcomes, None, keeping)
    least = lower_bound_dollars(workload)
    return PolicyComparison(outcomes, least, keeping, max(least, keeping_bound_dollars(workload) or 0.0))
