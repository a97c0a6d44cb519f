"""Costs of ops that belong to no trace, and of a trace under a known software setting.

A cost model answers for a `Trace`. One that can also use the setting (memory layout, framework and its age) has a
method `column_costs(columns, device, setting)`; the others are asked as if the columns were a trace and do not see the
setting.
"""

from dataclasses import dataclass
from typing import Protocol, cast, runtime_checkable

from epochcast.cost.features import Setting
from epochcast.cost.model import CostModel, Costs
from epochcast.graph.trace import Columns, Trace
from epochcast.hardware.device import Device


@runtime_checkable
class ColumnCostModel(Protocol):
    """A cost model that answers for bare columns under a setting."""

    def column_costs(self, columns: Columns, device: Device, setting: Setting) -> Costs:
        """Seconds of every entry of `columns` on `device`."""
        ...


@dataclass(frozen=True)
class LooseOps:
    """Ops without a network: what cost models read of a trace, and no more."""

    columns: Columns

    @property
    def layers(self) -> tuple[str, ...]:
        """A place in the table for every op, so that messages can name it."""
        return tuple(f"row {i}" for i in range(len(self.columns)))


def column_costs(model: CostModel, columns: Columns, device: Device, setting: Setting) -> Costs:
    """Seconds of every entry of `columns`, by whichever way the model has."""
    if isinstance(model, ColumnCostModel):
        return model.column_costs(columns, device, setting)
    return model.costs(cast(Trace, LooseOps(columns)), device)


@dataclass(frozen=True)
class AtSetting:
    """A model that is always asked under one setting."""

    base: CostModel
    setting: Setting

    @property
    def name(self) -> str:
        """That of the model."""
        return self.base.name

    @property
    def is_monotone(self) -> bool:
        """As the model itself."""
        return self.base.is_monotone

    def costs(self, trace: Trace, device: Device) -> Costs:
        """The model's answer under the setting."""
        if isinstance(self.base, ColumnCostModel):
            return self.base.column_costs(trace.columns, device, self.setting)
        return self.base.costs(trace, device)
