"""All policies by name. To add one, write its module and an entry here; tests put every entry through
`schedule.policy_contract`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from epochcast.errors import UnknownName
from epochcast.schedule.policies.fairness import MaxMin
from epochcast.schedule.policies.local_search import Greedy, LocalSearch, PathRelinking, RandomGreedy
from epochcast.schedule.policies.milp import MilpPolicy
from epochcast.schedule.policies.ordered_policies import (
    SharedMachines,
    WholeMachines,
    deadline,
    importance,
    remaining,
    service,
    slack,
    submission,
    unfairness,
)
from epochcast.schedule.policies.robust import Robust
from epochcast.schedule.policies.rollout import AtcIndex, RollOut
from epochcast.schedule.simulator import Policy


@dataclass(frozen=True, slots=True)
class PolicyPermissions:
    """What a policy may do to running jobs, and its seed."""

    stops: bool = True
    resizes: bool = True
    seed: int = 0


@dataclass(frozen=True, slots=True)
class PolicyEntry:
    """A policy of the table: what it does in a line, and how it is made.

    `always_keeps`: it never stops a job, whatever is asked. `shares_time`: it stops jobs so that all get their part,
    which costs restarts and gains nothing else. `is_compiled`: its first decision compiles it, unless that
    was kept. `make_quick` makes the same with a fraction of the work per decision, for simulated runs.
    """

    about: str
    make: Callable[[PolicyPermissions], Policy]
    always_keeps: bool = False
    shares_time: bool = False
    is_compiled: bool = False
    make_quick: Callable[[PolicyPermissions], Policy] | None = None


POLICIES: Mapping[str, PolicyEntry] = {
    "fifo": PolicyEntry("first come, whole machines", lambda s: WholeMachines(submission), True),
    "edf": PolicyEntry("earliest deadline, whole machines", lambda s: WholeMachines(deadline), True),
    "priority": PolicyEntry("most important, whole machines", lambda s: WholeMachines(importance), True),
    "fifo_shared": PolicyEntry("first come, machines shared", lambda s: SharedMachines(submission), True),
    "edf_shared": PolicyEntry("earliest deadline, machines shared", lambda s: SharedMachines(deadline), True),
    "priority_shared": PolicyEntry("most important, machines shared", lambda s: SharedMachines(importance), True),
    "srtf": PolicyEntry("shortest remaining time", lambda s: SharedMachines(remaining, s.stops, s.resizes)),
    "least_slack": PolicyEntry("least time to spare, keeps who runs", lambda s: SharedMachines(slack), True),
    "greedy": PolicyEntry("least time to spare", lambda s: Greedy(s.stops, s.resizes)),
    "random_greedy": PolicyEntry("best of shuffled orders", lambda s: RandomGreedy(s.stops, s.resizes, s.seed)),
    "local_search": PolicyEntry("greedy, then single changes", lambda s: LocalSearch(s.stops, s.resizes)),
    "path_relinking": PolicyEntry(
        "local search, then towards other good decisions", lambda s: PathRelinking(s.stops, s.resizes, s.seed)
    ),
    "atc": PolicyEntry("apparent tardiness cost", lambda s: AtcIndex(not s.stops, s.resizes), is_compiled=True),
    "atc_rollout": PolicyEntry(
        "apparent tardiness cost, played to the end",
        lambda s: RollOut(not s.stops, s.resizes, seed=s.seed),
        is_compiled=True,
        make_quick=lambda s: RollOut(not s.stops, s.resizes, perturbed=0, seed=s.seed),
    ),
    "atc_rollout_robust": PolicyEntry(
        "the same with the high ends of forecasts",
        lambda s: Robust(RollOut(not s.stops, s.resizes, seed=s.seed)),
        is_compiled=True,
        make_quick=lambda s: Robust(RollOut(not s.stops, s.resizes, perturbed=0, seed=s.seed)),
    ),
    "milp": PolicyEntry("one decision as an integer program", lambda s: MilpPolicy(s.stops, s.resizes)),
    "edf_shared_robust": PolicyEntry(
        "edf_shared with the high ends of forecasts", lambda s: Robust(SharedMachines(deadline)), True
    ),
    "greedy_robust": PolicyEntry(
        "greedy with the high ends of forecasts", lambda s: Robust(Greedy(s.stops, s.resizes))
    ),
    "milp_robust": PolicyEntry(
        "milp with the high ends of forecasts", lambda s: Robust(MilpPolicy(s.stops, s.resizes))
    ),
    "max_min": PolicyEntry("max-min fairness (Gavel)", lambda s: MaxMin(s.stops, s.resizes), shares_time=True),
    "finish_time_fairness": PolicyEntry(
        "finish-time fairness (Themis)",
        lambda s: SharedMachines(unfairness, s.stops, s.resizes),
        shares_time=True,
    ),
    "tiresias": PolicyEntry(
        "least attained service", lambda s: SharedMachines(service, s.stops, s.resizes), shares_time=True
    ),
}


def will_compile(names: Iterable[str]) -> bool:
    """Whether the first decision of one of these policies takes some seconds more, for compiling it."""
    if not any(name in POLICIES and POLICIES[name].is_compiled for name in names):
        return False
    from epochcast.schedule.policies.atc_rollout_kernel import roll_out
    from epochcast.schedule.policies.numba_functions import is_cached

    return not is_cached(roll_out)


def policy_named(name: str, switches: PolicyPermissions | None = None) -> Policy:
    """A policy of the table."""
    if name not in POLICIES:
        raise UnknownName("policy", name, POLICIES)
    return POLICIES[name].make(switches or PolicyPermissions())
