"""Jobs of a cluster's trace, with deadlines and prices of lateness drawn for them.

A row of a trace has `submit_seconds, duration_seconds, gpus` and may have an `id`. A fraction of a GPU is a whole one
here. The duration is that on the first device with the traced number of GPUs; with g times as many it is divided by
g^U(.35, 1).

*Gaps*: a row without one of its values, with one that is no number (NaN counts as none), with an id that was there
before, submitted before the first row, or that no machine can run, is named and left out; the others are as if it were
there. Rows need not be in order otherwise, and hours without a row are hours without a job.
"""

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from io import StringIO
from math import isfinite
from pathlib import Path
from random import Random
from typing import Any

from epochcast.base.documents import read_text
from epochcast.errors import BadInput
from epochcast.schedule.generators import drawn_job
from epochcast.schedule.workload_jobs import Fleet, GpuChoice, QueuedJob, QueueWorkload

COLUMNS = ("submit_seconds", "duration_seconds", "gpus")
# Bytes of a field of a CSV file that are shown where it is no number.
SHOWN = 40


@dataclass(frozen=True)
class ReadTrace:
    """A workload, and why rows were left out of it, a line each."""

    workload: QueueWorkload
    refused: tuple[str, ...]


def from_trace(rows: Iterable[Mapping[str, Any]], fleet: Fleet, seed: int) -> ReadTrace:
    """Jobs of all rows that make sense. The first is submitted at 0; rows keep their own random numbers."""
    jobs: dict[str, QueuedJob] = {}
    refused: list[str] = []
    begin: float | None = None
    for number, row in enumerate(rows, 1):
        try:
            submit, duration, gpus = _values(row, number)
            if begin is None:
                begin = submit
            if submit < begin:
                raise BadInput(f"row {number} of the trace is submitted before the first; sort it by submit_seconds")
            job = _job(number, submit - begin, duration, gpus, fleet, Random(f"trace {seed} {number}"))
            name = str(row["id"]) if row.get("id") not in (None, "") else job.id
            if name in jobs:
                raise BadInput(f"two rows of the trace are called {name!r}; the second is row {number}")
            jobs[name] = replace(job, id=name)
        except BadInput as error:
            refused.append(str(error))
    return ReadTrace(QueueWorkload(fleet, tuple(jobs.values())), tuple(refused))


def read_trace(path: Path, fleet: Fleet, seed: int) -> ReadTrace:
    """Jobs of a CSV file with the columns of a trace."""
    reader = csv.DictReader(StringIO(read_text(path)))
    try:
        rows = [{key: value if key == "id" else _parsed(value) for key, value in row.items()} for row in reader]
    except csv.Error as error:
        raise BadInput(f"{path} is no CSV file: {error}") from None
    missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
    if missing:
        raise BadInput(f"{path} has no column {missing[0]}; a trace has {', '.join(COLUMNS)}")
    read = from_trace(rows, fleet, seed)
    if not read.workload.jobs:
        raise BadInput(f"{path} has no job that could run" + (f": {read.refused[0]}" if read.refused else ""))
    return read


def _parsed(field: object) -> object:
    """A field of a CSV file: a number where it is one, None where it is empty or missing."""
    if not isinstance(field, str) or not field.strip():
        return None
    try:
        return float(field)
    except ValueError:
        return field[:SHOWN]


def _values(row: Mapping[str, Any], number: int) -> tuple[float, float, float]:
    values = []
    for key in COLUMNS:
        value = row.get(key)
        if value is None:
            raise BadInput(f"row {number} of the trace has no {key}")
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            raise BadInput(f"{key} of row {number} of the trace is {value!r}; a number is needed")
        values.append(float(value))
    submit, duration, gpus = values
    if duration <= 0:
        raise BadInput(f"row {number} of the trace lasts {duration:g} seconds; more than 0 are needed")
    if gpus <= 0:
        raise BadInput(f"row {number} of the trace needs {gpus:g} GPUs; more than 0 are needed")
    return submit, duration, gpus


def _job(
    number: int, submit_seconds: float, duration_seconds: float, gpus: float, fleet: Fleet, random: Random
) -> QueuedJob:
    device = fleet.types[0].device
    sizes = sorted({kind.gpus for kind in fleet.by_device[device]})
    needs = next((size for size in sizes if size >= gpus), None)
    if needs is None:
        raise BadInput(f"row {number} of the trace needs {gpus:g} GPUs; the largest machine has {sizes[-1]}")
    power = random.uniform(0.35, 1.0)
    seconds = {GpuChoice(device, size): duration_seconds / (size / needs) ** power for size in sizes if size >= needs}
    return drawn_job(f"t{number}", submit_seconds, seconds, random)
