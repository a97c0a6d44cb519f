"""The loss of Connectionist Temporal Classification (Graves et al. 2006) on `meta`: one op forward, one backward.

The recursion over time keeps log α for the 2S + 1 states of a text of S letters: (N, T, 2S + 1).
"""

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from epochcast.describe.capture.torch.small_values import Unknown, Values


def _loss(values: Values, log_probs: Tensor, targets: Tensor, *lengths: Any, **options: Any) -> tuple[Tensor, Tensor]:
    steps, samples = log_probs.shape[0], log_probs.shape[1] if log_probs.dim() > 2 else 1
    letters = targets.shape[1] if targets.dim() > 1 else _letters(values, lengths[1], targets, samples)
    return log_probs.new_empty((samples,)), log_probs.new_empty((samples, steps, 2 * letters + 1))


def _letters(values: Values, lengths: Any, targets: Tensor, samples: int) -> int:
    """The longest text of those that lie one behind another."""
    try:
        sizes = values.of(lengths).tolist() if isinstance(lengths, Tensor) else list(lengths)
    except Unknown:
        return -(-targets.numel() // samples)
    return int(max(sizes, default=0))


def _loss_backward(values: Values, grad: Tensor, log_probs: Tensor, *rest: Any, **options: Any) -> Tensor:
    return log_probs.new_empty(log_probs.shape)


CTC: Mapping[str, Callable[..., Any]] = {"_ctc_loss": _loss, "_ctc_loss_backward": _loss_backward}
"""By the operator's name."""
