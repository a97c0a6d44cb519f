"""Whether Inductor stores the images of a network channels last: torch/_inductor/graph.py, `decide_layout_opt`.

In inference the flops of convolutions are weighed by how much faster that layout made their kind; in training one
grouped convolution (not a depthwise one), or one with fewer channels out than half of those in, keeps channels first.
"""

from math import prod

from epochcast.describe.graph.op import Op, Phase
from epochcast.describe.graph.op_kinds import Conv
from epochcast.describe.graph.trace import Trace

# With more ops than this for every convolution, layout does not matter.
_MOST_OPS = 300
_SMALL = 64
# Seconds channels last ÷ channels first, as Inductor's authors measured them.
_GROUPED, _SMALL_CHANNELS, _NARROWING, _OTHER = 1.358, 0.783, 0.725, 0.823


def turns_channels_last(trace: Trace) -> bool:
    """The decision for the whole step."""
    forward = [op for op in trace.template.base if op.phase is Phase.FORWARD and not op.is_gradient]
    convolutions = [op for op in forward if isinstance(op.kind, Conv) and len(op.weights[0].shape) == 4]
    if not convolutions or len(forward) >= _MOST_OPS * len(convolutions):
        return False
    if trace.recipe.mode == "forward":
        work = [(op.kind.flops(op), _slowdown(op)) for op in convolutions]
        return sum(each * factor for each, factor in work) <= sum(each for each, _ in work)
    if any(_is_grouped(op) or _is_narrowing(op) for op in convolutions):
        return False
    return not all(_has_few_channels(op) for op in convolutions)


def _slowdown(op: Op) -> float:
    if _is_grouped(op):
        return _GROUPED
    if _has_few_channels(op):
        return _SMALL_CHANNELS
    return _NARROWING if _is_narrowing(op) else _OTHER


def _is_grouped(op: Op) -> bool:
    assert isinstance(op.kind, Conv)
    return op.kind.groups > 1 and op.weights[0].shape[1] > 1


def _has_few_channels(op: Op) -> bool:
    return max(op.weights[0].shape[:2]) <= _SMALL


def _is_narrowing(op: Op) -> bool:
    out, into, *window = op.weights[0].shape
    return 2 * out <= into and prod(window) > 1
