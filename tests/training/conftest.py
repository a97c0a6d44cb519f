"""The small traces and the device of `tests/predict/cost`."""

from tests.predict.cost.conftest import device, step

__all__ = ["device", "step"]
