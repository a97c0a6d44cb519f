"""A step stored and run in sixteen bits, but for what the model widens by itself.

Models that are trained so still compute some things in float32 inside: Hugging Face's root-mean-square norms cast their
input up and their result down. A builder marks the two places by views, `View(WIDEN)` and `View(NARROW)`: in float32
they move nothing, here they are casts, and what is computed between them stays in float32, gradients too.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from epochcast.graph.backward import GRADIENT
from epochcast.graph.kinds import Copy, View
from epochcast.graph.op import Op, Phase
from epochcast.graph.tensor import DType, Tensor

WIDEN, NARROW = "widen", "narrow"


def halved(ops: Iterable[Op], dtype: DType) -> Iterator[Op]:
    """The same step in `dtype`. `ops` are in float32."""
    wide: set[str] = set()

    def stored(tensor: Tensor) -> Tensor:
        if tensor.dtype is not DType.FLOAT32 or _owner(tensor.name) in wide:
            return tensor
        return replace(tensor, dtype=dtype)

    for op in ops:
        is_marked = isinstance(op.kind, View) and op.kind.function in (WIDEN, NARROW)
        widens = op.kind == View(WIDEN) or (op.kind != View(NARROW) and any(t.name in wide for t in op.inputs))
        if widens and op.phase is Phase.FORWARD:
            wide.update(t.name for t in op.outputs)
        inputs, outputs, weights = (tuple(map(stored, side)) for side in (op.inputs, op.outputs, op.weights))
        is_cast = is_marked and inputs[0].dtype is not outputs[0].dtype
        kind = Copy("cast") if is_cast else op.kind
        yield replace(op, kind=kind, inputs=inputs, outputs=outputs, weights=weights)


def _owner(name: str) -> str:
    """The tensor itself, or the one it is the gradient (or a part or a product of it) of."""
    if not name.startswith(GRADIENT):
        return name
    return name.removeprefix(GRADIENT).partition("+")[0].partition("*")[0]
