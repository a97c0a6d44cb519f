"""Operators that PyTorch has no `meta` kernel for: what they return, from shapes and the few values that are known.

Packed sequences (`pack_padded_sequence`): their number of rows depends on the values of the lengths. All sequences
have the mean length but one, which is the longest, so that rows grow evenly with the batch. Unknown lengths are as long
as their tensor. The number of sequences at each time is on the host, as in PyTorch.

The loss of Connectionist Temporal Classification (Graves et al. 2006): one op forward, one backward. The recursion over
time keeps log α for the 2S + 1 states of a text of S letters: (N, T, 2S + 1).
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from epochcast.describe.capture.torch.small_values import Unknown, Values


def _pack(values: Values, x: Tensor, lengths: Tensor, batch_first: bool = False) -> tuple[Tensor, Tensor]:
    samples, longest = (x.shape[0], x.shape[1]) if batch_first else (x.shape[1], x.shape[0])
    try:
        lengths = values.of(lengths)
    except Unknown:
        lengths = torch.full((samples,), longest, dtype=torch.int64, device="cpu")
    mean, most = max(1, round(float(lengths.double().mean()))), int(lengths.max())
    sizes = torch.tensor([samples] * mean + [1] * (most - mean), dtype=torch.int64, device="cpu")
    return x.new_empty((int(sizes.sum()), *x.shape[2:])), sizes


def _pack_backward(values: Values, grad: Tensor, input_size: list[int], *rest: Any) -> Tensor:
    return grad.new_empty(input_size)


def _ctc(values: Values, log_probs: Tensor, targets: Tensor, *lengths: Any, **options: Any) -> tuple[Tensor, Tensor]:
    steps, samples = log_probs.shape[0], log_probs.shape[1] if log_probs.dim() > 2 else 1
    letters = targets.shape[1] if targets.dim() > 1 else _letters(values, lengths[1], targets, samples)
    return log_probs.new_empty((samples,)), log_probs.new_empty((samples, steps, 2 * letters + 1))


def _letters(values: Values, lengths: Any, targets: Tensor, samples: int) -> int:
    """The longest of the texts that are concatenated in `targets`."""
    try:
        sizes = values.of(lengths).tolist() if isinstance(lengths, Tensor) else list(lengths)
    except Unknown:
        return -(-targets.numel() // samples)
    return int(max(sizes, default=0))


def _ctc_backward(values: Values, grad: Tensor, log_probs: Tensor, *rest: Any, **options: Any) -> Tensor:
    return log_probs.new_empty(log_probs.shape)


META_KERNELS: Mapping[str, Callable[..., Any]] = {
    "_pack_padded_sequence": _pack,
    "_pack_padded_sequence_backward": _pack_backward,
    "_ctc_loss": _ctc,
    "_ctc_loss_backward": _ctc_backward,
}
"""By the operator's name; the first argument is what is known of small tensors."""
