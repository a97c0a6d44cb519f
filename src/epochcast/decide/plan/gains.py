"""What each change would bring on one offer: precision, optimizer, checkpointing, compilation, one at a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from epochcast.decide.plan.candidate import Candidate, RefusedCandidate
from epochcast.decide.plan.plan_options import PlanOptions


@dataclass(frozen=True, slots=True)
class Gain:
    """One change: time and money with it, divided by those without. None where it cannot run, with the `reason`."""

    option: str
    value: str
    seconds_ratio: float | None
    dollars_ratio: float | None
    reason: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "option": self.option,
            "value": self.value,
            "seconds_ratio": self.seconds_ratio,
            "dollars_ratio": self.dollars_ratio,
            "reason": self.reason,
        }


def gains(
    choice: Candidate, candidates: Sequence[Candidate], refusals: Sequence[RefusedCandidate], asked: PlanOptions
) -> tuple[Gain, ...]:
    """Every single change of what was asked, on the offer of a choice; where the job as it is does not run there,
    against the choice itself.
    """
    there = {one.variant: one for one in candidates if one.offer == choice.offer and one.strategy == choice.strategy}
    base = there.get((), choice)
    found = []
    for option, values in asked.what_if:
        for value in values:
            changed = there.get(((option, value),))
            if changed is None:
                found.append(Gain(option, value, None, None, _reason(choice, refusals)))
                continue
            found.append(
                Gain(
                    option,
                    value,
                    changed.total_seconds.mid / base.total_seconds.mid,
                    changed.dollars.mid / base.dollars.mid,
                )
            )
    return tuple(found)


def _reason(choice: Candidate, refusals: Sequence[RefusedCandidate]) -> str:
    same = (one.reason for one in refusals if one.offer == choice.offer)
    return next(same, "is what the job has")
