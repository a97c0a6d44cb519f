"""A step stored and run in another format than float32, except for what the model itself computes in float32.

Such models still compute some things in float32: Hugging Face's root-mean-square norms cast their
input up and their result down. A builder marks the two places by views, `View(WIDEN)` and `View(NARROW)`: in float32
they move nothing; here they are casts. What is computed between them stays in float32, gradients too. Two more marks:
`View(LIKE)` has the format of its second input, `View(ADAPTED)` that of the adapters that read it.
"""

from collections.abc import Iterable, Iterator

from epochcast.describe.graph.op import Op, Phase
from epochcast.describe.graph.op_kinds import Copy, View
from epochcast.describe.graph.tensor import DType, Tensor

WIDEN, NARROW, LIKE, ADAPTED = "widen", "narrow", "like", "adapted"


def stored_as(ops: Iterable[Op], dtype: DType) -> Iterator[Op]:
    """The same step in `dtype`. `ops` are in float32; only formats narrower than float32 have casts."""
    is_narrow = dtype.bytes < DType.FLOAT32.bytes
    wide: set[str] = set()
    stored_tensors: dict[tuple[str, tuple[int, ...]], Tensor] = {}  # most are needed again

    def stored(tensor: Tensor) -> Tensor:
        key = (tensor.name, tensor.shape)
        result = stored_tensors.get(key)
        if result is None:
            stays = tensor.dtype is not DType.FLOAT32 or owner_of(tensor) in wide
            result = tensor if stays else Tensor(tensor.shape, dtype, tensor.name, tensor.relation)
            stored_tensors[key] = result
        return result

    for op in ops:
        mark = op.kind.function if isinstance(op.kind, View) else ""
        is_marked = mark in (WIDEN, NARROW, LIKE)
        deciding = op.inputs[1:] if mark == LIKE else op.inputs
        widens = mark == WIDEN or (mark != NARROW and any(t.name in wide for t in deciding))
        if is_narrow and widens and op.phase is Phase.FORWARD:
            wide.update(t.name for t in op.outputs)
        inputs, outputs = tuple(map(stored, op.inputs)), tuple(map(stored, op.outputs))
        weights = tuple(map(stored, op.weights))
        is_cast = is_marked and inputs[0].dtype is not outputs[0].dtype
        kind = Copy("cast") if is_cast else op.kind
        yield Op(op.name, kind, inputs, outputs, weights, op.phase, op.layer, op.gradient, op.tf32)


def owner_of(tensor: Tensor) -> str:
    """The tensor that this is the gradient of (or a part of it, or before its sum), else the tensor itself."""
    return tensor.relation.adds_to_gradient_of or tensor.relation.unsummed_of or tensor.name
