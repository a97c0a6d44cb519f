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
        found: float | None = getattr(self.policy, "wake_seconds", None)
        return found

    def __call__(self, state: QueueState) -> Decision:
        """What the policy decides where forecasts are their high ends."""
        careful = state.copy()
        for one in careful.live.values():
            if not one.is_observed:
                high = {choice: Interval.exact(told.high) for choice, told in one.job.seconds.items()}
                one.job = replace(one.job, seconds=high)
        return self.policy(careful)
