"""A forecast corrected by what somebody else knows, such as the past of a team (`history`).

Who corrects sees the forecast and the job, and says what one of its numbers is: the step, the epoch, the whole job or
the peak of memory. A time that is r times the forecast's means that every time is: parts, epoch and job are scaled by
r, and the interval is that of who corrects. A corrected peak decides anew whether the job fits; its parts
and what would make the job fit stay those of the forecast.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from epochcast.errors import BadInput, UnknownName
from epochcast.interval import Interval
from epochcast.predict.forecast.forecast import Forecast
from epochcast.predict.memory.device_context import usable_bytes
from epochcast.predict.memory.verdict import interval_probability, verdict_of

TIMES = ("step_seconds", "epoch_seconds", "total_seconds")


@dataclass(frozen=True, slots=True)
class Corrected:
    """What a number of the forecast is instead; `name` is that of the number."""

    name: str
    value: Interval
    warnings: tuple[str, ...] = ()


class Correction(Protocol):
    """Who corrects. `told_by` is written beside the names of those who answered before."""

    @property
    def told_by(self) -> str:
        """In a word or two."""

    def corrected(self, forecast: Forecast, options: Mapping[str, Any]) -> Corrected:
        """Of a forecast; `options` are those of the job, by name."""


def correct(forecast: Forecast, options: Mapping[str, Any], correction: Correction) -> Forecast:
    """The forecast with the correction, and with who corrected it in `answered_by`."""
    corrected = correction.corrected(forecast, options)
    by = f"{'memory ' if corrected.name == 'peak_bytes' else ''}corrected by {correction.told_by}"
    answered_by = {f"{name}, {by}": part for name, part in forecast.answered_by.items()}
    warnings = (*forecast.warnings, *corrected.warnings)
    if corrected.name == "peak_bytes":
        usable = _usable_bytes(forecast)
        probability = None if usable is None else interval_probability(corrected.value, usable)
        return replace(
            forecast,
            peak_bytes=corrected.value,
            memory_verdict=None if probability is None else verdict_of(probability),
            fits_probability=probability,
            answered_by=answered_by,
            warnings=warnings,
        )
    if corrected.name not in TIMES:
        raise UnknownName("number of a forecast to correct", corrected.name, [*TIMES, "peak_bytes"])
    before: Interval | None = getattr(forecast, corrected.name)
    if before is None:
        raise BadInput(
            f"the past says {corrected.name}, and the forecast has none: say how much data and how many epochs"
        )
    ratio = Interval(
        corrected.value.low / before.mid, corrected.value.mid / before.mid, corrected.value.high / before.mid
    )
    parts = forecast.step_parts
    return replace(
        forecast,
        step_seconds=_scaled(forecast.step_seconds, ratio),
        epoch_seconds=None if forecast.epoch_seconds is None else _scaled(forecast.epoch_seconds, ratio),
        total_seconds=None if forecast.total_seconds is None else _scaled(forecast.total_seconds, ratio),
        step_parts=None if parts is None else parts.scaled(ratio.mid),
        bubble_seconds=forecast.bubble_seconds * ratio.mid,
        mfu=None if forecast.mfu is None else forecast.mfu / ratio.mid,
        answered_by=answered_by,
        warnings=warnings,
    )


def _usable_bytes(forecast: Forecast) -> int | None:
    """What the driver leaves of the device; of a forecast that was read back, all that the device has."""
    return usable_bytes(forecast.details.placement.device) if forecast.has_details else forecast.memory_bytes


def _scaled(before: Interval, ratio: Interval) -> Interval:
    """The middle of before, with what the ratio leaves open."""
    return Interval(before.mid * ratio.low, before.mid * ratio.mid, before.mid * ratio.high, ratio.coverage)
