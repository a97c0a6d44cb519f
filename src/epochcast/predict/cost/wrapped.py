"""Cost models around another: with a cache, or scaled by one factor."""

from dataclasses import dataclass, field, replace

from epochcast.base.caching import Cache
from epochcast.describe.graph.trace import Columns
from epochcast.hardware.device import Device
from epochcast.predict.cost.cost_model import CostModel, Costs
from epochcast.predict.cost.software_setting import SoftwareSetting

ANSWERS = 512
CostsKey = tuple[bytes, Device, SoftwareSetting]


@dataclass(frozen=True)
class CachedCosts:
    """`base`, with a cache, which models for other devices may share."""

    base: CostModel
    answers: Cache[CostsKey, Costs] = field(default_factory=lambda: Cache(ANSWERS), compare=False)

    @property
    def name(self) -> str:
        """The name of the base."""
        return self.base.name

    @property
    def is_monotone(self) -> bool:
        """As the base."""
        return self.base.is_monotone

    def costs(self, columns: Columns, device: Device, setting: SoftwareSetting) -> Costs:
        """The costs of the base, cached."""
        key = columns.digest, device, setting
        return self.answers.get(key, lambda: self.base.costs(columns, device, setting))


@dataclass(frozen=True)
class Scaled:
    """`base`, all its seconds multiplied by `factor`, so that it matches a measured step; low and high are then
    `spread` of the middle, if given.
    """

    base: CostModel
    factor: float
    spread: tuple[float, float] | None = None

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
        mid = costs.mid * factor
        if self.spread is None:
            return replace(costs, low=costs.low * factor, mid=mid, high=costs.high * factor)
        below, above = self.spread
        return replace(costs, low=mid * below, mid=mid, high=mid * above, variances={})
