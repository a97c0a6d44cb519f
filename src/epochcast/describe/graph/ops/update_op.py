"""Passes of an optimizer."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import ClassVar

from epochcast.describe.graph.op import Kind, Op, Wanted
from epochcast.describe.graph.op_registry import register_op
from epochcast.describe.graph.op_work import OpClass

# PyTorch's multi-tensor apply (aten/src/ATen/native/cuda/MultiTensorApply.cuh): tensors per launch by how many lists of
# them a pass touches (depth_to_max_tensors), blocks per launch (depth_to_max_blocks), elements per block (kChunkSize).
_LAUNCH_TENSORS = (110, 64, 48, 36, 30)
_LAUNCH_BLOCKS = 320
_BLOCK_ELEMENTS = 65536


@register_op
@dataclass(frozen=True, slots=True)
class OptimizerUpdate(Kind):
    """One pass of an optimizer over its tensors: everything in `inputs` is read, everything in `outputs` is written.

    `style` is how the framework runs it: foreach (one multi-tensor kernel per pass), fused (one kernel for
    the whole rule), loop (one kernel per tensor).
    """

    label: ClassVar[str] = "update"
    runs_as: ClassVar[OpClass] = OpClass.UPDATE
    algorithm: str = "sgd"
    step: str = "add"
    style: str = "foreach"
    flops_per_element: int = 1

    def flops(self, op: Op) -> int:
        """Those of the rule, for every element that is written."""
        return self.flops_per_element * sum(t.elements for t in op.outputs)

    def launches(self, op: Op) -> int:
        """A loop starts one kernel per tensor; a multi-tensor kernel starts when it is full of tensors or of blocks.

        A list that a pass reads twice (g·g) is counted once.
        """
        # A fused kernel writes the parameters and their state; what it only reads is the gradients, one per parameter.
        tensors = op.outputs[: len(op.inputs) - len(op.outputs)] if self.style == "fused" else op.outputs
        if self.style == "loop" or not tensors:
            return max(1, len(tensors))
        lists = len({t.name for t in (*op.inputs, *op.outputs)}) // len(tensors)
        max_tensors = _LAUNCH_TENSORS[min(max(lists, 1), len(_LAUNCH_TENSORS)) - 1]
        started, tensors_in_launch, blocks = 0, 0, 0
        for tensor in tensors:
            tensors_in_launch += 1
            blocks += ceil(tensor.elements / _BLOCK_ELEMENTS)
            if blocks >= _LAUNCH_BLOCKS:
                started, blocks = started + blocks // _LAUNCH_BLOCKS, blocks % _LAUNCH_BLOCKS
                tensors_in_launch = int(blocks > 0)
            if tensors_in_launch == max_tensors and blocks:
                started, tensors_in_launch, blocks = started + 1, 0, 0
        return max(1, started + (blocks > 0))

    def gradients(self, op: Op, wanted: Wanted) -> Iterator[Op]:
        """None: it runs after the backward pass."""
        raise ValueError(f"{op.name}: an optimizer update cannot be part of a forward pass")
