"""What each ATen operator is: a table from its name to the kinds of op it runs.

Names are without namespace, overload and the underscore of the in-place form. An operator that is in no table is elementwise where
PyTorch tags it pointwise, and otherwise `Opaque`: its bytes are known and it is listed in the answer.
"""

from collections.abc import Callable, Iterable, Mapping

import torch

from epochcast.capture.torch.call import Call, Piece, View
from epochcast.graph.kinds import (
    Attention,
    Conv,
    Copy,
    Elementwise,
    Embedding,
    Gather,
    Kind,
    Loss,
    Matmul,
    Norm,
    Opaque,
    Pool,
    Recurrent,
    Reduce,
    Scatter,
    Softmax,
)
from epochcast.graph.op import Gradient

Rule = Callable[[Call], Iterable[Piece]]


# ---- products -----------------------------------------------------------------------------------


def _is_transposed(tensor: torch.Tensor) -> bool:
    """Whether the last two dimensions lie in memory the other way round."""
    rows, columns = tensor.stride()[-2:]
    return rows == 1 and columns != 1 and tensor.shape[-1] > 1


def _stored(call: Call, tensor: torch.Tensor) -> tuple[View, bool]:
    view = call.see(tensor)
    if not _is_transposed(tensor):
        return view, False
    return view._replace(shape=(*view.shape[:-2], view.shape[-1], view.shape[-2])), True


def _matmul(first: str, second: str, added: str | None = None) -> Rule:
    """first·second (+ added); the second operand is a weight where it is a parameter."""

    def rule(call: Call) -> Iterable[Piece]:
        left, transpose_a = _stored(call, call[first])
        operand = call[second]
        right, transpose_b = _stored(call, operand if operand.dim() > 1 else operand.unsqueeze(-1))
        extra = call.views(added) if added else ()
        is_weight = call.is_parameter(right)
        inputs = (left,) if is_weight else (left, right, *extra)
        weights = (right, *extra) if is_weight else ()
        yield Piece(Matmul(transpose_a, transpose_b), inputs, call.results, weights)

    return rule


def _conv_kind(call: Call) -> Conv:
    dims = call["weight"].dim() - 2
    stride, padding, dilation = (call.sizes(name, dims) for name in ("stride", "padding", "dilation"))
    return Conv(stride, padding, dilation, call["groups"], call["transposed"])


def _convolution(call: Call) -> Iterable[Piece]:
    yield _unfolded(call, Piece(_conv_kind(call), call.views("input"), call.results, call.views("weight", "bias")))


def _convolution_backward(call: Call) -> Iterable[Piece]:
    """Up to three kernels: data and weight gradient, and the bias gradient as a sum."""
    arriving, given, weight = call.views("grad_output", "input", "weight")
    results = iter(call.results)
    wants_data, wants_weight, wants_bias = call["output_mask"]
    kind = _conv_kind(call)
    if wants_data:
        yield _unfolded(call, Piece(kind, (arriving,), (next(results),), (weight,), Gradient.DATA, "data"))
    if wants_weight:
        yield _unfolded(call, Piece(kind, (arriving, given), (next(results),), (), Gradient.WEIGHTS, "weights"))
    if wants_bias:
        yield Piece(Reduce("sum"), (arriving,), (next(results),), (), Gradient.WEIGHTS, "bias")


def _unfolded(call: Call, piece: Piece) -> Piece:
    """A kernel of its own for every sample (conditional convolution, Yang et al. 2019) is run as one sample with batch·groups
    groups; here it is `batch` samples of `groups` groups again, and all the kernels are read or written beside the first.
    """
    kind, batch = piece.kind, call.batch
    assert isinstance(kind, Conv)
    if batch == 1 or kind.groups % batch or call["input"].shape[0] != 1:
        return piece

    def sample(view: View) -> View:
        return view._replace(shape=(batch, view.shape[1] // batch, *view.shape[2:]))

    def kernel(view: View) -> View:
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


def _attention(call: Call) -> Iterable[Piece]:
    yield Piece(Attention(call["causal"]), call.views("q", "k", "v", "mask"), call.results)


def _attention_backward(call: Call) -> Iterable[Piece]:
    operands = call.views("grad", "q", "k", "v", "out", "mask")
    yield Piece(Attention(call["causal"]), operands, call.results, (), Gradient.BOTH)


def _recurrent(call: Call) -> Iterable[Piece]:
    kind = Recurrent(call["cell"], call["hidden"], call["directions"])
    yield Piece(kind, call.views("x", "states"), call.results, call.views("weights"))


def _recurrent_backward(call: Call) -> Iterable[Piece]:
    kind = Recurrent(call["cell"], call["hidden"], call["directions"])
    operands = call.views("grad", "x", "out", "states")
    yield Piece(kind, operands, call.results, call.views("weights"), Gradient.BOTH)


# ---- rows and windows ---------------------------------------------------------------------------


def _same(
    kind: Kind, *inputs: str, weights: tuple[str, ...] = (), gradient: Gradient = Gradient.NONE, first: int = 9
) -> Rule:
    """An op of a fixed kind that reads these arguments and writes its `first` results."""

    def rule(call: Call) -> Iterable[Piece]:
        yield Piece(kind, call.views(*inputs), call.results[:first], call.views(*weights), gradient)

    return rule


def _norm(style: str, given: str = "input") -> Rule:
    """Statistics are written too, but are small beside the data: one output."""
    return _same(Norm(style), given, weights=("weight", "bias"), first=1)


def _norm_backward(style: str, arriving: str = "grad_out") -> Rule:
    return _same(Norm(style), arriving, "input", weights=("weight",), gradient=Gradient.BOTH)


def _pool(style: str) -> Rule:
    def rule(call: Call) -> Iterable[Piece]:
        yield Piece(_pool_kind(call, style), call.views("self"), call.results)

    return rule


def _pool_backward(style: str) -> Rule:
    """A maximum reads its input and the places of the maxima; an average only the gradient."""

    def rule(call: Call) -> Iterable[Piece]:
        saved = ("grad_output", "self", "indices") if style == "max" else ("grad_output",)
        yield Piece(_pool_kind(call, style), call.views(*saved), call.results, (), Gradient.DATA)

    return rule


def _pool_kind(call: Call, style: str) -> Pool:
    if not any(a.name == "kernel_size" for a in call.func._schema.arguments):
        zero = (0,) * (call["self"].dim() - 2)  # adaptive: the window follows from the sizes
        return Pool(style, zero, zero, zero)
    dims = 3 if "3d" in call.name else 2
    window = call.sizes("kernel_size", dims)
    return Pool(style, window, call.sizes("stride", dims) or window, call.sizes("padding", dims))


def _nll_backward(call: Call) -> Iterable[Piece]:
    yield Piece(Loss("nll"), call.views("grad_output", "target"), call.results, (), Gradient.DATA)


# ---- everything that reads its tensors and writes its results -----------------------------------


def _plain(kind: Kind, gradient: Gradient = Gradient.NONE) -> Rule:
    def rule(call: Call) -> Iterable[Piece]:
        yield Piece(kind, call.tensors, call.results, (), gradient)

    return rule


def _fresh(kind: Kind) -> Rule:
    """Writes without reading what was there: fills and random numbers."""

    def rule(call: Call) -> Iterable[Piece]:
        yield Piece(kind, (), call.results)

    return rule


def _assigned(call: Call) -> Iterable[Piece]:
    yield Piece(Copy("copy"), call.views("src"), call.results)


def _converted(call: Call) -> Iterable[Piece]:
    is_cast = any(a.dtype is not b.dtype for a, b in zip(call.tensors, call.results, strict=True))
    yield Piece(Copy("cast" if is_cast else "copy"), call.tensors, call.results)


_REDUCTIONS = (
    "sum mean var std var_mean std_mean amax amin aminmax max min argmax argmin any all prod norm linalg_vector_norm cumsum "
    "cumprod cummax cummin logcumsumexp topk sort argsort logsumexp median nanmedian mode kthvalue nansum count_nonzero dot "
    "vdot trace"
).split()
_COPIES: Mapping[str, str] = {
    **dict.fromkeys(
        ("clone", "contiguous", "permute_copy", "view_copy", "transpose_copy", "expand_copy"), "contiguous"
    ),
    **dict.fromkeys(("cat", "stack", "concat"), "concatenate"),
    **dict.fromkeys(("constant_pad_nd", "slice_backward", "select_backward", "diagonal_backward"), "pad"),
    **{f"{mode}_pad{d}d": "pad" for mode in ("reflection", "replication") for d in (1, 2, 3)},
    **{f"{mode}_pad{d}d_backward": "pad" for mode in ("reflection", "replication") for d in (1, 2, 3)},
    **dict.fromkeys(("slice_scatter", "select_scatter", "diagonal_scatter", "as_strided_scatter"), "copy"),
    **dict.fromkeys(("pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "native_channel_shuffle"), "shuffle"),
    **{name: name for name in ("roll", "flip", "repeat", "tril", "triu", "rot90", "repeat_interleave")},
}
_FILLS = (
    "zeros ones full zeros_like ones_like full_like new_zeros new_ones new_full fill zero arange linspace logspace eye "
    "scalar_tensor tril_indices triu_indices"
).split()
_RANDOM = (
    "bernoulli uniform normal random exponential rand randn randint randperm rand_like randn_like randint_like geometric "
    "cauchy log_normal"
).split()
_GATHERS = (
    "index index_select gather take _unsafe_index im2col grid_sampler_2d grid_sampler_3d affine_grid_generator".split()
)
_SCATTERS = (
    "index_put _index_put_impl _unsafe_index_put scatter scatter_add scatter_reduce index_add index_copy index_fill put col2im "
    "masked_scatter unfold_backward grid_sampler_2d_backward grid_sampler_3d_backward max_unpool2d max_unpool3d"
).split()
_RESIZES = [
    f"upsample_{mode}"
    for mode in ("nearest1d", "nearest2d", "nearest3d", "linear1d", "bilinear2d", "trilinear3d", "bicubic2d")
]
_RESIZES += [
    "_upsample_bilinear2d_aa",
    "_upsample_bicubic2d_aa",
    "_upsample_nearest_exact1d",
    "_upsample_nearest_exact2d",
]
_LOSSES = ("mse_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss", "binary_cross_entropy", "multi_margin_loss")
# Pointwise in fact, though this or an older torch does not tag them so.
_UNTAGGED = (
    "where lerp addcmul addcdiv masked_fill glu _prelu_kernel polar angle complex view_as_complex nan_to_num_".split()
)
_ELEMENTWISE: Mapping[str, str] = {
    "threshold": "relu",
    "_prelu_kernel": "prelu",
    "scale": "scale",
    "masked_fill": "mask",
}

RULES: Mapping[str, Rule] = {
    "mm": _matmul("self", "mat2"),
    "bmm": _matmul("self", "mat2"),
    "addmm": _matmul("mat1", "mat2", "self"),
    "_addmm_activation": _matmul("mat1", "mat2", "self"),
    "baddbmm": _matmul("batch1", "batch2", "self"),
    "addbmm": _matmul("batch1", "batch2", "self"),
    "mv": _matmul("self", "vec"),
    "addmv": _matmul("mat", "vec", "self"),
    "convolution": _convolution,
    "convolution_backward": _convolution_backward,
    "attention": _attention,
    "attention_backward": _attention_backward,
    "recurrent": _recurrent,
    "recurrent_backward": _recurrent_backward,
    "native_batch_norm": _norm("batch"),
    "_native_batch_norm_legit": _norm("batch"),
    "_native_batch_norm_legit_no_training": _norm("batch"),
    "_batch_norm_with_update": _norm("batch"),
    "native_batch_norm_backward": _norm_backward("batch"),
    "batch_norm_backward": _norm_backward("batch"),
    "native_layer_norm": _norm("layer"),
    "native_layer_norm_backward": _norm_backward("layer"),
    "native_group_norm": _norm("group"),
    "native_group_norm_backward": _norm_backward("group"),
    "_fused_rms_norm": _same(Norm("rms"), "input", weights=("weight",), first=1),
    "_fused_rms_norm_backward": _norm_backward("rms"),
    "_softmax": _same(Softmax(), "self"),
    "_safe_softmax": _same(Softmax(), "self"),
    "_log_softmax": _same(Softmax(log=True), "self"),
    "_softmax_backward_data": _same(Softmax(), "grad_output", "output", gradient=Gradient.DATA),
    "_log_softmax_backward_data": _same(Softmax(log=True), "grad_output", "output", gradient=Gradient.DATA),
    "native_dropout": _same(Elementwise("dropout"), "input"),
    "native_dropout_backward": _same(Elementwise("dropout"), "grad_output", "mask", gradient=Gradient.DATA),
    "embedding": _same(Embedding(), "indices", weights=("weight",)),
    "embedding_dense_backward": _same(Embedding(), "grad_output", "indices", gradient=Gradient.WEIGHTS),
    "_embedding_bag": _same(Embedding(), "indices", weights=("weight",), first=1),
    "_embedding_bag_dense_backward": _same(Embedding(), "grad", "indices", gradient=Gradient.WEIGHTS),
    "nll_loss_forward": _same(Loss("nll"), "self", "target", first=1),
    "nll_loss2d_forward": _same(Loss("nll"), "self", "target", first=1),
    "nll_loss_backward": _nll_backward,
    "nll_loss2d_backward": _nll_backward,
    **{name: _plain(Loss(name.removesuffix("_loss"))) for name in _LOSSES},
    **{f"{name}_backward": _plain(Loss(name.removesuffix("_loss")), Gradient.DATA) for name in _LOSSES},
    "binary_cross_entropy_with_logits": _plain(Loss("bce")),
    **{f"max_pool{d}d_with_indices": _pool("max") for d in (2, 3)},
    **{f"max_pool{d}d_with_indices_backward": _pool_backward("max") for d in (2, 3)},
    **{f"adaptive_max_pool{d}d": _pool("max") for d in (2, 3)},
    **{f"adaptive_max_pool{d}d_backward": _pool_backward("max") for d in (2, 3)},
    **{f"avg_pool{d}d": _pool("average") for d in (2, 3)},
    **{f"avg_pool{d}d_backward": _pool_backward("average") for d in (2, 3)},
    **{f"_adaptive_avg_pool{d}d": _pool("average") for d in (2, 3)},
    **{f"_adaptive_avg_pool{d}d_backward": _pool_backward("average") for d in (2, 3)},
    **{name: _plain(Reduce(name)) for name in _REDUCTIONS},
    **{name: _plain(Copy(function)) for name, function in _COPIES.items()},
    **{name: _fresh(Copy("fill")) for name in _FILLS},
    **{name: _fresh(Elementwise("random")) for name in _RANDOM},
    "copy": _assigned,
    "_to_copy": _converted,
    **{name: _plain(Gather(name.strip("_"))) for name in (*_GATHERS, *_RESIZES)},
    **{name: _plain(Scatter(name.strip("_"))) for name in _SCATTERS},
    **{f"{name}_backward": _plain(Scatter(name.strip("_")), Gradient.DATA) for name in _RESIZES},
}
"""Every operator with a rule of its own."""

FREE = frozenset(
    "empty empty_like empty_strided empty_permuted new_empty new_empty_strided detach alias lift lift_fresh lift_fresh_copy set "
    "resize _assert_async _assert_scalar is_same_size sym_size sym_numel sym_stride sym_storage_offset record_stream as_strided "
    "_nested_tensor_size _functional_assert_async".split()
)
"""Operators that run no kernel."""

ASKS_VALUES = frozenset(
    "_local_scalar_dense item nonzero nonzero_static masked_select unique_dim _unique2 _unique equal".split()
)
"""Operators whose result depends on values, of which `meta` has none."""


def rule_for(func: object, name: str) -> Rule:
    """The rule of an operator; elementwise where it is tagged so, opaque where nothing is known."""
    known = RULES.get(name)
    if known is not None:
        return known
    backward = name.endswith("_backward") or name.endswith("_backward_data")
    stem = name.removesuffix("_data").removesuffix("_backward") if backward else name
    gradient = Gradient.DATA if backward else Gradient.NONE
    if torch.Tag.pointwise in getattr(func, "tags", ()) or stem in _UNTAGGED or stem in _POINTWISE_BACKWARD:
        return _plain(Elementwise(_ELEMENTWISE.get(stem, stem)), gradient)
    return _plain(Opaque(str(func)), Gradient.BOTH if backward else Gradient.NONE)


_POINTWISE_BACKWARD = frozenset(
    "threshold gelu silu mish elu celu selu hardswish hardsigmoid hardtanh leaky_relu softplus softshrink hardshrink sigmoid tanh "
    "log_sigmoid glu _prelu_kernel rrelu_with_noise logit".split()
)
