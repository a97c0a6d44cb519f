"""Jobs of a queue that say what they train: our forecast fills in their seconds, device by device and GPUs by GPUs.

A row with `model` has the options of a job beside it; one with `job` names a job of the nearest `epochcast.toml`, whose
options count where the row has none. Every node type is asked with 1, 2, 4, … and all of its GPUs, within one machine.
What does not fit in memory is left out and told. Of node types with the same device the smallest that holds the GPUs
says how they are joined. A device and numbers of GPUs in `epochcast.toml` do not count: the queue chooses them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from epochcast.decide.plan.offers import Offer
from epochcast.errors import BadInput, EpochcastError, UnknownOption
from epochcast.hardware.machines import find_instance
from epochcast.predict.forecast.forecast import Forecast
from epochcast.predict.forecast.forecaster import forecast_job
from epochcast.predict.forecast.job import JOB_OPTIONS, Job, without_replaced
from epochcast.predict.forecast.job_defaults import placement_of
from epochcast.predict.forecast.job_file import OPTIONS, beside, find_job_file, read_job
from epochcast.predict.forecast.placement import Placement, placed
from epochcast.predict.forecast.session import Session
from epochcast.predict.forecast.where import PLACE_OPTIONS, Where
from epochcast.units import show_bytes

Row = Mapping[str, Any]

_JOB_NAMES = frozenset(one.name for one in JOB_OPTIONS if one.name != "reference")
# The queue chooses the device and how many; a job says how they work together.
PLACE_NAMES = frozenset(one.name for one in PLACE_OPTIONS) - {"device", "gpus", "nodes", "dollars_per_gpu_hour"}
OPTION_NAMES = _JOB_NAMES | PLACE_NAMES


@dataclass(frozen=True)
class ForecastQueue:
    """A document whose jobs all have seconds, what was left out of these, and jobs without an answer."""

    document: Mapping[str, Any]
    notes: tuple[str, ...]
    refused: tuple[tuple[str, str], ...]


def with_forecasts(
    document: Mapping[str, Any],
    folder: Path,
    session: Session,
    progress: Callable[[int, int], None] | None = None,
) -> ForecastQueue:
    """A document with `forecast_seconds` for jobs that say what they train. Files are looked for in `folder`."""
    rows, types = document.get("jobs"), document.get("node_types")
    if not isinstance(rows, list) or not isinstance(types, list):
        return ForecastQueue(document, (), ())
    boxes = [row for row in types if isinstance(row, dict)]
    filled_rows: list[Any] = []
    notes: list[str] = []
    refused: list[tuple[str, str]] = []
    for place, row in enumerate(rows):
        if progress is not None:
            progress(place, len(rows))
        if not isinstance(row, dict) or ("model" not in row and "job" not in row):
            filled_rows.append(row)
            continue
        name = str(row.get("id", row.get("job", f"row {place + 1}")))
        try:
            filled, left_out = _filled(row, name, boxes, folder, session)
        except EpochcastError as error:
            refused.append((name, f"job {name!r}: {error}"))
            continue
        filled_rows.append(filled)
        notes += left_out
    return ForecastQueue({**document, "jobs": filled_rows}, tuple(notes), tuple(refused))


def _filled(row: Row, name: str, boxes: Sequence[Row], folder: Path, session: Session) -> tuple[Row, list[str]]:
    """A row with seconds, and what it does not fit on."""
    for key in ("run_seconds", "forecast_seconds"):
        if key in row:
            raise BadInput(f"it has {key}, and a model to forecast it by: give one of them")
    job, where, options = _asked(row, folder)
    seconds: dict[str, dict[str, list[float]]] = {}
    reasons: list[str] = []
    for device, gpus, where_there in _places(boxes, row, where):
        run = _seconds(job, where_there, session)
        if isinstance(run, str):
            reasons.append(f"on {gpus} × {device}: {run}")
        else:
            seconds.setdefault(device, {})[str(gpus)] = run
    if not seconds:
        raise BadInput("; ".join(["it fits nowhere", *reasons[-1:]]))
    others = {key: value for key, value in row.items() if key not in options and key != "job"}
    notes = [f"job {name!r} is not planned {reason}" for reason in reasons]
    return {**others, "id": name, "forecast_seconds": seconds}, notes


def _seconds(job: Job, place: Callable[[Job, Session], Placement], session: Session) -> list[float] | str:
    """Low, middle and high of the whole job at a place; or why it cannot run there."""
    session.model(job)  # a fault of the model is the job's, wherever it runs
    try:
        answer = forecast_job(job, place(job, session), session)
    except EpochcastError as error:
        return str(error)
    if answer.total_seconds is None:
        raise BadInput("how long it takes is not known: give a dataset or samples, and epochs")
    if answer.fits is False:
        return _memory(answer)
    total = answer.total_seconds
    return [total.low, total.mid, total.high]


def _asked(row: Row, folder: Path) -> tuple[Job, Where, frozenset[str]]:
    """The job of a row, how it is spread over GPUs, and which of its keys said so."""
    own = {key: OPTIONS[key].read(value) for key, value in row.items() if key in OPTION_NAMES}
    given: dict[str, Any] = {}
    if "job" in row:
        if not isinstance(row["job"], str):
            raise BadInput(f"job is {row['job']!r}; the name of a job of epochcast.toml is needed")
        named = read_job(row["job"], find_job_file(folder)).given
        given = {key: value for key, value in named.items() if key in OPTION_NAMES}
    elif isinstance(own["model"], str):
        own["model"] = beside(own["model"], folder)
    options = {**without_replaced(given, own), **own}
    for key in options:
        if key not in OPTION_NAMES:
            raise UnknownOption(key, OPTION_NAMES)
    job = Job(**{key: value for key, value in options.items() if key in _JOB_NAMES})
    where = Where(**{key: value for key, value in options.items() if key in PLACE_NAMES})
    return job, where, frozenset(own)


def _places(
    boxes: Sequence[Row], row: Row, where: Where
) -> Iterator[tuple[str, int, Callable[[Job, Session], Placement]]]:
    """Every number of GPUs of every device, within one machine; the fewest first."""
    least, most = row.get("min_gpus", 1), row.get("max_gpus", 10**6)
    seen: set[tuple[str, int]] = set()
    usable = [box for box in boxes if isinstance(box.get("gpus"), int) and isinstance(box.get("device"), str)]
    for box in sorted(usable, key=lambda box: int(box["gpus"])):
        size, device = int(box["gpus"]), str(box["device"])
        counts = sorted({*(2**n for n in range(size.bit_length())), size})
        for gpus in counts:
            is_allowed = isinstance(least, int) and isinstance(most, int) and least <= gpus <= most
            if is_allowed and (device, gpus) not in seen:
                seen.add((device, gpus))
                yield device, gpus, partial(_placement, box, gpus, where)


def _placement(box: Row, gpus: int, where: Where, job: Job, session: Session) -> Placement:
    """So many GPUs of a machine; one of the catalogue says how they are joined, unless the job does."""
    if box.get("instance") is None or where.link is not None or where.topology is not None:
        strategy = where.strategy if gpus > 1 else None
        there = replace(where, device=str(box["device"]), gpus=gpus, strategy=strategy)
        return placement_of(there, job, session)
    offer = Offer(find_instance(str(box["instance"])))
    strategy = where.strategy if gpus > 1 else None
    if gpus == offer.gpus:
        return replace(offer.placement(strategy), host=where.found_host())
    return replace(placed(offer.device, gpus, 1, strategy), host=where.found_host())


def _memory(answer: Forecast) -> str:
    if answer.peak_bytes is None or answer.memory_bytes is None:
        return "it needs more memory than there is"
    return f"it needs {show_bytes(answer.peak_bytes.mid)} of {show_bytes(answer.memory_bytes)}"
