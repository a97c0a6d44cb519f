"""The table of operators: every `Kind` by its label, and by the names that frameworks call it.

An operator is one class with its formulas as methods, in one module. The built-in ones are in `ops/`, which loads every
module in it. Users add theirs in the same way, with `epochcast.register_op`; EPOCHCAST_OPERATORS names modules or files
that do so, separated by commas, for the command line. They are loaded when a name is not in the table.
"""

import inspect
import os
import sys
from collections.abc import Iterable
from dataclasses import MISSING, fields
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, TypeVar

from epochcast.describe.graph.op import Kind, Op
from epochcast.errors import BadInput

KindClass = TypeVar("KindClass", bound=type[Kind])

KIND_CLASSES: dict[str, type[Kind]] = {}
"""Every kind by its label, as files write it."""
_BY_TARGET: dict[str, type[Kind]] = {}
OPERATORS_VARIABLE = "EPOCHCAST_OPERATORS"
# What a file can hold.
_ATTRIBUTES = (bool, int, float, str, tuple)


def register_op(kind: KindClass) -> KindClass:
    """Add an operator to the table, as a decorator of a frozen dataclass that inherits `Kind`. A class of the same name
    and module takes the place of the one before it.

    >>> from dataclasses import dataclass
    >>> import epochcast as ec
    >>> @ec.register_op
    ... @dataclass(frozen=True, slots=True)
    ... class Rotate(ec.Kind):
    ...     label = "docs_rotate"
    ...     targets = ("mylib::rotate",)
    ...     def flops(self, op):
    ...         return 6 * op.outputs[0].elements
    >>> registered_class("mylib::rotate") is Rotate
    True
    """
    _check(kind)
    before = KIND_CLASSES.get(kind.label)
    same_targets = {target: _BY_TARGET[target] for target in kind.targets if target in _BY_TARGET}
    for name, other in {**({kind.label: before} if before else {}), **same_targets}.items():
        if (other.__module__, other.__qualname__) != (kind.__module__, kind.__qualname__):
            raise BadInput(f"operator {name!r} is already registered, by {other.__module__}.{other.__qualname__}")
    for target in before.targets if before else ():
        _BY_TARGET.pop(target, None)
    KIND_CLASSES[kind.label] = kind
    _BY_TARGET.update(dict.fromkeys(kind.targets, kind))
    return kind


def registered_class(target: str) -> type[Kind] | None:
    """The operator that a framework calls `target`, where somebody registered one."""
    if target not in _BY_TARGET:
        _load_user_operators()
    return _BY_TARGET.get(target)


def kind_class(label: str) -> type[Kind]:
    """The operator with this label."""
    if label not in KIND_CLASSES:
        _load_user_operators()
    if label not in KIND_CLASSES:
        raise BadInput(
            f"no operator called {label!r}; known: {', '.join(sorted(KIND_CLASSES))}. An operator of your own must be "
            f"registered in this process, too: name its module or file in {OPERATORS_VARIABLE}"
        )
    return KIND_CLASSES[label]


def _load_user_operators() -> None:
    for place in filter(None, map(str.strip, os.environ.get(OPERATORS_VARIABLE, "").split(","))):
        try:
            _load(place)
        except BadInput:
            raise
        except Exception as problem:  # the user's code may raise anything
            raise BadInput(f"{OPERATORS_VARIABLE}: {place} cannot be imported: {problem}") from problem


def _load(place: str) -> None:
    """Import a module, or run a file unless it already was."""
    path = Path(place).resolve()
    if path.suffix != ".py":
        import_module(place)
    elif not any(getattr(module, "__file__", None) == str(path) for module in list(sys.modules.values())):
        spec = spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None  # it has both for every name that ends with .py
        module = sys.modules[path.stem] = module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[path.stem]
            raise


def opaque_names(ops: Iterable[Op]) -> tuple[str, ...]:
    """Names of the operators without a formula for their flops, each once, in order."""
    return tuple(dict.fromkeys(op.kind.title for op in ops if not op.kind.is_counted))


def _check(kind: Any) -> None:
    if not (inspect.isclass(kind) and issubclass(kind, Kind)):
        raise BadInput(f"register_op takes a class that inherits epochcast.Kind, got {kind!r}")
    parameters = vars(kind).get("__dataclass_params__")
    if parameters is None or not parameters.frozen:
        raise BadInput(f"operator {kind.__name__} must be a frozen dataclass: put @dataclass(frozen=True) above it")
    if kind.label == Kind.label or not isinstance(kind.label, str):
        raise BadInput(f'operator {kind.__name__} needs a label of its own: label: ClassVar[str] = "…"')
    if isinstance(kind.targets, str):
        raise BadInput(f"targets of operator {kind.__name__} must be a tuple of names, got {kind.targets!r}")
    for field in fields(kind):
        if field.default is MISSING or not isinstance(field.default, _ATTRIBUTES):
            raise BadInput(
                f"operator {kind.__name__}: {field.name} needs a default: a number, text, a truth value or a tuple"
            )
