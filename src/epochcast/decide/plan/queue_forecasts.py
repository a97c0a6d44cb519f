"""Forecasts for a job of a queue: how long it runs on every device and number of GPUs that the queue may rent.

A job has its own options, or names a job of the nearest `epochcast.toml`, whose options count where it has none. Every
machine is tried with 1, 2, 4, … and all of its GPUs. Of machines with the same device the smallest that holds the GPUs
says how they are joined. A device and numbers of GPUs in `epochcast.toml` do not count: the queue chooses them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from epochcast.base.options import Option
from epochcast.decide.plan.offers import Offer
from epochcast.errors import BadInput, EpochcastError
from epochcast.hardware.machines import find_instance
from epochcast.interval import Interval
from epochcast.predict.forecast.forecast import Forecast
from epochcast.predict.forecast.forecaster import forecast_job
from epochcast.predict.forecast.job import JOB_OPTIONS, Job
from epochcast.predict.forecast.job_alternatives import without_replaced
from epochcast.predict.forecast.job_defaults import placement_of
from epochcast.predict.forecast.job_file import OPTIONS, beside, find_job_file, read_job
from epochcast.predict.forecast.loader_step import CountedLoader
from epochcast.predict.forecast.placement import Placement, placed
from epochcast.predict.forecast.session import Session
from epochcast.predict.forecast.where import PLACE_OPTIONS, Where
from epochcast.units import show_bytes

_JOB_NAMES = frozenset(option.name for option in JOB_OPTIONS if option.name != "reference")
# The queue chooses the device and how many; a job says how they work together.
_PLACE_NAMES = frozenset(option.name for option in PLACE_OPTIONS) - {"device", "gpus", "nodes", "dollars_per_gpu_hour"}
QUEUE_JOB_OPTIONS: Mapping[str, Option] = {name: OPTIONS[name] for name in _JOB_NAMES | _PLACE_NAMES}
"""What a job of a queue may say about its training."""


@dataclass(frozen=True, slots=True)
class TrainedJob:
    """What a job of a queue trains, how it is spread over GPUs, and how many GPUs it may have."""

    job: Job
    where: Where
    min_gpus: int
    max_gpus: int


@dataclass(frozen=True, slots=True)
class MachineKind:
    """A machine that a queue may rent; `instance` is its name in the catalogue."""

    device: str
    gpus: int
    instance: str | None = None


@dataclass(frozen=True, slots=True)
class GpuForecast:
    """How long a job runs on GPUs of one machine; where it cannot run there, `refusal` says why."""

    device: str
    gpus: int
    seconds: Interval | None
    refusal: str = ""

    def __str__(self) -> str:
        return f"{self.gpus} × {self.device}"


def trained_job(
    options: Mapping[str, Any], job_name: str | None, folder: Path, min_gpus: int, max_gpus: int
) -> TrainedJob:
    """A job by its options and by its name in a job file. Files are looked for in `folder`."""
    job_options = dict(options)
    named: Mapping[str, Any] = {}
    if job_name is not None:
        named = read_job(job_name, find_job_file(folder)).given
        named = {key: value for key, value in named.items() if key in QUEUE_JOB_OPTIONS}
    elif isinstance(job_options["model"], str):
        job_options["model"] = beside(job_options["model"], folder)
    all_options = {**without_replaced(named, job_options), **job_options}
    job = Job(**{key: value for key, value in all_options.items() if key in _JOB_NAMES})
    where = Where(**{key: value for key, value in all_options.items() if key in _PLACE_NAMES})
    return TrainedJob(job, where, min_gpus, max_gpus)


def forecast_on_machines(
    trained: TrainedJob, machines: Sequence[MachineKind], session: Session
) -> tuple[GpuForecast, ...]:
    """A forecast for every number of GPUs of every device; refused where the job fits nowhere."""
    forecasts = tuple(_forecast(trained, machine, gpus, session) for machine, gpus in _places(trained, machines))
    if all(forecast.seconds is None for forecast in forecasts):
        raise BadInput("it fits nowhere" + "".join(f"; on {last}: {last.refusal}" for last in forecasts[-1:]))
    return forecasts


def _forecast(trained: TrainedJob, machine: MachineKind, gpus: int, session: Session) -> GpuForecast:
    session.model(trained.job)  # a fault of the model is the job's, wherever it runs
    try:
        forecast = forecast_job(
            trained.job, _placement(trained, machine, gpus, session), session, loader=CountedLoader.SAID
        )
    except EpochcastError as error:
        return GpuForecast(machine.device, gpus, None, str(error))
    total = forecast.total_seconds
    if total is None:
        raise BadInput("how long it takes is not known: give a dataset or samples, and epochs")
    if forecast.fits is False:
        return GpuForecast(machine.device, gpus, None, _memory(forecast))
    return GpuForecast(machine.device, gpus, Interval(total.low, total.mid, total.high))


def _places(trained: TrainedJob, machines: Sequence[MachineKind]) -> Iterator[tuple[MachineKind, int]]:
    """Every number of GPUs of every device, within one machine; the fewest first."""
    seen: set[tuple[str, int]] = set()
    for machine in sorted(machines, key=lambda machine: machine.gpus):
        for gpus in sorted({*(2**n for n in range(machine.gpus.bit_length())), machine.gpus}):
            if trained.min_gpus <= gpus <= trained.max_gpus and (machine.device, gpus) not in seen:
                seen.add((machine.device, gpus))
                yield machine, gpus


def _placement(trained: TrainedJob, machine: MachineKind, gpus: int, session: Session) -> Placement:
    """So many GPUs of a machine; one of the catalogue says how they are joined, unless the job does."""
    where = trained.where
    strategy = where.strategy if gpus > 1 else None
    if machine.instance is None or where.link is not None or where.topology is not None:
        place = replace(where, device=machine.device, gpus=gpus, strategy=strategy)
        return placement_of(place, trained.job, session)
    offer = Offer(find_instance(machine.instance))
    placement = offer.placement(strategy) if gpus == offer.gpus else placed(offer.device, gpus, 1, strategy)
    return replace(placement, host=where.found_host())


def _memory(answer: Forecast) -> str:
    if answer.peak_bytes is None or answer.memory_bytes is None:
        return "it needs more memory than there is"
    return f"it needs {show_bytes(answer.peak_bytes.mid)} of {show_bytes(answer.memory_bytes)}"
