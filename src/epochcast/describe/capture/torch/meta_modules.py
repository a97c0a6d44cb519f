"""Building a module on `meta`, without ever initialising its weights.

First the factory runs with `meta` as the default device; values of small tensors are known there (`values.py`). Where a
constructor reads others it runs again on the host, where large tensors are allocated but never written, so that they
take no physical memory.
"""

import copy
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from epochcast.describe.capture.model import COMPILED_NOTE
from epochcast.describe.capture.no_network import check_not_cached
from epochcast.describe.capture.torch.call_plans import plan_of
from epochcast.describe.capture.torch.capture_lock import ALONE
from epochcast.describe.capture.torch.cuda_calls import CudaIsHere
from epochcast.describe.capture.torch.factory import missing_framework
from epochcast.describe.capture.torch.host_values import HostValues
from epochcast.describe.capture.torch.small_values import Values
from epochcast.describe.capture.torch.traceback_notes import first_line, with_traceback
from epochcast.errors import BadInput, EndsProgram, EpochcastError

# Constructors read small tables (drop-path schedules, relative positions); weights are larger.
_LARGE_ELEMENTS = 4096


class _Unwritten(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """In-place writes to large tensors do nothing: no weight is ever initialised."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        first = args[0] if args else None
        if isinstance(first, torch.Tensor) and first.numel() > _LARGE_ELEMENTS and func._schema.name.endswith("_"):
            return first
        return func(*args, **(kwargs or {}))


class _Following(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Keeps the values of small tensors that are made on `meta`."""

    def __init__(self, values: Values) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._host = HostValues(values)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        plan = plan_of(func)
        if plan.name == "_local_scalar_dense":
            return self._host.values.of(args[0]).item()
        result = func(*args, **kwargs)
        if plan.makes_values:
            self._host.follow(func, plan.name, args, kwargs, plan.written(args, kwargs), result)
        return result


def constructed(make: Callable[[], Any], name: str, values: Values | None = None) -> Any:
    """What `make` returns, its modules built on `meta` or, failing that, on the host without initialised weights.

    `values` takes up those of small tensors on `meta`.
    """
    values = values or Values()
    with ALONE, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # initialisers warn about what they cannot do on meta
        try:
            try:
                with torch.device("meta"), CudaIsHere("meta", values), _Following(values):
                    return make()
            except (EpochcastError, SystemExit):
                raise
            except Exception as problem:
                check_not_cached(name, problem)
            with CudaIsHere("cpu"), _Unwritten():  # type: ignore[no-untyped-call]
                return make()
        except EpochcastError:
            raise
        except SystemExit as problem:
            raise EndsProgram(name, problem) from problem
        except Exception as problem:
            check_not_cached(name, problem)
            missing = missing_framework(problem)
            if missing is not None:
                raise missing from None
            raise with_traceback(BadInput(f"{name} cannot be built: {first_line(problem)}"), problem) from problem


def on_meta(module: torch.nn.Module, values: Values | None = None) -> torch.nn.Module:
    """The module with every parameter and buffer on `meta`, changed in place; shared parameters stay shared."""
    moved: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}  # by the id of a tensor: it, kept alive, and its copy
    for part in module.modules():
        for table in (part._parameters, part._buffers):
            for name, tensor in table.items():
                if tensor is not None and tensor.device.type != "meta":
                    _, table[name] = moved.setdefault(id(tensor), (tensor, _on_meta(tensor, values)))  # type: ignore[assignment]
    return module


def compiled_notes(module: torch.nn.Module) -> tuple[str, ...]:
    """What to know of a module that torch.compile wraps."""
    return (COMPILED_NOTE,) if hasattr(module, "_orig_mod") else ()


def copied_to_meta(module: torch.nn.Module, values: Values | None = None) -> torch.nn.Module:
    """A copy on `meta`; the original keeps its weights, and only small tables of it are read."""
    module = getattr(module, "_orig_mod", module)  # torch.compile wraps
    memo: dict[int, Any] = {id(t): _on_meta(t, values) for t in (*module.parameters(), *module.buffers())}
    return on_meta(copy.deepcopy(module, memo), values)


def _on_meta(tensor: torch.Tensor, values: Values | None) -> torch.Tensor:
    if isinstance(tensor, torch.nn.Parameter):
        return torch.nn.Parameter(torch.empty_like(tensor, device="meta", requires_grad=False), tensor.requires_grad)
    if values is None or tensor.device.type == "meta":
        return torch.empty_like(tensor, device="meta", requires_grad=False)
    return values.moved(tensor)
