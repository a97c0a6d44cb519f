"""Requests about a queue: plan it (`ScheduleRequest`), compare policies (`SimulationRequest`) or run it
(`RunQueueRequest`).

Flags of `epochcast schedule`, keywords of `epochcast.schedule_plan` and options of the API follow from the fields.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import ClassVar

from epochcast.base.current_time import now
from epochcast.base.options import option
from epochcast.decide.plan.deadline import seconds_until
from epochcast.errors import BadInput
from epochcast.schedule.workload_jobs import check_declared
from epochcast.units import parse_seconds

DEFAULT_POLICY = "atc_rollout"
DRAWS = 99
MOST_DRAWS = 10_000
MOST_ERROR = 3
ENGINES = ("local", "ray", "slurm")

_EVERY = "Decide at least this often, like 10min, besides at events."
_SEED = "Seed for random draws [default: 0]."
_period = partial(option, unit="seconds", above=0, parse=partial(parse_seconds, unit="s"))


def _moment(text: str) -> datetime:
    """A time as people say it; in its own zone where it has one."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is not None and moment.tzinfo is not None:
        return moment
    current = now()
    return current + timedelta(seconds=seconds_until(text, current, "at"))


@dataclass(frozen=True, slots=True)
class ScheduleRequest:
    """How a queue is planned."""

    policy: str | None = option(
        None, "Scheduling policy, see `epochcast schedule policies` [default: that of the run, or atc_rollout]."
    )
    at: datetime | None = option(None, "As of this time instead of now, like 2026-11-17T09:00.", parse=_moment)
    preemption: bool = option(
        True,
        "Whether running jobs may be stopped and resized: with or without [default: with].",
        words={"with": True, "without": False},
    )
    every_seconds: float | None = option(
        None, _EVERY, flag="--every", unit="seconds", above=0, parse=partial(parse_seconds, unit="min")
    )
    error: float | None = option(
        None, "Spread of run times without an interval, as exp(σz): σ, like 0.2.", least=0, most=MOST_ERROR
    )
    draws: int = option(DRAWS, "Simulated runs that the intervals are made of.", least=1, most=MOST_DRAWS)
    seed: int = option(0, _SEED)

    def __post_init__(self) -> None:
        check_declared(self)


@dataclass(frozen=True, slots=True)
class SimulationRequest:
    """Which policies play a workload to its end, and how."""

    PREEMPTION: ClassVar = {"with": (True,), "without": (False,), "both": (True, False)}

    policies: tuple[str, ...] = option(
        (DEFAULT_POLICY,),
        "Policies to compare, separated by commas; all for every one.",
        flag="--policy",
    )
    preemption: str = option("with", "Whether running jobs may be stopped and resized: with, without, or both.")
    resizing: bool = option(True, "Whether a preempted job may continue on another machine or number of GPUs.")
    every_seconds: float | None = option(
        None, _EVERY, flag="--every", unit="seconds", above=0, parse=partial(parse_seconds, unit="min")
    )
    error: float = option(0.0, "Forecasts err by exp(σz), one z per job: σ, like 0.3.", least=0, most=MOST_ERROR)
    reestimate: bool = option(False, "Let the progress of running jobs correct their forecasts.")
    seed: int = option(0, _SEED)
    bound: bool = option(True, "Solve for the lower bound, too [default: yes].")

    def __post_init__(self) -> None:
        check_declared(self)
        if self.preemption not in self.PREEMPTION:
            raise BadInput(f"preemption must be with, without or both, got {self.preemption!r}")
        names = (name.strip() for text in self.policies for name in text.split(","))
        object.__setattr__(self, "policies", tuple(dict.fromkeys(name for name in names if name)))
        if not self.policies:
            raise BadInput("policies must name a policy")


@dataclass(frozen=True, slots=True)
class RunQueueRequest:
    """How a queue is run: the engine and the policy, how often both are asked, and when the scheduler stops."""

    engine: str = option("local", "Engine that runs the jobs: local, ray or slurm.")
    name: str | None = option(None, "Name of the queue in the store [default: the file's].")
    policy: str = option(DEFAULT_POLICY, "Scheduling policy, see `epochcast schedule policies`.")
    keep_running: bool = option(False, "Never preempt or resize a running job.")
    every_seconds: float = _period(
        30.0, "Reschedule at least this often, and at every event.", flag="--every", default_text="30s"
    )
    look_seconds: float = _period(2.0, "Poll the engine this often.", flag="--look", default_text="2s")
    address: str | None = option(None, "Ray's dashboard, like http://head:8265.")
    sbatch: str = option("", "Extra options for sbatch, like '--partition=gpu'.")
    stay: bool = option(False, "Wait for more jobs when all have finished.")
    stop_jobs: bool = option(False, "When interrupted, also stop the jobs [default: they keep running].")

    def __post_init__(self) -> None:
        check_declared(self)
        if self.engine not in ENGINES:
            raise BadInput(f"engine must be local, ray or slurm, got {self.engine!r}")
