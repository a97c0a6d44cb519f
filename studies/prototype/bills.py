"""What a slot of a kept queue will cost, played forward from what the store has, and what it cost."""

import time
from dataclasses import dataclass

from epochcast.schedule.decisions import RunPlan, seen_by_policy
from epochcast.schedule.policies.policy_table import policy_named
from epochcast.schedule.queue_rows import StoredQueue
from epochcast.schedule.queue_state import Decision, QueueState
from epochcast.schedule.schedule_request import DEFAULT_POLICY
from epochcast.schedule.simulator import Policy, SimulationRules, simulate
from epochcast.schedule.stored_queue import state_of
from epochcast.schedule.workload_jobs import QueueWorkload

FOREVER = float("inf")

Rentals = list[tuple[float, float, float]]
"""From, to, dollars per second: machines, and lateness of jobs alike."""


@dataclass(frozen=True)
class Slot:
    """Dollars between two times as predicted at the first, and as paid."""

    begin_seconds: float
    end_seconds: float
    predicted: float
    paid: float


@dataclass(frozen=True)
class Worked:
    """A queue that was worked off: its slots, what was predicted for all of it before, and how it stood at the end."""

    slots: list[Slot]
    before: float
    queue: StoredQueue

    @property
    def predicted(self) -> float:
        """Of all slots."""
        return sum(slot.predicted for slot in self.slots)

    @property
    def paid(self) -> float:
        """In all slots."""
        return sum(slot.paid for slot in self.slots)

    @property
    def error(self) -> float:
        """Of all slots together."""
        return self.predicted / self.paid - 1

    @property
    def late_dollars(self) -> float:
        """What of it was for lateness."""
        return bill([], real(self.queue)[1], 0.0, FOREVER)


@dataclass
class AsRun:
    """A policy as `schedule run` asks it: who has just begun is not stopped.

    `decided` is what the scheduler has decided already: that holds until something happens. Of two plans that cost the
    same in the end one may pay in this slot and the other in the next, and the policy wavers between such.
    """

    policy: Policy
    started: dict[str, float]
    decided: RunPlan | None = None
    wake_seconds: float | None = None

    def __call__(self, state: QueueState) -> Decision:
        decision: Decision
        if self.decided is not None:
            targets, self.wake_seconds = self.decided.targets, self.decided.wake_seconds
            decision = {name: target.placed for name, target in targets.items() if name in state.live}
            self.decided = None
        else:
            seen, _ = seen_by_policy(state, state.fleet, self.started, frozenset())
            decision = self.policy(seen)
            self.wake_seconds = getattr(self.policy, "wake_seconds", None)
        for name, placed in decision.items():
            if state.live[name].choice != placed.choice:
                self.started[name] = state.seconds
        return decision


def predicted(queue: StoredQueue, now_at_seconds: float, until_seconds: float, decided: RunPlan | None = None) -> float:
    """Dollars from now until a time of the queue's clock, played forward from what is decided.

    Jobs that come later are not known.
    """
    state = state_of(queue, now_at_seconds)
    known = [
        kept for kept in queue.jobs.values() if not kept.is_over and kept.job.submit_seconds < until_seconds
    ]  # fmt: skip
    paces = {kept.job.id: kept.pace if kept.is_observed else queue.usual_pace for kept in known}
    truth = {kept.job.id: {c: told.mid * paces[kept.job.id] for c, told in kept.job.seconds.items()} for kept in known}
    workload = QueueWorkload(queue.fleet, tuple(kept.job for kept in known), truth)
    started = {job: queue.seconds(start.asked_at_seconds) for job, start in queue.open_starts().items()}
    outcome = simulate(
        workload, AsRun(policy_named(DEFAULT_POLICY), started, decided), SimulationRules(reestimate=True), state
    )
    by_name = queue.fleet.by_name
    machines = [(r.start_seconds, r.end_seconds, by_name[r.node_type].dollars_per_second) for r in outcome.rentals]
    late = [_late(queue, end.job, end.end_seconds) for end in outcome.ends]
    return bill(machines, late, state.seconds, until_seconds)


def real(queue: StoredQueue) -> tuple[Rentals, Rentals]:
    """What was paid for machines and for lateness."""
    now = time.time()
    machines = [
        (
            queue.seconds(m.rented_at_seconds),
            queue.seconds(m.returned_at_seconds or now),
            m.kind.dollars_per_second,
        )
        for m in queue.machines
    ]
    late = [_late(queue, name, queue.seconds(kept.ended_at_seconds or now)) for name, kept in queue.jobs.items()]
    return machines, late


def _late(queue: StoredQueue, job: str, end_seconds: float) -> tuple[float, float, float]:
    told = queue.jobs[job].job
    return told.deadline_seconds, max(told.deadline_seconds, end_seconds), told.tardiness_dollars_per_second


def bill(machines: Rentals, late: Rentals, begin: float, end: float) -> float:
    """Dollars between two times."""
    return sum(max(0.0, min(to, end) - max(since, begin)) * rate for since, to, rate in (*machines, *late))
