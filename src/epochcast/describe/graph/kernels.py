"""Kernels of libraries that stand in for PyTorch's in language models: Liger (Hsu et al. 2024) and Unsloth.

Both have one kernel, forward and backward, for what a norm, the rotation of queries and keys, and the gate of an MLP
take several for. It keeps the inputs and works out the rest again, so nothing in between is in memory. Both score and
judge tokens in chunks (fused linear cross entropy, cut cross entropy): the scores of all tokens are never there.

Unsloth besides runs blocks again in backward, their inputs kept in the host's memory (`use_gradient_checkpointing=
"unsloth"`, the default of its examples).

Limit: Unsloth's own backward of LoRA, which orders products by their size, is not modelled: it saves little where the
rank is small.
"""

from collections.abc import Callable, Sequence
from math import ceil

from epochcast.describe.graph.language_model import head_weights, is_head
from epochcast.describe.graph.op import Op, Phase
from epochcast.describe.graph.op_kinds import Embedding, View
from epochcast.describe.graph.tensor import Tensor
from epochcast.errors import BadInput, UnknownName

NO_KERNELS, LIGER, UNSLOTH = "none", "liger", "unsloth"
MOST_CHUNKS = 64
"""Of the loss; more change nothing that can be seen."""


def find_kernels(name: str) -> str:
    """A library by its name."""
    wanted = name.strip().casefold()
    if wanted not in (NO_KERNELS, LIGER, UNSLOTH):
        raise UnknownName("kernels", name, (NO_KERNELS, LIGER, UNSLOTH))
    return wanted


def part_of(op: Op) -> str:
    """The norm, the attention or the MLP that an op belongs to: the module below the number of its block."""
    parts = op.layer.split(".")
    last = max((place for place, part in enumerate(parts[:-1]) if part.isdecimal()), default=None)
    return op.layer if last is None else ".".join(parts[: last + 2])


def loss_chunks(ops: Sequence[Op], name: str) -> int:
    """Chunks of a fused linear cross entropy: as many as the vocabulary is wider than the network (Liger's rule, before
    it rounds a chunk's tokens to a power of two).
    """
    heads = head_weights(ops)
    head = next((op for op in ops if op.phase is Phase.FORWARD and is_head(op, heads)), None)
    if head is None or not any(isinstance(op.kind, Embedding) for op in ops):
        raise BadInput(f"--kernels: {name} scores no vocabulary; Liger and Unsloth are for language models")
    return min(MOST_CHUNKS, max(2, ceil(head.output.shape[-1] / head.inputs[0].shape[-1])))


def own_storages(ops: Sequence[Op], parts: Sequence[str], storage: Callable[[Tensor], str]) -> frozenset[str]:
    """Storages that only fused ops of one part of the network touch, in the forward and the backward pass; `parts` has
    that of each op, empty where it is not fused.
    """
    touching: dict[str, set[str]] = {}
    written: set[str] = set()
    for op, part in zip(ops, parts, strict=True):
        if isinstance(op.kind, View):
            continue
        for tensor in (*op.inputs, *op.weights, *op.outputs):
            touching.setdefault(storage(tensor), set()).add(part)
        if op.phase is Phase.FORWARD:
            written.update(storage(tensor) for tensor in op.outputs)
    return frozenset(name for name in written if len(touching[name]) == 1 and "" not in touching[name])
