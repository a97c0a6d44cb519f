"""One step of a real torch module, by a recipe: forward, loss, backward, update, as
`describe/capture/torch/meta_steps.py` has it.

Targets are made once, for the shape of the first output. Batches come from a loader where there is one. Peak bytes are
those of the CUDA allocator; on other devices they are the sum of all allocations and releases of one step that torch's
profiler reports, above what is allocated before it (parameters, buffers, optimizer state, the batch).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.nn.functional as F

from epochcast.describe.capture.torch.default_loss import outputs_of
from epochcast.describe.capture.torch.example_arguments import Example, mapped, tensors_in
from epochcast.describe.capture.torch.meta_steps import OPTIMIZERS
from epochcast.describe.graph.precision import Precision
from epochcast.describe.graph.recipe import Recipe
from epochcast.errors import BadInput
from epochcast.measure.bench.bench_networks import BenchNetwork, module_and_inputs
from epochcast.measure.bench.torch_device import device_type

# The first allocates gradients and optimizer state; from the second on all steps are alike.
WARM_UP_STEPS = 2


class TorchStep:
    """Call it to train one step."""

    def __init__(
        self, network: BenchNetwork, recipe: Recipe, device: str, batches: Iterable[Any] | None = None
    ) -> None:
        if recipe.accumulate != 1 or recipe.freeze or recipe.update_style != "foreach":
            raise BadInput("a measured step has no accumulation, no frozen layers and foreach updates")
        self.recipe, self.device, self.loss = recipe, device, network.loss
        self.module, self.inputs = module_and_inputs(network, recipe.batch, device)
        if recipe.precision_rules.is_stored:
            dtype = torch_precision(recipe.precision_rules)
            self.module.to(dtype)
            self.inputs = _mapped(self.inputs, lambda t: t.to(dtype) if t.is_floating_point() else t)
        if recipe.channels_last:
            self.module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
            self.inputs = _mapped(self.inputs, lambda t: t.to(memory_format=torch.channels_last) if t.dim() == 4 else t)
        self.update = self._optimizer()
        self.batches: Iterator[Any] | None = repeated(batches) if batches is not None else None
        self.output_bytes = 0
        self._targets: list[torch.Tensor | None] = []

    @property
    def input_bytes(self) -> int:
        """Bytes of the batch."""
        return sum(t.nbytes for t in self._input_tensors())

    def _input_tensors(self) -> list[torch.Tensor]:
        return [t for _, t in tensors_in((self.inputs.args, dict(self.inputs.kwargs)))]

    def _optimizer(self) -> torch.optim.Optimizer | None:
        if self.recipe.mode != "training" or self.recipe.optimizer == "none":
            return None
        if self.recipe.optimizer not in OPTIMIZERS:
            raise BadInput(f"torch has no optimizer {self.recipe.optimizer!r}; known: {', '.join(sorted(OPTIMIZERS))}")
        return OPTIMIZERS[self.recipe.optimizer]([p for p in self.module.parameters() if p.requires_grad])

    def __call__(self) -> None:
        targets = None
        if self.batches is not None:
            inputs, targets = (part.to(self.device) for part in next(self.batches))
            self.inputs = Example((inputs,))
        if self.recipe.mode == "forward":
            with torch.no_grad(), self._autocast():
                self.module(*self.inputs.args, **self.inputs.kwargs)
            return
        for parameter in self.module.parameters():
            parameter.grad = None
        with self._autocast():
            result = self.module(*self.inputs.args, **self.inputs.kwargs)
            self.output_bytes = self.output_bytes or sum(t.nbytes for t in outputs_of(result))
            loss = self._loss(result, targets)
        loss.backward()  # type: ignore[no-untyped-call]
        if self.update is not None:
            self.update.step()

    def _autocast(self) -> AbstractContextManager[Any]:
        if not self.recipe.precision_rules.is_autocast:
            return nullcontext()
        return torch.autocast(device_type(self.device), torch_precision(self.recipe.precision_rules))

    def _loss(self, result: Any, targets: torch.Tensor | None) -> torch.Tensor:
        model_loss = result.get("loss") if isinstance(result, Mapping) else getattr(result, "loss", None)
        if isinstance(model_loss, torch.Tensor):
            return model_loss
        scores = [t for _, t in tensors_in(result) if t.requires_grad]
        if not scores:
            raise BadInput("no output of the model can be trained")
        if targets is not None:
            return F.cross_entropy(scores[0], targets)
        if not self._targets:
            self._targets = [_target(s, self.loss) for s in scores]
        parts = [_loss(s, t, self.loss) for s, t in zip(scores, self._targets, strict=True)]
        return sum(parts[1:], start=parts[0])

    def peak_bytes(self) -> int:
        """The peak memory of one step."""
        if device_type(self.device) == "cuda":
            torch.cuda.reset_peak_memory_stats(self.device)
            self()
            torch.cuda.synchronize(self.device)
            return int(torch.cuda.max_memory_allocated(self.device))
        for parameter in self.module.parameters():
            parameter.grad = None
        allocated_before = self._allocated_bytes()
        activities = [torch.profiler.ProfilerActivity.CPU]
        with torch.profiler.profile(activities=activities, profile_memory=True) as profile:
            self()
        profiler: Any = profile.profiler
        memory_events = [event for event in profiler.kineto_results.events() if event.name() == "[memory]"]
        current = peak = 0
        for event in sorted(memory_events, key=lambda event: int(event.start_ns())):
            current += event.nbytes()
            peak = max(peak, current)
        return allocated_before + peak

    def _allocated_bytes(self) -> int:
        state = [] if self.update is None else [t for _, t in tensors_in(list(self.update.state.values()))]
        targets = [t for t in self._targets if t is not None]
        tensors = [*self.module.parameters(), *self.module.buffers(), *state, *self._input_tensors(), *targets]
        return sum({t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}.values())


def torch_precision(precision: Precision) -> torch.dtype:
    """The dtype of matrix products."""
    dtype: torch.dtype | None = getattr(torch, precision.products.value, None)
    if dtype is None:
        raise BadInput(f"steps in {precision.name} cannot be measured: PyTorch cannot train in it by itself")
    return dtype


def _target(scores: torch.Tensor, loss: str) -> torch.Tensor | None:
    """Random classes, or numbers between 0 and 1 where the output is one number; None where it is neither."""
    if loss == "bce":
        return torch.rand_like(scores.detach())
    match tuple(scores.shape):
        case (_, 1):
            return torch.rand_like(scores.detach())
        case (*samples, classes) if len(samples) in (1, 2):
            return torch.randint(0, classes, tuple(samples), device=scores.device)
        case (samples, classes, height, width) if classes > 1:
            return torch.randint(0, classes, (samples, height, width), device=scores.device)
        case _:
            return None


def _loss(scores: torch.Tensor, target: torch.Tensor | None, loss: str) -> torch.Tensor:
    """The loss by the rule of `describe/capture/torch/default_loss.py`."""
    if target is None:
        return scores.mean()
    if loss == "bce":
        return F.binary_cross_entropy(scores, target)
    if target.is_floating_point():
        return F.mse_loss(scores, target)
    if scores.dim() == 3:
        return F.cross_entropy(scores.reshape(-1, scores.shape[-1]), target.reshape(-1))
    return F.cross_entropy(scores, target)


def _mapped(inputs: Example, change: Callable[[torch.Tensor], torch.Tensor]) -> Example:
    return Example(mapped(inputs.args, change), mapped(dict(inputs.kwargs), change))


def repeated(batches: Iterable[Any]) -> Iterator[Any]:
    """The batches of a loader, again and again."""
    while True:
        empty = True
        for batch in batches:
            empty = False
            yield batch
        if empty:
            raise BadInput("the loader gives no batch")
