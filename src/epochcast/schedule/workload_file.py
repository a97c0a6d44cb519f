"""Workload files: JSON or TOML with nodes, node_types and jobs; times in seconds from the start.

A node type has `name, device, gpus, dollars_per_hour` and may have `quota, boot_seconds, interruptions_per_hour`, or be
`in_house` with its `count`: paid while it is in use where a price is given, free where none is.

A job has `id, submit_seconds, deadline_seconds, tardiness_dollars_per_second, run_seconds {device: {gpus: seconds}}`
and may have `restart_seconds, checkpoint_seconds, max_gpus, min_gpus, preemptible, priority, budget_dollars, after` and
`forecast_seconds`: what a policy sees, where it differs from what happens. A number or [low, mid, high].

A job that makes no sense is refused with one line, and the others go on (`read_rows`).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any

from epochcast.base.documents import parse_json, parse_toml, read_text
from epochcast.errors import BadInput, UnknownName
from epochcast.interval import Interval
from epochcast.schedule import row_fields as fields
from epochcast.schedule.simulator import SimulationRules
from epochcast.schedule.workload_jobs import (
    Fleet,
    GpuChoice,
    MachineFailure,
    NodeType,
    QueuedJob,
    QueueWorkload,
    Straggler,
    order_faults,
)
from epochcast.units import show_dollars

FILE_KEYS = (
    *("nodes", "node_types", "jobs", "boot_seconds", "failures", "stragglers", "start_at"),
    *("decide_on", "every_seconds"),
)
TYPE_KEYS = (
    *("name", "device", "gpus", "dollars_per_hour", "quota", "boot_seconds", "interruptions_per_hour"),
    *("slow_fraction", "slowdown", "in_house", "count", "instance"),
)
JOB_KEYS = (
    *("id", "submit_seconds", "deadline_seconds", "tardiness_dollars_per_second", "run_seconds", "forecast_seconds"),
    *("restart_seconds", "checkpoint_seconds", "max_gpus", "min_gpus", "preemptible", "priority", "budget_dollars"),
    *("after", "running", "done_fraction"),
)
# How a job is started: read by `queue_file`.
WORK_KEYS = ("command", "folder", "log", "checkpoint_folder", "env", "grace_seconds", "retries", "ray_workers")
TRIGGERS = ("arrival", "completion")
MOST_GPUS = 10**6


@dataclass(frozen=True, slots=True)
class Refused:
    """A job that was left out, and why."""

    job: str
    why: str

    def as_dict(self) -> dict[str, str]:
        """By the names of the JSON contract."""
        return {"job": self.job, "why": self.why}


@dataclass(frozen=True)
class ReadWorkload:
    """A workload, what is said about decisions, who was left out, and the rows of those who were not."""

    workload: QueueWorkload
    rules: SimulationRules
    refused: tuple[Refused, ...]
    rows: Mapping[str, Mapping[str, Any]]


def read_document(path: Path) -> Any:
    """What a JSON or TOML file says."""
    text = read_text(path)
    return parse_toml(text, path.name) if path.suffix.lower() == ".toml" else parse_json(text, path.name)


def read_workload(path: Path) -> QueueWorkload:
    """A workload file, checked; a message names the file and the row."""
    try:
        return workload_of(read_document(path))
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None


def workload_of(document: Any, known: Collection[str] = ()) -> QueueWorkload:
    """A workload from what a file says, every row of which must be right."""
    read = read_rows(document, known)
    if read.refused:
        raise BadInput(read.refused[0].why)
    return read.workload


def read_rows(document: Any, known: Collection[str] = ()) -> ReadWorkload:
    """A workload from what a file says; a job that makes no sense is refused and the others go on.

    Jobs may come after `known` ones, which are not of this workload: their rows say so, the workload does not.
    """
    fleet, rules = fleet_of(document), rules_of(document)
    jobs: dict[str, QueuedJob] = {}
    rows: dict[str, Mapping[str, Any]] = {}
    truths: dict[str, dict[GpuChoice, float]] = {}
    refused: list[Refused] = []
    for place, row in enumerate(_rows(document, "jobs"), 1):
        name = name_of(row, place)
        try:
            if name in jobs:
                raise BadInput(f"two jobs are called {name!r}; the second is row {place} of jobs")
            job, truth = _job(row, place, fleet)
            jobs[name] = replace(job, after=tuple(other for other in job.after if other not in known))
        except BadInput as error:
            refused.append(Refused(name, str(error)))
            continue
        rows[name] = row
        if truth is not None:
            truths[name] = truth
    for name, fault in order_faults({name: job.after for name, job in jobs.items()}).items():
        refused.append(Refused(name, fault))
        del jobs[name]
    failures = tuple(_failure(row) for row in _rows(document, "failures")) if "failures" in document else ()
    slow = tuple(_straggler(row) for row in _rows(document, "stragglers")) if "stragglers" in document else ()
    workload = QueueWorkload(fleet, tuple(jobs.values()), {n: truths[n] for n in jobs if n in truths}, failures, slow)
    return ReadWorkload(workload, rules, tuple(refused), {name: rows[name] for name in jobs})


def name_of(row: Any, place: int) -> str:
    """What a job is called, as far as its row says: its id, or its place in the list."""
    told = row.get("id", row.get("job")) if isinstance(row, dict) else None
    if isinstance(told, int) and not isinstance(told, bool):
        return str(told)
    return told if isinstance(told, str) and told else f"row {place}"


def fleet_of(document: Any) -> Fleet:
    """The machines of a file."""
    if not isinstance(document, dict):
        raise BadInput("a workload is an object with nodes, node_types and jobs")
    for key in ("node_types", "jobs"):
        if key not in document:
            raise BadInput(f"it has no {key}")
    fields.check_keys(document, FILE_KEYS, "the file")
    boot = fields.number(document, "boot_seconds", "the file", 0.0)
    types = tuple(_type(row, place, boot) for place, row in enumerate(_rows(document, "node_types"), 1))
    if "nodes" in document:
        return Fleet(fields.count(document["nodes"], "nodes"), types)
    quotas = [kind.quota for kind in types if kind.quota is not None]
    if len(quotas) < len(types) or not sum(quotas):
        raise BadInput("it has no nodes: how many machines may be had at a time, or a quota or count for every type")
    return Fleet(sum(quotas), types)


def rules_of(document: Mapping[str, Any]) -> SimulationRules:
    """When decisions are made: `decide_on` (arrival, completion) and `every_seconds`."""
    triggers = fields.names(document, "decide_on", "the file") if "decide_on" in document else TRIGGERS
    for name in triggers:
        if name not in TRIGGERS:
            raise BadInput(str(UnknownName("trigger in decide_on", name, TRIGGERS)))
    every = fields.optional_number(document, "every_seconds", "the file")
    if every is not None and not 0 < every < inf:
        raise BadInput(f"every_seconds of the file is {every:g}; more than 0 is needed")
    return SimulationRules(every, on_arrival="arrival" in triggers, on_completion="completion" in triggers)


def _rows(document: Mapping[str, Any], key: str) -> list[Any]:
    rows = document[key]
    if not isinstance(rows, list):
        raise BadInput(f"{key} is no list")
    return rows


def _type(row: Any, place: int, boot_seconds: float) -> NodeType:
    if not isinstance(row, dict):
        raise BadInput(f"node type {place} is no object")
    what = f"node type {row.get('name', place)!r}"
    fields.check_keys(row, TYPE_KEYS, what)
    in_house = fields.flag(row, "in_house", what, False)
    if in_house and "count" not in row:
        raise BadInput(f"{what} is in_house: it needs a count, how many there are")
    if "count" in row and (not in_house or "quota" in row):
        raise BadInput(f"{what}: count is of machines that are in_house; what may be rented has a quota")
    most = row.get("count", row.get("quota"))
    return NodeType(
        name=fields.text(row, "name", what),
        device=fields.text(row, "device", what),
        gpus=fields.count(row.get("gpus"), f"gpus of {what}"),
        # A machine of one's own is free unless it says what an hour of use is charged.
        dollars_per_hour=fields.number(row, "dollars_per_hour", what, 0.0 if in_house else None),
        quota=None if most is None else fields.count(most, f"{'count' if in_house else 'quota'} of {what}", least=0),
        boot_seconds=fields.number(row, "boot_seconds", what, 0.0 if in_house else boot_seconds),
        interruptions_per_hour=fields.number(row, "interruptions_per_hour", what, 0.0),
        slow_fraction=fields.number(row, "slow_fraction", what, 0.0),
        slowdown=fields.number(row, "slowdown", what, 2.0),
        is_in_house=in_house,
        instance=None if row.get("instance") is None else fields.text(row, "instance", what),
    )


def _job(row: Any, place: int, fleet: Fleet) -> tuple[QueuedJob, dict[GpuChoice, float] | None]:
    """A job, and what its runs really take where that is not what a policy sees."""
    if not isinstance(row, dict):
        raise BadInput(f"job {place} is no object")
    what = f"job {row.get('id', place)!r}"
    fields.check_keys(row, (*JOB_KEYS, *WORK_KEYS), what)
    name = name_of(row, place)
    if str(row.get("id")) != name:
        raise BadInput(f"id of {what} is {row.get('id')!r}; a text is needed")
    happens, told = _told(row, what, fleet)
    budget = fields.optional_number(row, "budget_dollars", what)
    job = QueuedJob(
        id=name,
        submit_seconds=fields.number(row, "submit_seconds", what, 0.0),
        deadline_seconds=fields.number(row, "deadline_seconds", what),
        tardiness_dollars_per_second=fields.number(row, "tardiness_dollars_per_second", what, 0.0),
        seconds=told if budget is None else _within_budget(told, budget, what, fleet),
        restart_seconds=fields.number(row, "restart_seconds", what, 0.0),
        checkpoint_seconds=fields.number(row, "checkpoint_seconds", what, 0.0),
        is_preemptible=fields.flag(row, "preemptible", what, True),
        priority=fields.optional_number(row, "priority", what),
        budget_dollars=budget,
        after=fields.names(row, "after", what),
    )
    return job, None if happens is None or told is happens else {c: value.mid for c, value in happens.items()}


def _told(
    row: Mapping[str, Any], what: str, fleet: Fleet
) -> tuple[dict[GpuChoice, Interval] | None, dict[GpuChoice, Interval]]:
    """What happens, where the file says it, and what a policy sees: for choices that the machines and the job allow."""
    least = fields.count(row.get("min_gpus", 1), f"min_gpus of {what}")
    most = fields.count(row.get("max_gpus", MOST_GPUS), f"max_gpus of {what}")
    if least > most:
        raise BadInput(f"min_gpus of {what} is {least}, more than its max_gpus, {most}")
    if "run_seconds" not in row and "forecast_seconds" not in row:
        raise BadInput(f"{what} has no run_seconds")

    def seconds(key: str) -> dict[GpuChoice, Interval]:
        found = _seconds(row[key], f"{key} of {what}")
        allowed = {choice: told for choice, told in found.items() if least <= choice.gpus <= most}
        if found and not allowed:
            raise BadInput(f"{what}: {key} has nothing for {least} to {most} GPUs (min_gpus, max_gpus)")
        return {choice: told for choice, told in allowed.items() if fleet.holds(choice)}

    happens = seconds("run_seconds") if "run_seconds" in row else None
    told = seconds("forecast_seconds") if "forecast_seconds" in row else happens
    assert told is not None
    if happens is not None and told is not happens:
        told = {choice: value for choice, value in told.items() if choice in happens}
    if not told:
        raise BadInput(f"{what} fits on no machine of the list")
    return happens, told


def _within_budget(
    told: dict[GpuChoice, Interval], budget: float, what: str, fleet: Fleet
) -> dict[GpuChoice, Interval]:
    """The choices whose GPUs cost no more; one after another they cost no more, either."""
    if not 0 < budget < inf:
        raise BadInput(f"budget_dollars of {what} is {budget:g}; more than 0 is needed")
    dollars = {c: value.mid * c.gpus * fleet.gpu_dollars_per_second(c.device) for c, value in told.items()}
    within = {choice: value for choice, value in told.items() if dollars[choice] <= budget}
    if not within:
        cheapest = min(dollars, key=lambda choice: (dollars[choice], choice))
        raise BadInput(
            f"{what} cannot be finished within its budget_dollars of {show_dollars(budget)}: "
            f"the cheapest run, on {cheapest}, costs {show_dollars(dollars[cheapest])}"
        )
    return within


def _seconds(value: Any, what: str) -> dict[GpuChoice, Interval]:
    found: dict[GpuChoice, Interval] = {}
    if not isinstance(value, dict):
        raise BadInput(f"{what} is no object of devices")
    for device, by_gpus in value.items():
        if not isinstance(by_gpus, dict):
            raise BadInput(f"{what}, {device}: no object of numbers of GPUs")
        for gpus, told in by_gpus.items():
            if not (isinstance(gpus, str) and gpus.isdecimal() and len(gpus) < 7):
                raise BadInput(f"{what}, {device}: {gpus!r} is no number of GPUs")
            found[GpuChoice(device, int(gpus))] = fields.interval(told, f"{what}, {gpus} × {device}")
    return found


def _failure(row: Any) -> MachineFailure:
    if not isinstance(row, dict) or "at_seconds" not in row:
        raise BadInput("a failure is an object with at_seconds, and machine (a number) or node_type")
    return MachineFailure(fields.number(row, "at_seconds", "a failure"), *_which(row, "a failure"))


def _straggler(row: Any) -> Straggler:
    if not isinstance(row, dict) or "at_seconds" not in row:
        raise BadInput("a straggler is an object with at_seconds, slowdown, and machine (a number) or node_type")
    at, slowdown = (fields.number(row, key, "a straggler") for key in ("at_seconds", "slowdown"))
    return Straggler(at, slowdown, *_which(row, "a straggler"))


def _which(row: Mapping[str, Any], what: str) -> tuple[int, str | None]:
    """Of the machines rented: by number, or one of a type."""
    kind = row.get("node_type")
    return fields.count(row.get("machine", 0), f"machine of {what}", least=0), None if kind is None else str(kind)


def with_error(workload: QueueWorkload, spread: float, seed: int) -> QueueWorkload:
    """The same jobs, forecast with error: a policy sees T·exp(σz), one z per job, and the truth stays as it was."""
    from random import Random

    random = Random(seed)
    jobs, truths = [], {}
    for job in workload.jobs:
        factor = 2.718281828459045 ** random.gauss(0.0, spread)
        truths[job.id] = {choice: workload.run_seconds(job, choice) for choice in job.seconds}
        jobs.append(replace(job, seconds={choice: told.scaled(factor) for choice, told in job.seconds.items()}))
    return replace(workload, jobs=tuple(jobs), true_seconds=truths)
