"""Where a job runs, as a user says it: names, to be resolved once into a `Placement`.

>>> Where("A100", gpus=16, nodes=2, link="infiniband_hdr").placement().ranks_per_node
8
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from epochcast.errors import BadInput
from epochcast.forecasting.options import Option, check_fields, check_names, option, options_of
from epochcast.units import parse_dollars_per_hour

if TYPE_CHECKING:
    from epochcast.forecasting.placement import Placement

_place = partial(option, group="place")


@dataclass(frozen=True)
class Where:
    """A device, how many, how they are joined and work together, and their price: names, looked up by `placement`."""

    device: object = _place(None, "A name of `epochcast devices`; `local` is this host.")
    gpus: int = _place(1, "GPUs in all.", least=1)
    nodes: int = _place(1, "Boxes they sit in.", least=1)
    strategy: str | None = _place(
        None,
        "ddp (default), horovod, mirrored, multi_worker_mirrored, parameter_server[:N], data_parallel, zero1, zero2, "
        "zero3, fsdp, model, hybrid, tensor, pipeline[:gpipe], or a product like dp8,tp4,pp2.",
    )
    allreduce: str | None = _place(None, "The collective instead of the strategy's, like ring.")
    link: str | None = _place(None, "What joins the boxes (or the GPUs of one box), like ethernet_100g.")
    topology: str | None = _place(None, "A box of `epochcast topologies`, whose wires count where no link is given.")
    dollars_per_gpu_hour: float | None = _place(
        None,
        "Dollars per GPU-hour instead of the catalogue's.",
        unit="dollars per hour",
        least=0,
        parse=parse_dollars_per_hour,
        flag="--price",
    )

    def __post_init__(self) -> None:
        check_fields(self, PLACE_OPTIONS)

    def placement(self) -> "Placement":
        """The place itself, every name looked up."""
        from epochcast.forecasting.placement import place
        from epochcast.hardware.device import Device

        if not isinstance(self.device, str | Device):
            problem = "none was given" if self.device is None else f"got {self.device!r}"
            raise BadInput(f"a place needs a device, by its name or its data sheet; {problem}")
        names = {one.name: getattr(self, one.name) for one in PLACE_OPTIONS if one.name != "device"}
        return place(self.device, **names)

    def as_dict(self) -> dict[str, Any]:
        """Every option by its name; a device as its name."""
        values = {one.name: getattr(self, one.name) for one in PLACE_OPTIONS}
        return {**values, "device": getattr(self.device, "name", self.device)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Where":
        """The place of `as_dict`; options that are left out have their defaults."""
        check_names(values, (one.name for one in PLACE_OPTIONS))
        return cls(**values)


PLACE_OPTIONS: tuple[Option, ...] = options_of(Where)
