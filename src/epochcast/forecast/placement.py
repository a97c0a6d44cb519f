"""Where a job runs: which device, how many, how they are wired, how they work together, and what an hour costs."""

from collections.abc import Mapping
from dataclasses import dataclass

from epochcast.errors import BadInput, UnknownName
from epochcast.hardware.catalogue import find_device, find_link
from epochcast.hardware.cluster import Group
from epochcast.hardware.device import Device
from epochcast.hardware.price import price_dollars_per_hour


@dataclass(frozen=True, slots=True)
class Strategy:
    """How ranks bring their gradients together.

    `bucket_bytes` of gradients travel together (None: all at once, after the backward pass), the first bucket is
    `first_bucket_bytes`; `algorithm` is the collective.
    """

    algorithm: str
    bucket_bytes: int | None = None
    first_bucket_bytes: int | None = None


MEBIBYTE = 2**20

STRATEGIES: Mapping[str, Strategy] = {
    "single": Strategy("ring"),
    # torch.nn.parallel.DistributedDataParallel: bucket_cap_mb=25, first bucket 1 MiB (_DEFAULT_FIRST_BUCKET_BYTES).
    "ddp": Strategy("fastest", 25 * MEBIBYTE, 1 * MEBIBYTE),
    # Horovod: HOROVOD_FUSION_THRESHOLD defaults to 64 MiB.
    "horovod": Strategy("ring", 64 * MEBIBYTE, 64 * MEBIBYTE),
    # tf.distribute: one packed all-reduce behind the backward pass (measured in docs: single step + one all-reduce).
    "mirrored": Strategy("ring"),
    "multi_worker_mirrored": Strategy("hierarchical"),
    "parameter_server": Strategy("one_to_all"),
}

# Between boxes where nothing was said. The answer carries a warning that it was assumed.
DEFAULT_OUTER_LINK = "ethernet_10g"


@dataclass(frozen=True, slots=True)
class Placement:
    """`gpus` devices in `nodes` boxes under a strategy; `dollars_per_hour` is for all of them, None where unknown."""

    device: Device
    gpus: int = 1
    nodes: int = 1
    strategy: str = "single"
    link: str | None = None
    dollars_per_hour: float | None = None
    price_source: str | None = None

    def __post_init__(self) -> None:
        if self.gpus < 1 or self.nodes < 1:
            raise BadInput(f"gpus and nodes must be at least 1, got {self.gpus} and {self.nodes}")
        if self.gpus % self.nodes:
            raise BadInput(f"{self.gpus} GPUs do not share out evenly over {self.nodes} nodes")
        if self.strategy not in STRATEGIES:
            raise UnknownName("strategy", self.strategy, STRATEGIES)
        if self.strategy == "single" and self.gpus > 1:
            raise BadInput(f"strategy 'single' runs on one GPU, not {self.gpus}; try ddp, horovod or mirrored")
        if self.dollars_per_hour is not None and not self.dollars_per_hour >= 0:
            raise BadInput(f"a price cannot be negative, got {self.dollars_per_hour}")
        self.group()  # an unknown link is refused here

    def group(self) -> Group:
        """The ranks and their wires."""
        inner = find_link(self.link if self.link and self.nodes == 1 else self.device.interconnect)
        outer = find_link(self.link or DEFAULT_OUTER_LINK)
        return Group(self.nodes, self.gpus // self.nodes, inner, outer)

    @property
    def assumes_outer_link(self) -> bool:
        """Whether boxes are joined by the default because no link was named."""
        return self.nodes > 1 and self.link is None


def place(
    device: str | Device,
    *,
    gpus: int = 1,
    nodes: int = 1,
    strategy: str | None = None,
    link: str | None = None,
    dollars_per_gpu_hour: float | None = None,
) -> Placement:
    """A placement by names; the strategy of several GPUs is ddp, the price the catalogue's, unless given."""
    found = device if isinstance(device, Device) else find_device(device)
    chosen = strategy or ("ddp" if gpus > 1 else "single")
    price, source = None, None
    if dollars_per_gpu_hour is not None:
        price, source = dollars_per_gpu_hour * gpus, "given"
    else:
        listed = price_dollars_per_hour(found.name, gpus)
        if listed is not None:
            price, instance = listed
            source = f"{instance.cloud} {instance.name}"
    return Placement(found, gpus, nodes, chosen, link, price, source)
