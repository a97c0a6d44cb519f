"""Frozen weights kept in four or eight bits, as a rewrite of a step (Dettmers et al. 2023, "QLoRA").

    bytes = n/2 + 4·n/64        n values of four bits, a float32 scale for every 64 of them
    bytes = n + 4·rows          n values of eight bits, a float32 scale for every row

Before every product that reads such a weight, forward and backward, the weight is dequantised to float16 and then cast
to the precision of the step (bitsandbytes quantises from float16 and dequantises to it). The input of a product is kept
for the backward pass, though only a trained weight would need it (`MatMul4Bit` there). Only weights of linear layers
are kept in four bits; embeddings and norms are not.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from epochcast.describe.graph.op import Gradient, Op, Parameter, Phase
from epochcast.describe.graph.op_kinds import Copy, Matmul, View
from epochcast.describe.graph.tensor import DType, Tensor

FOUR, EIGHT = 4, 8
BLOCK = 64
"""Values that share a scale (bitsandbytes' default for four bits)."""


def with_four_bits(ops: Iterable[Op], parameters: Iterable[Parameter]) -> tuple[Op, ...]:
    """The step with the frozen weights of linear layers in four bits."""
    all_ops = tuple(ops)
    frozen = {p.name for p in parameters if not p.trainable and len(p.tensor.shape) > 1}
    linear, elsewhere = set[str](), set[str]()
    for op in all_ops:
        (linear if isinstance(op.kind, Matmul) else elsewhere).update(t.name for t in (*op.inputs, *op.weights))
    return with_packed(all_ops, dict.fromkeys((frozen & linear) - elsewhere, FOUR))


def with_packed(all_ops: Iterable[Op], packed: Mapping[str, int]) -> tuple[Op, ...]:
    """The step with these weights kept in so many bits, by their names."""
    new_ops: list[Op] = []
    product_inputs: dict[str, Tensor] = {}  # the input of the product with a weight, by the weight's name
    for op in all_ops:
        weights = [t for t in (*op.inputs, *op.weights) if t.name in packed]
        if not weights or op.phase is Phase.UPDATE:
            new_ops.append(op)
            continue
        weight = weights[0]
        if op.gradient is Gradient.NONE:
            product_inputs[weight.name] = op.inputs[0]
        elif weight.name in product_inputs:
            new_ops.append(_keep_until(op, product_inputs[weight.name]))
        copy = weight.copy(f"{weight.name}@written:{op.name}", weight.dtype)
        half = weight.copy(f"{copy.name}:half", DType.FLOAT16)
        packed_weight = _packed(weight, packed[weight.name])
        new_ops.append(Op(f"{op.name}.dequantize", Copy("cast"), (packed_weight,), (half,), (), op.phase, op.layer))
        new_ops.append(Op(f"{op.name}.written", Copy("cast"), (half,), (copy,), (), op.phase, op.layer))
        inputs, weights_read = (_reading_copy(side, copy, weight) for side in (op.inputs, op.weights))
        new_ops.append(replace(op, inputs=inputs, weights=weights_read))
    return tuple(new_ops)


def _keep_until(op: Op, product_input: Tensor) -> Op:
    """An op that runs nothing: it keeps the tensor in memory until here."""
    saved = product_input.copy(f"{product_input.name}@kept", product_input.dtype)
    return Op(f"{op.name}.kept", View("kept"), (product_input,), (saved,), (), op.phase, op.layer)


def _reading_copy(tensors: tuple[Tensor, ...], copy: Tensor, weight: Tensor) -> tuple[Tensor, ...]:
    return tuple(replace(copy, shape=t.shape) if t.name == weight.name else t for t in tensors)


def _packed(tensor: Tensor, bits: int) -> Tensor:
    """The storage of a weight in four or eight bits, with its scales, as bytes."""
    scales = -(-tensor.elements // BLOCK) if bits == FOUR else tensor.shape[0]
    return Tensor((-(-tensor.elements * bits // 8) + DType.FLOAT32.bytes * scales,), DType.UINT8, tensor.name)
