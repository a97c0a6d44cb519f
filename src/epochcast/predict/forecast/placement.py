"""Where a job runs: which device, how many, how they are wired, how they work together, and what an hour costs.

Names are looked up once, by `place`; a `Placement` has values.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from epochcast.base.record import Record
from epochcast.errors import BadInput, UnknownName
from epochcast.hardware.catalogue import find_device, find_link
from epochcast.hardware.cluster import Group, Level
from epochcast.hardware.default_network import usual_network
from epochcast.hardware.device import Device
from epochcast.hardware.price import listed_dollars_per_hour
from epochcast.hardware.topology import find_topology
from epochcast.predict.cost.hosts import LaunchHost
from epochcast.predict.forecast.measured_step import GivenStep, parse_measured_step
from epochcast.predict.forecast.strategies.strategy import Strategy
from epochcast.predict.forecast.strategies.strategy_table import algorithm_named, find_strategy, strategy_for

__all__ = ["Placement", "Price", "Strategy", "place", "placed"]


@dataclass(frozen=True, slots=True)
class Price:
    """What an hour of all GPUs costs, and who says so."""

    dollars_per_hour: float
    source: str

    def __post_init__(self) -> None:
        if not self.dollars_per_hour >= 0:
            raise BadInput(f"a price cannot be negative, got {self.dollars_per_hour}")


@dataclass(frozen=True, slots=True)
class Placement:
    """As many devices as the group has ranks, under a strategy; `price` is None where unknown.

    `link` and `topology` are the names by which the group was asked for; `link_assumed` is the one that was taken
    between nodes because none was named. `host` is what starts the kernels, None where nobody said. `measured_step` is
    a step of the job that the user measured on one of the devices.

    >>> import epochcast as ec
    >>> place = ec.place("V100", gpus=8)
    >>> place.device.name, place.gpus, place.strategy.name
    ('V100-SXM2-16GB', 8, 'ddp')
    """

    device: Device
    group: Group
    strategy: Strategy
    price: Price | None = None
    link: str | None = None
    topology: str | None = None
    link_assumed: str | None = None
    host: LaunchHost | None = None
    measured_step: GivenStep | None = None

    def __post_init__(self) -> None:
        self.strategy.check(self.gpus, self.nodes)

    @property
    def gpus(self) -> int:
        """All of them."""
        return self.group.ranks

    @property
    def nodes(self) -> int:
        """Boxes."""
        return self.group.nodes

    @property
    def ranks_per_node(self) -> int:
        """GPUs in a node: they share its processors, its disk and what joins it to the others."""
        return self.group.ranks_per_node

    @property
    def replicas(self) -> int:
        """Copies of the model that are fed different samples; the GPUs of a split model share one."""
        return self.strategy.replicas(self.gpus)

    @property
    def is_host_measured(self) -> bool:
        """Whether a step of the very job said what starting its kernels takes."""
        return self.host is not None and self.host.is_of_job

    @property
    def dollars_per_hour(self) -> float | None:
        """For all GPUs."""
        return None if self.price is None else self.price.dollars_per_hour

    @property
    def price_source(self) -> str | None:
        """Who names the price."""
        return None if self.price is None else self.price.source

    def with_device(self, device: Device) -> "Placement":
        """The same on another device, joined by its own links where none was named. A group made by hand stays."""
        if self.group != self._named_wires(self.device)[0]:
            return replace(self, device=device)
        group, link_assumed = self._named_wires(device)
        return replace(self, device=device, group=group, link_assumed=link_assumed)

    def _named_wires(self, device: Device) -> tuple[Group, str | None]:
        """The wires that the names give on a device."""
        return _wires(device, self.gpus, self.nodes, self.link, self.topology, self.group.empty)

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: a `WrittenPlacement`."""
        return WrittenPlacement.of(self).as_dict()

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Placement":
        """From what `as_dict` gives; all but the device may be left out."""
        return WrittenPlacement.from_dict(values).placement()


@dataclass(frozen=True, slots=True)
class WrittenPlacement(Record):
    """A placement as files have it: names where it has values.

    A device that is not the catalogue's is its whole data sheet; a `group` that the names do not give is spelled out.
    """

    device: str | Device
    gpus: int = 1
    nodes: int = 1
    strategy: str | None = None
    link: str | None = None
    topology: str | None = None
    allreduce: str | None = None
    dollars_per_hour: float | None = None
    price_source: str | None = None
    host_class: str | None = None
    step_seconds: str | None = None
    group: Group | None = None

    @classmethod
    def of(cls, placement: Placement) -> "WrittenPlacement":
        """The written form of a placement."""
        strategy, host = placement.strategy, placement.host
        named_strategy = find_strategy(strategy.name, placement.gpus)
        if replace(named_strategy, algorithm=strategy.algorithm) != strategy:
            raise BadInput(f"strategy {strategy.name!r} is not the one of that name, and cannot be written down")
        named_group, _ = placement._named_wires(placement.device)
        return cls(
            device=name_or_sheet(placement.device),
            gpus=placement.gpus,
            nodes=placement.nodes,
            strategy=strategy.name,
            link=placement.link,
            topology=placement.topology,
            allreduce=strategy.algorithm if strategy != named_strategy else None,
            dollars_per_hour=placement.dollars_per_hour,
            price_source=placement.price_source,
            host_class=None if host is None else host.text,
            step_seconds=None if placement.measured_step is None else placement.measured_step.text,
            group=placement.group if placement.group != named_group or named_group.empty else None,
        )

    def placement(self) -> Placement:
        """The placement itself, every name looked up."""
        from epochcast.predict.forecast.where import Where

        where = Where(
            self.device,
            self.gpus,
            self.nodes,
            self.strategy,
            self.allreduce,
            self.link,
            self.topology,
            host_class=self.host_class,
        )
        dollars = self.dollars_per_hour
        placement = placed(
            where.found_device(),
            where.gpus,
            where.nodes,
            where.strategy,
            link=where.link,
            topology=where.topology,
            allreduce=where.allreduce,
            price=None if dollars is None else Price(dollars, self.price_source or "given"),
            empty=0 if self.group is None else self.group.empty,
        )
        measured = None if self.step_seconds is None else parse_measured_step(self.step_seconds)
        placement = replace(placement, host=where.found_host(), measured_step=measured)
        if self.group is None or self.group == placement.group:
            return placement
        if self.group.ranks != placement.gpus:
            raise BadInput(f"group has {self.group.ranks} ranks, and gpus is {placement.gpus}")
        return replace(placement, group=self.group, link_assumed=None)


def place(
    device: str | Device,
    *,
    gpus: int = 1,
    nodes: int = 1,
    strategy: str | None = None,
    link: str | None = None,
    dollars_per_gpu_hour: float | None = None,
    allreduce: str | None = None,
    topology: str | None = None,
    host_class: str | None = None,
) -> Placement:
    """A placement by names; the strategy of several GPUs is ddp, the price the catalogue's, unless given.

    A `topology` fills as many of its machines as the GPUs need.

    >>> import epochcast as ec
    >>> two_nodes = ec.place("A100", gpus=16, nodes=2, strategy="fsdp", dollars_per_gpu_hour=1.29)
    >>> two_nodes.ranks_per_node, round(two_nodes.dollars_per_hour, 2)
    (8, 20.64)
    """
    from epochcast.predict.forecast.where import Where

    return Where(device, gpus, nodes, strategy, allreduce, link, topology, dollars_per_gpu_hour, host_class).placement()


def placed(
    device: Device,
    gpus: int = 1,
    nodes: int = 1,
    strategy: str | Strategy | None = None,
    *,
    link: str | None = None,
    topology: str | None = None,
    allreduce: str | None = None,
    price: Price | None = None,
    empty: int = 0,
) -> Placement:
    """A placement at a price. `link` joins the nodes, or the GPUs of one node; `topology` names the machine whose
    wires count where no `link` is given; `allreduce` is the collective instead of the strategy's own.

    `empty` places of the nodes are left over where they are not filled alike.
    """
    if gpus < 1 or nodes < 1:
        raise BadInput(f"gpus and nodes must be at least 1, got {gpus} and {nodes}")
    if (gpus + empty) % nodes:
        raise BadInput(f"{gpus} GPUs do not share out evenly over {nodes} nodes")
    if not isinstance(strategy, Strategy):
        strategy = strategy_for(strategy, gpus, nodes)
    if allreduce is not None:
        strategy = replace(strategy, algorithm=algorithm_named(allreduce))
    strategy.check(gpus, nodes)
    group, link_assumed = _wires(device, gpus, nodes, link, topology, empty)
    return Placement(device, group, strategy, price, link, topology, link_assumed)


def _wires(
    device: Device, gpus: int, nodes: int, link: str | None, topology: str | None, empty: int
) -> tuple[Group, str | None]:
    """The ranks and their wires; and the link that is assumed between nodes where none is given: the network that
    machines of this device are sold with. The answer carries a warning that it was assumed.
    """
    ranks_per_node = (gpus + empty) // nodes
    within: tuple[Level, ...] = ()
    if topology is None:
        inner = find_link(device.interconnect)
        outer = usual_network(device, gpus + empty, nodes).link
    else:
        box = find_topology(topology)
        box.check(gpus, nodes)
        inner, within = box.inside(ranks_per_node)
        outer = find_link(box.outer_link)
    if link is not None:
        if nodes == 1:
            inner, within = find_link(link), ()
        else:
            outer = find_link(link)
    is_assumed = nodes > 1 and link is None and topology is None
    group = Group(nodes, ranks_per_node, inner, outer, within, empty)
    return group, outer.name if is_assumed else None


def list_price(device: Device, gpus: int, nodes: int = 1) -> Price | None:
    """The catalogue's, for every box; a device that is not in it has none."""
    listed = listed_dollars_per_hour(device, gpus, nodes)
    if listed is None:
        return None
    dollars_per_hour, instance = listed
    return Price(dollars_per_hour, f"{instance.cloud} {instance.name}")


def name_or_sheet(device: Device) -> str | Device:
    """The name of a device of the catalogue; any other is its own data sheet."""
    try:
        is_listed = find_device(device.name) == device
    except UnknownName:
        is_listed = False
    return device.name if is_listed else device
