"""A cost model whose kernels all take so many times as long: one that meets a measured step."""

from dataclasses import dataclass

from epochcast.cost.columns import column_costs
from epochcast.cost.features import Setting
from epochcast.cost.model import CostModel, Costs
from epochcast.graph.trace import Columns, Trace
from epochcast.hardware.device import Device


@dataclass(frozen=True)
class Scaled:
    """`base`, every answer multiplied by `factor`."""

    base: CostModel
    factor: float

    @property
    def name(self) -> str:
        """The base's own."""
        return self.base.name

    @property
    def is_monotone(self) -> bool:
        """As the base."""
        return self.base.is_monotone

    def costs(self, trace: Trace, device: Device) -> Costs:
        """The base's answer, scaled."""
        return self._scaled(self.base.costs(trace, device))

    def column_costs(self, columns: Columns, device: Device, setting: Setting) -> Costs:
        """The base's answer, scaled."""
        return self._scaled(column_costs(self.base, columns, device, setting))

    def _scaled(self, costs: Costs) -> Costs:
        factor = self.factor
        return Costs(costs.low * factor, costs.mid * factor, costs.high * factor, costs.models, costs.answered)
