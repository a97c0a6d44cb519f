"""What every policy promises, checked on a whole simulation: for the policies of the table and for yours.

No job is lost, no GPU is given twice, nobody runs on what does not fit, a job that may not be stopped is not, the state
is left as it was, and the same state gets the same decision.
"""

from collections.abc import Callable
from dataclasses import dataclass

from epochcast.schedule.outcome import SimulationOutcome
from epochcast.schedule.queue_state import Decision, QueueState
from epochcast.schedule.simulator import Policy, SimulationRules, simulate
from epochcast.schedule.workload_jobs import QueueWorkload


class BrokenPolicyContract(AssertionError):
    """A policy did what no policy may do."""


@dataclass(slots=True)
class _Watched:
    """A policy whose every decision is checked."""

    policy: Policy
    may_stop: bool
    may_resize: bool

    @property
    def wake_seconds(self) -> float | None:
        wake_seconds: float | None = getattr(self.policy, "wake_seconds", None)
        return wake_seconds

    def __call__(self, state: QueueState) -> Decision:
        before = state.copy()
        decision = self.policy(state)
        if state != before:
            raise BrokenPolicyContract(f"the policy changed the state at {state.seconds:g} s")
        for name, placed in decision.items():
            if name not in state.live:
                raise BrokenPolicyContract(f"{name!r} runs, but no such job is waiting or running")
            job = state.live[name].job
            if placed.choice not in job.seconds or not state.fleet.holds(placed.choice):
                raise BrokenPolicyContract(f"{name!r} runs on {placed.choice}, on which it does not fit")
            if not self.may_resize and state.live[name].last_choice not in (None, placed.choice):
                raise BrokenPolicyContract(f"{name!r} continues with {placed.choice}, which it must not")
        for live in state.running:
            after = decision.get(live.job.id)
            keeps = not self.may_stop or not live.job.is_preemptible
            if keeps and (after is None or after.choice != live.choice):
                raise BrokenPolicyContract(f"{live.job.id!r} is stopped or resized, which it must not be")
        return decision


def check_policy(
    make: Callable[[], Policy], workload: QueueWorkload, may_stop: bool = True, may_resize: bool = True
) -> SimulationOutcome:
    """Simulate a workload twice and check everything; the outcome of the first. `make` makes the policy afresh."""
    first, second = (
        simulate(workload, _Watched(make(), may_stop, may_resize), SimulationRules(seed=1)) for _ in range(2)
    )
    ended = sorted(end.job for end in first.ends)
    if ended != sorted(job.id for job in workload.jobs):
        raise BrokenPolicyContract(f"{len(workload.jobs)} jobs came, {len(ended)} ended")
    if (first.ends, first.stays, first.rentals) != (second.ends, second.stays, second.rentals):
        raise BrokenPolicyContract("two simulations of the same workload differ")
    _check_machines(first, workload)
    return first


def _check_machines(outcome: SimulationOutcome, workload: QueueWorkload) -> None:
    """No machine has more GPUs in use than it has, and every stay is on a machine that is rented."""
    kinds = {
        (rental.machine, rental.start_seconds): workload.fleet.by_name[rental.node_type] for rental in outcome.rentals
    }
    for (machine, since), kind in kinds.items():
        until = next(r.end_seconds for r in outcome.rentals if (r.machine, r.start_seconds) == (machine, since))
        stays = [
            s for s in outcome.stays if s.machine == machine and since <= s.start_seconds and s.end_seconds <= until
        ]
        for moment in {stay.start_seconds for stay in stays}:
            used = sum(s.choice.gpus for s in stays if s.start_seconds <= moment < s.end_seconds)
            if used > kind.gpus:
                raise BrokenPolicyContract(
                    f"{used} GPUs are in use on machine {machine}, a {kind.name} with {kind.gpus}"
                )
    rented = sum(r.end_seconds - r.start_seconds for r in outcome.rentals)
    if outcome.stays and rented <= 0:
        raise BrokenPolicyContract("jobs ran on machines that nobody rented")
