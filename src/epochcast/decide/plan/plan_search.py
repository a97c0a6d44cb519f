"""Every configuration for a job: offer × strategy × what else is tried, each forecast as `epochcast forecast` does.

The batch of a GPU is the job's own, its part of the global batch, or what a policy makes of it
(`plan_terms.BatchPolicy`). Where there is none, it is the largest power of two that fits almost surely
(`predict.memory.largest_batch`) and leaves every GPU a full step per epoch; where epochs depend on the batch, the one
below it with which the job is done first.

Offers that a job cannot tell apart (`Offer.feel`: the same boards, links and, where data is loaded, processors) share a
forecast, whatever they cost.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from epochcast.decide.plan.candidate import TOO_LARGE, Candidate, CannotRun, Pricing, RefusedCandidate, priced
from epochcast.decide.plan.learning import Learning
from epochcast.decide.plan.offers import Offer
from epochcast.decide.plan.plan_terms import BatchPolicy, PlanTerms, Variant
from epochcast.errors import BadInput
from epochcast.predict.forecast.forecast import Forecast
from epochcast.predict.forecast.forecaster import forecast_job, has_room
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.job_data import data_of
from epochcast.predict.forecast.job_defaults import plain_options, settled
from epochcast.predict.forecast.loader_step import CountedLoader
from epochcast.predict.forecast.placement import Placement
from epochcast.predict.forecast.rank_memory import rank_step
from epochcast.predict.forecast.session import Session
from epochcast.predict.forecast.strategies.degrees import degrees_in
from epochcast.predict.forecast.strategies.strategy import Strategy
from epochcast.predict.forecast.strategies.strategy_table import strategy_for
from epochcast.units import parse_names

Configuration = tuple[Offer, Strategy]
INTERRUPTED = CannotRun("is interrupted too often to get on")


def strategies_in(texts: Sequence[str]) -> tuple[str, ...]:
    """Names of strategies: "ddp,zero3" has two; "tp4,pp2" is one, a combination."""
    return tuple(name for text in texts for name in ((text,) if degrees_in(text) else parse_names(text)))


def search(
    job: Job,
    offers: Sequence[Offer],
    strategies: Sequence[str] = (),
    session: Session | None = None,
    progress: Callable[[int, int], None] | None = None,
    terms: PlanTerms | None = None,
) -> tuple[tuple[Candidate, ...], tuple[RefusedCandidate, ...]]:
    """Every strategy on every offer: those that can run the job, and those that cannot."""
    terms = terms or PlanTerms()
    session = session or Session()
    job = job if terms.policy is None else terms.policy.job(job)
    plain_job = settled(job, None, session)  # what no device changes, so that equal variants are one
    variants = terms.variants(plain_job.job)
    configurations, refusals = _configurations(offers, strategies)
    trying = _Trying(terms, terms.learning(job), session, plain_job.assumed)
    candidates: list[Candidate] = []
    total = len(configurations) * len(variants)
    done = 0
    for variant, changed in variants:
        for offer, strategy in configurations:
            done += 1
            candidate = trying.candidate(changed, variant, offer, strategy)
            if isinstance(candidate, Candidate):
                candidates.append(candidate)
            else:
                refusals.append(RefusedCandidate(offer, strategy.name, candidate))
            if progress is not None:
                progress(done, total)
    return tuple(candidates), tuple(refusals)


def _configurations(
    offers: Sequence[Offer], strategies: Sequence[str]
) -> tuple[list[Configuration], list[RefusedCandidate]]:
    """Every strategy on each offer, without repetition: on one GPU all of them are the same."""
    configurations: dict[Configuration, None] = {}
    refusals: list[RefusedCandidate] = []
    for offer in offers:
        for strategy in strategies or (None,):
            try:
                configurations[offer, strategy_for(strategy, offer.gpus, offer.nodes)] = None
            except BadInput as error:
                refusals.append(RefusedCandidate(offer, strategy, CannotRun(str(error))))
    return list(configurations), refusals


class _DoesNotFitOffer(Exception):
    """The step does not fit on a GPU of the offer."""


@dataclass
class _Trying:
    """Forecasts of one plan, and those it has made by what a job notices of an offer."""

    terms: PlanTerms
    learning: Learning | None
    session: Session
    assumed: Mapping[str, Any]
    forecasts: dict[Hashable, Forecast | CannotRun] = field(default_factory=dict)

    def candidate(self, job: Job, variant: Variant, offer: Offer, strategy: Strategy) -> Candidate | CannotRun:
        """The job on an offer, or why it cannot run there."""
        key = (*offer.feel(with_host=job.loader_seconds is not None), strategy, variant)
        if key not in self.forecasts:
            self.forecasts[key] = self._with_assumed(self._forecast(job, offer, strategy), variant)
        forecast = self.forecasts[key]
        if isinstance(forecast, CannotRun):
            return forecast
        return self._priced(priced(forecast, offer), offer, variant) or INTERRUPTED

    def _with_assumed(self, forecast: Forecast | CannotRun, variant: Variant) -> Forecast | CannotRun:
        """With what was assumed before any offer was looked at, unless a variant says it."""
        if isinstance(forecast, CannotRun):
            return forecast
        assumed = {name: value for name, value in plain_options(self.assumed).items() if name not in dict(variant)}
        return replace(forecast, assumed={**assumed, **forecast.assumed})

    def _priced(self, forecast: Forecast, offer: Offer, variant: Variant = ()) -> Candidate | None:
        pricing = Pricing(self.terms.extras, self.terms.spot)
        return pricing.candidate(offer, forecast, self._epochs(forecast), variant)

    def _epochs(self, forecast: Forecast) -> float:
        if self.learning is None:
            return forecast.epochs
        return forecast.epochs * self.learning.factor(forecast.global_batch, forecast.tokens_per_sample)

    def _forecast(self, job: Job, offer: Offer, strategy: Strategy) -> Forecast | CannotRun:
        try:
            placement = offer.placement(strategy)
            if job.loader_seconds is not None and job.cpus is None:
                job = replace(job, cpus=float(offer.instance.cpus))
            return self._best(self._with_batch(job, placement), offer, placement)
        except _DoesNotFitOffer:
            return TOO_LARGE
        except BadInput as error:
            return CannotRun(str(error))

    def _with_batch(self, job: Job, placement: Placement) -> Job:
        policy = self.terms.policy or BatchPolicy("auto")
        passes = placement.replicas * job.accumulate
        if job.batch is not None:
            most = policy.most_per_pass(passes)
            return job if most is None else replace(job, batch=min(job.batch, most))
        if job.global_batch is not None:
            return job
        return replace(job, batch=_largest_batch(job, placement, self.session, policy.most_per_pass(passes)))

    def _best(self, job: Job, offer: Offer, placement: Placement) -> Forecast:
        """At the job's batch; where that is ours to choose and costs epochs, at the half, a quarter … while that is
        done earlier.
        """
        best = self._forecast_at(job, placement)
        is_ours = self.learning is not None and (self.terms.policy is None or self.terms.policy.name == "auto")
        while is_ours and job.batch is not None and job.batch > 1:
            job = replace(job, batch=job.batch // 2)
            smaller = self._forecast_at(job, placement)
            ours, theirs = self._priced(best, offer), self._priced(smaller, offer)
            if theirs is None or (ours is not None and theirs.total_seconds.mid >= ours.total_seconds.mid):
                break
            best = smaller
        return best

    def _forecast_at(self, job: Job, placement: Placement) -> Forecast:
        if not has_room(job, placement, self.session):
            raise _DoesNotFitOffer
        return forecast_job(job, placement, self.session, loader=CountedLoader.SAID)


def _largest_batch(job: Job, placement: Placement, session: Session, most: int | None = None) -> int:
    """The largest power of two that a GPU holds almost surely, and that leaves every GPU a full step per epoch."""
    job = settled(job, placement.device, session).job
    trace = session.trace(session.model(job), job.recipe(1))
    samples, passes = data_of(job, trace).samples or 0, placement.replicas * job.accumulate
    if samples < passes:
        accumulated = f" and {job.accumulate} passes" if job.accumulate > 1 else ""
        raise BadInput(f"an epoch of {samples} samples does not divide over {placement.replicas} replicas{accumulated}")
    step = rank_step(job, placement, trace)
    batch = _power_of_two(min(samples // passes, samples if most is None else most))
    while batch and not step.is_sure(batch * job.augment):
        batch //= 2
    if not batch:
        raise _DoesNotFitOffer
    return batch


def _power_of_two(most: int) -> int:
    """The largest power of two that is no more than `most`, which is at least 1."""
    return 1 << most.bit_length() - 1
