"""What NCCL holds of a GPU: nvidia-smi shows it, PyTorch's counters do not.

    bytes = library + Σ over communicators of channels · peers · (receiver's buffers + sender's page)

A receiver has one buffer for each of NCCL's protocols (init.cc of NVIDIA/nccl): Simple 4 MiB (`NCCL_BUFFSIZE`), LL 8
lines · 512 threads · 8 steps · 16 bytes = 0.5 MiB, LL128 120 elements · 640 threads · 8 steps · 8 bytes = 4.7 MiB. They
are allocated in pages of 2 MiB, and the sender has a page of its own: NCCL's log shows allocations of 10,485,760 and
2,097,152 bytes (github.com/NVIDIA/nccl/issues/1685).

A ring and a chain of trees join a rank to two neighbours, or to the one there is: groups of three and four A100 take
144 MB more than groups of two, which are 12 channels of 12 MiB (github.com/NVIDIA/nccl/issues/964). An all-to-all joins
all ranks of a box by all channels of point-to-point messages: 7 peers · 32 · 12 MiB = 2.6 of the 3.3 GB that the first
one takes on eight H100 (issue 1685). Between boxes, messages share one buffer (sjeaugey in issues/1450).

The library's own part, its kernels and queues, is held once: what is left of issue 964's 544 MB for two ranks. On eight
MI250X the first communicator takes 0.35 GiB more than each of the others
(github.com/Lumi-supercomputer/LUMI-AI-Guide/issues/111). How many channels there are is read off public logs.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import ceil

from epochcast.hardware.cluster import Group
from epochcast.hardware.device import Device

MIB = 2**20
PAGE_BYTES = 2 * MIB
PROTOCOL_BYTES: Mapping[str, int] = {"simple": 4 * MIB, "ll": 8 * 512 * 8 * 16, "ll128": 120 * 640 * 8 * 8}
CONNECTION_BYTES = ceil(sum(PROTOCOL_BYTES.values()) / PAGE_BYTES) * PAGE_BYTES + PAGE_BYTES
"""Of one channel from one peer: 12 MiB."""
LIBRARY_BYTES = 400 * MIB

COLLECTIVE, ALL_TO_ALL, NEIGHBOURS = "collective", "all-to-all", "neighbours"

MESH_CHANNELS = 12
"""NVLink without a switch: six links, each used twice (V100: six rings, github.com/NVIDIA/nccl/issues/713)."""
SWITCH_CHANNELS = 24
"""NVLink with a switch (HGX A100: 24, github.com/NVIDIA/nccl-tests/issues/100)."""
BOX_CHANNELS = 16
"""Boxes with NVLink (24 A100: 16, github.com/NVIDIA/nccl/issues/820; 24 H100: 16, issues/1453)."""
XGMI_CHANNELS = 28
"""From the 0.65 GiB of every communicator but the first on MI250X (LUMI-AI-Guide)."""
SLOW_CHANNELS = 2
"""PCIe and the network without NVLink (one ring, used twice: github.com/rwth-i6/returnn/issues/1469)."""
MESSAGE_CHANNELS = 32
"""To each peer over NVLink (issue 1685)."""
_MESHES = frozenset({"pascal", "volta"})


@dataclass(frozen=True, slots=True)
class Communicator:
    """A group of ranks that one rank talks to, and what they exchange."""

    group: Group
    exchange: str = COLLECTIVE

    def size_bytes(self, device: Device) -> int:
        """The buffers of one rank; none where it is alone."""
        ranks, in_box = self.group.ranks, self.group.ranks_per_node
        if ranks == 1:
            return 0
        if self.exchange == COLLECTIVE:
            return self._channels(device) * min(2, ranks - 1) * CONNECTION_BYTES
        peers = in_box - 1 if self.exchange == ALL_TO_ALL else min(2, in_box - 1)
        channels = MESSAGE_CHANNELS if self._is_fast else SLOW_CHANNELS
        shared_bytes = CONNECTION_BYTES if self.group.nodes > 1 else 0
        return channels * peers * CONNECTION_BYTES + shared_bytes

    @property
    def _is_fast(self) -> bool:
        return self.group.inner.medium in ("nvlink", "xgmi")

    def _channels(self, device: Device) -> int:
        if not self._is_fast:
            return SLOW_CHANNELS
        if self.group.inner.medium == "xgmi":
            return XGMI_CHANNELS
        if device.generation in _MESHES:
            return MESH_CHANNELS
        return BOX_CHANNELS if self.group.nodes > 1 else SWITCH_CHANNELS


def communication_bytes(communicators: Iterable[Communicator], device: Device) -> int:
    """What one rank's communicators hold of its GPU, with the library."""
    if device.kind != "gpu":
        return 0
    buffers_bytes = sum(each.size_bytes(device) for each in communicators)
    return LIBRARY_BYTES + buffers_bytes if buffers_bytes else 0
