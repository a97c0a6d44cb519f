"""Work that Python does for one sample after another, between kernels of the whole batch."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from epochcast.describe.graph.op import Kind, Op, Wanted
from epochcast.describe.graph.op_registry import register_op
from epochcast.describe.graph.op_work import OpClass


@register_op
@dataclass(frozen=True, slots=True)
class HostLoop(Kind):
    """Small kernels that Python starts for every sample of its input: matching, sampling, suppressing boxes.

    `once` are started for the batch, `per_sample` for each sample; a result that is read back counts as one of them,
    since a copy is started and waited for. `reads_back`: the host looks at results, so that it waits for all kernels
    before. `work` names what the host itself computes for every sample (`hosts.toml`).
    """

    label: ClassVar[str] = "host_loop"
    runs_as: ClassVar[OpClass] = OpClass.ELEMENTWISE
    once: int = 0
    per_sample: int = 0
    reads_back: bool = True
    work: str = ""

    @property
    def is_awaited(self) -> bool:
        """Whether the host reads results of it."""
        return self.reads_back

    def flops(self, op: Op) -> int:
        """None that count."""
        return 0

    def launches(self, op: Op) -> int:
        """Those of the batch and of its samples."""
        return self.once + self.per_sample * op.inputs[0].shape[0]

    def gradients(self, op: Op, wanted: Wanted) -> Iterator[Op]:
        """None: boxes and targets are data."""
        return iter(())
