"""Every cost model that answers as it is shipped, by name; `learned` is the default.

Models that must be fitted first have no entry here.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from epochcast.describe.graph.trace import Columns
from epochcast.errors import UnknownName
from epochcast.hardware.device import Device
from epochcast.predict.cost.cost_model import CostModel, Costs, fill_gaps
from epochcast.predict.cost.laws import lawful
from epochcast.predict.cost.learned import load_learned
from epochcast.predict.cost.paleo import Paleo
from epochcast.predict.cost.roofline import Analytic, Roofline
from epochcast.predict.cost.software_setting import SoftwareSetting

DEFAULT = "learned"


@dataclass(frozen=True)
class Shipped:
    """The learned model within its laws, read from its text on first use; the analytic model answers where it has no
    answer.
    """

    name: str = "learned"
    is_monotone: bool = False

    def costs(self, columns: Columns, device: Device, setting: SoftwareSetting) -> Costs:
        """What the learned model answers, with its gaps filled."""
        learned = load_learned()
        costs = lawful(learned.costs(columns, device, setting), columns, device, setting, learned)
        if (costs.answered >= 0).all():
            return costs
        return fill_gaps(costs, Analytic().costs(columns, device, setting))


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
