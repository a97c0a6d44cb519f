"""Any policy, stopping and moving running jobs only for a gain: for `schedule run`, where every restart is real.

A policy compares decisions under forecasts that waver from look to look, and among jobs that are alike each change
looks as good as none. So a decision that disturbs running jobs is played to the end of the known queue, by the
forecasts and with its restarts, beside the same decision with running jobs left where they are:

    gain = dollars(left alone) − dollars(disturbed)       machines and lateness, restarts included

It is taken where the gain is above what its restarts cost once more (the floor), or where it costs nothing more and
jobs end sooner by more than the time of the restarts. After its first decision either side goes on by time to spare,
without stops: a stop has to be worth its price by itself, not by what a clever policy would make of it later.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from epochcast.interval import Interval
from epochcast.schedule.outcome import SimulationOutcome
from epochcast.schedule.policies.ordered_policies import SharedMachines, slack
from epochcast.schedule.queue_state import Decision, GpuGrant, LiveJob, QueueState, unchanged
from epochcast.schedule.renting import DoesNotPack, rent
from epochcast.schedule.simulator import Policy, simulate
from epochcast.schedule.workload_jobs import QueuedJob, QueueWorkload
from epochcast.units import show_dollars, show_seconds

# Dollars and seconds that are rounding.
NO_GAIN = 1e-6


@dataclass(slots=True)
class StopsWithGain:
    """A policy, held back. `reason` says why its last decision disturbs running jobs, where it does."""

    policy: Policy
    wake_seconds: float | None = None
    reason: str = ""

    def __call__(self, state: QueueState) -> Decision:
        """The policy's decision, or the same with running jobs left alone."""
        decision = self.policy(state)
        self.wake_seconds, self.reason = getattr(self.policy, "wake_seconds", None), ""
        disturbed = disturbed_jobs(state, decision)
        if not disturbed:
            return decision
        calm = with_running_jobs(state, decision)
        self.reason = _gain(state, decision, calm, disturbed)
        return decision if self.reason else calm


def disturbed_jobs(state: QueueState, decision: Decision) -> list[str]:
    """Running jobs that a decision stops, resizes or moves."""
    try:
        machines = rent(state, decision)
    except DoesNotPack:  # who runs keeps its place then (`decisions.plan`)
        machines = ()
    where = {name: machine.number for machine in machines for name, _ in machine.residents}
    return [live.job.id for live in state.running if not _goes_on(live, decision.get(live.job.id), where)]


def _goes_on(live: LiveJob, placed: GpuGrant | None, where: Mapping[str, int]) -> bool:
    return placed is not None and placed.choice == live.choice and where.get(live.job.id, live.machine) == live.machine


def with_running_jobs(state: QueueState, decision: Decision) -> dict[str, GpuGrant]:
    """Who runs goes on as it is; of the others those that still have room, in the decision's order."""
    calm = unchanged(state)
    for name, placed in decision.items():
        if name in calm:
            continue
        try:
            machines = rent(state, {**calm, name: placed})
        except DoesNotPack:
            continue
        where = {resident: machine.number for machine in machines for resident, _ in machine.residents}
        if all(where[other] == state.live[other].machine for other in calm if state.live[other].machine is not None):
            calm[name] = placed
    return calm


def _gain(state: QueueState, decision: Decision, calm: Decision, disturbed: list[str]) -> str:
    """What disturbing these jobs gains, in words; empty where it is not worth it."""
    left_alone, with_stops = _played(state, calm), _played(state, decision)
    restart_seconds = sum(state.live[name].job.restart_seconds for name in disturbed)
    floor_dollars = sum(_restart_dollars(state, name) for name in disturbed)
    saved_dollars = left_alone.dollars - with_stops.dollars
    if saved_dollars > floor_dollars + NO_GAIN:
        return f"saves {show_dollars(saved_dollars)} after restarts"
    sooner_seconds = (left_alone.mean_completion_seconds - with_stops.mean_completion_seconds) * with_stops.jobs
    if saved_dollars >= -NO_GAIN and sooner_seconds > restart_seconds + NO_GAIN:
        return f"jobs end {show_seconds(sooner_seconds)} sooner in all"
    return ""


def _restart_dollars(state: QueueState, name: str) -> float:
    live = state.live[name]
    if live.choice is None:
        return 0.0
    rate = live.choice.gpus * state.fleet.gpu_dollars_per_second(live.choice.device)
    return live.job.restart_seconds * (rate + live.job.tardiness_dollars_per_second * _is_late(state, name))


def _is_late(state: QueueState, name: str) -> bool:
    live = state.live[name]
    assert live.choice is not None
    return state.seconds + live.seconds_left(live.choice) > live.job.deadline_seconds


def _played(state: QueueState, decision: Decision) -> SimulationOutcome:
    """The known queue to its end: this decision first, then by time to spare."""
    begin = state.copy()
    for live in begin.live.values():
        live.job, live.pace = _by_pace(live.job, live.pace), 1.0
    jobs = tuple(live.job for live in begin.live.values())
    return simulate(QueueWorkload(begin.fleet, jobs), _FirstDecision(decision), begin=begin)


def _by_pace(job: QueuedJob, pace: float) -> QueuedJob:
    """The job as it is believed now; those that it comes after have ended, or it would not be here."""
    seconds = {choice: Interval.exact(seconds.mid * pace) for choice, seconds in job.seconds.items()}
    return replace(job, seconds=seconds, after=(), budget_dollars=None)


@dataclass(slots=True)
class _FirstDecision:
    decision: Decision | None

    def __call__(self, state: QueueState) -> Decision:
        decision, self.decision = self.decision, None
        return SharedMachines(slack)(state) if decision is None else decision
