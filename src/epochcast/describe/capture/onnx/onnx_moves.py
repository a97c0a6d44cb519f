"""ONNX operators that move data or reshape it."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from epochcast.describe.capture.onnx.onnx_elements import fixed_batch_hint
from epochcast.describe.capture.onnx.onnx_file import dtype_of
from epochcast.describe.capture.onnx.onnx_walk import OnnxCall, OnnxValue, Rule
from epochcast.describe.graph.op_kinds import Copy, Gather, Scatter
from epochcast.describe.graph.tensor import DType, Tensor
from epochcast.errors import BadInput

Sizes = tuple[int, ...]


def _viewed(call: OnnxCall, shape: Sizes, function: str, *, is_strided: bool = False) -> list[OnnxValue]:
    view = call.b.view(call.data(0), shape, function)
    return [OnnxValue("", view.shape, view.dtype, tensor=view, is_strided=is_strided)]


def identity(call: OnnxCall) -> Sequence[OnnxValue]:
    """The same value under another name.

    A vector becomes a parameter of its own: exporters store equal (untrained) biases once, but vectors are not tied in
    practice.
    """
    value = call.value(0)
    if value.origin == "learnt" and len(value.shape) == 1:
        return [replace(value, name=call.node.outputs[0])]
    return [value]


def cast(call: OnnxCall) -> Sequence[Tensor | OnnxValue]:
    """Between floats nothing: the recipe decides the precision. To or from integers it is a copy."""
    value = call.value(0)
    to = dtype_of(call.attribute("to"), call.walk.file.label) if call.node.op == "Cast" else call.value(1).dtype
    if to is value.dtype:
        return [value]
    return call.b.op(Copy("cast"), [call.data(0)], [value.shape], dtypes=[to], name=call.layer)


def transpose(call: OnnxCall) -> Sequence[Tensor | OnnxValue]:
    """A view. For a 2-D initialiser it is recorded, so that the next product reads the weight as it is stored."""
    value = call.value(0)
    order = tuple(call.attribute("perm", range(len(value.shape))[::-1]))
    shape = tuple(value.shape[i] for i in order)
    if value.origin == "learnt" and order == (1, 0):
        return [replace(value, shape=shape, transposed_of=value.name, array=None, name=f"{value.name}ᵀ")]
    moved = [i for i in order if value.shape[i] > 1]
    return _viewed(call, shape, "transpose", is_strided=moved != sorted(moved))


def reshape(call: OnnxCall) -> Sequence[OnnxValue]:
    """A view; after a transpose it must copy where it joins dimensions."""
    value = call.value(0)
    return _reshaped(call, value, _target(call, value))


def flatten(call: OnnxCall) -> Sequence[OnnxValue]:
    """Two dimensions: before the axis and from it on."""
    value, axis = call.value(0), call.attribute("axis", 1)
    return _reshaped(call, value, (prod(value.shape[:axis]), prod(value.shape[axis:])))


def _reshaped(call: OnnxCall, value: OnnxValue, shape: Sizes) -> Sequence[OnnxValue]:
    if value.is_strided and len(shape) < len(value.shape):
        copy = call.b.copy("contiguous", call.data(0), shape, name=call.layer)
        return [OnnxValue("", copy.shape, copy.dtype, tensor=copy)]
    return _viewed(call, shape, "reshape")


def _target(call: OnnxCall, value: OnnxValue) -> Sizes:
    target = call.integers("shape", 1)
    if target is None:
        raise BadInput("it has no shape")
    keeps_zero = bool(call.attribute("allowzero", 0))
    shape = [value.shape[i] if n == 0 and not keeps_zero else n for i, n in enumerate(target)]
    walk, total = call.walk, prod(value.shape)
    if walk.is_rebound and walk.reference is not None:
        before, after = (walk.reference.get(name) for name in (call.node.inputs[0], call.node.outputs[0]))
        exported_target = walk.reference.get(call.node.inputs[1])
        if (
            before
            and after
            and exported_target
            and exported_target.array is not None
            and tuple(exported_target.array) == target
        ):
            return _rescaled(call, value.shape, before.shape, after.shape)
    if -1 in shape:
        other_sizes = prod(n for n in shape if n != -1)
        if other_sizes and total % other_sizes == 0:
            shape[shape.index(-1)] = total // other_sizes
    if prod(shape) != total or -1 in shape:
        given_text, target_text = ("×".join(map(str, s)) for s in (value.shape, target))
        raise BadInput(f"it reshapes {given_text} to {target_text}, which do not fit{fixed_batch_hint(call)}")
    return tuple(shape)


def _rescaled(call: OnnxCall, input_shape: Sizes, old_input: Sizes, old_output: Sizes) -> Sizes:
    """The output shape at the exported batch, with the dimension that holds the batch resized."""
    if prod(input_shape) == prod(old_output):
        return old_output
    grown = next((i for i, (n, m) in enumerate(zip(input_shape, old_input, strict=True)) if n != m), 0)
    exported = call.walk.exported_batch or 1
    place = _grown_dimension(prod(old_input[:grown]), prod(old_input[: grown + 1]), old_output, exported)
    size, remainder = divmod(old_output[place] * prod(input_shape), prod(old_output))
    if remainder:
        raise BadInput(f"it reshapes the batch into another dimension{fixed_batch_hint(call)}")
    return (*old_output[:place], size, *old_output[place + 1 :])


def _grown_dimension(low: int, high: int, old_output: Sizes, exported: int) -> int:
    """The output dimension that grows with an input dimension whose strides are `low` to `high` (as products from the
    left).

    First choice: a dimension of exactly the exported batch within that span; then one that contains the span; then one
    that begins at it (heads) unless it is the last (features); then one that ends at it.
    """
    starts = [prod(old_output[:j]) for j in range(len(old_output))]
    ends = [prod(old_output[: j + 1]) for j in range(len(old_output))]
    places = range(len(old_output))
    within = [j for j in places if starts[j] >= low and ends[j] <= high and old_output[j] == exported]
    around = [j for j in places if starts[j] < low < ends[j]]
    right = [j for j in places if starts[j] == low and j != places[-1]]
    left = [j for j in places if ends[j] == low]
    return next(iter([*within, *around, *right, *left, *(j for j in places if starts[j] == low), 0]))


def squeeze(call: OnnxCall) -> Sequence[OnnxValue]:
    """Without the dimensions of size one (all, or the axes)."""
    value, axes = call.value(0), call.integers("axes", 1)
    rank = len(value.shape)
    squeezed = {a % rank for a in axes} if axes is not None else {i for i, n in enumerate(value.shape) if n == 1}
    return _viewed(
        call,
        tuple(n for i, n in enumerate(value.shape) if i not in squeezed),
        "squeeze",
        is_strided=value.is_strided,
    )


def unsqueeze(call: OnnxCall) -> Sequence[OnnxValue]:
    """With further dimensions of size one."""
    value, axes = call.value(0), call.integers("axes", 1) or ()
    rank = len(value.shape) + len(axes)
    places, sizes = {a % rank for a in axes}, iter(value.shape)
    if len(places) != len(axes):
        raise BadInput(f"axes must be different, got {list(axes)}")
    return _viewed(
        call, tuple(1 if i in places else next(sizes) for i in range(rank)), "unsqueeze", is_strided=value.is_strided
    )


def expand(call: OnnxCall) -> Sequence[OnnxValue]:
    """A broadcast view."""
    from numpy import broadcast_shapes

    value, target = call.value(0), call.integers("shape", 1) or ()
    walk = call.walk
    if walk.is_rebound and len(target) >= len(value.shape) and target[0] == walk.exported_batch != 1:
        target = (walk.batch, *target[1:])
    return _viewed(call, tuple(broadcast_shapes(value.shape, target)), "expand")


def tile(call: OnnxCall) -> Sequence[Tensor]:
    """Repeats along every dimension."""
    x, times = call.data(0), call.integers("repeats", 1) or ()
    return [call.b.copy("repeat", x, tuple(n * t for n, t in zip(x.shape, times, strict=True)), name=call.layer)]


def slice_(call: OnnxCall) -> Sequence[OnnxValue]:
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


def split(call: OnnxCall) -> Sequence[Tensor]:
    """Pieces of given sizes, or of equal ones."""
    x, axis = call.data(0), call.attribute("axis", 0) % len(call.data(0).shape)
    parts = len(call.node.outputs)
    sizes = call.integers("split", 1)
    if sizes is None:
        part_size = -(-x.shape[axis] // parts)
        sizes = (*[part_size] * (parts - 1), x.shape[axis] - part_size * (parts - 1))
    return call.b.split(x, sizes, axis)


def concatenate(call: OnnxCall) -> Sequence[Tensor | OnnxValue]:
    """Along one axis. A piece of the exported batch (a class token) is broadcast to the batch of the others."""
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
            raise BadInput(f"it joins {shapes}, which do not fit{fixed_batch_hint(call)}")
    shape = list(tensors[0].shape)
    shape[axis] = sum(t.shape[axis] for t in tensors)
    return call.b.op(Copy("concatenate"), tensors, [shape], dtypes=[tensors[0].dtype], name=call.layer)


def pad(call: OnnxCall) -> Sequence[Tensor]:
    """Padding before and after each dimension."""
    x, pads = call.data(0), call.integers("pads", 1) or ()
    axes = call.integers("axes", 3) if call.has(3) else tuple(range(len(x.shape)))
    shape = list(x.shape)
    for place, axis in enumerate(axes or ()):
        shape[axis] += pads[place] + pads[place + len(pads) // 2]
    return [call.b.copy("pad", x, shape, name=call.layer)]


def resize(call: OnnxCall) -> Sequence[Tensor]:
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
        raise BadInput("its sizes depend on values, so its work cannot be known")
    if call.walk.is_rebound and 0 in axes:
        shape[0] = x.shape[0]
    return call.b.op(Gather(str(call.attribute("mode", "nearest"))), [x], [shape], name=call.layer)


def depth_to_space(call: OnnxCall) -> Sequence[Tensor]:
    """Channels to pixels, b by b (and back)."""
    x, block = call.data(0), call.attribute("blocksize")
    n, c, h, w = x.shape
    if call.node.op == "DepthToSpace":
        shape = (n, c // block**2, h * block, w * block)
    else:
        shape = (n, c * block**2, h // block, w // block)
    return [call.b.copy("pixel_shuffle", x, shape, name=call.layer)]


def gather_elements(call: OnnxCall) -> Sequence[Tensor]:
    """As many elements as there are indices (the last index dimension points into the data where it is ND)."""
    x, index = call.data(0), call.value(1)
    shape = index.shape
    if call.node.op == "GatherND":
        lead = call.attribute("batch_dims", 0)
        shape = (*index.shape[:-1], *x.shape[lead + index.shape[-1] :])
    indices = [call.data(1)] if index.origin == "data" else []
    return call.b.op(Gather(), [x, *indices], [shape], dtypes=[x.dtype], name=call.layer)


def scatter(call: OnnxCall) -> Sequence[Tensor]:
    """The data with some elements overwritten."""
    x, updates = call.data(0), call.data(2)
    return call.b.op(Scatter("update"), [x, updates], [x.shape], dtypes=[x.dtype], name=call.layer)


def same(function: str) -> Rule:
    """A copy of the input's size: triangles, reversals, random fills like it."""
    return lambda call: [call.b.copy(function, call.data(0), call.data(0).shape, name=call.layer)]


def one_hot(call: OnnxCall) -> Sequence[Tensor]:
    """One-hot rows from indices."""
    x, depth = call.data(0), call.integers("depth", 1) or (1,)
    axis = call.attribute("axis", -1) % (len(x.shape) + 1)
    shape = (*x.shape[:axis], depth[0], *x.shape[axis:])
    return call.b.op(Copy("one_hot"), [x], [shape], dtypes=[DType.FLOAT32], name=call.layer)


def filled(call: OnnxCall) -> Sequence[Tensor]:
    """A new tensor: constant or random."""
    ((shape, dtype),) = call.walk.inferred(call)
    return call.b.op(Copy("fill"), [], [shape], dtypes=[dtype], name=call.layer)


def sample(call: OnnxCall) -> Sequence[Tensor]:
    """Interpolated reads: grid sampling, regions of interest."""
    ((shape, _),) = call.walk.inferred(call)
    return call.b.op(Gather("interpolate"), [call.data(0), call.data(1)], [shape], name=call.layer)
