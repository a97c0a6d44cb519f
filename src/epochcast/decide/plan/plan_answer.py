"""The answer to `epochcast plan`: configurations, frontier, the choice under the limits, and a summary."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from typing import Any, ClassVar

from epochcast.base.caching import Cache, Derived, derived_property
from epochcast.base.display import Displayed
from epochcast.base.frames import Framed
from epochcast.base.record import Record, paths
from epochcast.decide.plan.candidate import Candidate, CannotRun, Pricing, RefusedCandidate
from epochcast.decide.plan.certainty import Rival, rivals
from epochcast.decide.plan.choice import (
    PlanLimits,
    chosen,
    frontier,
    nearest,
    nearest_by_money,
    nearest_by_time,
    objective_of,
    with_most_epochs,
)
from epochcast.decide.plan.folding import RunnerUp, folded, kind_of, runners_up, sellers
from epochcast.decide.plan.gains import Gain, gains
from epochcast.decide.plan.offers import Offer
from epochcast.decide.plan.plan_request import PlanRequest
from epochcast.decide.plan.plan_search import search, strategies_in
from epochcast.decide.plan.plan_sentences import as_spot, recommendation, to_be_sure
from epochcast.decide.plan.plan_terms import NO_TERMS, PlanTerms
from epochcast.decide.plan.plan_warnings import warnings_of
from epochcast.decide.plan.price_age import by_age
from epochcast.decide.plan.spare import as_spare
from epochcast.errors import BadInput
from epochcast.predict.forecast.job import AUTO, PLAIN, Job
from epochcast.predict.forecast.job_data import Data, data_of
from epochcast.predict.forecast.job_defaults import settled
from epochcast.predict.forecast.session import Session
from epochcast.units import show_tokens

# Rows of a plan that counts epochs.
_MOST_ROWS = 8


@dataclass(frozen=True, slots=True)
class PlanRow(Record):
    """A configuration of a plan, with the age of its price in days (None where nobody said what day it is), and the
    probabilities of meeting the limits (None where there are none). `sellers` are clouds that have the same GPUs.
    """

    candidate: Candidate
    days_since_priced: int | None
    deadline_probability: float | None
    budget_probability: float | None
    sellers: int

    json_paths: ClassVar[Mapping[str, str]] = {
        **{key: f"candidate.{path}" for key, path in Candidate.json_paths.items()},
        "price_age_days": "days_since_priced",
        **paths("deadline_probability", "budget_probability", "sellers"),
    }


@dataclass(frozen=True, repr=False)
class Plan(Displayed, Framed, Record):
    """All configurations that can run a job, those that cannot and why, and the limits to choose by.

    `model` is the network's name, `data` what it is trained on; `opaque_ops` are its ops that are costed by their bytes
    alone.
    """

    view: ClassVar[str] = "plan"
    json_paths: ClassVar[Mapping[str, str]] = paths(
        *("model", "epochs", "considered", "infeasible", "reasons", "sentence", "most_epochs", "certainty"),
        *("rivals", "runners_up", "gains", "critical_batch", "opaque_ops", "warnings"),
        dataset="job.dataset",
        samples="data.samples",
        tokens_per_sample="data.tokens_per_sample",
        global_batch="job.global_batch",
        deadline_seconds="limits.deadline_seconds",
        budget_dollars="limits.budget_dollars",
        sure="limits.sure",
        rows="folded_rows",
        nearest_by_time="time_miss",
        nearest_by_money="money_miss",
        spot_option="spare_row",
        frontier="frontier_rows",
        chosen="chosen_row",
        objective="goal",
        batch_policy="terms.policy.name",
        max_global_batch="terms.policy.most",
        critical_batch_source="terms.critical.credit",
        interruptions_per_hour="terms.spot.interruptions_per_hour",
        restart_seconds="terms.spot.restart_seconds",
        boot_seconds="terms.extras.boot_seconds",
        image_seconds="terms.extras.image_seconds",
        data_seconds="terms.extras.data_seconds",
        billing="terms.extras.billing",
    )
    json_merged: ClassVar[tuple[str, ...]] = ("setup",)

    job: Job
    model: str
    data: Data
    candidates: tuple[Candidate, ...]
    refusals: tuple[RefusedCandidate, ...]
    limits: PlanLimits
    opaque_ops: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What was read for the job elsewhere, to be told."""
    terms: PlanTerms = NO_TERMS
    objective: str | None = None
    counts_epochs: bool = False
    """Whether the question is how many epochs fit; every configuration then has as many as do."""
    missed: Candidate | None = None
    """Where not one epoch fits: the configuration whose first comes nearest."""
    today: date | None = None
    """For the age of prices; None leaves it out."""
    derived: Derived = field(init=False, compare=False, repr=False, default_factory=partial(Cache, 4))

    def __repr__(self) -> str:
        return f"Plan({self.model}: {self.considered} configurations, {len(self.frontier)} on the frontier)"

    @property
    def considered(self) -> int:
        """How many configurations were tried."""
        return len(self.candidates) + len(self.refusals)

    @property
    def reasons(self) -> dict[str, int]:
        """Why configurations cannot run the job, the most frequent reason first."""
        return dict(Counter(refusal.why.reason for refusal in self.refusals).most_common())

    @property
    def fits(self) -> bool:
        """Whether the job can be run at all."""
        return bool(self.candidates)

    @property
    def amount(self) -> str:
        """How long the job trains: 90 epochs, or 300B tokens."""
        if self.counts_epochs:
            return "as many epochs as fit"
        if self.job.tokens is not None:
            return f"{show_tokens(self.job.tokens)} tokens"
        return f"{self.job.epochs} epoch{'s' * (self.job.epochs > 1)}"

    @derived_property
    def frontier(self) -> tuple[Candidate, ...]:
        """The configurations that no other dominates, the cheapest first; where epochs are counted, those with most."""
        return self.candidates[:_MOST_ROWS] if self.counts_epochs else frontier(self.candidates)

    @derived_property
    def chosen(self) -> Candidate | None:
        """The configuration that limits and objective pick; None without either, or where nothing meets the limits."""
        if self.counts_epochs:
            return next(iter(self.candidates), None)
        return chosen(self.candidates, self.limits, self.objective)

    @derived_property
    def shown(self) -> tuple[Candidate, ...]:
        """The frontier and the chosen one, which may lie behind it, one row per type and number of GPUs; the cheapest
        first, or most epochs first.
        """
        choice, rows = self.chosen, self.frontier
        if choice is not None and choice not in rows and not self.counts_epochs:
            rows = tuple(sorted((*rows, choice), key=lambda row: row.dollars.mid))
        return folded(rows, choice)

    @property
    def unfolded(self) -> tuple[Candidate, ...]:
        """Every offer of the GPUs that are shown."""
        kinds = [kind_of(row) for row in self.shown]
        rows = [row for row in self.candidates if kind_of(row) in kinds]
        return tuple(sorted(rows, key=lambda row: (kinds.index(kind_of(row)), row.dollars.mid)))

    @property
    def goal(self) -> str:
        """What is looked for: cheapest, fastest or knee."""
        return objective_of(self.limits, self.objective)

    @derived_property
    def rivals(self) -> tuple[Rival, ...]:
        """What might turn out better than the choice, and what a calibration of both would be worth."""
        if self.chosen is None or self.counts_epochs:
            return ()
        return rivals(self.chosen, self.candidates, self.limits, self.goal, self.terms.extras)

    @derived_property
    def runners_up(self) -> tuple[RunnerUp, ...]:
        """The best on other GPUs that is not chosen, and why."""
        if self.chosen is None or self.counts_epochs:
            return ()
        return runners_up(self.chosen, self.candidates, self.frontier, self.limits, self.goal)

    @derived_property
    def nearest_by_time(self) -> Candidate | None:
        """Where nothing meets the limits: the fastest within the budget; None without a deadline."""
        return None if self.is_within_limits else nearest_by_time(self.candidates, self.limits)

    @derived_property
    def nearest_by_money(self) -> Candidate | None:
        """Where nothing meets the limits: the cheapest within the deadline; None without a budget."""
        return None if self.is_within_limits else nearest_by_money(self.candidates, self.limits)

    @derived_property
    def spare(self) -> Candidate | None:
        """The GPUs of the choice as spot machines, where that is expected to cost less."""
        if self.chosen is None or self.counts_epochs or self.terms.spot is not None:
            return None
        same = [row for row in self.candidates if kind_of(row) == kind_of(self.chosen)]
        return as_spare(self.chosen, same, self.terms.extras)

    @property
    def spot_sentence(self) -> str | None:
        """What the choice would take and cost as spot, in one sentence."""
        return None if self.spare is None else as_spot(self.spare)

    @derived_property
    def gains(self) -> tuple[Gain, ...]:
        """What each change that was asked for brings on the chosen offer, or on the cheapest."""
        offered = self.chosen or next(iter(self.frontier), None)
        if offered is None or not self.terms.what_if:
            return ()
        return gains(offered, self.candidates, self.refusals, self.terms)

    def within(
        self,
        *,
        deadline_seconds: float | None = None,
        budget_dollars: float | None = None,
        sure: float | None = None,
        objective: str | None = None,
    ) -> "Plan":
        """The same configurations under other limits; nothing is forecast again."""
        if self.counts_epochs:
            raise BadInput("a plan that counts epochs has them for its own limits: plan again")
        return replace(self, limits=PlanLimits(deadline_seconds, budget_dollars, sure), objective=objective)

    @property
    def is_within_limits(self) -> bool:
        """Whether some configuration meets the limits, if there are any."""
        return not self.limits or self.chosen is not None

    @property
    def sentence(self) -> str:
        """The recommendation in one sentence, or the nearest misses."""
        return recommendation(self)

    @property
    def certainty(self) -> str | None:
        """What it would take to be sure, in one sentence."""
        return to_be_sure(self)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to know before renting."""
        return (*warnings_of(self.job, self.candidates, self.shown, self.terms, self.today), *self.notes)

    def records(self) -> tuple[dict[str, object], ...]:
        """A row for each configuration that can run the job."""
        frontier = set(self.frontier)
        return tuple(
            {**self._row(each).as_dict(), "is_on_frontier": each in frontier, "is_chosen": each == self.chosen}
            for each in self.candidates
        )

    def _row(self, candidate: Candidate) -> PlanRow:
        age = None if self.today is None else candidate.offer.instance.age(self.today).days
        limits = self.limits
        in_time, in_budget = limits.deadline_probability(candidate), limits.budget_probability(candidate)
        return PlanRow(candidate, age, in_time, in_budget, sellers(candidate, self.candidates))

    def _optional_row(self, candidate: Candidate | None) -> PlanRow | None:
        return None if candidate is None else self._row(candidate)

    @property
    def folded_rows(self) -> tuple[PlanRow, ...]:
        """What is shown: one row per type and number of GPUs."""
        return tuple(map(self._row, self.shown))

    @property
    def time_miss(self) -> PlanRow | None:
        """The nearest miss by time."""
        return self._optional_row(self.nearest_by_time)

    @property
    def money_miss(self) -> PlanRow | None:
        """The nearest miss by money."""
        return self._optional_row(self.nearest_by_money)

    @property
    def spare_row(self) -> PlanRow | None:
        """The GPUs of the choice as spot machines."""
        return self._optional_row(self.spare)

    @property
    def frontier_rows(self) -> tuple[PlanRow, ...]:
        """The frontier, with the age of prices."""
        return tuple(map(self._row, self.frontier))

    @property
    def chosen_row(self) -> PlanRow | None:
        """The choice, with the age of its price."""
        return self._optional_row(self.chosen)

    @property
    def infeasible(self) -> int:
        """How many configurations cannot run the job."""
        return len(self.refusals)

    @property
    def epochs(self) -> float:
        """Passes over the data, as the job has them."""
        return int(self.data.epochs) if self.data.epochs.is_integer() else self.data.epochs

    @property
    def most_epochs(self) -> float | None:
        """The epochs that the limits allow, where they are counted."""
        return self.chosen.epochs if self.counts_epochs and self.chosen is not None else None

    @property
    def critical_batch(self) -> float | None:
        """The critical batch in samples of the job."""
        critical = self.terms.critical
        return None if critical is None else critical.samples(self.data.tokens_per_sample)

    @property
    def setup(self) -> dict[str, Any]:
        """What decides the numbers of every row beside its offer. The precision of a language model depends on the GPU,
        unless somebody said it: it is that of the choice, or of the first row.
        """
        row = self.chosen or next(iter(self.shown), None)
        if row is None:
            job_values = {name: getattr(self.job, name) for name in PLAIN}
            return {name: PLAIN[name] if value == AUTO else value for name, value in job_values.items()}
        setup = {"precision": row.forecast.precision, "optimizer": row.forecast.optimizer, **row.forecast.setup}
        if "precision" in setup["assumed"]:
            each = dict.fromkeys(candidate.forecast.precision for candidate in (row, *self.shown))
            setup["assumed"] = {**setup["assumed"], "precision": " or ".join(each)}
        startup = {name: getattr(self.terms.extras, name) for name in self.terms.assumed_startup}
        return {**setup, "assumed": {**setup["assumed"], **startup}}


def planned(
    job: Job,
    request: PlanRequest,
    session: Session | None = None,
    progress: Callable[[int, int], None] | None = None,
    today: date | None = None,
) -> Plan:
    """The plan of a job. Raises where no offer can run it, unless the reason is memory: that is a valid answer."""
    if not job.has_data:
        raise BadInput("a plan is for a whole job: give a dataset or its samples, or the tokens of a language model")
    if request.most_epochs and job.tokens is not None:
        raise BadInput("epochs are counted over data: give a dataset or its samples, not the tokens of the training")
    limits, offers = request.limits, request.offers()
    objective_of(limits, request.objective)
    session = session or Session()
    settled_job = settled(job, None, session).job
    model = session.model(settled_job)
    trace = session.trace(model, settled_job.recipe(1))
    terms = request.terms(None if settled_job.known_dataset is None else settled_job.known_dataset.training_bytes)

    def searched(offered: Sequence[Offer]) -> tuple[tuple[Candidate, ...], tuple[RefusedCandidate, ...]]:
        fresh, old = by_age(offered, request.max_age_seconds, today)
        runnable, cannot = search(job, fresh, strategies_in(request.strategies), session, progress, terms)
        return runnable, (*cannot, *old)

    candidates, refusals = searched(offers.first)
    if offers.reserve and (not candidates or (limits and chosen(candidates, limits, request.objective) is None)):
        more, cannot = searched(offers.reserve)
        candidates, refusals = (*candidates, *more), (*refusals, *cannot)
    if not candidates and not any(refusal.why.is_too_large for refusal in refusals):
        raise BadInput(f"no offer can run this job: {refusals[0].why.reason}")
    missed = None
    if request.most_epochs:
        pricing = Pricing(terms.extras, terms.spot)
        once = [once_priced for each in candidates if (once_priced := pricing.at_epochs(each, 1.0)) is not None]
        candidates = with_most_epochs(once, limits, pricing)
        missed = None if candidates else nearest(once, limits)
        why = CannotRun("not one epoch is within the limits")
        within = {candidate.offer for candidate in candidates}
        refusals += tuple(RefusedCandidate(row.offer, row.strategy, why) for row in once if row.offer not in within)
    return Plan(
        job if terms.policy is None else terms.policy.job(job),
        model.name,
        data_of(settled_job, trace),
        candidates,
        refusals,
        limits,
        trace.opaque,
        terms=terms,
        objective=request.objective,
        counts_epochs=request.most_epochs,
        missed=missed,
        today=today,
    )
