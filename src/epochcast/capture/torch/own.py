"""From a `Workload` to a model: the user's modules on `meta`, their inputs, their loss or their step."""

import inspect
from collections.abc import Mapping
from typing import Any

import torch

from epochcast.capture.torch.construct import compiled_notes, copied_to_meta, on_meta
from epochcast.capture.torch.example import Example
from epochcast.capture.torch.feeding import example_for
from epochcast.capture.torch.feeding import on_meta as inputs_on_meta
from epochcast.capture.torch.model import TorchModel
from epochcast.capture.torch.values import Values
from epochcast.capture.workload import Workload
from epochcast.errors import BadInput


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
    given = getattr(workload.model, "_orig_mod", workload.model)  # torch.compile wraps
    label = name or workload.name or type(given).__name__
    module, passed = _held(_module(workload.model, label, workload.step is not None))
    options.setdefault("notes", compiled_notes(module))
    if in_place:
        module = on_meta(getattr(module, "_orig_mod", module), values)
    else:
        module = copied_to_meta(module, values)
    passed = module if passed is None else _like(passed, module)
    inputs = workload.inputs if input_shape is None else input_shape
    if workload.step is not None:
        _check_step(workload.step)
        if callable(inputs):
            inputs = inputs()
        example = inputs_on_meta(Example((inputs,)), values, workload.batch_dimension)
    else:
        example = example_for(module, inputs, label, values, workload.batch_dimension)
    return TorchModel(
        label, module, example, loss=workload.loss, step=workload.step, passed=passed, values=values, **options
    )


def _module(model: object, label: str, has_step: bool) -> Any:
    if isinstance(model, type) and issubclass(model, torch.nn.Module):
        model = _made(model)
    if isinstance(model, torch.nn.Module):
        return model
    members = list(model.values()) if isinstance(model, Mapping) else model
    if isinstance(members, list | tuple) and members and all(isinstance(m, torch.nn.Module) for m in members):
        if not has_step:
            raise BadInput(f"{label} gives {len(members)} modules: say how they are trained with a `step`")
        return dict(model) if isinstance(model, Mapping) else model
    raise BadInput(f"{label} gives a {type(model).__name__}, not a torch.nn.Module")


def _made(kind: type[torch.nn.Module]) -> torch.nn.Module:
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
