"""Dense layers, embeddings, activations, dropout and other layers that look at one element or one row at a time."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

from epochcast.describe.capture.keras.keras_call import KerasCall, KerasTensor, plain
from epochcast.describe.graph.op_kinds import Elementwise, Embedding, Matmul, Softmax
from epochcast.describe.graph.tensor import DType
from epochcast.errors import BadInput

Rule = Callable[[KerasCall], "KerasTensor | Sequence[KerasTensor]"]


def dense(call: KerasCall) -> KerasTensor:
    """x·W + b over the last dimension."""
    x, units = call.x.plain, call.count("units")
    weights = [call.weight("kernel", (units, x.shape[-1]))]
    if call.flag("use_bias", True):
        weights.append(call.weight("bias", (units,)))
    y = call.op(Matmul(transpose_b=True), [x], [(*x.shape[:-1], units)], weights)
    return call.activated(plain(y[0]))


def einsum_dense(call: KerasCall) -> KerasTensor:
    """A product by an equation "abc,cde->abde": labels of the weight that the input lacks are its columns."""
    x, equation = call.x.plain, str(call.option("equation")).replace(" ", "")
    left, _, right = equation.partition("->")
    first, _, second = left.partition(",")
    lead = len(x.shape) - len(first.replace("...", ""))
    if "..." in first:
        spare = "".join(chr(ord("α") + i) for i in range(lead))
        first, right = first.replace("...", spare), right.replace("...", spare)
    sizes = dict(zip(first, x.shape, strict=True))
    output_shape = call.option("output_shape")
    output_sizes = list(output_shape) if isinstance(output_shape, list | tuple) else [output_shape]
    for label, size in zip(reversed(right), reversed(output_sizes), strict=False):
        if size is not None:
            sizes.setdefault(label, int(size))
    if not all(label in sizes for label in second + right):
        raise BadInput(f"its equation {equation!r} and output_shape {output_shape!r} leave sizes open")
    columns = [c for c in second if c not in first]
    depth = prod(sizes[c] for c in second if c in first)
    kernel = call.weight("kernel", (prod(sizes[c] for c in columns), depth))
    weights = [kernel]
    if axes := call.option("bias_axes"):
        weights.append(call.weight("bias", (prod(sizes[c] for c in str(axes)),)))
    shape = tuple(sizes[c] for c in right)
    y = call.op(
        Matmul(transpose_b=True),
        [replace(x, shape=(x.elements // depth, depth))],
        [(prod(shape) // kernel.shape[0], kernel.shape[0])],
        weights,
    )
    return call.activated(call.reshaped(plain(y[0]), shape))


def embedding(call: KerasCall) -> KerasTensor:
    """Rows of a learned table."""
    ids, width = call.x.plain, call.count("output_dim")
    table = call.weight("embeddings", (call.count("input_dim"), width))
    return plain(call.op(Embedding(), [ids], [(*ids.shape, width)], [table])[0])


def reversible_embedding(call: KerasCall) -> KerasTensor:
    """Rows of a table, or (reverse) the product with it, which gives logits."""
    if not call.arguments.get("reverse"):
        return embedding(call)
    x, rows = call.x.plain, call.count("input_dim")
    tied = call.flag("tie_weights", True)
    table = call.weight("embeddings" if tied else "reverse_embeddings", (rows, x.shape[-1]))
    return plain(call.op(Matmul(transpose_b=True), [x], [(*x.shape[:-1], rows)], [table])[0])


def activation(call: KerasCall) -> KerasTensor:
    """The function its config names."""
    return call.activated(call.x)


def softmax(call: KerasCall) -> KerasTensor:
    """Over an axis."""
    x = call.x.plain
    return plain(call.op(Softmax("log" in call.layer.class_name.casefold()), [x], [x.shape])[0])


def each(function: str) -> Rule:
    """One elementwise function."""
    return lambda call: call.each(function)


def relu(call: KerasCall) -> KerasTensor:
    """relu, or relu6 where it has a ceiling."""
    return call.each("relu6" if call.layer.config.get("max_value") else "relu")


def prelu(call: KerasCall) -> KerasTensor:
    """A learned slope per element, shared over some axes."""
    shared = {int(a) for a in call.option("shared_axes", [])}
    shape = tuple(1 if i in shared else n for i, n in enumerate(call.x.shape) if i)
    x = call.x.plain
    return plain(call.op(Elementwise("prelu"), [x], [x.shape], [call.weight("alpha", shape)])[0])


def dropout(call: KerasCall) -> KerasTensor:
    """Writes the result and a mask; a rate of zero does nothing."""
    if not call.option("rate", 0.5):
        return call.x
    x = call.x.tensor
    return call.like(call.x, call.op(Elementwise("dropout"), [x], [x.shape, x.shape], (), [x.dtype, DType.BOOL])[0])


def same(call: KerasCall) -> "KerasTensor | Sequence[KerasTensor]":
    """What does no work in training or belongs to the loss: masking, regularisation, identity."""
    return call.values if len(call.values) > 1 else call.x


def scale(call: KerasCall) -> KerasTensor:
    """LayerScale: a learned factor per channel."""
    x = call.x.plain
    return plain(call.op(Elementwise("mul"), [x], [x.shape], [call.weight("gamma", (x.shape[-1],))])[0])


def custom_scale(call: KerasCall) -> KerasTensor:
    """inputs[0] + inputs[1]·scale, as Inception-ResNet-v2 joins its branches."""
    a, b = (v.tensor for v in call.values[:2])
    scaled = call.op(Elementwise("mul"), [b], [b.shape])[0]
    return call.like(call.x, call.op(Elementwise("add"), [a, scaled], [a.shape])[0])
