"""A cost model simple enough to reckon with by hand, and two networks."""

from dataclasses import dataclass

import numpy as np
import pytest

from epochcast.describe.capture.model import BuiltModel
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.trace import Columns
from epochcast.hardware.catalogue import find_device
from epochcast.hardware.device import Device
from epochcast.predict.cost.cost_model import CostModel, Costs
from epochcast.predict.cost.software_setting import SoftwareSetting


@dataclass(frozen=True)
class PerKernel:
    """Every kernel takes `seconds` and so many for each flop; 20 % less or more."""

    seconds: float = 1e-4
    seconds_per_flop: float = 0.0
    name: str = "per_kernel"
    is_monotone: bool = True

    def costs(self, columns: Columns, device: Device, setting: SoftwareSetting) -> Costs:
        mid = np.full(len(columns), self.seconds) + self.seconds_per_flop * columns.flops
        return Costs.by(self.name, 0.8 * mid, mid, 1.2 * mid)


@pytest.fixture(scope="session")
def per_kernel() -> CostModel:
    """100 µs a kernel: far more than a launch."""
    return PerKernel()


@pytest.fixture(scope="session")
def per_launch() -> CostModel:
    """100 ns a kernel: far less than a launch."""
    return PerKernel(1e-7)


@pytest.fixture(scope="session")
def per_flop() -> CostModel:
    """A nanosecond per thousand flops."""
    return PerKernel(1e-6, 1e-12)


@pytest.fixture(scope="session")
def v100() -> Device:
    return find_device("V100")


def _three_layers(batch: int) -> Graph:
    """Linear layers of 1, 4 and 16 MiB of weights, in this order, without biases."""
    b = Builder("three", batch)
    x = b.input("x", (512,))
    x = b.linear(x, 512, bias=False, name="small")
    x = b.linear(x, 2048, bias=False, name="middle")
    return b.finish(b.linear(x, 2048, bias=False, name="large"), loss="none")


@pytest.fixture(scope="session")
def three_layers() -> BuiltModel:
    return BuiltModel("three", _three_layers)
