"""Notes of a plan: those of its forecasts, the batch, machines with too few CPUs, boards and prices."""

from collections.abc import Iterator, Sequence
from datetime import date

from epochcast.base.notes import Importance, Note
from epochcast.decide.plan.candidate import Candidate
from epochcast.decide.plan.plan_terms import PlanTerms
from epochcast.hardware.instance import FRESH, Instance
from epochcast.hardware.price import OWNED
from epochcast.predict.forecast.job import Job
from epochcast.units import show_seconds

# So many machines are named; more are counted.
_MOST_NAMES = 3
_HOSTS_MANY = "{count} machines have too few CPUs to feed their GPUs: {names}."


def warnings_of(
    job: Job, candidates: Sequence[Candidate], shown: Sequence[Candidate], terms: PlanTerms, today: date | None
) -> tuple[str, ...]:
    """Of the configurations that are shown; the batch is compared over all."""
    return tuple(
        dict.fromkeys(
            [
                *(warning for candidate in shown for warning in candidate.forecast.warnings),
                *_batch(job, candidates, terms),
                *_hosts(shown),
                *_spot(shown, terms),
                *_startup(job, shown, terms),
                *_prices(list(dict.fromkeys(candidate.offer.instance for candidate in shown)), terms, today),
            ]
        )
    )


def _batch(job: Job, candidates: Sequence[Candidate], terms: PlanTerms) -> Iterator[Note]:
    if len({candidate.global_batch for candidate in candidates}) < 2:
        return
    critical = terms.critical
    if critical is not None:
        yield Note(f"Epochs grow with the batch: critical batch {critical.name} ({critical.credit}).")
    elif job.global_batch is None:
        reason = (
            f"Every GPU takes {job.batch} samples"
            if job.batch is not None
            else "No batch given: every GPU takes the largest power of two that fits"
        )
        text = f"{reason}, so the global batch differs. Set --critical-batch to count the extra epochs."
        yield Note(text, Importance.NOT_AS_ASKED)


def _hosts(shown: Sequence[Candidate]) -> Iterator[Note]:
    for candidate in shown:
        if candidate.host_note is not None:
            offer = f"{candidate.offer.name} ({candidate.offer.instance.cloud})"
            yield Note(f"{offer}: {candidate.host_note}", Importance.LIMIT, about=offer, many=_HOSTS_MANY)


def _spot(shown: Sequence[Candidate], terms: PlanTerms) -> Iterator[Note]:
    spot = terms.spot
    if spot is None or not shown:
        return
    yield Note(
        f"Spot: assuming {spot.interruptions_per_hour:g} interruptions per hour and machine and "
        f"{spot.restart_seconds:g} s per restart. Times and costs are expected values."
    )


def _startup(job: Job, shown: Sequence[Candidate], terms: PlanTerms) -> Iterator[Note]:
    if not terms.assumed_startup or not any(candidate.offer.instance.cloud not in OWNED for candidate in shown):
        return
    extras = terms.extras
    is_sized = job.known_dataset is not None or "data_seconds" not in terms.assumed_startup
    transfer = f"data transfer {show_seconds(extras.data_seconds)}"
    data = transfer if is_sized else "no data transfer, as its size is unknown"
    yield Note(
        f"Assuming {show_seconds(extras.boot_seconds)} to boot, image pull {show_seconds(extras.image_seconds)}, "
        f"{data}: set --boot, --image-pull, --data-transfer."
    )


def _prices(rented: Sequence[Instance], terms: PlanTerms, today: date | None) -> Iterator[Note]:
    if not rented:
        return
    for instance in rented:
        if instance.board_is_assumed:
            yield Note(
                f"{instance.name} lists only the GPU family: assuming {instance.device}.",
                about=f"{instance.name} ({instance.device})",
                many="{count} offers list only the GPU family. Assumed boards: {names}.",
            )
    dates = sorted(instance.priced_on for instance in rented)
    unchecked = sum(not instance.verified for instance in rented)
    period = " to ".join(dict.fromkeys((dates[0], dates[-1])))
    checked = f"; {unchecked} of {len(rented)} are not checked against the seller's" if unchecked else ""
    kind = "Spot prices" if terms.spot is not None else "List prices"
    how = "for whole machines" if terms.spot is not None else "for whole machines on demand"
    yield Note(f"{kind} of {period}, {how}{checked}.", Importance.DETAIL)
    if today is not None:
        old = sorted((instance.age(today).days, instance.name) for instance in rented if instance.is_stale(today))
        if old:
            names = _names([f"{name} ({age} days)" for age, name in reversed(old)])
            are = "price is" if len(old) == 1 else "prices are"
            text = f"{len(old)} {are} older than {FRESH.days} days: {names}."
            yield Note(f"{text} `epochcast instances update` refreshes them.", Importance.EVIDENCE)


def _names(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
