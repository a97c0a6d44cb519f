"""One decision as a mixed-integer program over patterns of machines (HiGHS).

Machines of a type are interchangeable, so there is no variable per machine: a *pattern* is a maximal split of the
GPUs of a type among job sizes, and n_p counts the machines that are used by pattern p.

    minimise   Σ_jc cost_jc · x_jc + Σ_j wait_j · (1 − Σ_c x_jc) + Σ_p price_p · n_p
    subject to Σ_c x_jc ≤ 1 ·  Σ_j x_jc ≤ Σ_p places_pc · n_p  ·  Σ_p n_p ≤ nodes, and quotas per type

The costs are those of `proxy`, in which a GPU carries a price for the jobs that wait: without it long jobs look cheap
to keep waiting.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from epochcast.errors import EpochcastError, MissingExtra
from epochcast.schedule.policies.decision_value import proxy
from epochcast.schedule.policies.ordered_policies import packable, slack
from epochcast.schedule.queue_state import Decision, GpuGrant, QueueState
from epochcast.schedule.workload_jobs import Fleet, GpuChoice, NodeType


class NotSolved(EpochcastError):
    """The solver gave no decision."""


@dataclass(frozen=True, slots=True)
class MachinePattern:
    """How the GPUs of one machine are shared out: places by choice."""

    kind: NodeType
    places: tuple[tuple[GpuChoice, int], ...]


def patterns(fleet: Fleet, choices: Sequence[GpuChoice]) -> tuple[MachinePattern, ...]:
    """All maximal splits of each type's GPUs among the sizes of its device."""
    maximal = []
    for kind in fleet.types:
        sizes = sorted({c.gpus for c in choices if c.device == kind.device and c.gpus <= kind.gpus}, reverse=True)
        for counts in _partitions(kind.gpus, sizes):
            places = tuple((GpuChoice(kind.device, size), n) for size, n in zip(sizes, counts, strict=True) if n)
            if places:
                maximal.append(MachinePattern(kind, places))
    return tuple(maximal)


def _partitions(gpus: int, sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Counts per size that leave no room for another of the smallest."""
    if not sizes:
        yield ()
        return
    if len(sizes) == 1:
        yield (gpus // sizes[0],)
        return
    for count in range(gpus // sizes[0], -1, -1):
        for rest in _partitions(gpus - count * sizes[0], sizes[1:]):
            yield (count, *rest)


def best_choices(
    fleet: Fleet,
    run_dollars: Mapping[str, Mapping[GpuChoice, float]],
    wait_dollars: Mapping[str, float],
    machine_dollars: Mapping[str, float],
    seconds_limit: float = 10.0,
) -> dict[str, GpuChoice]:
    """The choices with the least Σ run + Σ wait + Σ machine dollars (by name of the type); who is not named waits."""
    try:
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import lil_array
    except ImportError:
        raise MissingExtra("schedule", "scipy") from None

    pairs = [(name, choice) for name, by_choice in run_dollars.items() for choice in sorted(by_choice)]
    choices = sorted({choice for _, choice in pairs})
    all_patterns = patterns(fleet, choices)
    names = list(run_dollars)
    columns = len(pairs) + len(all_patterns)
    cost = np.array(
        [run_dollars[name][choice] - wait_dollars[name] for name, choice in pairs]
        + [machine_dollars[pattern.kind.name] for pattern in all_patterns]
    )
    rows = lil_array((len(names) + len(choices) + 1 + len(fleet.types), columns))
    limits = np.array([1.0] * len(names) + [0.0] * len(choices) + [float(fleet.nodes)] + _quotas(fleet))
    row_of = {name: row for row, name in enumerate(names)}
    place_of = {choice: len(names) + row for row, choice in enumerate(choices)}
    for column, (name, choice) in enumerate(pairs):
        rows[row_of[name], column] = 1.0
        rows[place_of[choice], column] = 1.0
    node_row = len(names) + len(choices)
    for column, pattern in enumerate(all_patterns, start=len(pairs)):
        for choice, places in pattern.places:
            rows[place_of[choice], column] = -float(places)
        rows[node_row, column] = 1.0
        rows[node_row + 1 + fleet.types.index(pattern.kind), column] = 1.0
    most = np.array([1.0] * len(pairs) + [float(fleet.nodes)] * len(all_patterns))
    solution = milp(
        cost,
        integrality=np.ones(columns),
        bounds=Bounds(0, most),
        constraints=LinearConstraint(rows.tocsr(), -np.inf, limits),
        options={"time_limit": seconds_limit},
    )
    if solution.x is None:
        raise NotSolved(f"no decision from the solver: {solution.message}")
    return {name: choice for (name, choice), x in zip(pairs, solution.x, strict=False) if x > 0.5}


def _quotas(fleet: Fleet) -> list[float]:
    return [float(fleet.nodes if kind.quota is None else kind.quota) for kind in fleet.types]


@dataclass(frozen=True, slots=True)
class MilpPolicy:
    """The program's decision at every event."""

    stops: bool = True
    resizes: bool = True

    def __call__(self, state: QueueState) -> Decision:
        """The best choices by the proxy, with the price of what waits."""
        worth = proxy(state, self.resizes, _congestion(state))
        run = {
            name: {c: d for c, d in by_choice.items() if self._is_open(state, name, c)}
            for name, by_choice in worth.run_dollars.items()
        }
        wait = {name: 1e12 if self._is_held(state, name) else dollars for name, dollars in worth.wait_dollars.items()}
        # Machines are paid through their GPUs; a whisper of a price keeps idle ones away.
        machines = {kind.name: 1e-9 * kind.gpus for kind in state.fleet.types}
        chosen = best_choices(state.fleet, run, wait, machines)
        decision = {name: GpuGrant(choice) for name, choice in chosen.items()}
        return packable(state, decision, sorted(chosen, key=lambda name: run[name][chosen[name]], reverse=True))

    def _is_held(self, state: QueueState, name: str) -> bool:
        live = state.live[name]
        return live.choice is not None and not (self.stops and live.job.is_preemptible)

    def _is_open(self, state: QueueState, name: str, choice: GpuChoice) -> bool:
        return choice == state.live[name].choice or not self._is_held(state, name)


def _congestion(state: QueueState) -> float:
    """Dollars per GPU second: what lateness costs those that have no place, over all GPUs."""
    gpus = state.fleet.nodes * max(kind.gpus for kind in state.fleet.types)
    needed = sum(min(c.gpus for c in live.job.seconds) for live in state.live.values())
    if needed <= gpus:
        return 0.0
    late = [
        live.job.tardiness_dollars_per_second
        for live in state.live.values()
        if live.choice is None and slack(live, state) < 0
    ]
    return sum(late) / gpus
