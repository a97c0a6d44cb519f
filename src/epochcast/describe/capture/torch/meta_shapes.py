"""Result shapes of the operators that fill a training step, without PyTorch's own `meta` kernels.

Those are Python decompositions and take milliseconds for one batch normalisation. These only use that the result has
the shape of the input; a call that does not fit the pattern is left to PyTorch.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

Quick = Callable[..., Any]


def _empty_like(x: Tensor) -> Tensor:
    """`torch.empty_like(x)`, which is a Python decomposition on `meta` and takes fifty times as long."""
    if x.is_contiguous() or _is_dense(x):
        return torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=x.device)
    return torch.empty_like(x)


def _is_dense(x: Tensor) -> bool:
    """Whether its elements lie side by side in some order of its dimensions."""
    expected = 1
    for step, size in sorted(zip(x.stride(), x.shape, strict=True)):
        if size != 1:
            if step != expected:
                return False
            expected *= size
    return True


def _contiguous(x: Tensor) -> Tensor:
    return torch.empty(x.shape, dtype=x.dtype, device=x.device)


def _like(x: Tensor, *rest: Any, **options: Any) -> Any:
    """One result shaped as the first operand, where the others are no larger than it in any dimension."""
    if not x.is_floating_point():
        return NotImplemented
    for other in rest:
        if isinstance(other, Tensor) and not (other.dtype is x.dtype and _fits_into(other, x)):
            return NotImplemented
    return _empty_like(x)


def _fits_into(other: Tensor, x: Tensor) -> bool:
    """Whether an operand leaves the result as `x` is; one that is broadcast does where `x` is contiguous."""
    if other.shape == x.shape:
        return True
    sizes, own = other.shape, x.shape
    if len(sizes) > len(own) or not x.is_contiguous() or 1 in own:
        return False
    return all(a in (b, 1) for a, b in zip(reversed(sizes), reversed(own), strict=False))


def _in_place(x: Tensor, *rest: Any, **options: Any) -> Any:
    return x if _like(x, *rest) is not NotImplemented else NotImplemented


def _batch_norm(x: Tensor, weight: Any, bias: Any, mean: Any, var: Any, training: bool, *rest: Any) -> Any:
    if not training:
        return NotImplemented
    channels = x.shape[1]
    return _empty_like(x), x.new_empty(channels), x.new_empty(channels)


def _batch_norm_backward(grad: Tensor, x: Tensor, *rest: Any) -> Any:
    data, scale, shift = rest[-1]
    channels = x.shape[1]
    return (
        _empty_like(x) if data else None,
        x.new_empty(channels) if scale else None,
        x.new_empty(channels) if shift else None,
    )


def _layer_norm(x: Tensor, normalized: list[int], *rest: Any) -> Any:
    lead = (*x.shape[: x.dim() - len(normalized)], *([1] * len(normalized)))
    if tuple(x.shape[-len(normalized) :]) != tuple(normalized):
        return NotImplemented
    return _contiguous(x), x.new_empty(lead), x.new_empty(lead)


def _layer_norm_backward(
    grad: Tensor, x: Tensor, normalized: list[int], mean: Any, rstd: Any, weight: Any, bias: Any, mask: list[bool]
) -> Any:
    return (
        _contiguous(x) if mask[0] else None,
        _empty_like(weight) if mask[1] and weight is not None else None,
        _empty_like(bias) if mask[2] and bias is not None else None,
    )


def _resized(x: Tensor, output_size: list[int], *rest: Any) -> Any:
    channels_last = x.dim() == 4 and x.is_contiguous(memory_format=torch.channels_last) and not x.is_contiguous()
    layout = torch.channels_last if channels_last else torch.contiguous_format
    return torch.empty((*x.shape[:2], *output_size), dtype=x.dtype, device=x.device, memory_format=layout)


def _bmm(a: Tensor, b: Tensor) -> Any:
    if a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        return NotImplemented
    return torch.empty((a.shape[0], a.shape[1], b.shape[2]), dtype=a.dtype, device=a.device)


def _mm(a: Tensor, b: Tensor) -> Any:
    if a.shape[1] != b.shape[0]:
        return NotImplemented
    return torch.empty((a.shape[0], b.shape[1]), dtype=a.dtype, device=a.device)


def _part_backward(grad: Tensor, input_sizes: list[int], *rest: Any) -> Any:
    """The gradient of a tensor by that of a part of it: zeros elsewhere."""
    return torch.empty(input_sizes, dtype=grad.dtype, device=grad.device)


def _addmm(bias: Tensor, a: Tensor, b: Tensor, **options: Any) -> Any:
    return a.new_empty((a.shape[0], b.shape[1])) if a.shape[1] == b.shape[0] else NotImplemented


def _grouped_mm(a: Tensor, b: Tensor, offs: Tensor | None = None, *rest: Any, **options: Any) -> Any:
    """Rows of many experts at once: (T, K)·(E, K, N), or (K, T)·(T, N) summed by expert."""
    if a.dim() == 2 and b.dim() == 3:
        return a.new_empty((a.shape[0], b.shape[2]))
    if a.dim() == 2 and offs is not None:
        return a.new_empty((offs.shape[0], a.shape[0], b.shape[1]))
    return NotImplemented


_SHAPELESS = (
    *("relu", "gelu", "silu", "hardswish", "hardsigmoid", "sigmoid", "tanh", "leaky_relu", "elu", "hardtanh"),
    *("add", "mul", "sub", "div", "exp", "sqrt"),
)
_SHAPELESS_BACKWARD = ("threshold", "gelu", "silu", "hardswish", "hardsigmoid", "hardtanh", "sigmoid")

QUICK: Mapping[str, Quick] = {
    "native_batch_norm": _batch_norm,
    "native_batch_norm_backward": _batch_norm_backward,
    "native_layer_norm": _layer_norm,
    "native_layer_norm_backward": _layer_norm_backward,
    "upsample_bilinear2d": _resized,
    "upsample_bicubic2d": _resized,
    "addmm": _addmm,
    "bmm": _bmm,
    "mm": _mm,
    "select_backward": _part_backward,
    "slice_backward": _part_backward,
    "_grouped_mm": _grouped_mm,
    **dict.fromkeys(_SHAPELESS, _like),
    **{f"{name}_": _in_place for name in _SHAPELESS},
    **{f"{name}_backward": _like for name in _SHAPELESS_BACKWARD},
}
"""By full name, with the underscore of in-place variants. Out-variants do not occur in a capture."""
