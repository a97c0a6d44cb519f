"""The training step of a Lightning module, run as its Trainer would run it: `training_step` on a batch of the loader.

With automatic optimization the loss that it returns is differentiated. With manual optimization it runs the optimizers
of `configure_optimizers` itself, and they are recorded as they run. What belongs to a Trainer (logging, toggling,
the number of steps) is stood in for; nothing is trained.
"""

import inspect
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import torch

from epochcast.errors import BadInput

_PACKAGES = frozenset({"lightning", "pytorch_lightning"})
# What modules ask their trainer for while they train; a thousand steps are enough for any schedule of learning rates.
_TRAINER: Mapping[str, Any] = {
    **dict.fromkeys(("estimated_stepping_batches", "num_training_batches"), 1000),
    **dict.fromkeys(("max_epochs", "world_size", "num_devices", "num_nodes", "accumulate_grad_batches"), 1),
    **dict.fromkeys(("global_step", "current_epoch", "global_rank", "local_rank"), 0),
    **dict.fromkeys(("training", "is_global_zero", "is_last_batch"), True),
    **dict.fromkeys(("sanity_checking", "validating", "testing", "predicting"), False),
    **dict.fromkeys(("logger", "datamodule", "gradient_clip_val"), None),
    "max_steps": -1,
    "callback_metrics": {},
}


def has_training_step(module: torch.nn.Module) -> bool:
    """Whether it is a Lightning module with a `training_step` of its own."""
    for kind in type(module).__mro__:
        if "training_step" in vars(kind):
            return kind.__module__.partition(".")[0] not in _PACKAGES and _is_lightning(module)
    return False


def _is_lightning(module: torch.nn.Module) -> bool:
    return any(kind.__module__.partition(".")[0] in _PACKAGES for kind in type(module).__mro__)


def optimizes_by_hand(module: torch.nn.Module) -> bool:
    """Whether `training_step` goes backward and updates by itself."""
    return getattr(module, "automatic_optimization", True) is False


def training_step(module: Any, batch: Any) -> Any:
    """One call of `training_step`; its loss, where the module does not go backward itself."""
    _prepare(module)
    arguments: list[Any] = [batch, 0]
    result = module.training_step(*arguments[: _count(module.training_step)])
    if optimizes_by_hand(module):
        return ()
    loss = result.get("loss") if isinstance(result, Mapping) else result
    if not isinstance(loss, torch.Tensor):
        raise BadInput(f"`training_step` of {type(module).__name__} gives no loss, but {type(result).__name__}")
    return loss


def _count(step: Any) -> int:
    """How many of (batch, batch_idx) it takes."""
    needed = [p for p in inspect.signature(step).parameters.values() if p.kind is not p.VAR_KEYWORD]
    if any(p.name == "optimizer_idx" for p in needed):
        raise BadInput("`training_step` with optimizer_idx is of Lightning 1: it has manual optimization since 2.0")
    return min(2, len(needed)) if not any(p.kind is p.VAR_POSITIONAL for p in needed) else 2


def _prepare(module: Any) -> None:
    """Stand in for the Trainer, once for a module."""
    if isinstance(getattr(module, "_trainer", None), SimpleNamespace):
        return
    module._trainer = SimpleNamespace(**_TRAINER, loggers=[], optimizers=[], strategy=SimpleNamespace())
    optimizers = list(_optimizers(module.configure_optimizers())) if optimizes_by_hand(module) else []
    module._trainer.optimizers = optimizers

    def optimizers_of(use_pl_optimizer: bool = True) -> Any:
        return optimizers[0] if len(optimizers) == 1 else optimizers

    def backward(loss: torch.Tensor, *args: Any, **kwargs: Any) -> None:
        loss.backward(*args, **kwargs)  # type: ignore[no-untyped-call]

    def nothing(*args: Any, **kwargs: Any) -> None:
        return None

    stands_in = {
        **dict.fromkeys(("log", "log_dict", "print", "clip_gradients", "untoggle_optimizer"), nothing),
        "toggle_optimizer": nothing,
        "toggled_optimizer": lambda *args, **kwargs: nullcontext(),
        "optimizers": optimizers_of,
        "lr_schedulers": lambda: SimpleNamespace(step=nothing),
        "manual_backward": backward,
    }
    vars(module).update(stands_in)


def _optimizers(configured: Any) -> Iterator[torch.optim.Optimizer]:
    """The optimizers among what `configure_optimizers` may return: one, several, dicts, (optimizers, schedulers)."""
    if isinstance(configured, torch.optim.Optimizer):
        yield configured
    elif isinstance(configured, Mapping):
        yield from _optimizers(configured.get("optimizer"))
    elif isinstance(configured, list | tuple):
        for item in configured:
            yield from _optimizers(item)
