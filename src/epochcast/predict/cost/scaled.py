"""A cost model scaled by one factor, so that it matches a measured step."""

from dataclasses import dataclass, replace

from epochcast.describe.graph.trace import Columns
from epochcast.hardware.device import Device
from epochcast.predict.cost.cost_model import CostModel, Costs
from epochcast.predict.cost.software_setting import SoftwareSetting


@dataclass(frozen=True)
class Scaled:
    """`base`, all its seconds multiplied by `factor`."""

    base: CostModel
    factor: float

    @property
    def name(self) -> str:
        """The name of the base."""
        return self.base.name

    @property
    def is_monotone(self) -> bool:
        """As the base."""
        return self.base.is_monotone

    def costs(self, columns: Columns, device: Device, setting: SoftwareSetting) -> Costs:
        """The base's answer, scaled."""
        costs, factor = self.base.costs(columns, device, setting), self.factor
        return replace(costs, low=costs.low * factor, mid=costs.mid * factor, high=costs.high * factor)
