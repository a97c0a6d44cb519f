"""ONNX operators that multiply: convolution, matmul, attention, recurrent layers and embeddings."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from epochcast.describe.capture.onnx.onnx_walk import OnnxCall, OnnxValue, Rule
from epochcast.describe.graph.op_kinds import Attention, Conv, Elementwise, Embedding, Gather, Matmul, Recurrent
from epochcast.describe.graph.tensor import Tensor
from epochcast.errors import BadInput

Sizes = tuple[int, ...]


def window(call: OnnxCall, kernel: Sizes, spatial: Sizes) -> tuple[Sizes, Sizes, Sizes, Sizes, Sizes]:
    """(stride, dilation, pads before, pads behind, output sizes) of a sliding window.

    auto_pad SAME gives ⌈n/s⌉; pads may differ before and behind.
    """
    dims = len(kernel)
    stride, dilation = call.sizes("strides", dims, 1, least=1), call.sizes("dilations", dims, 1, least=1)
    reach = tuple(d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True))
    mode = call.attribute("auto_pad", "NOTSET")
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        sizes = tuple(-(-n // s) for n, s in zip(spatial, stride, strict=True))
        total = [max(0, (o - 1) * s + r - n) for o, s, r, n in zip(sizes, stride, reach, spatial, strict=True)]
        halves = tuple(t // 2 for t in total)
        return stride, dilation, halves, tuple(t - h for t, h in zip(total, halves, strict=True)), sizes
    pads = (0,) * (2 * dims) if mode == "VALID" else call.sizes("pads", 2 * dims, 0)
    before, behind = pads[:dims], pads[dims:]
    room = [n + p + q - r for n, p, q, r in zip(spatial, before, behind, reach, strict=True)]
    rounding = [s - 1 if call.attribute("ceil_mode", 0) else 0 for s in stride]
    sizes = tuple((space + m) // s + 1 for space, s, m in zip(room, stride, rounding, strict=True))
    if call.attribute("ceil_mode", 0):  # the last window must start inside the input or its leading pad
        sizes = tuple(
            o - 1 if (o - 1) * s >= n + p else o for o, s, n, p in zip(sizes, stride, spatial, before, strict=True)
        )
    return stride, dilation, before, behind, sizes


def conv(call: OnnxCall) -> Sequence[Tensor]:
    """y = x * w + b"""
    x, weights = call.data(0), [call.weight(1)]
    if call.has(2):
        weights.append(call.weight(2))
    shape, groups = weights[0].shape, call.attribute("group", 1)
    if len(x.shape) != len(shape) or x.shape[1] != shape[1] * groups:
        raise BadInput(f"an input of {x.shape[1:]} does not fit a weight of {shape} in {groups} groups")
    stride, dilation, before, _, sizes = window(call, shape[2:], x.shape[2:])
    kind = Conv(stride, before, dilation, groups)
    return call.b.op(kind, [x], [(x.shape[0], shape[0], *sizes)], weights=weights, name=call.layer)


def conv_transposed(call: OnnxCall) -> Sequence[Tensor]:
    """n' = s·(n − 1) + output_padding + d·(k − 1) + 1 − pads, or the given output_shape, or n·s for SAME."""
    x, weights = call.data(0), [call.weight(1)]
    if call.has(2):
        weights.append(call.weight(2))
    shape, groups = weights[0].shape, call.attribute("group", 1)
    dims = len(shape) - 2
    stride, dilation = call.sizes("strides", dims, 1, least=1), call.sizes("dilations", dims, 1, least=1)
    pads, output_padding = call.sizes("pads", 2 * dims, 0), call.sizes("output_padding", dims, 0)
    if call.attribute("output_shape"):
        sizes = tuple(call.attribute("output_shape")[-dims:])
    elif call.attribute("auto_pad", "NOTSET").startswith("SAME"):
        sizes = tuple(n * s for n, s in zip(x.shape[2:], stride, strict=True))
    else:
        sizes = tuple(
            stride[i] * (n - 1) + output_padding[i] + dilation[i] * (shape[2 + i] - 1) + 1 - pads[i] - pads[dims + i]
            for i, n in enumerate(x.shape[2:])
        )
    kind = Conv(stride, pads[:dims], dilation, groups, transposed=True)
    return call.b.op(kind, [x], [(x.shape[0], shape[1] * groups, *sizes)], weights=weights, name=call.layer)


def gemm(call: OnnxCall) -> Sequence[Tensor]:
    """y = α·A·B + β·C"""
    a, second = call.data(0), call.value(1)
    transpose_a, transpose_b = bool(call.attribute("transA", 0)), bool(call.attribute("transB", 0))
    second, transpose_b = _untransposed(call, second, transpose_b)
    b = call.walk.parameter(second, call.layer) if second.origin != "data" else call.walk.tensor(second)
    call.layer = second.name.rpartition(".")[0] or call.layer if second.origin != "data" else call.layer
    rows = a.shape[-1] if transpose_a else a.shape[0]
    depth, columns = (b.shape[1], b.shape[0]) if transpose_b else b.shape
    if depth != (a.shape[0] if transpose_a else a.shape[-1]):
        raise BadInput(f"{a.shape} does not multiply {b.shape}")
    bias = [call.weight(2)] if call.has(2) and call.value(2).origin != "data" else []
    kind = Matmul(transpose_a, transpose_b)
    if second.origin == "data":
        y = call.b.op(kind, [a, b], [(rows, columns)], name=call.layer)
        return call.b.op(Elementwise("add"), [y[0], *bias], [(rows, columns)], name=call.layer) if bias else y
    y = call.b.op(kind, [a], [(rows, columns)], weights=[b, *bias], name=call.layer)
    if call.has(2) and not bias:
        return [call.b.add(y[0], call.data(2), name=call.layer)]
    return y


def _untransposed(call: OnnxCall, value: OnnxValue, is_transposed: bool) -> tuple[OnnxValue, bool]:
    """The initialiser behind a transpose, and the flag turned over."""
    if value.transposed_of is None:
        return value, is_transposed
    return call.walk.values[value.transposed_of], not is_transposed


def matmul(call: OnnxCall) -> Sequence[Tensor]:
    """A product; with a 2-D initialiser on the right it is a linear layer, and takes in a bias added behind it."""
    first, second = call.value(0), call.value(1)
    if first.shape[-1] != (second.shape[-2] if len(second.shape) > 1 else second.shape[0]):
        raise BadInput(f"{first.shape} does not multiply {second.shape}")
    is_linear = first.origin == "data" and second.origin != "data" and len(second.shape) == 2
    if is_linear:
        second, transpose_b = _untransposed(call, second, False)
        weight = call.walk.parameter(second, call.layer)
        call.layer = second.name.rpartition(".")[0] or call.layer
        columns = weight.shape[0] if transpose_b else weight.shape[1]
        weights = [weight, *_bias(call, columns)]
        kind = Matmul(transpose_b=transpose_b)
        return call.b.op(kind, [call.data(0)], [(*first.shape[:-1], columns)], weights=weights, name=call.layer)
    a, b = call.data(0), call.data(1)
    if len(a.shape) < 2 or len(b.shape) < 2:
        lead = a.shape[:-1] if len(b.shape) < 2 else (*b.shape[:-2], b.shape[-1])
        wide_a = replace(a, shape=(1, *a.shape)) if len(a.shape) < 2 else a
        wide_b = replace(b, shape=(*b.shape, 1)) if len(b.shape) < 2 else b
        return call.b.op(Matmul(), [wide_a, wide_b], [lead], name=call.layer)
    from numpy import broadcast_shapes

    lead = tuple(broadcast_shapes(a.shape[:-2], b.shape[:-2]))
    return call.b.op(Matmul(), [a, b], [(*lead, a.shape[-2], b.shape[-1])], name=call.layer)


def _bias(call: OnnxCall, columns: int) -> list[Tensor]:
    """The bias of an Add that alone reads this product; that Add is then done."""
    walk, output = call.walk, call.node.outputs[0]
    if walk.uses[output] != 1:
        return []
    reader = walk.readers.get(output)
    if reader is None or reader.op != "Add" or len(reader.inputs) != 2 or not reader.outputs:
        return []
    addend = next(name for name in reader.inputs if name != output)
    value = walk.values.get(addend)
    if value is None or value.origin != "learnt" or value.shape != (columns,):
        return []
    walk.absorbed[reader.outputs[0]] = output
    return [walk.parameter(value, call.layer)]


def einsum(call: OnnxCall) -> Sequence[Tensor]:
    """Two operands as one batched product: labels in both and kept are the batch, in both and gone are summed over."""
    equation = str(call.attribute("equation", "")).replace(" ", "")
    left, _, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != 2 or not right or "." in equation:
        return call.walk.opaque(call)
    a, b = call.data(0), call.data(1)
    sizes = dict(zip(terms[0] + terms[1], (*a.shape, *b.shape), strict=True))
    both = [c for c in terms[0] if c in terms[1]]
    batch, summed = [c for c in both if c in right], [c for c in both if c not in right]
    rows, columns = [c for c in terms[0] if c not in both], [c for c in terms[1] if c not in both]

    def size(labels: list[str]) -> int:
        return prod(sizes[c] for c in labels)

    first = call.b.view(a, (size(batch), size(rows), size(summed)), "permute")
    second = call.b.view(b, (size(batch), size(summed), size(columns)), "permute")
    product = call.b.matmul(first, second, name=call.layer)
    return [call.b.view(product, tuple(sizes[c] for c in right), "permute")]


def gather(call: OnnxCall) -> Sequence[Tensor]:
    """Rows of a 2-D initialiser are an embedding; one index of an axis is a slice; the rest is a gather."""
    data, index, axis = call.value(0), call.value(1), call.attribute("axis", 0)
    axis %= len(data.shape)
    shape = (*data.shape[:axis], *index.shape, *data.shape[axis + 1 :])
    if data.origin == "learnt" and len(data.shape) == 2 and axis == 0 and index.origin == "data":
        return call.b.op(Embedding(), [call.data(1)], [shape], weights=[call.weight(0)], name=call.layer)
    if index.array is not None and index.array.size == 1:
        return [call.b.view(call.data(0), shape, "slice")]
    indices = [call.data(1)] if index.origin == "data" else []
    return call.b.op(Gather(), [call.data(0), *indices], [shape], dtypes=[data.dtype], name=call.layer)


def recurrent(cell: str, gates: int) -> Rule:
    """A whole sequence, time in front (T, N, I); per direction a (gates·H, I) and a (gates·H, H) weight."""

    def rule(call: OnnxCall) -> Sequence[Tensor]:
        x, hidden = call.data(0), int(call.attribute("hidden_size", call.value(2).shape[-1]))
        directions = 2 if call.attribute("direction", "forward") == "bidirectional" else 1
        is_batch_first = bool(call.attribute("layout", 0))
        steps, batch = (x.shape[1], x.shape[0]) if is_batch_first else x.shape[:2]
        rows = directions * gates * hidden
        weights = [call.weight(1, (rows, x.shape[-1])), call.weight(2, (rows, hidden))]
        if call.has(3):
            weights.append(call.weight(3, (2 * rows,)))
        b, kind = call.b, Recurrent(cell, hidden, directions)
        first = x if is_batch_first else b.view(x, (batch, steps, x.shape[-1]), "transpose")
        y = b.op(kind, [first], [(batch, steps, directions * hidden)], weights=weights, name=call.layer)[0]
        state = (batch, directions, hidden) if is_batch_first else (directions, batch, hidden)
        sequence_shape = (batch, steps, directions, hidden) if is_batch_first else (steps, directions, batch, hidden)
        names, results = list(call.node.outputs), [b.view(y, sequence_shape, "transpose")]
        results.extend(b.view(y, state, "slice") for _ in names[1:])
        return results

    return rule


def attention(call: OnnxCall) -> Sequence[Tensor]:
    """ONNX Attention (opset 23), and the contributed MultiHeadAttention and GroupQueryAttention: q, k, v are given."""
    if call.node.domain == "com.microsoft" and call.node.op == "Attention":
        return fused_attention(call)
    q, k, v = (call.data(i) for i in range(3))
    heads = int(
        call.attribute("q_num_heads") or call.attribute("num_heads") or (q.shape[1] if len(q.shape) == 4 else 1)
    )
    kv_heads = int(call.attribute("kv_num_heads") or (k.shape[1] if len(k.shape) == 4 else heads))
    wide = [_by_head(call, t, n) for t, n in ((q, heads), (k, kv_heads), (v, kv_heads))]
    causal = bool(call.attribute("is_causal") or call.attribute("unidirectional"))
    if call.node.op == "Attention" and call.has(3):
        wide.append(call.data(3))  # a mask, or a bias of the scores
    mixed = call.b.op(Attention(causal), wide, [(*wide[0].shape[:-1], wide[2].shape[-1])], name=call.layer)[0]
    if len(q.shape) == 4:
        return [mixed]
    return [call.b.view(mixed, (q.shape[0], q.shape[1], heads * wide[2].shape[-1]), "transpose")]


def _by_head(call: OnnxCall, x: Tensor, heads: int) -> Tensor:
    if len(x.shape) == 4:
        return x
    return call.b.view(x, (x.shape[0], heads, x.shape[1], x.shape[2] // heads), "transpose")


def fused_attention(call: OnnxCall) -> Sequence[Tensor]:
    """The contributed Attention: x, one weight (I, 3·W) and a bias; projections included."""
    x, weights = call.data(0), [call.weight(1)]
    if call.has(2):
        weights.append(call.weight(2))
    heads, width = call.count("num_heads"), weights[0].shape[1] // 3
    shape = (x.shape[0], x.shape[1], 3 * width)
    joined = call.b.op(Matmul(), [x], [shape], weights=weights, name=call.layer)[0]
    q, k, v = (_by_head(call, part, heads) for part in call.b.split(joined, 3))
    mixed = call.b.attention(q, k, v, causal=bool(call.attribute("unidirectional")), name=call.layer)
    return [call.b.view(mixed, (x.shape[0], x.shape[1], width), "transpose")]
