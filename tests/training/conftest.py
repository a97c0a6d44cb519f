"""The small traces and the device of `tests/cost`."""

from tests.cost.conftest import device, step

__all__ = ["device", "step"]
