"""Every configuration for a job: offer × strategy, each forecast as `epochcast forecast` does.

The batch of a GPU is the job's own, or its part of the global batch. Where the job has neither, it is the largest power
of two that fits almost surely (`memory.largest`) and leaves every GPU a full step per epoch.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from epochcast.errors import BadInput
from epochcast.forecasting.data import data_of
from epochcast.forecasting.forecaster import forecast_job
from epochcast.forecasting.job import Job
from epochcast.forecasting.placement import Placement
from epochcast.forecasting.rank_memory import rank_step
from epochcast.forecasting.scaling import names_in
from epochcast.forecasting.session import Session
from epochcast.forecasting.strategies.degrees import degrees_in
from epochcast.forecasting.strategies.registry import strategy_for
from epochcast.forecasting.strategies.strategy import Strategy
from epochcast.planning.candidate import TOO_LARGE, Candidate, Refusal
from epochcast.planning.offers import Offer

Configuration = tuple[Offer, Strategy]


def strategies_in(texts: Sequence[str]) -> tuple[str, ...]:
    """Names of strategies: "ddp,zero3" has two; "tp4,pp2" is one, a combination."""
    return tuple(name for text in texts for name in ((text,) if degrees_in(text) else names_in(text)))


def search(
    job: Job,
    offers: Sequence[Offer],
    strategies: Sequence[str] = (),
    session: Session | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[tuple[Candidate, ...], tuple[Refusal, ...]]:
    """Every strategy on every offer: those that can run the job, and those that cannot."""
    session = session or Session()
    configurations, refusals = _configurations(offers, strategies)
    candidates: list[Candidate] = []
    for done, (offer, strategy) in enumerate(configurations, start=1):
        try:
            candidates.append(_candidate(job, offer, strategy, session))
        except _TooLarge:
            refusals.append(Refusal(offer, strategy.name, TOO_LARGE))
        except BadInput as error:
            refusals.append(Refusal(offer, strategy.name, str(error)))
        if progress is not None:
            progress(done, len(configurations))
    return tuple(candidates), tuple(refusals)


def _configurations(offers: Sequence[Offer], strategies: Sequence[str]) -> tuple[list[Configuration], list[Refusal]]:
    """Every strategy on each offer, without repetition: on one GPU all of them are the same."""
    configurations: dict[Configuration, None] = {}
    refusals: list[Refusal] = []
    for offer in offers:
        for strategy in strategies or (None,):
            try:
                configurations[offer, strategy_for(strategy, offer.gpus, offer.nodes)] = None
            except BadInput as error:
                refusals.append(Refusal(offer, strategy, str(error)))
    return list(configurations), refusals


class _TooLarge(Exception):
    """The step does not fit on a GPU of the offer."""


def _candidate(job: Job, offer: Offer, strategy: Strategy, session: Session) -> Candidate:
    placement = offer.placement(strategy)
    if job.batch is None and job.global_batch is None:
        job = replace(job, batch=_largest_batch(job, placement, session))
    forecast = forecast_job(job, placement, session)
    if not forecast.fits:
        raise _TooLarge
    return Candidate.of(offer, forecast)


def _largest_batch(job: Job, placement: Placement, session: Session) -> int:
    """The largest power of two that a GPU holds almost surely, and that leaves every GPU a full step per epoch."""
    trace = session.trace(session.model(job), job.recipe(1))
    samples, passes = data_of(job, trace).samples or 0, placement.replicas * job.accumulate
    if samples < passes:
        accumulated = f" and {job.accumulate} passes" if job.accumulate > 1 else ""
        raise BadInput(f"an epoch of {samples} samples does not divide over {placement.replicas} replicas{accumulated}")
    step = rank_step(job, placement, trace)
    batch = _power_of_two(samples // passes)
    while batch and not step.is_sure(batch * job.augment):
        batch //= 2
    if not batch:
        raise _TooLarge
    return batch


def _power_of_two(most: int) -> int:
    """The largest power of two that is no more than `most`, which is at least 1."""
    return 1 << most.bit_length() - 1
