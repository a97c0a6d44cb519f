"""What a strategy is: how GPUs share the work of a step, what each of them holds, and where it can run.

A strategy is one value. Everything that depends on which one it is, is asked of it; nobody else asks for its kind. A
new one is a module with a class of this shape and an entry in `registry.STRATEGIES`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from epochcast.describe.graph.trace import Trace
from epochcast.errors import BadInput
from epochcast.hardware.cluster import Group
from epochcast.hardware.device import Device
from epochcast.predict.comm.stragglers import PYTORCH
from epochcast.predict.forecast.step_parts import Kernels, StepParts
from epochcast.predict.memory.communication_buffers import Communicator
from epochcast.predict.memory.sharding import WHOLE, Held, RankShares

Timing = Callable[[Kernels], StepParts]
"""From the kernels of one rank to the parts of its step."""

COPIES = ("one_to_all", "hierarchical_copy", "reduce_to_one_device")
"""Algorithms that are not NCCL's."""


@dataclass(frozen=True, slots=True)
class Strategy(ABC):
    """`name` is what a user writes, in its plain form; `algorithm` the collective that sums gradients; `runner` is who
    runs the ranks (`predict.comm.stragglers`).
    """

    name: str
    algorithm: str
    runner: str = PYTORCH

    @abstractmethod
    def timing(self, trace: Trace, middle: Kernels, group: Group, device: Device) -> Timing:
        """How a step of `trace` is timed on a group of such devices. `middle` are the kernels of one rank at their
        middle seconds, by which what is decided once for a step is decided.
        """

    def memory_shares(self, trace: Trace, gpus: int) -> RankShares:
        """What the GPU that holds most has of the step it executes, as fractions of what one GPU alone would hold."""
        return WHOLE

    def held(self, trace: Trace, gpus: int) -> Held:
        """The step whose storages the GPU that holds most has, and its shares of them."""
        return Held(trace, self.memory_shares(trace, gpus))

    def communicators(self, group: Group) -> tuple[Communicator, ...]:
        """The groups of ranks that one rank talks to by NCCL; none where GPUs copy to each other or to a server."""
        return () if self.algorithm in COPIES else (Communicator(group),)

    @property
    def sharing_less(self) -> "Strategy | None":
        """The strategy that shards one thing less, where there is one: nobody needs more memory than under that."""
        return None

    def rank_trace(self, trace: Trace, gpus: int) -> Trace:
        """The step that one of the ranks executes."""
        return trace

    def replicas(self, gpus: int) -> int:
        """Copies of the model that are fed different samples; the GPUs of a split model share one."""
        return gpus

    @property
    def stages(self) -> int:
        """Parts of the model that work on different samples at a time."""
        return 1

    @property
    def splits_products(self) -> bool:
        """Whether ranks share out single products (tensor parallelism)."""
        return False

    def notes(self, trace: Trace) -> Iterator[str]:
        """What one should know of a step under it."""
        yield from ()

    @property
    def offloads(self) -> tuple[str, ...]:
        """What can lie in the host's memory under it."""
        return ()

    def check(self, gpus: int, nodes: int) -> None:
        """Refuse GPUs and boxes that it cannot run on."""
        if gpus < 2:
            raise BadInput(f"strategy {self.name!r} is for several GPUs, not {gpus}; one alone is 'single'")

    def across(self, nodes: int) -> "Strategy":
        """What stands in for it on so many boxes."""
        return self
