"""What to know before renting: doubts of the forecasts, the batch, hosts that cannot feed, boards and prices."""

from collections.abc import Iterator, Sequence
from datetime import date

from epochcast.forecasting.job import Job
from epochcast.hardware.instance import FRESH, Instance
from epochcast.planning.asked import Asked
from epochcast.planning.candidate import Candidate

# Names of machines that are told one by one; more are counted.
_MOST_NAMES = 3


def warnings_of(
    job: Job, candidates: Sequence[Candidate], shown: Sequence[Candidate], asked: Asked, today: date | None
) -> tuple[str, ...]:
    """Of the configurations that are shown; the batch is compared over all."""
    return tuple(
        dict.fromkeys(
            [
                *(warning for candidate in shown for warning in candidate.forecast.warnings),
                *_batch(job, candidates, asked),
                *_hosts(shown),
                *_spot(shown, asked),
                *_prices(list(dict.fromkeys(candidate.offer.instance for candidate in shown)), asked, today),
            ]
        )
    )


def _batch(job: Job, candidates: Sequence[Candidate], asked: Asked) -> Iterator[str]:
    if len({candidate.global_batch for candidate in candidates}) < 2:
        return
    critical = asked.critical
    if critical is not None:
        yield f"epochs grow with the batch: critical batch {critical.name} ({critical.credit})"
    elif job.global_batch is None:
        reason = (
            f"every GPU takes {job.batch}"
            if job.batch is not None
            else "no batch given: every GPU takes the largest power of two it holds"
        )
        yield f"{reason}, so the job's batch differs; `critical_batch` counts what that costs in epochs"


def _hosts(shown: Sequence[Candidate]) -> Iterator[str]:
    for candidate in shown:
        if candidate.host_note is not None:
            yield f"{candidate.offer.name} ({candidate.offer.instance.cloud}): {candidate.host_note}"


def _spot(shown: Sequence[Candidate], asked: Asked) -> Iterator[str]:
    spot = asked.spot
    if spot is None or not shown:
        return
    yield (
        f"spot: {spot.interruptions_per_hour:g} interruptions per hour and machine, {spot.restart_seconds:g} s to "
        "start again; times and costs are expected ones"
    )


def _prices(rented: Sequence[Instance], asked: Asked, today: date | None) -> Iterator[str]:
    if not rented:
        return
    assumed = [one.name for one in rented if one.board_is_assumed]
    if assumed:
        yield f"the seller names only the family of the GPU of {_names(assumed)}: which board it is, is assumed"
    dates = sorted(instance.priced_on for instance in rented)
    unchecked = sum(not instance.verified for instance in rented)
    period = " to ".join(dict.fromkeys((dates[0], dates[-1])))
    checked = f"; {unchecked} of {len(rented)} are not checked against the seller's" if unchecked else ""
    kind = "spot prices" if asked.spot is not None else "list prices"
    how = "for whole machines" if asked.spot is not None else "for whole machines on demand"
    yield f"{kind} of {period}, {how}{checked}"
    if today is not None:
        old = sorted((one.age(today).days, one.name) for one in rented if one.is_stale(today))
        if old:
            names = _names([f"{name} ({age} days)" for age, name in reversed(old)])
            yield f"prices older than {FRESH.days} days: {names}; `epochcast instances import` refreshes them"


def _names(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
