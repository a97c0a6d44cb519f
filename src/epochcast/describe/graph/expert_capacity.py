"""Experts with a capacity, as a rewrite of a graph (Lepikhin et al. 2021, "GShard"; Megatron-Core's `moe` README).

    capacity = ⌈tokens · chosen / experts · factor⌉        of one expert and sequence

With a capacity every expert gets as many rows, padded where fewer tokens chose it (`--moe-expert-capacity-factor` with
`--moe-pad-expert-input-to-capacity`); what is over is dropped in front of the dispatch and goes by on the residual
connection. So the buffers of dispatch and combine, all products between them and what they keep have `factor` times the
rows of balanced routing. Without a capacity nothing is dropped or padded (`describe.capture.zoo.moe`).

Padding without regard to balance makes all ranks alike; a capacity without padding is at most this large.
"""

from dataclasses import replace
from math import ceil

from epochcast.describe.graph.op import Graph, Op
from epochcast.describe.graph.op_kinds import Gather, Reduce
from epochcast.describe.graph.tensor import Tensor
from epochcast.errors import BadInput


def with_expert_capacity(graph: Graph, factor: float) -> Graph:
    """The graph with the rows of every expert at its capacity."""
    dispatched = [op for op in graph.ops if isinstance(op.kind, Gather) and op.kind.function == "dispatch"]
    if not dispatched:
        raise BadInput(f"{graph.name} has no mixture of experts whose tokens are dispatched: it has no capacity")
    rows = _Rows(graph.batch, factor, {op.output.shape[:2] for op in dispatched})
    return replace(graph, ops=tuple(rows.op(op) for op in graph.ops))


class _Rows:
    """Resizes what is (experts, rows, …) between the sort of tokens and their combination."""

    def __init__(self, batch: int, factor: float, shapes: set[tuple[int, ...]]) -> None:
        self.batch, self.factor, self.shapes = batch, factor, shapes
        self.resized: dict[str, Tensor] = {}

    def op(self, op: Op) -> Op:
        """The op on rows at capacity; the sort of tokens by expert is the first of them."""
        begins = isinstance(op.kind, Reduce) and op.kind.function == "sort"
        inputs = tuple(self.resized.get(t.name, t) for t in op.inputs)
        if not begins and not any(t.name in self.resized for t in op.inputs):
            return op
        outputs = tuple(self._at_capacity(t) for t in op.outputs)
        return replace(op, inputs=inputs, outputs=outputs)

    def _at_capacity(self, tensor: Tensor) -> Tensor:
        if tensor.shape[:2] not in self.shapes:
            return tensor
        experts, rows, *rest = tensor.shape
        capacity = self.batch * ceil(rows // self.batch * self.factor)
        self.resized[tensor.name] = replace(tensor, shape=(experts, capacity, *rest))
        return self.resized[tensor.name]
