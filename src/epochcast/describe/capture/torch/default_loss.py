"""The loss of a model without a given loss, chosen by the shape of its outputs.

(N, C), (N, T, V) and (N, C, H, W) are class scores: cross entropy against integer targets. A mapping or object with
`loss` already has one. One score per sample is a regression (mean squared error). Otherwise: the sum of the means.
"""

from collections.abc import Callable, Mapping
from copy import deepcopy
from inspect import signature
from typing import Any

import torch
import torch.nn.functional as F

from epochcast.describe.capture.torch.example_arguments import tensors_in
from epochcast.describe.capture.torch.meta_modules import on_meta
from epochcast.errors import BadInput


def user_loss(loss: Callable[..., Any], result: Any, batch: Any) -> torch.Tensor:
    """What the user's own loss makes of a model's result: `loss(result)`, `loss(result, batch)`, or a loss of torch."""
    if isinstance(loss, torch.nn.Module):
        loss = on_meta(deepcopy(loss))
    if type(loss).__module__ == "torch.nn.modules.loss" or getattr(loss, "__module__", "") == "torch.nn.functional":
        (scores, *_) = _scores(result) or (result,)
        value = loss(scores, _targets(loss, scores))
    else:
        value = loss(result, batch) if _takes_two(loss) else loss(result)
    if not isinstance(value, torch.Tensor):
        raise BadInput(f"`loss` must return a tensor, got {type(value).__name__}")
    return value.sum() if value.dim() else value


def _takes_two(loss: Callable[..., Any]) -> bool:
    """Whether a loss wants the batch, too: it has a second argument without a default."""
    function = loss.forward if isinstance(loss, torch.nn.Module) else loss
    try:
        parameters = list(signature(function).parameters.values())
    except (TypeError, ValueError):
        return False
    needed = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty]
    return len(needed) > 1 or any(p.kind is p.VAR_POSITIONAL for p in parameters)


def _targets(loss: Callable[..., Any], scores: torch.Tensor) -> torch.Tensor:
    """Targets for a loss of torch: class numbers where it compares with classes, else like the scores."""
    if getattr(loss, "__name__", type(loss).__name__) in _OF_CLASSES:
        return torch.empty((scores.shape[0], *scores.shape[2:]), dtype=torch.int64, device="meta")
    return torch.empty_like(scores, requires_grad=False)


_OF_CLASSES = ("CrossEntropyLoss", "NLLLoss", "NLLLoss2d", "MultiMarginLoss", "cross_entropy", "nll_loss")


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
