"""One GPU that shares its work with nobody."""

from dataclasses import dataclass

from epochcast.describe.graph.recipe import OFFLOADS
from epochcast.describe.graph.trace import Trace
from epochcast.errors import BadInput
from epochcast.hardware.cluster import Group
from epochcast.hardware.device import Device
from epochcast.predict.forecast.step_parts import Kernels, assembled
from epochcast.predict.forecast.strategies.strategy import Strategy, Timing
from epochcast.predict.memory.sharding import WHOLE, RankShares, offloaded


@dataclass(frozen=True, slots=True)
class SingleGpu(Strategy):
    """Nothing is exchanged. Every strategy is this on one GPU, under its own name."""

    def timing(self, trace: Trace, middle: Kernels, group: Group, device: Device) -> Timing:
        return assembled

    def memory_shares(self, trace: Trace, gpus: int) -> RankShares:
        return offloaded(WHOLE, trace)

    @property
    def offloads(self) -> tuple[str, ...]:
        return OFFLOADS[1:]

    def check(self, gpus: int, nodes: int) -> None:
        if gpus > 1:
            raise BadInput(f"strategy {self.name!r} runs on one GPU, not {gpus}; try ddp, horovod or mirrored")
