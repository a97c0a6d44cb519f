"""What a decision is worth without playing it to the end, for policies that compare many of them.

    Σ running: rate·τ + w·lateness   +   Σ waiting: the cheapest of the same, begun when the next job ends

The same numbers, job by choice, are the costs of the one-shot linear program (`milp`).
"""

from dataclasses import dataclass

from epochcast.schedule.queue_state import Decision, LiveJob, QueueState
from epochcast.schedule.workload_jobs import GpuChoice

# By what share, and how many dollars, waiting is worse than the same run later.
WAITING = 1e-3


@dataclass(frozen=True)
class DecisionCosts:
    """Dollars of every job with every choice now, and of waiting until something ends."""

    run_dollars: dict[str, dict[GpuChoice, float]]
    wait_dollars: dict[str, float]

    def dollars(self, decision: Decision) -> float:
        """Of a whole decision."""
        total = 0.0
        for name, by_choice in self.run_dollars.items():
            placed = decision.get(name)
            total += self.wait_dollars[name] if placed is None else by_choice[placed.choice]
        return total


def proxy(state: QueueState, resizes: bool = True, gpu_dollars_per_second: float = 0.0) -> DecisionCosts:
    """Of a state; without `resizes` who has run keeps its choice; `gpu_dollars_per_second` is a price on top."""
    wait_seconds = _until_next_end(state)
    run: dict[str, dict[GpuChoice, float]] = {}
    wait: dict[str, float] = {}
    for name, live in state.live.items():
        may = live.job.seconds if resizes or live.last_choice is None else (live.last_choice,)
        choices = [choice for choice in may if state.fleet.holds(choice)]
        run[name] = {c: _dollars(state, live, c, 0.0, gpu_dollars_per_second) for c in choices}
        least = min(_dollars(state, live, c, wait_seconds, gpu_dollars_per_second) for c in choices)
        # A job with time to spare could as well run now: what is free is not left idle.
        wait[name] = least * (1 + WAITING) + WAITING
    return DecisionCosts(run, wait)


def _dollars(state: QueueState, live: LiveJob, choice: GpuChoice, delay_seconds: float, on_top: float) -> float:
    seconds = live.seconds_left(choice)
    late = max(0.0, state.seconds + delay_seconds + seconds - live.job.deadline_seconds)
    rate = choice.gpus * (state.fleet.gpu_dollars_per_second(choice.device) + on_top)
    return seconds * rate + late * live.job.tardiness_dollars_per_second


def _until_next_end(state: QueueState) -> float:
    """How long who waits will wait at least: until the first of those that could run now would end."""
    fastest = sorted(min(live.seconds_left(c) for c in live.job.seconds) for live in state.live.values())
    # With n nodes about the n-th shortest job frees a place for the next in line.
    return fastest[min(len(fastest), state.fleet.nodes) - 1]
