"""The loss of a model without a given loss, chosen by the shape of its outputs.

(N, C), (N, T, V) and (N, C, H, W) are class scores: cross entropy against integer targets. A mapping or object with
`loss` already has one. One score per sample is a regression (mean squared error). Otherwise: the sum of the means.
"""

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F

from epochcast.capture.torch.example import tensors_in


def outputs_of(result: Any) -> tuple[torch.Tensor, ...]:
    """The floating-point tensors among a model's results."""
    return tuple(t for _, t in tensors_in(result) if t.is_floating_point())


def loss_of(result: Any) -> torch.Tensor | None:
    """One number to differentiate; None if no output can be."""
    model_loss = result.get("loss") if isinstance(result, Mapping) else getattr(result, "loss", None)
    if isinstance(model_loss, torch.Tensor):
        return model_loss
    scores = _scores(result)
    if not scores:
        return None
    return sum((_of_scores(s) for s in scores[1:]), start=_of_scores(scores[0]))


def _scores(result: Any) -> tuple[torch.Tensor, ...]:
    """What the loss reads: `logits` if there are any, else all outputs (auxiliary heads)."""
    logits = result.get("logits") if isinstance(result, Mapping) else getattr(result, "logits", None)
    if isinstance(logits, torch.Tensor) and not isinstance(result, tuple):
        return (logits,)
    outputs = tuple(t for t in outputs_of(result) if t.requires_grad)
    if isinstance(result, torch.Tensor) or len(outputs) <= 1:
        return outputs
    same_shape = tuple(t for t in outputs if t.dim() == outputs[0].dim() and t.shape[1:] == outputs[0].shape[1:])
    return same_shape if len(same_shape) == len(outputs) else outputs


def _of_scores(scores: torch.Tensor) -> torch.Tensor:
    def targets(*shape: int) -> torch.Tensor:
        return torch.empty(shape, dtype=torch.int64, device="meta")

    match tuple(scores.shape):
        case (_, 1):
            return F.mse_loss(scores, torch.empty_like(scores))
        case (samples, _):
            return F.cross_entropy(scores, targets(samples))
        case (samples, positions, classes):
            return F.cross_entropy(scores.reshape(-1, classes), targets(samples * positions))
        case (samples, classes, *positions) if classes > 1 and len(positions) == 2:
            return F.cross_entropy(scores, targets(samples, *positions))
        case _:
            return scores.mean()
