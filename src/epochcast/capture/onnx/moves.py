"""ONNX operators that move data or only look at it in another shape."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from epochcast.capture.onnx.elements import baked
from epochcast.capture.onnx.file import dtype_of
from epochcast.capture.onnx.walk import Call, Rule, Value
from epochcast.errors import BadInput
from epochcast.graph.kinds import Copy, Gather, Scatter
from epochcast.graph.tensor import DType, Tensor

Sizes = tuple[int, ...]


def _viewed(call: Call, shape: Sizes, function: str, *, is_strided: bool = False) -> list[Value]:
    made = call.b.view(call.data(0), shape, function)
    return [Value("", made.shape, made.dtype, tensor=made, is_strided=is_strided)]


def identity(call: Call) -> Sequence[Value]:
    """The same value under another name.

    A vector becomes a parameter of its own: exporters store equal (untrained) biases once, and nobody ties vectors.
    """
    value = call.value(0)
    if value.origin == "learnt" and len(value.shape) == 1:
        return [replace(value, name=call.node.outputs[0])]
    return [value]


def cast(call: Call) -> Sequence[Tensor | Value]:
    """Between floats nothing: the recipe decides the precision. To or from integers it is a copy."""
    value = call.value(0)
    to = dtype_of(call.attribute("to"), call.walk.file.label) if call.node.op == "Cast" else call.value(1).dtype
    if to is value.dtype:
        return [value]
    return call.b.op(Copy("cast"), [call.data(0)], [value.shape], dtypes=[to], name=call.layer)


def transpose(call: Call) -> Sequence[Tensor | Value]:
    """A view. Of a 2-D initialiser it is remembered, so that the product behind it takes the weight as it is stored."""
    value = call.value(0)
    order = tuple(call.attribute("perm", range(len(value.shape))[::-1]))
    shape = tuple(value.shape[i] for i in order)
    if value.origin == "learnt" and order == (1, 0):
        return [replace(value, shape=shape, transposed_of=value.name, array=None, name=f"{value.name}ᵀ")]
    moved = [i for i in order if value.shape[i] > 1]
    return _viewed(call, shape, "transpose", is_strided=moved != sorted(moved))


def reshape(call: Call) -> Sequence[Value]:
    """A view; behind a transpose it must copy where it joins dimensions."""
    value = call.value(0)
    return _reshaped(call, value, _target(call, value))


def flatten(call: Call) -> Sequence[Value]:
    """Two dimensions: before the axis and behind it."""
    value, axis = call.value(0), call.attribute("axis", 1)
    return _reshaped(call, value, (prod(value.shape[:axis]), prod(value.shape[axis:])))


def _reshaped(call: Call, value: Value, shape: Sizes) -> Sequence[Value]:
    if value.is_strided and len(shape) < len(value.shape):
        made = call.b.copy("contiguous", call.data(0), shape, name=call.layer)
        return [Value("", made.shape, made.dtype, tensor=made)]
    return _viewed(call, shape, "reshape")


def _target(call: Call, value: Value) -> Sizes:
    wanted = call.integers("shape", 1)
    if wanted is None:
        raise BadInput(f"{call.place} has no shape")
    keeps_zero = bool(call.attribute("allowzero", 0))
    shape = [value.shape[i] if n == 0 and not keeps_zero else n for i, n in enumerate(wanted)]
    walk, total = call.walk, prod(value.shape)
    if walk.is_rebound and walk.reference is not None:
        was, seen = (walk.reference.get(name) for name in (call.node.inputs[0], call.node.outputs[0]))
        then = walk.reference.get(call.node.inputs[1])
        if was and seen and then and then.array is not None and tuple(then.array) == wanted:
            return _rescaled(call, value.shape, was.shape, seen.shape)
    if -1 in shape:
        rest = prod(n for n in shape if n != -1)
        if rest and total % rest == 0:
            shape[shape.index(-1)] = total // rest
    if prod(shape) != total or -1 in shape:
        given, asked = ("×".join(map(str, s)) for s in (value.shape, wanted))
        raise BadInput(f"{call.place} makes {asked} of {given}, which do not fit{baked(call)}")
    return tuple(shape)


def _rescaled(call: Call, now: Sizes, was: Sizes, seen: Sizes) -> Sizes:
    """The shape a constant target stood for when the file was exported, grown where the batch belongs."""
    if prod(now) == prod(seen):
        return seen
    grown = next((i for i, (n, m) in enumerate(zip(now, was, strict=True)) if n != m), 0)
    exported = call.walk.exported_batch or 1
    place = _landing(prod(was[:grown]), prod(was[: grown + 1]), seen, exported)
    size, rest = divmod(seen[place] * prod(now), prod(seen))
    if rest:
        raise BadInput(f"{call.place} reshapes the batch into another dimension{baked(call)}")
    return (*seen[:place], size, *seen[place + 1 :])


def _landing(low: int, high: int, seen: Sizes, exported: int) -> int:
    """Where a grown dimension lands that spans elements `low` to `high` of the input's order.

    A dimension of exactly the exported batch within that span comes first, then one that swallows the span, then one
    begins at it (heads) unless it is the last (features), then the one that ends at it.
    """
    starts = [prod(seen[:j]) for j in range(len(seen))]
    ends = [prod(seen[: j + 1]) for j in range(len(seen))]
    places = range(len(seen))
    within = [j for j in places if starts[j] >= low and ends[j] <= high and seen[j] == exported]
    around = [j for j in places if starts[j] < low < ends[j]]
    right = [j for j in places if starts[j] == low and j != places[-1]]
    left = [j for j in places if ends[j] == low]
    return next(iter([*within, *around, *right, *left, *(j for j in places if starts[j] == low), 0]))


def squeeze(call: Call) -> Sequence[Value]:
    """Without the dimensions of size one (all, or the axes)."""
    value, axes = call.value(0), call.integers("axes", 1)
    rank = len(value.shape)
    gone = {a % rank for a in axes} if axes is not None else {i for i, n in enumerate(value.shape) if n == 1}
    return _viewed(
        call, tuple(n for i, n in enumerate(value.shape) if i not in gone), "squeeze", is_strided=value.is_strided
    )


def unsqueeze(call: Call) -> Sequence[Value]:
    """With further dimensions of size one."""
    value, axes = call.value(0), call.integers("axes", 1) or ()
    rank = len(value.shape) + len(axes)
    places, rest = {a % rank for a in axes}, iter(value.shape)
    return _viewed(
        call, tuple(1 if i in places else next(rest) for i in range(rank)), "unsqueeze", is_strided=value.is_strided
    )


def expand(call: Call) -> Sequence[Value]:
    """A broadcast view."""
    from numpy import broadcast_shapes

    value, wanted = call.value(0), call.integers("shape", 1) or ()
    walk = call.walk
    if walk.is_rebound and len(wanted) >= len(value.shape) and wanted[0] == walk.exported_batch != 1:
        wanted = (walk.batch, *wanted[1:])
    return _viewed(call, tuple(broadcast_shapes(value.shape, wanted)), "expand")


def tile(call: Call) -> Sequence[Tensor]:
    """Repeats along every dimension."""
    x, times = call.data(0), call.integers("repeats", 1) or ()
    return [call.b.copy("repeat", x, tuple(n * t for n, t in zip(x.shape, times, strict=True)), name=call.layer)]


def slice_(call: Call) -> Sequence[Value]:
    """⌈(end − start)/step⌉ along each axis, ends clamped to the dimension."""
    value = call.value(0)
    starts, ends = call.integers("starts", 1) or (), call.integers("ends", 2) or ()
    axes = call.integers("axes", 3) or tuple(range(len(starts)))
    steps = call.integers("steps", 4) or (1,) * len(starts)
    shape = list(value.shape)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        size = value.shape[axis]
        shape[axis] = len(range(size)[slice(start, None if step < 0 and end < -size else end, step)])
    return _viewed(call, tuple(shape), "slice", is_strided=value.is_strided)


def split(call: Call) -> Sequence[Tensor]:
    """Pieces of given sizes, or of equal ones."""
    x, axis = call.data(0), call.attribute("axis", 0) % len(call.data(0).shape)
    parts = len(call.node.outputs)
    sizes = call.integers("split", 1)
    if sizes is None:
        each = -(-x.shape[axis] // parts)
        sizes = (*[each] * (parts - 1), x.shape[axis] - each * (parts - 1))
    return call.b.split(x, sizes, axis)


def concatenate(call: Call) -> Sequence[Tensor | Value]:
    """Along one axis. A piece that was exported at another batch (a class token) is broadcast to that of the others."""
    values = [call.value(i) for i in range(len(call.node.inputs)) if call.has(i)]
    if len(values) == 1:
        return [values[0]]
    axis, walk = call.attribute("axis") % len(values[0].shape), call.walk
    tensors = [walk.tensor(v) for v in values]
    lead = max(t.shape[0] for t in tensors)
    if axis and walk.is_rebound:
        tensors = [
            call.b.view(t, (lead, *t.shape[1:]), "expand") if t.shape[0] == walk.exported_batch != lead else t
            for t in tensors
        ]
    for t in tensors[1:]:
        if t.shape[:axis] != tensors[0].shape[:axis] or t.shape[axis + 1 :] != tensors[0].shape[axis + 1 :]:
            shapes = " and ".join("×".join(map(str, s.shape)) for s in tensors)
            raise BadInput(f"{call.place} joins {shapes}, which do not fit{baked(call)}")
    shape = list(tensors[0].shape)
    shape[axis] = sum(t.shape[axis] for t in tensors)
    return call.b.op(Copy("concatenate"), tensors, [shape], dtypes=[tensors[0].dtype], name=call.layer)


def pad(call: Call) -> Sequence[Tensor]:
    """More before and behind each dimension."""
    x, pads = call.data(0), call.integers("pads", 1) or ()
    axes = call.integers("axes", 3) if call.has(3) else tuple(range(len(x.shape)))
    shape = list(x.shape)
    for place, axis in enumerate(axes or ()):
        shape[axis] += pads[place] + pads[place + len(pads) // 2]
    return [call.b.copy("pad", x, shape, name=call.layer)]


def resize(call: Call) -> Sequence[Tensor]:
    """To given sizes, or by scales: ⌊n·scale⌋."""
    x = call.data(0)
    scales, sizes = call.array(1 if call.node.op == "Upsample" or call.walk.file.opset < 11 else 2), call.array(3)
    axes = call.attribute("axes", list(range(len(x.shape))))
    shape = list(x.shape)
    if sizes is not None and sizes.size:
        for axis, size in zip(axes, sizes, strict=True):
            shape[axis] = int(size)
    elif scales is not None and scales.size:
        for axis, scale in zip(axes, scales, strict=True):
            shape[axis] = int(x.shape[axis] * float(scale) + 1e-6)
    else:
        raise BadInput(f"{call.place}: its sizes depend on values, so its work cannot be known")
    if call.walk.is_rebound and 0 in axes:
        shape[0] = x.shape[0]
    return call.b.op(Gather(str(call.attribute("mode", "nearest"))), [x], [shape], name=call.layer)


def depth_to_space(call: Call) -> Sequence[Tensor]:
    """Channels to pixels, b by b (and back)."""
    x, block = call.data(0), call.attribute("blocksize")
    n, c, h, w = x.shape
    if call.node.op == "DepthToSpace":
        shape = (n, c // block**2, h * block, w * block)
    else:
        shape = (n, c * block**2, h // block, w // block)
    return [call.b.copy("pixel_shuffle", x, shape, name=call.layer)]


def gather_elements(call: Call) -> Sequence[Tensor]:
    """As many elements as there are indices (the last index dimension points into the data where it is ND)."""
    x, index = call.data(0), call.value(1)
    shape = index.shape
    if call.node.op == "GatherND":
        lead = call.attribute("batch_dims", 0)
        shape = (*index.shape[:-1], *x.shape[lead + index.shape[-1] :])
    indices = [call.data(1)] if index.origin == "data" else []
    return call.b.op(Gather(), [x, *indices], [shape], dtypes=[x.dtype], name=call.layer)


def scatter(call: Call) -> Sequence[Tensor]:
    """The data with some elements written anew."""
    x, updates = call.data(0), call.data(2)
    return call.b.op(Scatter("update"), [x, updates], [x.shape], dtypes=[x.dtype], name=call.layer)


def same(function: str) -> Rule:
    """A copy of the input's size: triangles, reversals, random fills like it."""
    return lambda call: [call.b.copy(function, call.data(0), call.data(0).shape, name=call.layer)]


def one_hot(call: Call) -> Sequence[Tensor]:
    """Indices to rows with a single one."""
    x, depth = call.data(0), call.integers("depth", 1) or (1,)
    axis = call.attribute("axis", -1) % (len(x.shape) + 1)
    shape = (*x.shape[:axis], depth[0], *x.shape[axis:])
    return call.b.op(Copy("one_hot"), [x], [shape], dtypes=[DType.FLOAT32], name=call.layer)


def filled(call: Call) -> Sequence[Tensor]:
    """A tensor written from nothing: constant or random."""
    ((shape, dtype),) = call.walk.inferred(call)
    return call.b.op(Copy("fill"), [], [shape], dtypes=[dtype], name=call.layer)


def sample(call: Call) -> Sequence[Tensor]:
    """Interpolated reads: grid sampling, regions of interest."""
    ((shape, _),) = call.walk.inferred(call)
    return call.b.op(Gather("interpolate"), [call.data(0), call.data(1)], [shape], name=call.layer)
