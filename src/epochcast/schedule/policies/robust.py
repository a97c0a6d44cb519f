"""A policy that plans with the high ends of forecasts, not their middles, until a job's progress tells its pace."""

from dataclasses import dataclass, replace

from epochcast.interval import Interval
from epochcast.schedule.queue_state import Decision, QueueState
from epochcast.schedule.simulator import Policy


@dataclass(slots=True)
class Robust:
    """Another policy, shown a more careful state."""

    policy: Policy

    @property
    def wake_seconds(self) -> float | None:
        """When the policy wants to be called again."""
        wake_seconds: float | None = getattr(self.policy, "wake_seconds", None)
        return wake_seconds

    def __call__(self, state: QueueState) -> Decision:
        """What the policy decides where forecasts are their high ends."""
        careful = state.copy()
        for live in careful.live.values():
            if not live.is_observed:
                high = {choice: Interval.exact(seconds.high) for choice, seconds in live.job.seconds.items()}
                live.job = replace(live.job, seconds=high)
        return self.policy(careful)
