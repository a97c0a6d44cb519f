"""What one training step of the user's own code is: a model, what it is fed, and how a step goes.

A function that makes a model for a forecast may return one; `ec.forecast(model, inputs=…, loss=…, step=…)` makes one of
a live module. No framework is imported here.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

from epochcast.describe.capture.model_reference import CONFIG, ModelReference
from epochcast.errors import BadInput


@dataclass(frozen=True, eq=False)
class Workload:
    """A PyTorch model and how it is trained; frozen.

    `model`: an `nn.Module`; with a `step` also a tuple, list or dict of modules that are trained together.

    `inputs`: an example batch: a tensor, a tuple of arguments, a dict of keyword arguments (or one dictionary, where
    `forward` takes that), nested as you like. The first dimension of the first tensor is the batch, and every tensor
    that begins with the same size grows with it; `batch_dimension` says which dimension it is instead. Values of
    integers and masks are used where the model looks at them. Two or three samples are enough.

    `loss`: `loss(output)`, or `loss(output, batch)` with the inputs as they were given, or a loss of torch
    (`nn.CrossEntropyLoss()`), whose targets are made up. Without one the model's own is taken (`output.loss`), else one
    by the shape of the output.

    `step`: `step(model, batch)` runs a whole step instead: several models, losses and optimizers, as often as it likes.
    It calls `backward()` itself, or returns the loss, or a tuple or dict of losses. Where it runs no optimizer the one
    that was asked for updates all parameters once.

    >>> import epochcast as ec
    >>> import torch
    >>> workload = ec.Workload(torch.nn.Linear(64, 10), inputs=torch.zeros(2, 64))
    >>> ec.forecast(workload, device="V100", batch=32).parameters
    650
    """

    model: object
    inputs: Any = None
    loss: Callable[..., Any] | None = None
    step: Callable[..., Any] | None = None
    batch_dimension: int = 0
    name: str | None = None

    def __post_init__(self) -> None:
        for name in ("loss", "step"):
            if getattr(self, name) is not None and not callable(getattr(self, name)):
                raise BadInput(f"`{name}` must be a function, got {type(getattr(self, name)).__name__}")
        if self.loss is not None and self.step is not None:
            raise BadInput("a step has its own loss: give `loss` or `step`, not both")
        if self.step is not None and self.inputs is None:
            raise BadInput("`step` needs a batch to work on: give example `inputs`")
        if isinstance(self.model, Workload):
            raise BadInput("a Workload holds a model, not another Workload")
        if self.batch_dimension < 0:
            raise BadInput(f"`batch_dimension` must be at least 0, got {self.batch_dimension}")


WORKLOAD_NAMES = tuple(part.name for part in fields(Workload) if part.name not in ("model", "name"))
"""What can be said of a live model beside the options of a job."""


def as_workload(model: object, options: dict[str, Any]) -> object:
    """The model, or a workload of it where `options` say how it is fed and trained; these are taken out of them."""
    workload_options = {name: options.pop(name) for name in WORKLOAD_NAMES if name in options}
    if not workload_options:
        return model
    if isinstance(model, Workload):
        return replace(model, **workload_options)
    if isinstance(model, str) and ModelReference.of(model).prefix != CONFIG:
        raise BadInput(
            f"`{next(iter(workload_options))}` goes with a live model: let the function of {model!r} return "
            "(model, inputs) or an ec.Workload"
        )
    return Workload(model, **workload_options)
