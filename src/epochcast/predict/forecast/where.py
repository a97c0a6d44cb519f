"""Where a job runs, as a user says it: names, to be resolved once into a `Placement`.

>>> Where("A100", gpus=16, nodes=2, link="infiniband_hdr").placement().ranks_per_node
8
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from epochcast.base.options import Option, check_fields, option, options_of
from epochcast.base.record import Record, read_as
from epochcast.errors import BadInput, EpochcastError, InvalidOption, MissingUnit
from epochcast.units import parse_dollars_per_hour

if TYPE_CHECKING:
    from epochcast.hardware.device import Device
    from epochcast.predict.cost.hosts import LaunchHost
    from epochcast.predict.cost.product import Product
    from epochcast.predict.forecast.measured_step import GivenStep
    from epochcast.predict.forecast.placement import Placement

_place = partial(option, group="place")


def _product(text: str) -> "Product":
    from epochcast.predict.cost.product import parse_product

    try:
        return parse_product(text, option="gemm_seconds")
    except MissingUnit:
        raise
    except EpochcastError as error:
        raise InvalidOption("gemm_seconds", f": {error}") from None


def _product_text(text: str) -> str:
    """The text, if it is a measured product: a file and a command line say at once what is wrong with it."""
    _product(text)
    return text


def _measured_step_text(text: str) -> str:
    """The text, if it is a measured step."""
    from epochcast.predict.forecast.measured_step import parse_measured_step

    parse_measured_step(text)
    return text


@dataclass(frozen=True)
class Where(Record):
    """A device, how many, how they are joined and work together, and their price: names, looked up by `placement`.

    The device may be its whole data sheet, as a `Device` or as JSON has it.

    >>> import epochcast as ec
    >>> ec.Where(device="V100", gpus=4).placement().gpus
    4
    """

    json_from: ClassVar[Mapping[str, str]] = {"device": "written_device"}

    device: object = _place(
        None, "A name from `epochcast devices`, the path of your own data sheet (.toml), or `local` (this host)."
    )
    gpus: int = _place(1, "Total number of GPUs.", least=1, most=10**7)
    nodes: int = _place(1, "Number of nodes (machines).", least=1, most=10**7)
    strategy: str | None = _place(
        None,
        "ddp (default), horovod, mirrored, multi_worker_mirrored, parameter_server[:N], data_parallel, zero1, zero2, "
        "zero3, fsdp, model, hybrid, tensor, pipeline[:gpipe], or a product like dp8,tp4,pp2.",
    )
    allreduce: str | None = _place(None, "All-reduce algorithm, like ring [default: the strategy's].")
    link: str | None = _place(None, "Link between nodes (or between the GPUs of one node), like ethernet_100g.")
    topology: str | None = _place(None, "A machine from `epochcast topologies`; `link` overrides its links.")
    dollars_per_gpu_hour: float | None = _place(
        None,
        "Dollars per GPU-hour [default: the catalogue price].",
        unit="dollars per hour",
        least=0,
        parse=parse_dollars_per_hour,
        flag="--price",
    )
    host_class: str | None = _place(
        None,
        "Host that launches kernels: workstation, cloud, old_server, large_trainer, diffusion_trainer, or its time per "
        "launch, like 12us.",
        example="'cloud'",
    )

    gemm_seconds: str | None = _place(
        None,
        "A matrix product that you measured on the device, like bf16:8192x8192x8192=2.1ms, or 2.1ms for that size in "
        "the job's precision.",
        parse=_product_text,
        example="'bf16:8192x8192x8192=2.1ms'",
    )

    step_seconds: str | None = _place(
        None,
        "A step of this job that you measured on one GPU, with its batch, like 210ms@64: narrows the interval.",
        parse=_measured_step_text,
        example="'210ms@64'",
    )

    def __post_init__(self) -> None:
        check_fields(self, PLACE_OPTIONS)
        if self.step_seconds is not None:
            _measured_step_text(self.step_seconds)
        if self.gemm_seconds is not None:
            _product(self.gemm_seconds)
        from epochcast.hardware.device import Device

        if isinstance(self.device, Mapping):
            object.__setattr__(self, "device", read_as(Device, self.device))
        if self.device is not None and not isinstance(self.device, str | Device):
            raise BadInput(f"device must be a name or a data sheet (Device), got {self.device!r}")
        self.found_host()

    def found_device(self) -> "Device":
        """The data sheet of the device."""
        from epochcast.hardware.catalogue import find_device
        from epochcast.hardware.device import Device

        if self.device is None:
            raise BadInput("a place needs a device, by its name or its data sheet")
        return self.device if isinstance(self.device, Device) else find_device(str(self.device))

    def measured_device(self, precision: str = "") -> "Device":
        """The data sheet, with what the measured product says of it; in `precision` where that names none."""
        device = self.found_device()
        if self.gemm_seconds is None:
            return device
        from epochcast.predict.cost.cost_models import find_cost_model
        from epochcast.predict.cost.product import with_product

        return with_product(device, _product(self.gemm_seconds), find_cost_model(), precision)

    def found_host(self) -> "LaunchHost | None":
        """What starts the kernels; None where nobody said."""
        from epochcast.predict.cost.hosts import find_host

        return None if self.host_class is None else find_host(self.host_class)

    def placement(self, precision: str = "") -> "Placement":
        """The place itself, every name looked up; the price is the catalogue's unless given.

        A `topology` fills as many of its machines as the GPUs need. `precision` is the job's, for a measured product
        that names none.
        """
        from epochcast.hardware.topology import find_topology
        from epochcast.predict.forecast.placement import Price, list_price, placed

        device, nodes = self.measured_device(precision), self.nodes
        if self.topology is not None and nodes == 1:
            nodes = find_topology(self.topology).boxes(self.gpus)
        each = self.dollars_per_gpu_hour
        placement = placed(
            device,
            self.gpus,
            nodes,
            self.strategy,
            link=self.link,
            topology=self.topology,
            allreduce=self.allreduce,
            price=list_price(device, self.gpus, min(nodes, self.gpus))
            if each is None
            else Price(each * self.gpus, "given"),
        )
        return replace(placement, host=self.found_host(), measured_step=self.found_step())

    def found_step(self) -> "GivenStep | None":
        """The step that the user measured; None where nobody did."""
        from epochcast.predict.forecast.measured_step import parse_measured_step

        return None if self.step_seconds is None else parse_measured_step(self.step_seconds)

    @property
    def written_device(self) -> "str | Device | None":
        """The device as files have it: a name of the catalogue, else the whole data sheet."""
        from epochcast.hardware.device import Device
        from epochcast.predict.forecast.placement import name_or_sheet

        return name_or_sheet(self.device) if isinstance(self.device, Device) else self.device  # type: ignore[return-value]


PLACE_OPTIONS: tuple[Option, ...] = options_of(Where)
