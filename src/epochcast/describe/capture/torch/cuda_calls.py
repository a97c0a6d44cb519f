"""`.cuda()`, `.to("cuda")` and `device="cuda"` in a user's code, where there is no GPU and none is needed.

Inside, CUDA means the device the capture runs on. Everything else stays as it is: `torch.cuda.is_available()` is what
this machine says.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from epochcast.describe.capture.torch.small_values import Values

_COMPILER_OFF = "TORCH_COMPILE_DISABLE"
_LITERALS = frozenset({torch.tensor, torch.as_tensor, torch.asarray})


class CudaIsHere(TorchFunctionMode):
    """Calls that name a CUDA device get `device` instead.

    With `values`, tensors that are written out (`torch.tensor([…])`) keep theirs: PyTorch makes these out of sight.
    """

    def __init__(self, device: str, values: Values | None = None) -> None:
        super().__init__()
        self._device = torch.device(device)
        self._values = values

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func is torch.Tensor.cuda:
            return args[0].to(self._device)
        kwargs = {name: self._moved(value) for name, value in (kwargs or {}).items()}
        if func in _LITERALS and self._values is not None:
            return self._literal(func, args, kwargs)
        if func is torch.Tensor.to:
            args = tuple(self._moved(value) for value in args)
        return func(*args, **kwargs)

    def _literal(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        device = torch.device(kwargs.get("device") or torch.get_default_device())
        if device.type != "meta" or isinstance(args[0] if args else None, torch.Tensor):
            return func(*args, **kwargs)
        on_host = func(*args, **{**kwargs, "device": "cpu"})
        assert self._values is not None
        moved = self._values.moved(on_host)
        return moved.requires_grad_() if on_host.requires_grad else moved

    def _moved(self, value: Any) -> Any:
        if isinstance(value, torch.device):
            return self._device if value.type == "cuda" else value
        if isinstance(value, str) and value.partition(":")[0] == "cuda":
            return self._device
        return value


@contextmanager
def eager() -> Iterator[None]:
    """Functions that the user compiles run as they are written, where this torch allows it.

    Where nothing has been compiled, the compiler is not loaded for that, which takes a second; it reads from the
    environment that it is off where the user's code loads it.
    """
    if "torch._dynamo" not in sys.modules:
        with _compiler_off():
            yield
        return
    stance = getattr(torch.compiler, "set_stance", None)
    if stance is None:
        yield
        return
    with stance("force_eager"):
        yield


@contextmanager
def _compiler_off() -> Iterator[None]:
    """The compiler is off if it is loaded inside."""
    before = os.environ.get(_COMPILER_OFF)
    os.environ[_COMPILER_OFF] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_COMPILER_OFF]
        else:
            os.environ[_COMPILER_OFF] = before
        dynamo = sys.modules.get("torch._dynamo")
        if dynamo is not None:
            dynamo.config.disable = before == "1"
