"""What was measured of a device: what the learned model rests on when it answers for it."""

from collections.abc import Mapping

from epochcast.base import catalogue_rows as rows
from epochcast.base.caching import remembered
from epochcast.hardware.catalogue import devices
from epochcast.hardware.device import Device
from epochcast.hardware.sustained import has_profile

FILE = "measured.toml"


def measured_how(device: Device) -> str | None:
    """What was measured of a GPU, the best first: whole "steps", "steps without a profile" of its own, steps of a
    "sister" board with the same chip, single "operators", or that it was "never" measured. None for what is no GPU, and
    for a user's own data sheet: nothing was fitted for those.
    """
    if device.kind != "gpu" or device.sheet:
        return None
    if device.name in measured_steps():
        return "steps" if has_profile(device) else "steps without a profile"
    if measured_sisters(device):
        return "sister"
    return "operators" if has_profile(device) else "never"


def measured_sisters(device: Device) -> tuple[str, ...]:
    """Other boards with the same chip of which whole steps were measured, the most measured first."""
    steps = measured_steps()
    boards = [d.name for d in devices() if d.name in steps and d.chip == device.chip]
    return tuple(sorted((name for name in boards if name != device.name), key=lambda name: -steps[name]))


@remembered(1)
def measured_steps() -> Mapping[str, int]:
    """How many steps were measured, by device."""
    return dict(rows.read(rows.parse(rows.shipped(FILE, __file__), FILE), "device", FILE, _row))


def _row(row: rows.CatalogueRow) -> tuple[str, int]:
    row.text("source")
    return row.text("name"), row.count("steps")
