"""Head and loss in chunks of tokens, as a rewrite of a step (Liger's fused linear cross entropy, torchtune).

For each chunk the head multiplies, the loss follows, and its gradient goes back through the head before the next chunk
begins. So the scores of one chunk are in memory, not those of all tokens; what the head hands back to the network is
kept, and the gradient of its weight is added up. All of it runs where the backward pass begins.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil

from epochcast.describe.graph.language_model import head_weights, is_head
from epochcast.describe.graph.op import Op, Phase
from epochcast.describe.graph.op_kinds import Loss, View
from epochcast.describe.graph.tensor import Relation, Tensor
from epochcast.errors import BadInput


def with_chunked_loss(ops: Sequence[Op], chunks: int, name: str = "the model") -> tuple[Op, ...]:
    """The step whose tokens are scored and judged in so many chunks."""
    heads = head_weights(ops)
    forward = [op for op in ops if op.phase is Phase.FORWARD]
    first = next((place for place, op in enumerate(forward) if is_head(op, heads)), None)
    if first is None or not any(isinstance(op.kind, Loss) for op in forward[first:]) or not forward[0].inputs:
        raise BadInput(f"{name} has no head whose scores a loss reads: its loss cannot be chunked")
    region = forward[first:]
    batch, hidden = forward[0].inputs[0].shape[0], region[0].inputs[0]
    whole = {t.name: t for op in region for t in op.outputs}
    behind = [op for op in ops if op.phase is Phase.BACKWARD and _belongs(op, whole)]
    owner = hidden.relation.copy_of or hidden.name  # the head may read a cast of what the network makes
    read = {owner, *(t.name for op in region for t in op.inputs)} - heads
    cut = _ChunkCut(batch, chunks, frozenset(whole), frozenset(read))
    chunked = [cut.op(op, chunk) for chunk in range(chunks) for op in (*region, *behind)]
    arriving = [t for op in behind for t in op.outputs if t.relation.adds_to_gradient_of == owner]
    joined = [
        Op(f"{t.name}.chunks", View("chunks"), (t,), (t,), (), Phase.BACKWARD, region[0].layer) for t in arriving[-1:]
    ]
    rest = [op for op in ops if op.phase is not Phase.FORWARD]
    rest = [op for op in rest if op.phase is not Phase.BACKWARD or not _belongs(op, whole)]
    return (*forward[:first], *chunked, *joined, *rest)


def _belongs(op: Op, region: dict[str, Tensor]) -> bool:
    """Whether a backward op makes or reads a gradient of the region."""
    return any(
        owner in region
        for t in (*op.inputs, *op.outputs)
        for owner in (t.relation.adds_to_gradient_of, t.relation.unsummed_of)
    )


class _ChunkCut:
    """Tensors of tokens at the size of a chunk: what the region reads, and what it writes, each chunk its own."""

    def __init__(self, batch: int, chunks: int, written: frozenset[str], read: frozenset[str]) -> None:
        self.batch, self.chunks, self.written, self.of_tokens = batch, chunks, written, written | read

    def op(self, op: Op, chunk: int) -> Op:
        """The op on one chunk, in the backward pass."""
        inputs, outputs, weights = (
            tuple(self._tensor(t, chunk) for t in side) for side in (op.inputs, op.outputs, op.weights)
        )
        return replace(
            op, name=f"{op.name}#{chunk}", inputs=inputs, outputs=outputs, weights=weights, phase=Phase.BACKWARD
        )

    def _tensor(self, tensor: Tensor, chunk: int) -> Tensor:
        owners = {tensor.name, *(name for name in tensor.relation if isinstance(name, str))}
        if not owners & self.of_tokens:
            return tensor
        shape = self._shape(tensor.shape) if tensor.elements > 1 else tensor.shape
        if not owners & self.written:
            return replace(tensor, shape=shape)
        relation = Relation._make(f"{name}#{chunk}" if name in self.written else name for name in tensor.relation)
        return replace(tensor, shape=shape, name=f"{tensor.name}#{chunk}", relation=relation)

    def _shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """(samples, tokens, …), or both in one."""
        if len(shape) > 1 and shape[0] == self.batch:
            return (shape[0], ceil(shape[1] / self.chunks), *shape[2:])
        if shape[0] % self.batch:
            return shape
        return (self.batch * ceil(shape[0] // self.batch / self.chunks), *shape[1:])
