"""Values of small tensors during a capture, beside the `meta` tensors that have none.

Masks, lengths, positions and flags are small, and models look at them: `if mask.all()`, `lengths.tolist()`, `x[mask]`.
So integers, booleans and a few floats are worked out on the host, too, where all operands are known: example inputs as
the user gave them, tables, and what a model makes of them. Activations and weights have no values.

A value belongs to a storage, so views of a tensor share it, and writing in place changes it for all of them.
"""

from typing import Any

import torch
from torch import Tensor

# Masks of a few hundred tokens squared, float masks of 8,192 tokens each; larger ones are not worked out.
MOST_BYTES = 2**21
MOST_FLOATS = 2**16
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


class Unknown(Exception):
    """A value that nobody knows."""


class Values:
    """What is known, by storage. `meta` storages are kept alive (they are empty), so that no address is used twice."""

    def __init__(self) -> None:
        self._storages: dict[int, tuple[torch.UntypedStorage, torch.UntypedStorage]] = {}
        self._assumed: set[int] = set()
        self.rates: list[int] = []
        """How many elements per sample each mask of a capture selects, in the order of the calls."""

    def keep(self, tensor: Tensor, value: Tensor, *, is_assumed: bool = False) -> None:
        """From now on the `meta` tensor has this value."""
        storage = tensor.untyped_storage()
        if not is_small(tensor) or storage.nbytes() > MOST_BYTES:
            return
        if storage._cdata not in self._storages:
            self._storages[storage._cdata] = storage, torch.UntypedStorage(storage.nbytes(), device="cpu")  # type: ignore[no-untyped-call]
        self._view(tensor).copy_(value)
        if is_assumed:
            self._assumed.add(storage._cdata)

    def of(self, tensor: Tensor) -> Tensor:
        """The value, which shares memory with that of its views; raises `Unknown`."""
        if tensor.device.type != "meta":
            return tensor
        if tensor.untyped_storage()._cdata not in self._storages:
            raise Unknown
        return self._view(tensor)

    def is_assumed(self, tensor: Tensor) -> bool:
        """Whether it follows from something that was assumed."""
        return tensor.untyped_storage()._cdata in self._assumed

    def forget(self, tensor: Tensor) -> None:
        """Something unknown was written into it."""
        self._storages.pop(tensor.untyped_storage()._cdata, None)

    def _view(self, tensor: Tensor) -> Tensor:
        _, base = self._storages[tensor.untyped_storage()._cdata]
        empty = torch.empty(0, dtype=tensor.dtype, device="cpu")
        return empty.set_(base, tensor.storage_offset(), tensor.size(), tensor.stride())

    def on_host(self, value: Any) -> Any:
        """An argument of an operator with `meta` tensors replaced by their values; raises `Unknown`."""
        if isinstance(value, Tensor):
            return self.of(value)
        if isinstance(value, list | tuple):
            return type(value)([self.on_host(item) for item in value])
        return torch.device("cpu") if isinstance(value, torch.device) and value.type == "meta" else value

    def moved(self, tensor: Tensor) -> Tensor:
        """A host tensor on `meta`, its value kept where it is small."""
        empty = torch.empty_like(tensor, device="meta", requires_grad=False)
        self.keep(empty, tensor.detach())
        return empty


def is_small(tensor: Tensor) -> bool:
    """Whether the values of such a tensor are worth knowing."""
    if tensor.is_floating_point():
        return tensor.numel() <= MOST_FLOATS and tensor.dtype in FLOATS
    return not tensor.is_complex() and tensor.numel() * tensor.element_size() <= MOST_BYTES
