"""Over which elements an op runs, for who makes kernels of several: pointwise, by rows, or none of a compiler's own."""

from dataclasses import dataclass
from math import prod

from epochcast.describe.graph.op import Op, Phase
from epochcast.describe.graph.op_kinds import (
    Copy,
    Elementwise,
    Embedding,
    Gather,
    Kind,
    Loss,
    Norm,
    Pool,
    Reduce,
    Softmax,
)


@dataclass(frozen=True, slots=True)
class FusionExtent:
    """Over how many elements an op runs, and how many results its reduction has (0: it is none)."""

    elements: int
    rows: int = 0
    is_wide: bool = False  # every result needs elements from all over: no op before it may wait for a reduction


def begins_kernel(kind: Kind) -> bool:
    """Whether its operands must be in memory: it reads some of them several times, or not in their order."""
    return isinstance(kind, Gather | Embedding) or (isinstance(kind, Pool) and all(kind.window))


def extent_of(op: Op, inference: bool) -> FusionExtent | None:
    """None for what is no kernel of the compiler's own."""
    if op.phase is Phase.UPDATE:
        return None
    results = op.output.elements
    largest = max([results, *(t.elements for t in op.inputs)])
    match op.kind:
        case Elementwise() | Copy():
            return FusionExtent(largest)
        case kind if begins_kernel(kind):
            return None if op.is_gradient and isinstance(kind, Embedding) else FusionExtent(results)
        case Norm(style="batch") if inference:
            return FusionExtent(largest)
        case Norm(style="batch"):
            return FusionExtent(largest, _channels(op), is_wide=True)
        case Norm() | Softmax():
            return FusionExtent(largest, largest // max(1, _row_elements(op)))
        case Reduce() | Loss() | Pool():
            return _reduced(op, results, largest)
        case _:
            return None


def _reduced(op: Op, results: int, largest: int) -> FusionExtent:
    """Of nll, which picks one element of every row; its gradient is one place in a row of zeros, elementwise."""
    if op.kind == Loss("nll"):
        return FusionExtent(results) if op.is_gradient else FusionExtent(largest, op.inputs[-1].elements)
    return FusionExtent(largest, min(results, largest), is_wide=op.is_gradient)


def _channels(op: Op) -> int:
    shape = op.inputs[0].shape
    return shape[1] if len(shape) > 1 else 1


def _row_elements(op: Op) -> int:
    """What one result of a reduction inside the op is made of: the weight's elements, else the last dimension."""
    if isinstance(op.kind, Norm) and op.kind.style in ("layer", "rms") and op.weights:
        return op.weights[0].elements
    shape = op.inputs[0].shape
    return prod(shape[2:]) if isinstance(op.kind, Norm) and len(shape) > 2 else shape[-1] if shape else 1
