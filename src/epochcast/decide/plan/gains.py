"""What each change would bring on one offer: precision, optimizer, checkpointing, compilation, one at a time."""

from collections.abc import Sequence
from dataclasses import dataclass

from epochcast.base.record import Record
from epochcast.decide.plan.candidate import Candidate, RefusedCandidate
from epochcast.decide.plan.plan_terms import PlanTerms


@dataclass(frozen=True, slots=True)
class Gain(Record):
    """One change: time and money with it, divided by those without. None where it cannot run, with the `reason`."""

    option: str
    value: str
    seconds_ratio: float | None
    dollars_ratio: float | None
    reason: str | None = None


def gains(
    choice: Candidate, candidates: Sequence[Candidate], refusals: Sequence[RefusedCandidate], terms: PlanTerms
) -> tuple[Gain, ...]:
    """Every single change of what was asked, on the offer of a choice; where the job as it is does not run there,
    against the choice itself.
    """
    variants = {
        candidate.variant: candidate
        for candidate in candidates
        if candidate.offer == choice.offer and candidate.strategy == choice.strategy
    }
    base = variants.get((), choice)
    rows = []
    for option, values in terms.what_if:
        for value in values:
            changed = variants.get(((option, value),))
            if changed is None:
                rows.append(Gain(option, value, None, None, _reason(choice, refusals)))
                continue
            seconds_ratio = changed.total_seconds.mid / base.total_seconds.mid
            rows.append(Gain(option, value, seconds_ratio, changed.dollars.mid / base.dollars.mid))
    return tuple(rows)


def _reason(choice: Candidate, refusals: Sequence[RefusedCandidate]) -> str:
    same = (refusal.why.reason for refusal in refusals if refusal.offer == choice.offer)
    return next(same, "is what the job has")
