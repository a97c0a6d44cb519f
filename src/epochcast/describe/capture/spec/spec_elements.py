"""Layers without weights: arithmetic on elements, reductions and data that moves, as a spec file names them."""

from math import prod

from epochcast.describe.capture.spec.spec_operands import Rule, image, only, shown
from epochcast.describe.capture.spec.spec_options import Options
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.tensor import Tensor
from epochcast.errors import BadInput

# ---- element by element -------------------------------------------------------------------------


def activation(function: str) -> Rule:
    """One input, one function."""
    return lambda b, inputs, o, name: b.elementwise(function, only(inputs), name=name)


def joined(function: str) -> Rule:
    """Two or more inputs of one shape, or that broadcast to it; taken pair by pair, as frameworks do."""

    def rule(b: Builder, inputs: list[Tensor], o: Options, name: str) -> Tensor:
        if len(inputs) < 2:
            raise BadInput("it takes two or more inputs; name them with 'from'")
        result = inputs[0]
        for other in inputs[1:]:
            if not _broadcasts(result.shape, other.shape):
                raise BadInput(f"{shown(result.shape)} and {shown(other.shape)} do not fit")
            result = b.elementwise(function, result, other, name=name)
        return result

    return rule


def _broadcasts(a: tuple[int, ...], c: tuple[int, ...]) -> bool:
    """One of the two must have the broadcast shape."""
    short, long = sorted((a, c), key=lambda s: (len(s), prod(s)))
    return all(m in (1, n) for m, n in zip(reversed(short), reversed(long), strict=False))


def dropout(b: Builder, inputs: list[Tensor], o: Options, name: str) -> Tensor:
    """Writes a mask; the rate changes no work."""
    rate = o.any("rate", 0.5)
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate < 1:
        o.refuse("rate", "a fraction from 0 to below 1", rate)
    return b.dropout(only(inputs), name=name)


def softmax(b: Builder, inputs: list[Tensor], o: Options, name: str) -> Tensor:
    """Over the last dimension."""
    return b.softmax(only(inputs), log=o.flag("log", False), name=name)


def reduce(function: str) -> Rule:
    """Over `axes`, counted from 1 or back from -1."""

    def rule(b: Builder, inputs: list[Tensor], o: Options, name: str) -> Tensor:
        x = only(inputs)
        axes = o.integers("axes", (-1,))
        if not axes or any(not (1 <= a < len(x.shape) or -len(x.shape) < a <= -1) for a in axes):
            o.refuse("axes", f"dimensions of {shown(x.shape)}, counted from 1 or back from -1", list(axes))
        return b.reduce(function, x, axes, keep=o.flag("keep", False), name=name)

    return rule


# ---- moving data --------------------------------------------------------------------------------


def concatenate(b: Builder, inputs: list[Tensor], o: Options, name: str) -> Tensor:
    """Along `axis`, by default the channels."""
    if len({len(t.shape) for t in inputs}) != 1:
        raise BadInput(f"inputs have different ranks: {', '.join(shown(t.shape) for t in inputs)}")
    return b.concatenate(inputs, o.integer("axis", 1), name=name)


def flatten(b: Builder, inputs: list[Tensor], o: Options, name: str) -> Tensor:
    """All dimensions of a sample as one."""
    return b.flatten(only(inputs))


def reshape(b: Builder, inputs: list[Tensor], o: Options, name: str) -> Tensor:
    """Another `shape` of as many elements."""
    x, shape = only(inputs), o.shape("shape")
    if prod(shape) != prod(x.shape[1:]):
        raise BadInput(f"{shown(x.shape)} has {prod(x.shape[1:])} elements, 'shape' {prod(shape)}")
    return b.view(x, (x.shape[0], *shape))


def permute(b: Builder, inputs: list[Tensor], o: Options, name: str) -> Tensor:
    """Dimensions in another `order`, counted from 1."""
    x, order = only(inputs), o.integers("order")
    if sorted(order) != list(range(1, len(x.shape))):
        o.refuse("order", f"an order of the dimensions 1 to {len(x.shape) - 1}", list(order))
    return b.view(x, (x.shape[0], *(x.shape[a] for a in order)), "permute")


def select(b: Builder, inputs: list[Tensor], o: Options, name: str) -> Tensor:
    """One position of a dimension (the first token, the last state), or `count` of them kept as a dimension."""
    x, axis = only(inputs), o.integer("axis", 1)
    if not 1 <= axis < len(x.shape):
        o.refuse("axis", f"a dimension from 1 to {len(x.shape) - 1}", axis)
    if not o.has("count"):
        return b.view(x, (*x.shape[:axis], *x.shape[axis + 1 :]), "slice")
    return b.view(x, (*x.shape[:axis], min(o.count("count"), x.shape[axis]), *x.shape[axis + 1 :]), "slice")


def upsample(b: Builder, inputs: list[Tensor], o: Options, name: str) -> Tensor:
    """`scale` times as many positions."""
    x, scale = image(inputs), o.sizes("scale", 2)
    dims = len(x.shape) - 2
    scales = scale if isinstance(scale, tuple) else (scale,) * dims
    if len(scales) != dims:
        o.refuse("scale", f"one number or {dims}", list(scales))
    mode = o.text("mode", "nearest", choices=("nearest", "bilinear", "bicubic"))
    return b.gather(mode, x, (*x.shape[:2], *(n * s for n, s in zip(x.shape[2:], scales, strict=True))), name=name)


def pad(b: Builder, inputs: list[Tensor], o: Options, name: str) -> Tensor:
    """`padding` positions on both sides."""
    x, by = image(inputs), o.sizes("padding", least=0)
    dims = len(x.shape) - 2
    paddings = by if isinstance(by, tuple) else (by,) * dims
    if len(paddings) != dims:
        o.refuse("padding", f"one number or {dims}", list(paddings))
    return b.copy("pad", x, (*x.shape[:2], *(n + 2 * p for n, p in zip(x.shape[2:], paddings, strict=True))), name=name)


def opaque(b: Builder, inputs: list[Tensor], o: Options, name: str) -> Tensor:
    """A layer without a rule: costed by its bytes, listed in every answer."""
    first = inputs[0]
    shape = o.shape("shape", first.shape[1:])
    return b.opaque(o.text("target"), inputs, [(first.shape[0], *shape)], name=name)[0]
