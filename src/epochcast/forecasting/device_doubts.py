"""What one should know of a device before believing a forecast for it."""

from collections.abc import Collection, Iterator
from typing import NamedTuple

from epochcast.hardware.device import Device
from epochcast.hardware.measured import measured_how


class Unmeasured(NamedTuple):
    """What a forecast rests on, where not on steps of the device itself: in a few words, and in a sentence."""

    words: str
    sentence: str


UNMEASURED = {
    "never": Unmeasured("device never measured", "was never measured: its speed is that of similar devices"),
    "operators": Unmeasured(
        "device never measured but for operators",
        "was measured by single operators alone, never by whole steps",
    ),
    "sister": Unmeasured(
        "device never measured, its chip was",
        "was never measured by whole steps, only another board with its chip",
    ),
    "steps without a profile": Unmeasured(
        "device measured, forecast by similar ones",
        "was measured, but is forecast by similar devices: that was nearer on what was left out",
    ),
}
"""By `Forecast.device_measured`."""


def _unmeasured(device: Device) -> Iterator[str]:
    how = measured_how(device)
    if how in UNMEASURED:
        yield f"{device.name} {UNMEASURED[how].sentence}"


def device_doubts(device: Device, answered_by: Collection[str]) -> Iterator[str]:
    """Whose data sheet it is, whether anything was measured, and what of it the user's product replaced."""
    is_calibrated = any(model.endswith("calibrated") for model in answered_by)
    if device.sheet:
        measured = (
            "corrected by your measurements" if is_calibrated else "never measured; as wide as for an unseen device"
        )
        like = f"; rates like those of {device.like}" if device.like else ""
        yield f"{device.name} is the data sheet in {device.sheet}, {measured}{like}"
    elif not device.verified:
        yield f"data sheet of {device.name} is not checked against the vendor's"
    if not device.sheet and not is_calibrated and "learned" in answered_by:
        yield from _unmeasured(device)
    if device.measured_fractions:
        yield f"products in {' and '.join(device.measured_fractions)} go by the one you measured"
