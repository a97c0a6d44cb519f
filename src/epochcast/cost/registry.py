"""Every cost model that answers as it is shipped, by name; `learned` is the default.

Models that must be fitted first join a `Chain` as values; they have no entry here.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from epochcast.cost.columns import column_costs
from epochcast.cost.eight_bit import NARROW, EightBit
from epochcast.cost.features import Setting
from epochcast.cost.learned import TODAY, load_learned
from epochcast.cost.model import CostModel, Costs, fill_gaps
from epochcast.cost.paleo import Paleo
from epochcast.cost.roofline import Analytic, Roofline
from epochcast.errors import UnknownName
from epochcast.graph.trace import Columns, Trace
from epochcast.hardware.device import Device

DEFAULT = "learned"


@dataclass(frozen=True)
class Shipped:
    """The learned model, read from its text on first use; `eight_bit` answers for narrow products, the analytic model
    for what neither knows.
    """

    name: str = "learned"
    is_monotone: bool = False

    def costs(self, trace: Trace, device: Device) -> Costs:
        """Seconds of every op of a trace."""
        return _filled(load_learned().costs(trace, device), trace.columns, device, TODAY)

    def column_costs(self, columns: Columns, device: Device, setting: Setting) -> Costs:
        """Seconds of every op of some columns, under a setting."""
        return _filled(load_learned().column_costs(columns, device, setting), columns, device, setting)


def _filled(first: Costs, columns: Columns, device: Device, setting: Setting) -> Costs:
    """What the learned model answered, with its gaps filled."""
    if (columns.math == NARROW).any():
        first = fill_gaps(first, EightBit(load_learned()).column_costs(columns, device, setting))
    return fill_gaps(first, column_costs(Analytic(), columns, device, setting))


COST_MODELS: Mapping[str, CostModel] = {
    "learned": Shipped(),
    "roofline": Roofline(),
    "analytic": Analytic(),
    "paleo": Paleo(),
    "paleo_best": Paleo(name="paleo_best", algorithm="best"),
}


def find_cost_model(name: str = DEFAULT) -> CostModel:
    """The cost model of that name."""
    try:
        return COST_MODELS[name]
    except KeyError:
        raise UnknownName("cost model", name, COST_MODELS) from None
