"""From the typed rows of a file to a workload: what may be rented, and every job with its choices of GPUs."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from epochcast.errors import BadInput
from epochcast.schedule.queue_document import (
    NodeTypeRow,
    QueueDocument,
    QueueJobRow,
    RefusedJob,
    RunSeconds,
    parse_queue,
    read_document,
)
from epochcast.schedule.simulator import SimulationRules
from epochcast.schedule.workload_jobs import Fleet, GpuChoice, NodeType, QueuedJob, QueueWorkload, order_faults
from epochcast.units import show_dollars


@dataclass(frozen=True)
class ReadWorkload:
    """A workload, the jobs that were refused, and the rows of the others."""

    workload: QueueWorkload
    refused: tuple[RefusedJob, ...]
    rows: Mapping[str, QueueJobRow]


def read_workload(path: Path) -> QueueWorkload:
    """A workload file, checked; a message names the file and the row."""
    try:
        return workload_of(read_document(path))
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None


def workload_of(document: Any, other_jobs: Collection[str] = ()) -> QueueWorkload:
    """A workload from what a file says, every row of which must be right."""
    return checked_workload(parse_queue(document), other_jobs).workload


def checked_workload(document: QueueDocument, other_jobs: Collection[str] = ()) -> ReadWorkload:
    """A workload all of whose jobs must be right."""
    read = build_workload(document, other_jobs)
    if read.refused:
        raise BadInput(read.refused[0].why)
    return read


def build_workload(document: QueueDocument, other_jobs: Collection[str] = ()) -> ReadWorkload:
    """A workload from typed rows; a job that makes no sense is refused and the others stay.

    Jobs may come after `other_jobs`, which are not of this workload: their rows say so, the workload does not.
    """
    fleet = fleet_of(document)
    jobs: dict[str, QueuedJob] = {}
    truths: dict[str, dict[GpuChoice, float]] = {}
    refused = list(document.refused)
    for row in document.jobs:
        try:
            job, truth = _job(row, fleet)
        except BadInput as error:
            refused.append(RefusedJob(row.id, str(error)))
            continue
        jobs[row.id] = replace(job, after=tuple(other for other in job.after if other not in other_jobs))
        if truth is not None:
            truths[row.id] = truth
    for name, fault in order_faults({name: job.after for name, job in jobs.items()}).items():
        refused.append(RefusedJob(name, fault))
        del jobs[name]
    true_seconds = {name: truths[name] for name in jobs if name in truths}
    workload = QueueWorkload(fleet, tuple(jobs.values()), true_seconds, document.failures, document.stragglers)
    return ReadWorkload(workload, tuple(refused), {row.id: row for row in document.jobs if row.id in jobs})


def fleet_of(document: QueueDocument) -> Fleet:
    """The machines of a file."""
    types = tuple(_node_type(row, place, document.boot_seconds) for place, row in enumerate(document.node_types, 1))
    if document.nodes is not None:
        return Fleet(document.nodes, types)
    quotas = [kind.quota for kind in types if kind.quota is not None]
    if len(quotas) < len(types) or not sum(quotas):
        raise BadInput("it has no nodes: give `nodes`, or a quota or count for every type")
    return Fleet(sum(quotas), types)


def rules_of(document: QueueDocument) -> SimulationRules:
    """When decisions are made."""
    triggers = document.decide_on
    return SimulationRules(
        document.every_seconds, on_arrival="arrival" in triggers, on_completion="completion" in triggers
    )


def _node_type(row: NodeTypeRow, place: int, boot_seconds: float) -> NodeType:
    label = f"node type {row.name or str(place)!r}"
    if row.in_house and row.count is None:
        raise BadInput(f"{label} is in_house: it needs a count, how many there are")
    if row.count is not None and (not row.in_house or row.quota is not None):
        raise BadInput(f"{label}: `count` is for in_house machines; rented ones take a `quota`")
    # A machine of one's own is free unless it says what an hour of use is charged, and always booted.
    dollars = 0.0 if row.in_house and row.dollars_per_hour is None else row.dollars_per_hour
    if row.name is None or row.device is None or row.gpus is None or dollars is None:
        needed = {"name": row.name, "device": row.device, "gpus": row.gpus, "dollars_per_hour": dollars}
        raise BadInput(f"{label}: {next(key for key, value in needed.items() if value is None)} is missing")
    boots = (0.0 if row.in_house else boot_seconds) if row.boot_seconds is None else row.boot_seconds
    return NodeType(
        row.name,
        row.device,
        row.gpus,
        dollars,
        quota=row.count if row.in_house else row.quota,
        boot_seconds=boots,
        interruptions_per_hour=row.interruptions_per_hour,
        slow_fraction=row.slow_fraction,
        slowdown=row.slowdown,
        is_in_house=row.in_house,
        instance=row.instance,
    )


def _job(row: QueueJobRow, fleet: Fleet) -> tuple[QueuedJob, dict[GpuChoice, float] | None]:
    """A job, and what its runs really take where that is not what a policy sees."""
    if row.deadline_seconds is None:
        raise BadInput(f"job {row.id!r}: deadline_seconds is missing")
    truth = _allowed(row, "run_seconds", row.run_seconds, fleet)
    forecast = _allowed(row, "forecast_seconds", row.forecast_seconds, fleet)
    seen = truth if forecast is None else forecast
    if seen is None:
        raise BadInput(f"job {row.id!r} has no run_seconds")
    if truth is not None:
        seen = {choice: seconds for choice, seconds in seen.items() if choice in truth}
    if not seen:
        raise BadInput(f"job {row.id!r} does not fit on any machine of the list")
    job = QueuedJob(
        id=row.id,
        submit_seconds=row.submit_seconds,
        deadline_seconds=row.deadline_seconds,
        tardiness_dollars_per_second=row.tardiness_dollars_per_second,
        seconds=seen if row.budget_dollars is None else _within_budget(row.id, seen, row.budget_dollars, fleet),
        restart_seconds=row.restart_seconds,
        checkpoint_seconds=row.checkpoint_seconds,
        is_preemptible=row.preemptible,
        priority=row.priority,
        budget_dollars=row.budget_dollars,
        after=row.after,
    )
    differs = truth is not None and forecast is not None
    return job, {choice: seconds.mid for choice, seconds in truth.items()} if truth and differs else None


def _allowed(row: QueueJobRow, key: str, seconds: RunSeconds | None, fleet: Fleet) -> RunSeconds | None:
    """The choices that the job allows and a machine holds."""
    if seconds is None:
        return None
    allowed = {choice: run for choice, run in seconds.items() if row.min_gpus <= choice.gpus <= row.max_gpus}
    if seconds and not allowed:
        gpus = f"{row.min_gpus} to {row.max_gpus} GPUs (min_gpus, max_gpus)"
        raise BadInput(f"job {row.id!r}: {key} has nothing for {gpus}")
    return {choice: run for choice, run in allowed.items() if fleet.holds(choice)}


def _within_budget(job: str, seconds: RunSeconds, budget: float, fleet: Fleet) -> RunSeconds:
    """The choices whose GPUs cost no more; one after another they cost no more, either."""
    dollars = {
        choice: run.mid * choice.gpus * fleet.gpu_dollars_per_second(choice.device) for choice, run in seconds.items()
    }
    within = {choice: run for choice, run in seconds.items() if dollars[choice] <= budget}
    if not within:
        cheapest = min(dollars, key=lambda choice: (dollars[choice], choice))
        raise BadInput(
            f"job {job!r} cannot be finished within its budget_dollars of {show_dollars(budget)}: "
            f"the cheapest run, on {cheapest}, costs {show_dollars(dollars[cheapest])}"
        )
    return within


def with_error(workload: QueueWorkload, spread: float, seed: int) -> QueueWorkload:
    """The same jobs, forecast with error: a policy sees T·exp(σz), one z per job, and the truth stays as it was."""
    from random import Random

    random = Random(seed)
    jobs, truths = [], {}
    for job in workload.jobs:
        factor = 2.718281828459045 ** random.gauss(0.0, spread)
        truths[job.id] = {choice: workload.run_seconds(job, choice) for choice in job.seconds}
        jobs.append(replace(job, seconds={choice: run.scaled(factor) for choice, run in job.seconds.items()}))
    return replace(workload, jobs=tuple(jobs), true_seconds=truths)
