"""What one should know of a device before believing a forecast for it."""

from collections.abc import Collection, Iterator
from typing import NamedTuple

from epochcast.base.notes import Importance, Note
from epochcast.hardware.device import Device
from epochcast.hardware.measured_devices import measured_how, measured_sisters

MOST_SISTERS = 2
"""So many boards with the same chip are named."""


class Unmeasured(NamedTuple):
    """What a forecast rests on, where not on steps of the device itself: in a few words, in a sentence about one device
    (`{sister}`: measured boards with its chip), and about several.
    """

    words: str
    sentence: str
    many: str
    importance: Importance = Importance.EVIDENCE


UNMEASURED = {
    "never": Unmeasured(
        "no measurements for this GPU",
        "No measurements for {name}: estimated from similar GPUs, so the interval is wide.",
        "{count} GPUs have no measurements: {names}. They are estimated from similar GPUs, so the intervals are wide.",
    ),
    "operators": Unmeasured(
        "single operators measured, no training steps",
        "No measured training steps for {name}; using its measured operators.",
        "{count} GPUs have measured operators, but no measured training steps: {names}.",
    ),
    "sister": Unmeasured(
        "same chip measured on another board",
        "No measured training steps for {name}; using those of {sister}.",
        "{count} GPUs have no measured training steps: {names}. Using boards with the same chip.",
        Importance.ASSUMED,
    ),
    "steps without a profile": Unmeasured(
        "measured, but similar GPUs predict it better",
        "{name} is estimated from similar GPUs: on held-out measurements this was closer than its own.",
        "{count} GPUs are estimated from similar ones, which was closer on held-out measurements: {names}.",
    ),
}
"""By `Forecast.device_measured`."""


def _unmeasured(device: Device) -> Iterator[Note]:
    how = measured_how(device)
    if how in UNMEASURED:
        said = UNMEASURED[how]
        text = said.sentence.format(name=device.name, sister=" and ".join(measured_sisters(device)[:MOST_SISTERS]))
        yield Note(text, said.importance, about=device.name, many=said.many)


def device_doubts(device: Device, answered_by: Collection[str], *, is_calibrated: bool) -> Iterator[Note]:
    """Whose data sheet it is, whether anything was measured, and what of it the user's product replaced."""
    if device.sheet:
        measured = "corrected by your measurements" if is_calibrated else "no measurements, so the interval is wide"
        like = f"; rates of {device.like}" if device.like else ""
        yield Note(f"{device.name} comes from the data sheet {device.sheet}: {measured}{like}.", Importance.EVIDENCE)
    elif not device.verified:
        yield Note(
            f"The data sheet of {device.name} is not checked against the vendor's.",
            Importance.DETAIL,
            about=device.name,
            many="{count} data sheets are not checked against the vendor's: {names}.",
        )
    if not device.sheet and not is_calibrated and "learned" in answered_by:
        yield from _unmeasured(device)
    if device.measured_fractions:
        formats = " and ".join(device.measured_fractions)
        yield Note(f"Matrix products in {formats} use the speed that you measured.", Importance.DETAIL)
