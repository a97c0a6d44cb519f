"""The answer to `epochcast plan`: configurations, frontier, the choice under the limits, and a summary."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from epochcast.caching import Cache, Derived, derived_property
from epochcast.display import Displayed
from epochcast.errors import BadInput
from epochcast.forecasting.data import Data, data_of
from epochcast.forecasting.job import Job
from epochcast.forecasting.session import Session
from epochcast.frames import Framed
from epochcast.interval import COVERAGE
from epochcast.planning.candidate import TOO_LARGE, Candidate, Refusal
from epochcast.planning.choice import Limits, chosen, frontier, nearest
from epochcast.planning.offers import Offer
from epochcast.planning.search import search
from epochcast.units import show_dollars, show_seconds, show_tokens

_HIGH_END = f"high end ({COVERAGE:.0%} interval)".replace("%", " %")


@dataclass(frozen=True, repr=False)
class Plan(Displayed, Framed):
    """All configurations that can run a job, those that cannot and why, and the limits to choose by.

    `model` is the network's name, `data` what it is trained on; `opaque_ops` are its ops that are costed by their bytes
    alone.
    """

    job: Job
    model: str
    data: Data
    candidates: tuple[Candidate, ...]
    refusals: tuple[Refusal, ...]
    limits: Limits
    opaque_ops: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What was read for the job elsewhere, to be told."""
    derived: Derived = field(init=False, compare=False, repr=False, default_factory=partial(Cache, 2))

    def __repr__(self) -> str:
        return f"Plan({self.model}: {self.considered} configurations, {len(self.frontier)} on the frontier)"

    @property
    def considered(self) -> int:
        """How many configurations were tried."""
        return len(self.candidates) + len(self.refusals)

    @property
    def reasons(self) -> dict[str, int]:
        """Why configurations cannot run the job, the most frequent reason first."""
        return dict(Counter(refusal.reason for refusal in self.refusals).most_common())

    @property
    def fits(self) -> bool:
        """Whether the job can be run at all."""
        return bool(self.candidates)

    @property
    def amount(self) -> str:
        """How long the job trains: 90 epochs, or 300B tokens."""
        if self.job.tokens is not None:
            return f"{show_tokens(self.job.tokens)} tokens"
        return f"{self.job.epochs} epoch{'s' * (self.job.epochs > 1)}"

    @derived_property
    def frontier(self) -> tuple[Candidate, ...]:
        """The configurations that no other dominates, the cheapest first."""
        return frontier(self.candidates)

    @derived_property
    def chosen(self) -> Candidate | None:
        """The configuration that the limits pick; None without limits, or where nothing meets them."""
        return chosen(self.candidates, self.limits)

    def within(self, *, deadline_seconds: float | None = None, budget_dollars: float | None = None) -> "Plan":
        """The same configurations under other limits; nothing is forecast again."""
        return replace(self, limits=Limits(deadline_seconds, budget_dollars))

    @property
    def is_within_limits(self) -> bool:
        """Whether some configuration meets the limits, if there are any."""
        return not self.limits or self.chosen is not None

    @property
    def sentence(self) -> str:
        """The result in one sentence."""
        if not self.candidates:
            return f"nothing runs this job: {next(iter(self.reasons))}"
        if not self.limits:
            return "nothing is chosen: give a deadline to get the cheapest, or a budget to get the fastest"
        goal = "fastest" if self.limits.deadline_seconds is None else "cheapest"
        if self.chosen is not None:
            return f"the {goal} whose {_HIGH_END} is {self._within}: {_offer_text(self.chosen)}"
        nearest_candidate = nearest(self.candidates, self.limits)
        assert nearest_candidate is not None
        return f"no offer whose {_HIGH_END} is {self._within}; the nearest: {_offer_text(nearest_candidate, high=True)}"

    @property
    def _within(self) -> str:
        limits: tuple[tuple[float | None, Callable[[float], str]], ...] = (
            (self.limits.deadline_seconds, show_seconds),
            (self.limits.budget_dollars, show_dollars),
        )
        return "within " + " and ".join(show(limit) for limit, show in limits if limit is not None)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to know before renting."""
        notes = list(dict.fromkeys(warning for candidate in self.frontier for warning in candidate.forecast.warnings))
        if self.job.global_batch is None and len({candidate.global_batch for candidate in self.candidates}) > 1:
            reason = (
                f"every GPU takes {self.job.batch}"
                if self.job.batch is not None
                else "no batch given: every GPU takes the largest power of two it holds"
            )
            notes.append(f"{reason}, so the job's batch differs")
        rented = {candidate.offer.instance for candidate in self.frontier}
        if rented:
            dates = sorted(instance.priced_on for instance in rented)
            unchecked = sum(not instance.verified for instance in rented)
            period = " to ".join(dict.fromkeys((dates[0], dates[-1])))
            checked = f"; {unchecked} of {len(rented)} are not checked against the seller's" if unchecked else ""
            notes.append(f"list prices of {period}, for whole machines on demand{checked}")
        return (*notes, *self.notes)

    def records(self) -> tuple[dict[str, object], ...]:
        """A row for each configuration that can run the job."""
        frontier = set(self.frontier)
        return tuple(
            {**row.as_dict(), "is_on_frontier": row in frontier, "is_chosen": row == self.chosen}
            for row in self.candidates
        )

    def as_dict(self) -> dict[str, object]:
        """The JSON contract of `epochcast plan`."""
        return {
            "model": self.model,
            "precision": self.job.precision,
            "optimizer": self.job.optimizer,
            "dataset": self.job.dataset,
            "samples": self.data.samples,
            "epochs": int(self.data.epochs) if self.data.epochs.is_integer() else self.data.epochs,
            "tokens_per_sample": self.data.tokens_per_sample,
            "global_batch": self.job.global_batch,
            "deadline_seconds": self.limits.deadline_seconds,
            "budget_dollars": self.limits.budget_dollars,
            "considered": self.considered,
            "infeasible": len(self.refusals),
            "reasons": self.reasons,
            "frontier": [candidate.as_dict() for candidate in self.frontier],
            "chosen": None if self.chosen is None else self.chosen.as_dict(),
            "sentence": self.sentence,
            "opaque_ops": list(self.opaque_ops),
            "warnings": list(self.warnings),
        }


def planned(
    job: Job,
    offers: Sequence[Offer],
    strategies: Sequence[str],
    limits: Limits,
    session: Session | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Plan:
    """The plan of a job. Raises where no offer can run it, unless the reason is memory: that is a valid answer."""
    if not job.has_data:
        raise BadInput("a plan is for a whole job: give a dataset or its samples, or the tokens of a language model")
    session = session or Session()
    model = session.model(job)
    trace = session.trace(model, job.recipe(1))
    data = data_of(job, trace)
    candidates, refusals = search(job, offers, strategies, session, progress)
    if not candidates and all(refusal.reason != TOO_LARGE for refusal in refusals):
        raise BadInput(f"no offer can run this job: {refusals[0].reason}")
    return Plan(job, model.name, data, candidates, refusals, limits, trace.opaque)


def _offer_text(candidate: Candidate, *, high: bool = False) -> str:
    """An offer as text, with the middle values or the high ends of its intervals."""
    offer, total_seconds, dollars = candidate.offer, candidate.total_seconds, candidate.dollars
    name = f"{offer.name} ({offer.instance.cloud}, {offer.gpus} × {offer.instance.device})"
    if high:
        return f"{name}, up to {show_seconds(total_seconds.high)} and {show_dollars(dollars.high)}"
    return f"{name}, {show_seconds(total_seconds.mid)} for {show_dollars(dollars.mid)}"
