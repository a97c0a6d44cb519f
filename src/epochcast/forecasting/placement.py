"""Where a job runs: which device, how many, how they are wired, how they work together, and what an hour costs."""

from dataclasses import dataclass, replace

from epochcast.errors import BadInput
from epochcast.forecasting.strategies.rules import STRATEGIES, Family, Strategy, algorithm_named, find_strategy
from epochcast.hardware.catalogue import find_device, find_link
from epochcast.hardware.cluster import Group, Level
from epochcast.hardware.device import Device
from epochcast.hardware.price import price_dollars_per_hour
from epochcast.hardware.topology import find_topology, slowest_network

__all__ = ["DEFAULT_OUTER_LINK", "STRATEGIES", "Placement", "Strategy", "place"]

# Between boxes of a device that no known box has, where nothing was said.
DEFAULT_OUTER_LINK = "ethernet_10g"


@dataclass(frozen=True, slots=True)
class Placement:
    """`gpus` devices in `nodes` boxes under a strategy; `dollars_per_hour` is for all of them, None where unknown.

    `allreduce` is the collective instead of the strategy's own; `topology` is the box, by name, whose wires count where
    no `link` is given; `empty` places of the boxes are left over where they are not filled alike.
    """

    device: Device
    gpus: int = 1
    nodes: int = 1
    strategy: str = "single"
    link: str | None = None
    dollars_per_hour: float | None = None
    price_source: str | None = None
    allreduce: str | None = None
    topology: str | None = None
    empty: int = 0

    def __post_init__(self) -> None:
        if self.gpus < 1 or self.nodes < 1:
            raise BadInput(f"gpus and nodes must be at least 1, got {self.gpus} and {self.nodes}")
        if (self.gpus + self.empty) % self.nodes:
            raise BadInput(f"{self.gpus} GPUs do not share out evenly over {self.nodes} nodes")
        if self.rule.family is Family.REPLICAS and self.nodes > 1:
            raise BadInput(f"strategy {self.strategy!r} is for the GPUs of one box, not {self.nodes}; try ddp")
        if self.strategy == "single" and self.gpus > 1:
            raise BadInput(f"strategy 'single' runs on one GPU, not {self.gpus}; try ddp, horovod or mirrored")
        if self.dollars_per_hour is not None and not self.dollars_per_hour >= 0:
            raise BadInput(f"a price cannot be negative, got {self.dollars_per_hour}")
        self.group()  # an unknown link is refused here

    @property
    def rule(self) -> Strategy:
        """What the name of the strategy means on these GPUs."""
        found = find_strategy(self.strategy, self.gpus)
        return found if self.allreduce is None else replace(found, algorithm=algorithm_named(self.allreduce))

    @property
    def ranks_per_node(self) -> int:
        """GPUs in a box: they share its processors, its disk and what joins it to the others."""
        return (self.gpus + self.empty) // self.nodes

    @property
    def replicas(self) -> int:
        """Copies of the model that are fed different samples; the GPUs of a split model share one."""
        layout = self.rule.layout
        return self.gpus if layout is None else layout.data

    def group(self) -> Group:
        """The ranks and their wires."""
        outer = self.assumed_outer_link
        within: tuple[Level, ...] = ()
        if self.topology is None:
            joined = find_link(self.device.interconnect)
        else:
            box = find_topology(self.topology)
            box.check(self.gpus, self.nodes)
            joined, within = box.inside(self.ranks_per_node)
            outer = box.outer_link
        if self.link is not None:
            if self.nodes == 1:
                joined, within = find_link(self.link), ()
            else:
                outer = self.link
        return Group(self.nodes, self.ranks_per_node, joined, find_link(outer), within, self.empty)

    @property
    def assumed_outer_link(self) -> str:
        """What joins boxes where nothing was said: the slowest network that a known box of this device has. The answer
        carries a warning that it was assumed.
        """
        return slowest_network(self.device.name) or DEFAULT_OUTER_LINK

    @property
    def assumes_outer_link(self) -> bool:
        """Whether boxes are joined by an assumed link because none was named."""
        return self.nodes > 1 and self.link is None and self.topology is None


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
) -> Placement:
    """A placement by names; the strategy of several GPUs is ddp, the price the catalogue's, unless given.

    A `topology` fills as many of its boxes as the GPUs need.
    """
    found = device if isinstance(device, Device) else find_device(device)
    if topology is not None and nodes == 1:
        nodes = find_topology(topology).boxes(gpus)
    chosen = strategy or ("ddp" if gpus > 1 else "single")
    price, source = None, None
    if dollars_per_gpu_hour is not None:
        price, source = dollars_per_gpu_hour * gpus, "given"
    else:
        listed = price_dollars_per_hour(found.name, gpus)
        if listed is not None:
            price, instance = listed
            source = f"{instance.cloud} {instance.name}"
    return Placement(found, gpus, nodes, chosen, link, price, source, allreduce, topology)
