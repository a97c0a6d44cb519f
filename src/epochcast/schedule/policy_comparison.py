"""Several policies on one workload, beside the lower bound."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from epochcast.base.record import Record, json_hidden, json_name
from epochcast.errors import UnknownName
from epochcast.schedule.lower_bound import keeping_bound_dollars, lower_bound_dollars
from epochcast.schedule.outcome import SimulationOutcome
from epochcast.schedule.policies.policy_table import POLICIES, PolicyPermissions, policy_named
from epochcast.schedule.schedule_request import SimulationRequest
from epochcast.schedule.simulator import SimulationRules, simulate
from epochcast.schedule.workload_jobs import QueueWorkload

KEEPING = "_keeping"
"""Behind the name of a policy that was not allowed to stop or resize jobs."""


@dataclass(frozen=True)
class PolicyComparison(Record):
    """Outcomes by name, and what nobody can pay less than (None: not asked for).

    `keeping` are those that stop nobody; what none of them can pay less than is larger.
    """

    outcomes: Mapping[str, SimulationOutcome] = json_name("policies")
    bound_dollars: float | None = None
    keeping: frozenset[str] = json_hidden(default=frozenset())
    keeping_bound_dollars: float | None = json_hidden(default=None)


def policy_names(request: SimulationRequest) -> tuple[str, ...]:
    """The policies that a request names; `all` is every one."""
    if request.policies == ("all",):
        return tuple(POLICIES)
    for name in request.policies:
        if name not in POLICIES:
            raise UnknownName("policy", name, POLICIES)
    return request.policies


def compare_policies(
    workload: QueueWorkload,
    request: SimulationRequest,
    rules: SimulationRules,
    progress: Callable[[int, int], None] | None = None,
) -> PolicyComparison:
    """Every policy with and without preemption, as asked, where that makes a difference to it."""
    every_seconds = rules.every_seconds if request.every_seconds is None else request.every_seconds
    rules = replace(
        rules, every_seconds=every_seconds, reestimate=request.reestimate, seed=request.seed, tracking_error=1.0
    )
    both = [
        PolicyPermissions(may_stop, may_stop and request.resizing, request.seed)
        for may_stop in request.PREEMPTION[request.preemption]
    ]
    todo = [
        (name if permissions.stops else name + KEEPING, name, permissions)
        for name in policy_names(request)
        for permissions in both
        if permissions.stops or not POLICIES[name].always_keeps or len(both) == 1
    ]
    outcomes: dict[str, SimulationOutcome] = {}
    for number, (label, name, permissions) in enumerate(todo):
        if progress is not None:
            progress(number, len(todo))
        outcomes[label] = simulate(workload, policy_named(name, permissions), rules)
    keeping = frozenset(
        label for label, name, permissions in todo if not permissions.stops or POLICIES[name].always_keeps
    )
    if not request.bound:
        return PolicyComparison(outcomes, None, keeping)
    least = lower_bound_dollars(workload)
    least_keeping = max(least, keeping_bound_dollars(workload) or 0.0)
    for label, outcome in outcomes.items():
        outcome.bound_dollars = least_keeping if label in keeping else least
    return PolicyComparison(outcomes, least, keeping, least_keeping)
