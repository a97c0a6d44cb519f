"""Every cost model that answers without having been fitted, by name.

Models that must be fitted first (`layer_linear`) join a `Chain` as values; they have no entry here.
"""

from collections.abc import Mapping

from epochcast.cost.model import CostModel
from epochcast.cost.paleo import Paleo
from epochcast.cost.roofline import Analytic, Roofline
from epochcast.errors import UnknownName

DEFAULT = "analytic"

COST_MODELS: Mapping[str, CostModel] = {
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
