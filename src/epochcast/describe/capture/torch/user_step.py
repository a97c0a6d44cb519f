"""A step that the user's own function runs: any number of models, losses and optimizers.

The function runs twice and is recorded once: the first run makes the optimizers' states, the second is what every later
step looks like. What autograd runs is backward, what an optimizer's `step` runs is update, the rest is forward. A loss
that the function returns without having gone backward is differentiated here.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import get_ident
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from epochcast.describe.capture.torch.aten_recorder import Recorder
from epochcast.describe.capture.torch.example_arguments import tensors_in
from epochcast.describe.capture.torch.storage_names import Storage
from epochcast.describe.graph.op import Phase
from epochcast.describe.graph.tensor import Relation, gradient_name
from epochcast.errors import BadInput

Step = Callable[[Any, Any], Any]


class OwnStep:
    """Runs a user's step under a recorder and keeps the names of the storages that it made."""

    def __init__(self, recorder: Recorder, module: torch.nn.Module) -> None:
        self.storages: dict[int, Storage] = {}
        self._recorder, self._module = recorder, module
        self._names = {parameter: name for name, parameter in module.named_parameters()}
        self._optimizers: list[torch.optim.Optimizer] = []
        self._gradients: dict[str, int] = {}

    @property
    def optimizers(self) -> tuple[str, ...]:
        """The optimizers that it ran, by their classes."""
        return tuple(type(optimizer).__name__ for optimizer in self._optimizers)

    def run(self, step: Step, passed: Any, batch: Any) -> Any:
        """Run it twice, the second time recorded; its result."""
        recorder = self._recorder
        with self._hooked():
            recorder.is_recording = False
            self._backward(step(passed, batch))
            for parameter in self._module.parameters():
                parameter.grad = None
            self._optimizers.clear()
            self._gradients.clear()
            recorder.is_recording, recorder.has_run_backward = True, False
            result = step(passed, batch)
            self._backward(result)
        self._note_gradients(self._module.parameters())
        return result

    def _backward(self, result: Any) -> None:
        """Differentiate what it returned, if it did not do so itself."""
        losses = [tensor for _, tensor in tensors_in(result) if tensor.requires_grad and tensor.grad_fn is not None]
        if not self._recorder.has_run_backward:
            if not losses:
                raise BadInput(
                    "`step` trains nothing: it must call backward() on a loss of the `model` it is given, or return it"
                )
            self._recorder.phase = Phase.BACKWARD
            torch.autograd.backward([loss.sum() if loss.dim() else loss for loss in losses])
            self._recorder.phase = Phase.FORWARD
            self._recorder.has_run_backward = True

    @contextmanager
    def _hooked(self) -> Iterator[None]:
        thread = get_ident()

        def begins(optimizer: torch.optim.Optimizer, *_: Any) -> None:
            if get_ident() == thread:
                self._recorder.phase, self._recorder.algorithm = Phase.UPDATE, type(optimizer).__name__.casefold()
                _as_on_a_gpu(optimizer)
                self._note_gradients(p for group in optimizer.param_groups for p in group["params"])

        def ends(optimizer: torch.optim.Optimizer, *_: Any) -> None:
            if get_ident() == thread:
                self._recorder.phase = Phase.FORWARD
                self._note_states(optimizer)

        hooks = [register_optimizer_step_pre_hook(begins), register_optimizer_step_post_hook(ends)]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def _note_gradients(self, parameters: Any) -> None:
        """Names for gradients; a parameter that goes backward twice has two."""
        for parameter in parameters:
            name = self._names.get(parameter)
            if name is None:
                raise _foreign()
            if parameter.grad is None:
                continue
            storage = self._recorder.storage(parameter.grad)
            if storage not in self.storages:
                count = self._gradients[name] = self._gradients.get(name, 0) + 1
                label = gradient_name(name) if count == 1 else f"{gradient_name(name)}:{count}"
                self.storages[storage] = Storage(label, Relation(gradient_of=name))

    def _note_states(self, optimizer: torch.optim.Optimizer) -> None:
        if not any(optimizer is other for other in self._optimizers):
            self._optimizers.append(optimizer)
        states: Mapping[Any, Mapping[str, Any]] = optimizer.state
        for parameter, state in states.items():
            for key, value in state.items():
                if isinstance(value, torch.Tensor) and value.device.type == "meta":
                    name = self._names[parameter]
                    self.storages.setdefault(
                        self._recorder.storage(value), Storage(f"{key}:{name}", Relation(state_of=name))
                    )


def _as_on_a_gpu(optimizer: torch.optim.Optimizer) -> None:
    """On a GPU an optimizer sweeps over lists of tensors by default; on `meta` it would take them one by one."""
    for group in optimizer.param_groups:
        if "foreach" in group and group["foreach"] is None and not group.get("fused"):
            group["foreach"] = True


def _foreign() -> BadInput:
    return BadInput(
        "`step` updates parameters that are not of the `model` it is given: use its argument, "
        "or make model, optimizers and step in one function and forecast file.py:function"
    )
