"""What one should know of a device before believing a forecast for it."""

from collections.abc import Iterable, Iterator

from epochcast.hardware.device import Device


def device_doubts(device: Device, answered_by: Iterable[str]) -> Iterator[str]:
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
    if device.measured_fractions:
        yield f"products in {' and '.join(device.measured_fractions)} go by the one you measured"
