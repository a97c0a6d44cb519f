"""Two real steps: peak bytes at two batch sizes, for the thesis' equations 4.7–4.9 (`advise/thesis.py` solves them).

The user's module is built with real weights and trained for a few steps on made-up data. On CUDA the allocator's own
counter is read (reserved bytes, what the thesis reads); elsewhere every allocation and release that torch's profiler
reports is summed, on top of what lives before the step: parameters, buffers, optimizer state, inputs. The processor's
allocator has neither workspaces nor context: its X is lower than a GPU's.
"""

from dataclasses import dataclass
from typing import Any

from epochcast.advise.thesis import PROBE_BATCHES, Coefficients
from epochcast.capture.torch.factory import is_keras, named_object
from epochcast.capture.torch.notes import explained
from epochcast.errors import BadInput, MissingExtra

# The first step makes gradients and optimizer state; from the second on every step is alike.
WARMUP_STEPS = 2
CUDA_STEPS = 5


@dataclass(frozen=True, slots=True)
class Probe:
    """What two real steps took, and by which counter."""

    coefficients: Coefficients
    counter: str

    def as_dict(self, memory_bytes: float) -> dict[str, object]:
        """Under `probe` in the JSON: the coefficients and the batch that `memory_bytes` would hold."""
        most = self.coefficients.largest_batch(memory_bytes)
        return {"counter": self.counter, "max_batch": most, **self.coefficients.as_dict()}


def probe_memory(
    reference: object,
    input_shape: tuple[int, ...] | None = None,
    *,
    optimizer: str = "sgd",
    batches: tuple[int, int] = PROBE_BATCHES,
) -> Probe:
    """Run the model's real step at two batches."""
    try:
        import torch
    except ModuleNotFoundError:
        raise MissingExtra("torch") from None
    device = "cuda" if torch.cuda.is_available() else "cpu"
    measured = []
    input_bytes = output_bytes = 0.0
    with explained("the probed step"):
        for batch in batches:
            module, inputs = _made(reference, input_shape, batch, device)
            update = _optimizer(module, optimizer)
            step = _Step(module, inputs, update)
            measured.append(float(_cuda_bytes(step) if device == "cuda" else _cpu_bytes(step)))
            input_bytes, output_bytes = step.input_bytes / batch, step.output_bytes / batch
            del step, module, inputs, update
            if device == "cuda":
                torch.cuda.empty_cache()
    counter = "CUDA allocator, reserved" if device == "cuda" else "processor's allocator, by torch's profiler"
    return Probe(Coefficients(batches, (measured[0], measured[1]), input_bytes, output_bytes), counter)


class _Step:
    """One training step of a real module on made-up data."""

    def __init__(self, module: Any, inputs: Any, update: Any) -> None:
        self.module, self.inputs, self.update = module, inputs, update
        self.input_bytes = sum(t.nbytes for t in _tensors((inputs.args, inputs.kwargs)))
        self.output_bytes = 0

    def __call__(self) -> None:
        self.update.zero_grad(set_to_none=True)
        result = self.module(*self.inputs.args, **self.inputs.kwargs)
        self.output_bytes = sum(t.nbytes for t in _tensors(result) if t.is_floating_point())
        _loss(result).backward()
        self.update.step()

    def standing_bytes(self) -> int:
        """What lives between two steps once gradients are dropped."""
        state = [value for entry in self.update.state.values() for value in _tensors(entry)]
        held = [*self.module.parameters(), *self.module.buffers(), *state, *_tensors(self.inputs.args)]
        held += _tensors(dict(self.inputs.kwargs))
        return sum({t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in held}.values())


def _cuda_bytes(step: _Step) -> int:
    """The most the caching allocator holds."""
    import torch

    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    for _ in range(CUDA_STEPS):
        step()
    torch.cuda.synchronize()
    return int(torch.cuda.max_memory_reserved())


def _cpu_bytes(step: _Step) -> int:
    """The highest running sum of allocations and releases, above what stands before the step."""
    import torch

    for _ in range(WARMUP_STEPS):
        step()
    step.update.zero_grad(set_to_none=True)
    standing = step.standing_bytes()
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, profile_memory=True) as profile:
        step()
    seen = [event for event in profile.profiler.kineto_results.events() if event.name() == "[memory]"]
    now = most = 0
    for event in sorted(seen, key=lambda event: event.start_ns()):
        now += event.nbytes()
        most = max(most, now)
    return standing + most


def _made(reference: object, input_shape: tuple[int, ...] | None, batch: int, device: str) -> tuple[Any, Any]:
    """The module with real weights, and real inputs for it."""
    import torch

    from epochcast.capture.torch.example import Example, mapped
    from epochcast.capture.torch.feeding import example_for

    text = str(reference)
    family, _, rest = text.partition(":")
    inputs: Any = None
    made: Any
    if isinstance(reference, torch.nn.Module):
        made = reference
    elif family in ("torchvision", "timm"):
        made = _published(family, rest)
        inputs = (3, 224, 224)
    elif ":" in text and family != "hf":
        found: Any = named_object(text)
        made = found() if callable(found) and not isinstance(found, torch.nn.Module) else found
    else:
        raise BadInput(f"a probe runs real steps of a torch module: {text!r} is none; name a file.py:factory")
    if isinstance(made, tuple) and len(made) == 2:
        made, inputs = made
    if is_keras(made) or not isinstance(made, torch.nn.Module):
        raise BadInput(f"a probe runs real steps of a torch module, {text} gives a {type(made).__name__}")
    example = example_for(made, input_shape if input_shape is not None else inputs, text).at(batch)

    def real(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.is_floating_point():
            return torch.randn(tensor.shape, dtype=tensor.dtype, device=device)
        return torch.zeros(tensor.shape, dtype=tensor.dtype, device=device)

    fed = Example(mapped(example.args, real), mapped(dict(example.kwargs), real))
    return made.to(device).train(), fed


def _published(family: str, name: str) -> Any:
    from epochcast.capture.torch.shim import import_timm, import_torchvision

    if family == "timm":
        return import_timm().create_model(name, pretrained=False)
    return import_torchvision().models.get_model(name, weights=None)


def _optimizer(module: Any, name: str) -> Any:
    """Torch's own optimizer behind a name of ours."""
    from epochcast.capture.torch.steps import OPTIMIZERS
    from epochcast.graph.optimizer import find_optimizer

    key = find_optimizer(name)
    if key not in OPTIMIZERS:
        raise BadInput(f"a probe cannot run the optimizer {name!r}; known: {', '.join(sorted(OPTIMIZERS))}")
    return OPTIMIZERS[key]([p for p in module.parameters() if p.requires_grad])


def _loss(result: Any) -> Any:
    """The module's own loss, else cross entropy or a mean of what comes out."""
    import torch.nn.functional as F

    own = result.get("loss") if isinstance(result, dict) else getattr(result, "loss", None)
    if own is not None:
        return own
    parts = []
    for scores in _tensors(result):
        if not scores.requires_grad:
            continue
        if scores.dim() == 2 and scores.shape[1] > 1:
            parts.append(F.cross_entropy(scores, scores.new_zeros(len(scores)).long()))
        elif scores.dim() == 3:
            flat = scores.reshape(-1, scores.shape[-1])
            parts.append(F.cross_entropy(flat, flat.new_zeros(len(flat)).long()))
        else:
            parts.append(scores.mean())
    if not parts:
        raise BadInput("nothing that comes out of the model can be trained")
    return sum(parts[1:], start=parts[0])


def _tensors(value: Any) -> list[Any]:
    from epochcast.capture.torch.example import tensors_in

    return [tensor for _, tensor in tensors_in(value)]
