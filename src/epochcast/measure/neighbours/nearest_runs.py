"""The measured public runs nearest to a job, and what epochcast says for each: evidence that a person can look up.

How far a run is from a job, as a sum of logarithms and steps (set by hand; it orders rows and enters no number):

    network      |ln flops per sample| + ½ |ln parameters|, 0 for the same name; 4 where it takes another kind of input
    device       0 the same, ¼ the same chip, ½ the same generation, else 1 + ½ |ln bandwidth|
    batch        ¼ |ln samples per GPU|
    GPUs         ½ |ln number|
    precision    ½ where another, framework ½ where another
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from math import log
from typing import ClassVar

from epochcast.base.record import Record
from epochcast.errors import EpochcastError
from epochcast.hardware.catalogue import find_device
from epochcast.hardware.device import Device
from epochcast.interval import Interval
from epochcast.measure.neighbours.public_runs import PublicRun, public_runs
from epochcast.measure.tables.run_placement import run_placement
from epochcast.measure.tables.run_table import read_runs
from epochcast.predict.forecast.forecast import Forecast
from epochcast.predict.forecast.forecaster import forecast_job
from epochcast.predict.forecast.session import Session

SHOWN = 5
OTHER_INPUT, OTHER_PRECISION, OTHER_FRAMEWORK = 4.0, 0.5, 0.5
SAME_CHIP, SAME_GENERATION, OTHER_DEVICE = 0.25, 0.5, 1.0


@dataclass(frozen=True, slots=True)
class Neighbour(Record):
    """A measured run: what ran, its measured step, the forecast for it, and where the figure was published."""

    model: str
    device: str
    gpus: int
    batch_per_gpu: int
    precision: str
    measured_seconds: float
    forecast_seconds: Interval
    source: str
    distance: float

    json_also: ClassVar[tuple[str, ...]] = ("ratio",)

    @property
    def ratio(self) -> float:
        """Measured over forecast."""
        return self.measured_seconds / self.forecast_seconds.mid


def neighbours(forecast: Forecast, most: int = SHOWN, session: Session | None = None) -> tuple[Neighbour, ...]:
    """The nearest first. Rows that cannot be forecast here (a library is missing) are passed over."""
    device = find_device(forecast.device) if not forecast.has_details else forecast.details.placement.device
    ordered = sorted(public_runs(), key=lambda run: _distance(run, forecast, device))
    return tuple(islice(_forecast_of(ordered, forecast, device, session or Session()), most))


def _forecast_of(ordered: list[PublicRun], forecast: Forecast, device: Device, session: Session) -> Iterator[Neighbour]:
    for public in ordered:
        runs, _ = read_runs([dict(public.values)])
        for run in runs:
            try:
                answer = forecast_job(run.job, run_placement(run), session, step_only=True)
            except EpochcastError:
                continue
            yield Neighbour(
                run.model,
                run.device.name,
                run.gpus,
                answer.batch_per_gpu,
                answer.precision,
                run.step_seconds,
                answer.step_seconds,
                public.address,
                _distance(public, forecast, device),
            )


def _distance(run: PublicRun, forecast: Forecast, device: Device) -> float:
    """How far a run is from the job of a forecast."""
    cells = run.cells
    away = 0.0 if cells["model"] == forecast.model else _of_network(run, forecast)
    away += _of_device(find_device(cells["device"], run.number("device_memory_bytes"), cells["source"]), device)
    away += 0.25 * abs(log((run.number("batch_per_gpu") or 1) / forecast.batch_per_gpu))
    away += 0.5 * abs(log((run.number("gpus") or 1) / forecast.gpus))
    away += OTHER_PRECISION * (cells["precision"] != forecast.precision)
    return away + OTHER_FRAMEWORK * (not cells["framework"].startswith(forecast.framework))


def _of_network(run: PublicRun, forecast: Forecast) -> float:
    away = OTHER_INPUT * (run.cells["fed"] != (forecast.fed or ""))
    if forecast.flops_per_sample and run.flops_per_sample:
        away += abs(log(run.flops_per_sample / forecast.flops_per_sample))
    if forecast.parameters and run.parameters:
        away += 0.5 * abs(log(run.parameters / forecast.parameters))
    return away


def _of_device(other: Device, device: Device) -> float:
    if other == device:
        return 0.0
    if other.chip == device.chip:
        return SAME_CHIP
    if (other.vendor, other.generation) == (device.vendor, device.generation):
        return SAME_GENERATION
    return OTHER_DEVICE + 0.5 * abs(log(other.memory_bytes_per_second / device.memory_bytes_per_second))
