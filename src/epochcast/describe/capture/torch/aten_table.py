"""What each ATen operator is: a table from its name to the kinds of op it runs.

Names are without namespace, overload and the underscore of the in-place form. An operator that is in no table is
elementwise where PyTorch tags it pointwise, and otherwise `Opaque`: its bytes are known and it is listed in the answer.
"""

from collections.abc import Mapping

import torch

from epochcast.describe.capture.torch.aten_rules import (
    Rule,
    assigned,
    attention,
    attention_backward,
    converted,
    convolution,
    convolution_backward,
    fresh,
    grouped_matmul,
    matmul,
    named,
    nll_backward,
    norm,
    norm_backward,
    plain,
    pool,
    pool_backward,
    recurrent,
    recurrent_backward,
    same,
)
from epochcast.describe.graph.op import Gradient
from epochcast.describe.graph.op_kinds import (
    Copy,
    Elementwise,
    Embedding,
    Gather,
    Loss,
    Norm,
    Reduce,
    Scatter,
    Softmax,
)


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_REDUCTIONS = _words(
    "sum mean var std var_mean std_mean amax amin aminmax max min argmax argmin any all prod norm "
    "linalg_vector_norm cumsum cumprod cummax cummin logcumsumexp topk sort argsort logsumexp median "
    "nanmedian mode kthvalue nansum count_nonzero dot vdot trace histc nonzero equal unique_dim _unique2 _unique "
    "unique_consecutive _is_all_true _is_any_true _weight_norm_interface _weight_norm_interface_backward"
)
_COPIES: Mapping[str, str] = {
    **dict.fromkeys(_words("clone contiguous permute_copy view_copy transpose_copy expand_copy"), "contiguous"),
    **dict.fromkeys(_words("cat stack concat"), "concatenate"),
    **dict.fromkeys(_words("constant_pad_nd slice_backward select_backward diagonal_backward"), "pad"),
    **{f"{mode}_pad{d}d": "pad" for mode in ("reflection", "replication") for d in (1, 2, 3)},
    **{f"{mode}_pad{d}d_backward": "pad" for mode in ("reflection", "replication") for d in (1, 2, 3)},
    **dict.fromkeys(_words("slice_scatter select_scatter diagonal_scatter as_strided_scatter"), "copy"),
    **dict.fromkeys(_words("pixel_shuffle pixel_unshuffle channel_shuffle native_channel_shuffle"), "shuffle"),
    **{name: name for name in _words("roll flip repeat tril triu rot90 repeat_interleave")},
}
_FILLS = _words(
    "zeros ones full zeros_like ones_like full_like new_zeros new_ones new_full fill zero arange linspace "
    "logspace eye scalar_tensor tril_indices triu_indices"
)
_RANDOM = _words(
    "bernoulli uniform normal random exponential rand randn randint randperm rand_like randn_like "
    "randint_like geometric cauchy log_normal"
)
_GATHERS = _words(
    "index index_select gather take _unsafe_index im2col grid_sampler_2d grid_sampler_3d affine_grid_generator "
    "masked_select _pack_padded_sequence bucketize searchsorted masked_scatter_backward"
)
_SCATTERS = _words(
    "index_put _index_put_impl _unsafe_index_put scatter scatter_add scatter_reduce index_add index_copy "
    "index_fill put col2im masked_scatter unfold_backward grid_sampler_2d_backward grid_sampler_3d_backward "
    "max_unpool2d max_unpool3d bincount _pack_padded_sequence_backward"
)
_RESIZES = _words(
    "upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_linear1d upsample_bilinear2d "
    "upsample_trilinear3d upsample_bicubic2d _upsample_bilinear2d_aa _upsample_bicubic2d_aa "
    "_upsample_nearest_exact1d _upsample_nearest_exact2d"
)
_LOSSES = _words("mse_loss smooth_l1_loss huber_loss soft_margin_loss binary_cross_entropy multi_margin_loss")
# Pointwise in fact, though this or an older torch does not tag them so.
_UNTAGGED = frozenset(
    _words(
        "floor_divide where lerp addcmul addcdiv masked_fill "
        "glu _prelu_kernel polar angle complex nan_to_num threshold "
        "gelu silu mish elu celu selu hardswish hardsigmoid hardtanh leaky_relu softplus softshrink "
        "hardshrink sigmoid tanh log_sigmoid rrelu_with_noise logit log_sigmoid_forward"
    )
)
_RENAMED: Mapping[str, str] = {"threshold": "relu", "_prelu_kernel": "prelu", "masked_fill": "mask"}

RULES: Mapping[str, Rule] = {
    "mm": matmul("self", "mat2"),
    "bmm": matmul("self", "mat2"),
    "addmm": matmul("mat1", "mat2", "self"),
    "_addmm_activation": matmul("mat1", "mat2", "self"),
    "baddbmm": matmul("batch1", "batch2", "self"),
    "addbmm": matmul("batch1", "batch2", "self"),
    "mv": matmul("self", "vec"),
    "addmv": matmul("mat", "vec", "self"),
    "_grouped_mm": grouped_matmul,
    "convolution": convolution,
    "convolution_backward": convolution_backward,
    "attention": attention,
    "attention_backward": attention_backward,
    "recurrent": recurrent,
    "recurrent_backward": recurrent_backward,
    "native_batch_norm": norm("batch"),
    "_native_batch_norm_legit": norm("batch"),
    "_native_batch_norm_legit_no_training": norm("batch"),
    "_batch_norm_with_update": norm("batch"),
    "native_batch_norm_backward": norm_backward("batch"),
    "batch_norm_backward": norm_backward("batch"),
    "native_layer_norm": norm("layer"),
    "native_layer_norm_backward": norm_backward("layer"),
    "native_group_norm": norm("group"),
    "native_group_norm_backward": norm_backward("group"),
    "rms_norm": same(Norm("rms"), "x", weights=("weight",)),
    "rms_norm_backward": same(Norm("rms"), "grad", "x", weights=("weight",), gradient=Gradient.BOTH),
    "_softmax": same(Softmax(), "self"),
    "_safe_softmax": same(Softmax(), "self"),
    "_log_softmax": same(Softmax(log=True), "self"),
    "_softmax_backward_data": same(Softmax(), "grad_output", "output", gradient=Gradient.DATA),
    "_log_softmax_backward_data": same(Softmax(log=True), "grad_output", "output", gradient=Gradient.DATA),
    "native_dropout": same(Elementwise("dropout"), "input"),
    "native_dropout_backward": same(Elementwise("dropout"), "grad_output", "mask", gradient=Gradient.DATA),
    "embedding": same(Embedding(), "indices", weights=("weight",)),
    "embedding_dense_backward": same(Embedding(), "grad_output", "indices", gradient=Gradient.WEIGHTS),
    "_embedding_bag": same(Embedding(), "indices", weights=("weight",), first=1),
    "_embedding_bag_dense_backward": same(Embedding(), "grad", "indices", gradient=Gradient.WEIGHTS),
    "nll_loss_forward": same(Loss("nll"), "self", "target", first=1),
    "nll_loss2d_forward": same(Loss("nll"), "self", "target", first=1),
    "nll_loss_backward": nll_backward,
    "nll_loss2d_backward": nll_backward,
    **{name: plain(Loss(name.removesuffix("_loss"))) for name in _LOSSES},
    **{f"{name}_backward": plain(Loss(name.removesuffix("_loss")), Gradient.DATA) for name in _LOSSES},
    "binary_cross_entropy_with_logits": plain(Loss("bce")),
    "_ctc_loss": plain(Loss("ctc")),
    "_ctc_loss_backward": plain(Loss("ctc"), Gradient.DATA),
    **{f"max_pool{d}d_with_indices": pool("max") for d in (2, 3)},
    **{f"max_pool{d}d_with_indices_backward": pool_backward("max") for d in (2, 3)},
    **{f"adaptive_max_pool{d}d": pool("max") for d in (2, 3)},
    **{f"adaptive_max_pool{d}d_backward": pool_backward("max") for d in (2, 3)},
    **{f"avg_pool{d}d": pool("average") for d in (2, 3)},
    **{f"avg_pool{d}d_backward": pool_backward("average") for d in (2, 3)},
    **{f"_adaptive_avg_pool{d}d": pool("average") for d in (2, 3)},
    **{f"_adaptive_avg_pool{d}d_backward": pool_backward("average") for d in (2, 3)},
    **{name: plain(Reduce(name)) for name in _REDUCTIONS},
    **{name: plain(Copy(function)) for name, function in _COPIES.items()},
    **{name: fresh(Copy("fill")) for name in _FILLS},
    **{name: fresh(Elementwise("random")) for name in _RANDOM},
    "copy": assigned,
    "_to_copy": converted,
    **{name: plain(Gather(name.strip("_"))) for name in (*_GATHERS, *_RESIZES)},
    **{name: plain(Scatter(name.strip("_"))) for name in _SCATTERS},
    **{f"{name}_backward": plain(Scatter(name.strip("_")), Gradient.DATA) for name in _RESIZES},
}
"""Every operator with a rule of its own."""

FREE = frozenset(
    _words(
        "empty empty_like empty_strided empty_permuted new_empty new_empty_strided detach alias lift "
        "lift_fresh set resize _assert_async _assert_scalar is_same_size sym_size sym_numel sym_stride "
        "sym_storage_offset record_stream as_strided _functional_assert_async"
    )
)
"""Operators that run no kernel."""

ASKS_VALUES = frozenset(
    _words(
        "_local_scalar_dense item nonzero masked_select unique_dim _unique2 _unique unique_consecutive equal bincount"
    )
)
"""Operators whose result depends on values, which `meta` tensors do not have."""


def rule_for(func: object, name: str) -> Rule:
    """The rule of an operator; elementwise if it is tagged so, else opaque."""
    rule = RULES.get(name)
    if rule is not None:
        return rule
    stem = name.removesuffix("_backward")
    gradient = Gradient.NONE if stem == name else Gradient.DATA
    if torch.Tag.pointwise in getattr(func, "tags", ()) or stem in _UNTAGGED:
        return plain(Elementwise(_RENAMED.get(stem, stem)), gradient)
    return named(str(func), gradient)
