"""How a call becomes ops: makers of rules, each from a call's arguments to the pieces it runs."""

from collections.abc import Callable, Iterable
from dataclasses import replace

import torch

from epochcast.describe.capture.torch.aten_call import AtenCall, Piece, TensorView
from epochcast.describe.graph.op import Gradient
from epochcast.describe.graph.op_kinds import (
    Attention,
    Conv,
    Copy,
    Kind,
    Loss,
    Matmul,
    Norm,
    Opaque,
    Pool,
    Recurrent,
    Reduce,
)
from epochcast.describe.graph.op_registry import registered_class
from epochcast.describe.graph.ops.opaque_op import kind_named

Rule = Callable[[AtenCall], Iterable[Piece]]


# ---- products -----------------------------------------------------------------------------------


def _is_transposed(tensor: torch.Tensor) -> bool:
    """Whether the last two dimensions are transposed in memory."""
    rows, columns = tensor.stride()[-2:]
    return rows == 1 and columns != 1 and tensor.shape[-1] > 1


def _stored(call: AtenCall, tensor: torch.Tensor) -> tuple[TensorView, bool]:
    view = call.see(tensor)
    if not _is_transposed(tensor):
        return view, False
    return view._replace(shape=(*view.shape[:-2], view.shape[-1], view.shape[-2])), True


def matmul(first: str, second: str, added: str | None = None) -> Rule:
    """first·second (+ added); the second operand is a weight where it is a parameter."""

    def rule(call: AtenCall) -> Iterable[Piece]:
        left, transpose_a = _stored(call, call[first])
        operand = call[second]
        right, transpose_b = _stored(call, operand if operand.dim() > 1 else operand.unsqueeze(-1))
        extra = call.views(added) if added else ()
        is_weight = call.is_parameter(right)
        inputs = (left,) if is_weight else (left, right, *extra)
        weights = (right, *extra) if is_weight else ()
        yield Piece(Matmul(transpose_a, transpose_b), inputs, call.results, weights)

    return rule


def grouped_matmul(call: AtenCall) -> Iterable[Piece]:
    """Experts' products in one kernel, tokens shared out evenly: (T, K)·(E, K, N), or by expert (K, T/E)·(T/E, N)."""
    if call["mat2"].dim() == 3:
        for piece in matmul("self", "mat2")(call):
            assert isinstance(piece.kind, Matmul)
            yield piece._replace(kind=replace(piece.kind, grouped=True))
        return
    (result,) = call.results
    experts, rows, columns = result.shape
    left, right = call.see(call["self"]), call.see(call["mat2"])
    tokens = right.shape[0] // experts
    operands = (left._replace(shape=(experts, tokens, rows)), right._replace(shape=(experts, tokens, columns)))
    yield Piece(Matmul(transpose_a=True, grouped=True), operands, (result,))


def _conv_kind(call: AtenCall) -> Conv:
    dims = call["weight"].dim() - 2
    stride, padding, dilation = (call.sizes(name, dims) for name in ("stride", "padding", "dilation"))
    return Conv(stride, padding, dilation, call["groups"], call["transposed"])


def convolution(call: AtenCall) -> Iterable[Piece]:
    """y from (x; w, b)."""
    yield _unfolded(call, Piece(_conv_kind(call), call.views("input"), call.results, call.views("weight", "bias")))


def convolution_backward(call: AtenCall) -> Iterable[Piece]:
    """Up to three kernels: data and weight gradient, and the bias gradient as a sum."""
    arriving, data, weight = call.views("grad_output", "input", "weight")
    results = iter(call.results)
    wants_data, wants_weight, wants_bias = call["output_mask"]
    kind = _conv_kind(call)
    if wants_data:
        yield _unfolded(call, Piece(kind, (arriving,), (next(results),), (weight,), Gradient.DATA, "data"))
    if wants_weight:
        yield _unfolded(call, Piece(kind, (arriving, data), (next(results),), (), Gradient.WEIGHTS, "weights"))
    if wants_bias:
        yield Piece(Reduce("sum"), (arriving,), (next(results),), (), Gradient.WEIGHTS, "bias")


def _unfolded(call: AtenCall, piece: Piece) -> Piece:
    """Conditional convolution (Yang et al. 2019) has a kernel per sample and runs as one sample with batch·groups
    groups. Here it becomes `batch` samples of `groups` groups again, and the other kernels are read or written in
    addition.
    """
    kind, batch = piece.kind, call.batch
    assert isinstance(kind, Conv)
    if batch == 1 or kind.groups % batch or call["input"].shape[0] != 1:
        return piece

    def sample(view: TensorView) -> TensorView:
        return view._replace(shape=(batch, view.shape[1] // batch, *view.shape[2:]))

    def kernel(view: TensorView) -> TensorView:
        return view._replace(shape=(view.shape[0] // batch, *view.shape[1:]))

    kind = Conv(kind.stride, kind.padding, kind.dilation, kind.groups // batch, kind.transposed)
    data = tuple(sample(view) for view in piece.inputs)
    if piece.gradient is Gradient.WEIGHTS:
        return piece._replace(kind=kind, inputs=data, outputs=(kernel(piece.outputs[0]), piece.outputs[0]))
    first, *rest = piece.weights
    return piece._replace(
        kind=kind,
        inputs=(*data, first),
        outputs=tuple(sample(view) for view in piece.outputs),
        weights=(kernel(first), *rest),
    )


def attention(call: AtenCall) -> Iterable[Piece]:
    """One fused kernel over (q, k, v)."""
    yield Piece(Attention(call["causal"], call["window"]), call.views("q", "k", "v", "mask"), call.results)


def attention_backward(call: AtenCall) -> Iterable[Piece]:
    """dQ, dK, dV (and the mask's gradient) in one pass."""
    operands = call.views("grad", "q", "k", "v", "out", "mask")
    yield Piece(Attention(call["causal"], call["window"]), operands, call.results, (), Gradient.BOTH)


def recurrent(call: AtenCall) -> Iterable[Piece]:
    """One layer over the whole sequence."""
    kind = Recurrent(call["cell"], call["hidden"], call["directions"])
    yield Piece(kind, call.views("x", "states"), call.results, call.views("weights"))


def recurrent_backward(call: AtenCall) -> Iterable[Piece]:
    """With frozen weights only the gradient of the data, which still passes through all steps."""
    kind = Recurrent(call["cell"], call["hidden"], call["directions"])
    operands = call.views("grad", "x", "out", "states")
    trains = any(call["wanted"][1 + len(call["states"]) :])
    gradient = Gradient.BOTH if trains else Gradient.DATA
    yield Piece(kind, operands, call.results, call.views("weights"), gradient)


# ---- rows and windows ---------------------------------------------------------------------------


def same(
    kind: Kind, *inputs: str, weights: tuple[str, ...] = (), gradient: Gradient = Gradient.NONE, first: int = 9
) -> Rule:
    """An op of a fixed kind that reads these arguments and writes its `first` results."""

    def rule(call: AtenCall) -> Iterable[Piece]:
        yield Piece(kind, call.views(*inputs), call.results[:first], call.views(*weights), gradient)

    return rule


def norm(style: str, data: str = "input") -> Rule:
    """Statistics are written too, but are small beside the data: one output."""
    return same(Norm(style), data, weights=("weight", "bias"), first=1)


def norm_backward(style: str, arriving: str = "grad_out") -> Rule:
    """dx, dγ and dβ together."""
    return same(Norm(style), arriving, "input", weights=("weight",), gradient=Gradient.BOTH)


def pool(style: str) -> Rule:
    """A window over the input; max pooling also writes the indices of the maxima."""

    def rule(call: AtenCall) -> Iterable[Piece]:
        yield Piece(_pool_kind(call, style), call.views("self"), call.results)

    return rule


def pool_backward(style: str) -> Rule:
    """Max pooling reads its input and the indices of the maxima; average pooling only the gradient."""

    def rule(call: AtenCall) -> Iterable[Piece]:
        saved = ("grad_output", "self", "indices") if style == "max" else ("grad_output",)
        yield Piece(_pool_kind(call, style), call.views(*saved), call.results, (), Gradient.DATA)

    return rule


def _pool_kind(call: AtenCall, style: str) -> Pool:
    if not any(a.name == "kernel_size" for a in call.func._schema.arguments):
        zero = (0,) * (call["self"].dim() - 2)  # adaptive: the window follows from the sizes
        return Pool(style, zero, zero, zero)
    dims = 3 if "3d" in call.name else 2
    window = call.sizes("kernel_size", dims)
    return Pool(style, window, call.sizes("stride", dims) or window, call.sizes("padding", dims))


def nll_backward(call: AtenCall) -> Iterable[Piece]:
    """Writes the gradient of all scores from the targets alone."""
    yield Piece(Loss("nll"), call.views("grad_output", "target"), call.results, (), Gradient.DATA)


# ---- everything that reads its tensors and writes its results -----------------------------------


def plain(kind: Kind, gradient: Gradient = Gradient.NONE) -> Rule:
    """Reads its tensors, writes its results."""

    def rule(call: AtenCall) -> Iterable[Piece]:
        yield Piece(kind, call.tensors, call.results, (), gradient)

    return rule


def named(target: str, gradient: Gradient) -> Rule:
    """An operator that no table has: the user's own, registered by the name in its schema, else opaque. A gradient may
    have a name of its own or that of its forward operator with `_backward` behind it.
    """

    def rule(call: AtenCall) -> Iterable[Piece]:
        schema = call.func._schema
        names = [schema.name, schema.name.removesuffix("_backward")]
        name = next((name for name in names if registered_class(name)), None)
        kind = Opaque(target) if name is None else kind_named(name, call.arguments())
        yield Piece(kind, call.tensors, call.results, (), gradient)

    return rule


def fresh(kind: Kind) -> Rule:
    """Writes without reading: fills and random numbers."""

    def rule(call: AtenCall) -> Iterable[Piece]:
        yield Piece(kind, (), call.results)

    return rule


def assigned(call: AtenCall) -> Iterable[Piece]:
    """Writes the source over the destination without reading the destination."""
    yield Piece(Copy("copy"), call.views("src"), call.results)


def converted(call: AtenCall) -> Iterable[Piece]:
    """A cast, or a plain copy where the dtype stays."""
    is_cast = any(a.dtype is not b.dtype for a, b in zip(call.tensors, call.results, strict=True))
    yield Piece(Copy("cast" if is_cast else "copy"), call.tensors, call.results)
