"""The loss of a model nobody gave a loss for, chosen by the shape of what comes out.

(N, C), (N, T, V) and (N, C, H, W) are class scores: cross entropy against integer targets. A mapping or object with
`loss` has one already. One score per sample is a regression (mean squared error). Anything else: the sum of the
means.
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
    """One number to differentiate; None where nothing that comes out can be."""
    own = result.get("loss") if isinstance(result, Mapping) else getattr(result, "loss", None)
    if isinstance(own, torch.Tensor):
        return own
    scores = _scores(result)
    if not scores:
        return None
    return sum((_of_scores(s) for s in scores[1:]), start=_of_scores(scores[0]))


def _scores(result: Any) -> tuple[torch.Tensor, ...]:
    """What the loss sees: logits where they are named, every output of the first one's rank otherwise (auxiliary
    heads).
    """
    logits = result.get("logits") if isinstance(result, Mapping) else getattr(result, "logits", None)
    if isinstance(logits, torch.Tensor) and not isinstance(result, tuple):
        return (logits,)
    found = tuple(t for t in outputs_of(result) if t.requires_grad)
    if isinstance(result, torch.Tensor) or len(found) <= 1:
        return found
    alike = tuple(t for t in found if t.dim() == found[0].dim() and t.shape[1:] == found[0].shape[1:])
    return alike if len(alike) == len(found) else found


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
