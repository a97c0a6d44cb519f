"""Packed sequences (`pack_padded_sequence`) on `meta`: how many rows there are is a matter of the lengths' values.

All sequences are taken to be of mean length but one, which is the longest, so that rows grow evenly with the batch.
Where nobody knows the lengths, all are as long as their tensor. The number of sequences at each time is on the host, as
PyTorch has it.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from epochcast.describe.capture.torch.small_values import Unknown, Values


def _pack(values: Values, x: Tensor, lengths: Tensor, batch_first: bool = False) -> tuple[Tensor, Tensor]:
    samples, longest = (x.shape[0], x.shape[1]) if batch_first else (x.shape[1], x.shape[0])
    try:
        known = values.of(lengths)
    except Unknown:
        known = torch.full((samples,), longest, dtype=torch.int64, device="cpu")
    mean, most = max(1, round(float(known.double().mean()))), int(known.max())
    sizes = torch.tensor([samples] * mean + [1] * (most - mean), dtype=torch.int64, device="cpu")
    return x.new_empty((int(sizes.sum()), *x.shape[2:])), sizes


def _pack_backward(values: Values, grad: Tensor, input_size: list[int], *rest: Any) -> Tensor:
    return grad.new_empty(input_size)


PACKED: Mapping[str, Callable[..., Any]] = {
    "_pack_padded_sequence": _pack,
    "_pack_padded_sequence_backward": _pack_backward,
}
"""By the operator's name."""
