"""Offers of the same GPUs as one row: what is shown of a plan, and the best that lost against the choice."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from epochcast.base.record import Record, paths
from epochcast.decide.plan.candidate import Candidate
from epochcast.decide.plan.choice import PlanLimits
from epochcast.decide.plan.plan_sentences import compared

GpuKind = tuple[str, int]


def kind_of(candidate: Candidate) -> GpuKind:
    """The GPUs of an offer: their type and how many; offers that agree in it are folded into one row."""
    return candidate.offer.instance.device, candidate.offer.gpus


def folded(rows: Iterable[Candidate], choice: Candidate | None) -> tuple[Candidate, ...]:
    """One row per kind of GPUs, in order: the choice, else the first."""
    kinds = {} if choice is None else {kind_of(choice): choice}
    kept: dict[GpuKind, Candidate] = {}
    for row in rows:
        kept.setdefault(kind_of(row), kinds.get(kind_of(row), row))
    return tuple(kept.values())


def sellers(candidate: Candidate, candidates: Iterable[Candidate]) -> int:
    """How many clouds sell these GPUs for the job."""
    return len({other.offer.instance.cloud for other in candidates if kind_of(other) == kind_of(candidate)})


@dataclass(frozen=True, slots=True)
class RunnerUp(Record):
    """The best configuration on other GPUs that is not chosen, and why."""

    candidate: Candidate
    why: str

    json_paths: ClassVar[Mapping[str, str]] = paths(
        "why",
        offer="candidate.offer.instance.name",
        cloud="candidate.offer.instance.cloud",
        device="candidate.offer.instance.device",
        gpus="candidate.offer.gpus",
        nodes="candidate.offer.nodes",
        total_seconds="candidate.total_seconds",
        dollars="candidate.dollars",
    )


def runners_up(
    choice: Candidate, candidates: Sequence[Candidate], undominated: Sequence[Candidate], limits: PlanLimits, goal: str
) -> tuple[RunnerUp, ...]:
    """The best on other GPUs that misses a limit and is better than the choice, and the next best that meets both."""
    others = [each for each in candidates if kind_of(each) != kind_of(choice)]
    if goal == "knee":  # its neighbours on the frontier
        others = [each for each in undominated if kind_of(each) != kind_of(choice)]

    def value(candidate: Candidate) -> tuple[float, float]:
        time, money = candidate.total_seconds.mid, candidate.dollars.mid
        if goal == "fastest":
            return time, money
        return (money, time) if goal == "cheapest" else (abs(money - choice.dollars.mid), time)

    missing = [each for each in others if limits.excess(each) > 1 and (goal == "knee" or value(each) < value(choice))]
    meeting = [each for each in others if limits.excess(each) <= 1]
    best = [min(rows, key=value) for rows in (missing, meeting) if rows]
    return tuple(RunnerUp(each, compared(each, choice, limits)) for each in best)
