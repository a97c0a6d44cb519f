"""The placement of a measured run: its strategy and links, read from the table's framework and interconnect.

`interconnect` is free text: "NVLink (DGX-1)", "AWS g4dn.12xlarge: PCIe intra, 50 Gb/s Ethernet inter", "PCIe 4.0
| net: 2x ConnectX-6 IB HDR 200Gb/Sec", "NVLink; 4 x 100 Gb/s RoCE". Before "net:" or "intra" is the link between the
GPUs of a node, after it the link between nodes. A standard without a number of ports ("NVSwitch; InfiniBand NDR") says
what a port is, not how many a node has: nodes have as many as machines of the device are sold with.
What cannot be read is None: then the device's own link is used, or between nodes the network that machines of the
device are sold with.
"""

import re
from dataclasses import replace
from math import ceil, log

from epochcast.hardware.catalogue import find_link, links
from epochcast.hardware.default_network import joins_nodes
from epochcast.hardware.device import Device
from epochcast.measure.tables.row_names import framework_strategy, listed
from epochcast.measure.tables.run_table import MeasuredRun
from epochcast.predict.cost.hosts import measured_host
from epochcast.predict.forecast.placement import Placement, placed
from epochcast.predict.forecast.strategies.strategy_table import STRATEGIES, find_strategy

# Inside a node. The first match counts; None means the link of the device's data sheet.
INNER: tuple[tuple[str, str | None], ...] = (
    (r"nvlink bridge", "NVLink bridge"),
    (r"nvlink|nvswitch", None),
    (r"pcie,? ?(?:gen ?)?5", "pcie5"),
    (r"pcie,? ?(?:gen ?)?4", "pcie4"),
    (r"pcie", "pcie3"),
)
# Links between machines that are known by name. NVIDIA's data sheets of DGX-1 (4 × EDR), DGX-2 (8 × EDR), DGX
# A100 (8 × HDR).
MACHINES: tuple[tuple[str, str], ...] = (
    (r"dgx a100", "infiniband_hdr_x8"),
    (r"dgx-2", "infiniband_edr_x8"),
    (r"dgx-1", "infiniband_edr_x4"),
    (r"aws g4dn\.12xlarge", "ena_50g"),
    (r"cloud network", "ethernet_10g"),
    (r"hccs", "ethernet_800g"),  # Ascend servers: a 100 Gbit/s port at each of eight chips
)
# Gbit/s of one port by the name of its standard or adapter; a number with a unit takes precedence.
_PORTS = {"hdr100": 100, "hdr": 200, "edr": 100, "fdr": 56, "ndr": 400, "connectx-5": 100, "connectx-6": 200}
_RATE = re.compile(r"(\d+) ?(?:gb/s|gbps|gbe|gbit/s|gb ethernet)")
_COUNT = re.compile(r"(\d+) ?x ")
_RDMA = ("infiniband", "rdma", "roce", " ib ", *_PORTS)
# Between nodes of GPUs no TCP stack carries so much: 8 cores copy about 100 Gbit/s.
_TCP_GIGABITS_PER_SECOND = 200.0
# What `run_layout` writes: data parallel ranks first, then other degrees or zero1.
_PRODUCT = re.compile(r"dp\d+(,(tp|pp|cp|ep|vp)\d+)*(,even)?(,overlap)?(,zero1)?")

_GROUPED = re.compile(r"(?:zero[123]|fsdp):\d+")


def run_placement(run: MeasuredRun, gpus: int | None = None) -> Placement:
    """The placement of a run, or on one GPU.

    Schedulers place jobs unevenly (2 + 2 + 4): every node has the mean number of GPUs, rounded up, and some are unused.
    """
    host = measured_host(run.source, run.system)
    if gpus == 1 or (gpus is None and run.gpus == 1):
        return replace(placed(run.device), host=host)
    nodes = min(max(run.nodes, 1), run.gpus)
    gpus_per_node = ceil(run.gpus / nodes)
    if nodes == 1:
        link = inner_link(run.interconnect, run.device, gpus_per_node)
    else:
        link = None if joins_nodes(run.device) else outer_link(run.interconnect)
    strategy = find_strategy(strategy_of(run), run.gpus)
    empty = nodes * gpus_per_node - run.gpus
    return replace(placed(run.device, run.gpus, nodes, strategy, link=link, empty=empty), host=host)


def strategy_of(run: MeasuredRun) -> str:
    """The strategy of the row, else that in its framework's name, else the usual one of the framework."""
    if run.strategy and run.strategy not in ("single", "none"):
        return _written_strategy(run.strategy)
    if "parameter servers" in (run.interconnect or "").casefold():
        # As many servers as nodes, each with a shard: a node sends and receives every shard once, as gradients become
        # ready, which are the bytes of an all-reduce in buckets. "parameter_server" is one server for all.
        return "horovod"
    strategy = framework_strategy(run.framework)
    if strategy is not None:
        return strategy  # nn.DataParallel gathers on one GPU and sends from there
    if run.setting.framework == "tensorflow":
        # NVIDIA's own TensorFlow examples (NGC) use Horovod on one node, too.
        return "mirrored" if run.nodes == 1 and "ngc" not in run.framework else "horovod"
    return "ddp"


def _written_strategy(words: str) -> str:
    """By our name: a product as it is, dp4 alone as ddp, pp4_1 (one micro-batch) as pp4, others by their alias."""
    if (_PRODUCT.fullmatch(words) and "," in words) or _GROUPED.fullmatch(words):
        return words
    split = re.fullmatch(r"((?:tp|pp)\d+(?:,(?:tp|pp)\d+)*)(?:_1)?", words)
    if split:
        return split[1]
    name = words.casefold()
    if name not in STRATEGIES:
        name = re.sub(r"\d+$", "", name)
    return listed("strategy", words) or listed("strategy", name) or (name if name in STRATEGIES else words)


def inner_link(text: str | None, device: Device, gpus: int = 2) -> str | None:
    """The link between the GPUs of a node; None for the device's own. A bridge joins two GPUs, more use PCIe."""
    inside = re.split(r"net:|inter\b|ethernet", (text or "").casefold())[0]
    for pattern, link in INNER:
        if re.search(pattern, inside):
            if link == "pcie3" and find_link(device.interconnect).medium == "pcie":
                return None  # a bare "PCIe" says no more than the data sheet
            if link == "NVLink bridge" and gpus > 2:
                return device.host_link
            return link
    return None


def outer_link(text: str | None) -> str | None:
    """The link between nodes: that of a machine known by name, else the fastest ports in the text."""
    lower_text = (text or "").casefold()
    for pattern, link in MACHINES:
        if re.search(pattern, lower_text):
            return link
    network = lower_text.partition("net:")[2] or lower_text.partition(" intra,")[2] or lower_text
    compute = network.partition("compute:")[2] or network
    parts = re.split(r"[,;]| \+ ", compute)
    if all(_RATE.search(part) is None and _COUNT.match(part.strip()) is None for part in parts):
        return None
    fastest = max(_gigabits_per_second(part, network) for part in parts)
    is_unnamed = "ethernet" not in network and "tcp" not in network
    is_rdma = any(name in network for name in _RDMA) or (is_unnamed and fastest >= _TCP_GIGABITS_PER_SECOND)
    return nearest_link(fastest * 1e9 / 8, "rdma" if is_rdma else "tcp") if fastest else None


def _gigabits_per_second(part: str, network: str) -> float:
    """count × rate of one port; a part without a rate has that of the other ports in the text."""
    counted = _COUNT.match(part.strip())
    count = int(counted[1]) if counted else 1
    for text in (part, network if counted else ""):
        rate = _RATE.search(text)
        if rate:
            return count * float(rate[1])
        for name, port in _PORTS.items():
            if name in text:
                return count * float(port)
    return 0.0


def nearest_link(bytes_per_second: float, medium: str = "tcp") -> str:
    """The Ethernet (tcp) or InfiniBand (rdma) link of the catalogue whose rate is nearest by ratio."""
    networks = [link for link in links() if link.medium == medium and re.match(r"(ethernet|infiniband)_", link.name)]
    return min(networks, key=lambda link: abs(log(link.bandwidth_bytes_per_second / bytes_per_second))).name
