"""Frozen weights kept in four bits, as a rewrite of a step (Dettmers et al. 2023, "QLoRA").

    bytes = n/2 + 4·n/64        n values of four bits, a float32 scale for every 64 of them

Every product that reads such a weight has it written out first, forward and backward, in float16 and then in the
precision of the step (bitsandbytes quantises from float16 and writes out what it quantised). The input of a product
waits for the backward pass, though only a trained weight would need it (`MatMul4Bit` there). Weights of linear layers
are kept so; embeddings and norms are not.
"""

from collections.abc import Iterable
from dataclasses import replace

from epochcast.graph.kinds import Copy, Matmul, View
from epochcast.graph.op import Gradient, Op, Parameter, Phase
from epochcast.graph.tensor import DType, Tensor

BLOCK = 64
"""Values that share a scale (bitsandbytes' default for four bits)."""


def with_four_bits(ops: Iterable[Op], parameters: Iterable[Parameter]) -> tuple[Op, ...]:
    """The step with the frozen weights of linear layers kept in four bits."""
    every = tuple(ops)
    frozen = {p.name for p in parameters if not p.trainable and len(p.tensor.shape) > 1}
    linear, elsewhere = set[str](), set[str]()
    for op in every:
        (linear if isinstance(op.kind, Matmul) else elsewhere).update(t.name for t in (*op.inputs, *op.weights))
    kept = (frozen & linear) - elsewhere
    made: list[Op] = []
    fed: dict[str, Tensor] = {}  # what the product with a weight was fed, by the weight
    for op in every:
        weights = [t for t in (*op.inputs, *op.weights) if t.name in kept]
        if not weights or op.phase is Phase.UPDATE:
            made.append(op)
            continue
        weight = weights[0]
        if op.gradient is Gradient.NONE:
            fed[weight.name] = op.inputs[0]
        elif weight.name in fed:
            made.append(_waiting(op, fed[weight.name]))
        copy = weight.copy(f"{weight.name}@written:{op.name}", weight.dtype)
        half = weight.copy(f"{copy.name}:half", DType.FLOAT16)
        made.append(Op(f"{op.name}.dequantize", Copy("cast"), (_packed(weight),), (half,), (), op.phase, op.layer))
        made.append(Op(f"{op.name}.written", Copy("cast"), (half,), (copy,), (), op.phase, op.layer))
        made.append(replace(op, inputs=_read(op.inputs, copy, weight), weights=_read(op.weights, copy, weight)))
    return tuple(made)


def _waiting(op: Op, fed: Tensor) -> Op:
    """Nothing runs; the tensor is there until here."""
    kept = fed.copy(f"{fed.name}@kept", fed.dtype)
    return Op(f"{op.name}.kept", View("kept"), (fed,), (kept,), (), op.phase, op.layer)


def _read(tensors: tuple[Tensor, ...], copy: Tensor, weight: Tensor) -> tuple[Tensor, ...]:
    return tuple(replace(copy, shape=t.shape) if t.name == weight.name else t for t in tensors)


def _packed(tensor: Tensor) -> Tensor:
    """The storage of a weight in four bits, with its scales, as bytes."""
    scales = DType.FLOAT32.bytes * -(-tensor.elements // BLOCK)
    return Tensor((-(-tensor.elements // 2) + scales,), DType.UINT8, tensor.name)
