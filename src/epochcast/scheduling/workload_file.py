"""Workload files: JSON with nodes, node_types and jobs; times in seconds from the start.

A job has `id, submit_seconds, deadline_seconds, tardiness_dollars_per_second, run_seconds {device: {gpus: seconds}}`
and may have `restart_seconds, checkpoint_seconds, max_gpus, min_gpus, preemptible, priority, budget_dollars` and
`forecast_seconds`: what a policy sees, where it differs from what happens. A number or [low, mid, high].
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from epochcast.documents import parse_json, read_text
from epochcast.errors import BadInput
from epochcast.interval import Interval
from epochcast.scheduling.workload import Choice, Failure, Fleet, NodeType, QueuedJob, Workload

_JOB_KEYS = {
    "id", "submit_seconds", "deadline_seconds", "tardiness_dollars_per_second", "run_seconds", "forecast_seconds",
    "restart_seconds", "checkpoint_seconds", "max_gpus", "min_gpus", "preemptible", "priority", "budget_dollars",
}  # fmt: skip


def read_workload(path: Path) -> Workload:
    """A workload file, checked; a message names the file and the row."""
    try:
        return workload_of(parse_json(read_text(path), path.name))
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None


def workload_of(document: Any) -> Workload:
    """A workload from what a file says."""
    if not isinstance(document, dict):
        raise BadInput("a workload is an object with nodes, node_types and jobs")
    for key in ("nodes", "node_types", "jobs"):
        if key not in document:
            raise BadInput(f"it has no {key}")
    boot = _number(document, "boot_seconds", "the file", 0.0)
    types = tuple(_type(row, number, boot) for number, row in enumerate(_rows(document, "node_types")))
    fleet = Fleet(_count(document["nodes"], "nodes"), types)
    jobs, truths = [], {}
    for number, row in enumerate(_rows(document, "jobs")):
        job, truth = _job(row, number, fleet)
        jobs.append(job)
        if truth is not None:
            truths[job.id] = truth
    failures = tuple(_failure(row) for row in _rows(document, "failures")) if "failures" in document else ()
    return Workload(fleet, tuple(jobs), truths, failures)


def _rows(document: Mapping[str, Any], key: str) -> list[Any]:
    rows = document[key]
    if not isinstance(rows, list):
        raise BadInput(f"{key} is no list")
    return rows


def _type(row: Any, number: int, boot_seconds: float) -> NodeType:
    if not isinstance(row, dict):
        raise BadInput(f"node type {number + 1} is no object")
    what = f"node type {row.get('name', number + 1)!r}"
    return NodeType(
        name=_text(row, "name", what),
        device=_text(row, "device", what),
        gpus=_count(row.get("gpus"), f"gpus of {what}"),
        dollars_per_hour=_number(row, "dollars_per_hour", what),
        quota=None if row.get("quota") is None else _count(row["quota"], f"quota of {what}", least=0),
        boot_seconds=_number(row, "boot_seconds", what, boot_seconds),
        interruptions_per_hour=_number(row, "interruptions_per_hour", what, 0.0),
    )


def _job(row: Any, number: int, fleet: Fleet) -> tuple[QueuedJob, dict[Choice, float] | None]:
    if not isinstance(row, dict):
        raise BadInput(f"job {number + 1} is no object")
    what = f"job {row.get('id', number + 1)!r}"
    least = _count(row.get("min_gpus", 1), f"min_gpus of {what}")
    most = _count(row.get("max_gpus", 10**6), f"max_gpus of {what}")
    if "run_seconds" not in row and "forecast_seconds" not in row:
        raise BadInput(f"{what} has no run_seconds")

    def seconds(key: str) -> dict[Choice, Interval]:
        found = _seconds(row[key], f"{key} of {what}")
        return {c: told for c, told in found.items() if fleet.holds(c) and least <= c.gpus <= most}

    happens = seconds("run_seconds") if "run_seconds" in row else None
    told = seconds("forecast_seconds") if "forecast_seconds" in row else happens
    assert told is not None
    if happens is not None and set(told) - set(happens):
        told = {choice: value for choice, value in told.items() if choice in happens}
    preemptible = row.get("preemptible", True)
    if not isinstance(preemptible, bool):
        raise BadInput(f"preemptible of {what} is {preemptible!r}; true or false is needed")
    job = QueuedJob(
        id=_text(row, "id", what),
        submit_seconds=_number(row, "submit_seconds", what, 0.0),
        deadline_seconds=_number(row, "deadline_seconds", what),
        tardiness_dollars_per_second=_number(row, "tardiness_dollars_per_second", what, 0.0),
        seconds=told,
        restart_seconds=_number(row, "restart_seconds", what, 0.0),
        checkpoint_seconds=_number(row, "checkpoint_seconds", what, 0.0),
        is_preemptible=preemptible,
        priority=None if row.get("priority") is None else _number(row, "priority", what),
        budget_dollars=None if row.get("budget_dollars") is None else _number(row, "budget_dollars", what),
    )
    return job, None if happens is None or told is happens else {c: value.mid for c, value in happens.items()}


def _seconds(value: Any, what: str) -> dict[Choice, Interval]:
    found: dict[Choice, Interval] = {}
    if not isinstance(value, dict):
        raise BadInput(f"{what} is no object of devices")
    for device, by_gpus in value.items():
        if not isinstance(by_gpus, dict):
            raise BadInput(f"{what}, {device}: no object of numbers of GPUs")
        for gpus, told in by_gpus.items():
            if not (isinstance(gpus, str) and gpus.isdecimal() and len(gpus) < 7):
                raise BadInput(f"{what}, {device}: {gpus!r} is no number of GPUs")
            found[Choice(device, int(gpus))] = _interval(told, f"{what}, {gpus} × {device}")
    return found


def _interval(told: Any, what: str) -> Interval:
    ends = told if isinstance(told, list) else [told]
    if not all(isinstance(end, int | float) and not isinstance(end, bool) for end in ends) or len(ends) not in (1, 3):
        raise BadInput(f"{what} is {told!r}; seconds or [low, mid, high] are needed")
    try:
        return Interval(*map(float, ends)) if len(ends) == 3 else Interval.exact(float(ends[0]))
    except (ValueError, OverflowError) as error:
        raise BadInput(f"{what}: {error}") from None


def _failure(row: Any) -> Failure:
    if not isinstance(row, dict) or "at_seconds" not in row:
        raise BadInput("a failure is an object with at_seconds, and machine (a number) or node_type")
    kind = row.get("node_type")
    return Failure(
        _number(row, "at_seconds", "a failure"),
        _count(row.get("machine", 0), "machine of a failure", least=0),
        None if kind is None else str(kind),
    )


def _text(row: Mapping[str, Any], key: str, what: str) -> str:
    value = row.get(key)
    if not isinstance(value, str) or not value:
        raise BadInput(f"{key} of {what} is {value!r}; a text is needed")
    return value


def _number(row: Mapping[str, Any], key: str, what: str, default: float | None = None) -> float:
    value = row.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadInput(f"{key} of {what} is {value!r}; a number is needed")
    try:
        return float(value)
    except OverflowError:
        raise BadInput(f"{key} of {what} is too large") from None


def _count(value: Any, what: str, least: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise BadInput(f"{what} is {value!r}; a whole number of at least {least} is needed")
    return value


def with_error(workload: Workload, spread: float, seed: int) -> Workload:
    """The same jobs, forecast with error: a policy sees T·exp(σz), one z per job, and the truth stays as it was."""
    from random import Random

    random = Random(seed)
    jobs, truths = [], {}
    for job in workload.jobs:
        factor = 2.718281828459045 ** random.gauss(0.0, spread)
        truths[job.id] = {choice: workload.run_seconds(job, choice) for choice in job.seconds}
        jobs.append(replace(job, seconds={choice: told.scaled(factor) for choice, told in job.seconds.items()}))
    return replace(workload, jobs=tuple(jobs), true_seconds=truths)
