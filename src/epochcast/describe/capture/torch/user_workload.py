"""From a `Workload` to a model: the user's modules on `meta`, their inputs, their loss or their step."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch

from epochcast.describe.capture.torch.example_arguments import Example
from epochcast.describe.capture.torch.example_inputs import example_for
from epochcast.describe.capture.torch.example_inputs import on_meta as inputs_on_meta
from epochcast.describe.capture.torch.lightning_step import has_training_step, optimizes_by_hand, training_step
from epochcast.describe.capture.torch.meta_modules import compiled_notes, copied_to_meta, on_meta
from epochcast.describe.capture.torch.small_values import Values
from epochcast.describe.capture.torch.stored_weights import unpacked, with_dense_gradients
from epochcast.describe.capture.torch.torch_model import TorchModel
from epochcast.describe.capture.torch.user_step import Step
from epochcast.describe.capture.workload import Workload
from epochcast.errors import BadInput, EpochcastError


def from_workload(
    workload: Workload,
    name: str | None = None,
    input_shape: tuple[int, ...] | None = None,
    values: Values | None = None,
    *,
    in_place: bool = False,
    **options: Any,
) -> TorchModel:
    """The model of a workload. Live modules are copied to `meta`; `in_place` changes those that were made for this."""
    values = values or Values()
    module = getattr(workload.model, "_orig_mod", workload.model)  # torch.compile wraps
    label = name or workload.name or type(module).__name__
    module, passed = _held(_module(workload.model, label, workload.step is not None))
    options.setdefault("notes", compiled_notes(module))
    if in_place:
        module = on_meta(getattr(module, "_orig_mod", module), values)
    else:
        module = copied_to_meta(module, values)
    module, packed = unpacked(module)
    options["notes"] = (*options["notes"], *with_dense_gradients(module))
    passed = module if passed is None else _like(passed, module)
    inputs = workload.inputs if input_shape is None else input_shape
    options = {"packed": packed, "passed": passed, "values": values, **options}

    def stepping(step: Step) -> TorchModel:
        batch = inputs() if callable(inputs) else inputs
        example = inputs_on_meta(Example((batch,)), values, workload.batch_dimension)
        return TorchModel(label, module, example, step=step, **options)

    def feeding() -> TorchModel:
        example = example_for(module, inputs, label, values, workload.batch_dimension)
        return TorchModel(label, module, example, loss=workload.loss, **options)

    if workload.step is not None:
        _check_step(workload.step)
        return stepping(workload.step)
    if workload.loss is None and has_training_step(module):
        return _trained_by_lightning(module, stepping if workload.inputs is inputs is not None else None, feeding)
    return feeding()


def _trained_by_lightning(
    module: torch.nn.Module, stepping: Callable[[Step], TorchModel] | None, feeding: Callable[[], TorchModel]
) -> TorchModel:
    """By its `training_step` where the inputs are a batch for that, else by its `forward`."""
    why = "no batch is given"
    if stepping is not None:
        try:
            model = stepping(training_step)
            model.graph(1)
            return model
        except EpochcastError as problem:
            why = str(problem)
    kind, advice = type(module).__name__, "return (module, batch) with a batch as its loader gives it"
    if optimizes_by_hand(module):
        raise BadInput(f"{kind} goes backward by itself in `training_step`, which cannot be run: {why}; {advice}")
    model = feeding()
    note = f"`forward` of {kind} is forecast, not its `training_step` ({why}); {advice}"
    return replace(model, notes=(*model.notes, note))


def _module(model: object, label: str, has_step: bool) -> Any:
    if isinstance(model, type) and issubclass(model, torch.nn.Module):
        model = _instance_of(model)
    if isinstance(model, torch.nn.Module):
        if any(isinstance(part, torch.jit.ScriptModule) for part in model.modules()):
            raise BadInput(f"{label} is scripted (torch.jit), which hides its layers: give the model as it is before")
        return model
    members = list(model.values()) if isinstance(model, Mapping) else model
    if isinstance(members, list | tuple) and members and all(isinstance(m, torch.nn.Module) for m in members):
        if not has_step:
            raise BadInput(f"{label} gives {len(members)} modules: say how they are trained with a `step`")
        return dict(model) if isinstance(model, Mapping) else model
    raise BadInput(f"{label} gives a {type(model).__name__}, not a torch.nn.Module")


def _instance_of(kind: type[torch.nn.Module]) -> torch.nn.Module:
    needed = [
        p.name
        for p in inspect.signature(kind).parameters.values()
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    if needed:
        raise BadInput(f"the class {kind.__name__} needs {', '.join(needed)}: give a function that makes the model")
    return kind()


class _Holder(torch.nn.Module):
    """Several modules as one, under their names or numbers."""

    def __init__(self, members: Mapping[str, torch.nn.Module]) -> None:
        super().__init__()
        for name, member in members.items():
            self.add_module(name, member)


def _held(model: Any) -> tuple[torch.nn.Module, Any]:
    """One module that holds everything, and the structure in which a step wants it (None: the module itself)."""
    if isinstance(model, torch.nn.Module):
        return model, None
    if isinstance(model, dict):
        return _Holder(model), dict.fromkeys(model)
    return _Holder({str(place): member for place, member in enumerate(model)}), type(model)


def _like(structure: Any, module: torch.nn.Module) -> Any:
    """The members of a holder in the structure they were given in."""
    members = dict(module.named_children())
    return members if isinstance(structure, dict) else structure(members.values())


def _check_step(step: Any) -> None:
    try:
        inspect.signature(step).bind(None, None)
    except TypeError:
        raise BadInput("`step` is called as step(model, batch)") from None
    except ValueError:
        return
