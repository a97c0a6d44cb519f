"""Gradient checkpointing (Chen et al. 2016) as a rewrite of a step: blocks keep their inputs and run again in backward.

Of a checkpointed block only what later blocks read stays in memory. Just before the first backward op of the block, its
forward ops run once more. They then belong to the backward phase, but compute no gradients; the block's backward ops
read their results. That is torch.utils.checkpoint around every block.

A *block* is a repeated part of the network: the modules below one number of a list (`encoder.layer.3`, `layer1.0`).
Where that gives fewer than six blocks, the next number counts too (`stages.0.blocks.1`). A network without such names
(VGG) has no blocks and is refused.

By operators (torchtitan's selective checkpointing) runs blocks again, except for what costs most: the results of fused
attention and of every second product are kept, all else is computed again.

Half runs every second block again: half the time, and half the memory that full saves.

Selective (Korthikanti et al. 2022) runs only the scores of attention again: everything between the product of queries
and keys and the product with the values, which keep 5as²b bytes of a layer and cost little. A fused kernel keeps no
scores: nothing changes.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from epochcast.describe.graph.op import Op, Phase
from epochcast.describe.graph.op_kinds import Attention, Matmul
from epochcast.describe.graph.tensor import Tensor
from epochcast.errors import BadInput

FEWEST_BLOCKS = 6


def checkpointed(ops: Sequence[Op], name: str = "the model", *, keeps_products: bool = False) -> tuple[Op, ...]:
    """The step with every block checkpointed; `keeps_products`: but for attention and every second product."""
    forward = [op for op in ops if op.phase is Phase.FORWARD]
    if len(forward) == len(ops):
        return tuple(ops)
    blocks = blocks_of({op.layer for op in forward})
    if not blocks:
        raise BadInput(f"{name} has no repeated blocks to checkpoint: none of its layers is in a numbered list")
    kept = _kept_results(forward, blocks) if keeps_products else frozenset()
    return _again(ops, [op for op in forward if op.name not in kept], blocks)


def half_checkpointed(ops: Sequence[Op], name: str = "the model") -> tuple[Op, ...]:
    """The step with every second block checkpointed, the first among them."""
    forward = [op for op in ops if op.phase is Phase.FORWARD]
    if len(forward) == len(ops):
        return tuple(ops)
    blocks = blocks_of({op.layer for op in forward})
    if not blocks:
        raise BadInput(f"{name} has no repeated blocks to checkpoint: none of its layers is in a numbered list")
    order = list(dict.fromkeys(blocks[op.layer] for op in forward if op.layer in blocks))
    every_second = set(order[::2])
    return _again(ops, forward, {layer: block for layer, block in blocks.items() if block in every_second})


def _kept_results(forward: Sequence[Op], blocks: Mapping[str, str]) -> frozenset[str]:
    """Names of the ops whose results are kept: the first, third, … product of a block, and its attention."""
    products: dict[str, int] = {}
    kept: set[str] = set()
    for op in forward:
        block = blocks.get(op.layer, "")
        if isinstance(op.kind, Matmul):
            products[block] = products.get(block, 0) + 1
        if isinstance(op.kind, Attention) or (isinstance(op.kind, Matmul) and products[block] % 2):
            kept.add(op.name)
    return frozenset(kept)


def without_scores(ops: Sequence[Op], name: str = "the model") -> tuple[Op, ...]:
    """The step with the scores of every attention computed again."""
    forward = [op for op in ops if op.phase is Phase.FORWARD]
    if len(forward) == len(ops):
        return tuple(ops)
    products: dict[str, int] = {}
    for op in forward:
        if isinstance(op.kind, Matmul) and not op.weights:
            products[op.layer] = products.get(op.layer, 0) + 1
    cores = {layer: layer for layer, count in products.items() if count > 1}
    if not cores and not any(isinstance(op.kind, Attention) for op in forward):
        raise BadInput(f"{name} has no attention whose scores could be computed again")
    return _again(ops, forward, cores)


def _again(ops: Sequence[Op], forward: Sequence[Op], blocks: Mapping[str, str]) -> tuple[Op, ...]:
    """The forward ops of every block once more in front of its first backward op; `blocks` are by layer."""
    ops_of: dict[str, list[Op]] = {}
    for op in forward:
        if op.layer in blocks:
            ops_of.setdefault(blocks[op.layer], []).append(op)
    outputs_of = {block: {t.name for op in members for t in op.outputs} for block, members in ops_of.items()}
    new_ops: list[Op] = []
    recomputed_blocks: set[str] = set()
    for op in ops:
        block = blocks.get(op.layer, "") if op.phase is Phase.BACKWARD else ""
        if not block or block not in ops_of:
            new_ops.append(op)
            continue
        if block not in recomputed_blocks:
            recomputed_blocks.add(block)
            new_ops.extend(_recomputed_op(member, outputs_of[block]) for member in ops_of[block])
        names = outputs_of[block]
        new_ops.append(replace(op, inputs=_recomputed(op.inputs, names), weights=_recomputed(op.weights, names)))
    return tuple(new_ops)


def _recomputed_op(op: Op, names: set[str]) -> Op:
    """A forward op as the backward pass runs it."""
    return replace(
        op,
        name=_recomputed_name(op.name),
        inputs=_recomputed(op.inputs, names),
        weights=_recomputed(op.weights, names),
        outputs=_recomputed(op.outputs, names),
        phase=Phase.BACKWARD,
    )


def _recomputed(tensors: tuple[Tensor, ...], names: set[str]) -> tuple[Tensor, ...]:
    return tuple(_recomputed_tensor(t) if t.name in names else t for t in tensors)


def _recomputed_tensor(tensor: Tensor) -> Tensor:
    relation = tensor.relation._replace(is_recomputed=True)
    return Tensor(tensor.shape, tensor.dtype, _recomputed_name(tensor.name), relation)


def _recomputed_name(name: str) -> str:
    return f"{name}%again"


def blocks_of(layers: Iterable[str]) -> dict[str, str]:
    """The block of every layer that is in one. Where no list is long enough to be sure of, a shorter numbered list
    counts: a transformer of two layers is checkpointed by layer, too.
    """
    named_layers = [layer for layer in layers if layer]
    fallback: dict[str, str] = {}
    for depth, is_number in ((1, str.isdecimal), (2, str.isdecimal), (1, _ends_in_digit), (2, _ends_in_digit)):
        block_of = {layer: block for layer in named_layers if (block := _prefix(layer, depth, is_number))}
        blocks = set(block_of.values())
        block_of |= {layer: layer for layer in named_layers if layer in blocks}  # ops of the block itself
        if len(blocks) >= FEWEST_BLOCKS:
            return block_of
        fallback = fallback or (block_of if is_number is str.isdecimal else {})
    return fallback


def _ends_in_digit(part: str) -> bool:
    return part[-1:].isdecimal()


def _prefix(layer: str, depth: int, is_number: Callable[[str], bool]) -> str:
    """The name up to its depth-th number, where something follows it; empty where there is none."""
    parts = layer.split(".")
    numbers = [place for place, part in enumerate(parts[:-1]) if is_number(part)]
    return ".".join(parts[: numbers[depth - 1] + 1]) if len(numbers) >= depth else ""
