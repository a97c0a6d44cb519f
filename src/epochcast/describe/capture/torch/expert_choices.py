"""Choices among experts, whose values nobody knows: a mixture of experts in plain PyTorch.

The places of a `topk` or `argmax` over E experts are numbers below E. Which of them are equal to one number depends on
the data; here they are taken as balanced, so that each of the E is chosen equally often:

    torch.where(chosen == expert)      selects 1/E of the elements of `chosen`
    (chosen == expert).any(-1)         is true for k/E of the rows, k the size of the last dimension
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor


class Choices:
    """What is known of chosen places and of masks over them, by storage (kept alive)."""

    def __init__(self) -> None:
        self._experts: dict[int, tuple[Any, int]] = {}
        self._parts: dict[int, tuple[Any, float]] = {}

    def follow(self, name: str, args: tuple[Any, ...], result: Any) -> None:
        """Take note of a call."""
        note = _NOTES.get(name)
        if note is not None and args and isinstance(args[0], Tensor) and args[0].device.type == "meta":
            note(self, args, result)

    def part(self, mask: Tensor) -> float | None:
        """Which part of a mask is true, if that follows from balanced choices."""
        parts = self._parts.get(_key(mask))
        return None if parts is None else parts[1]

    def _chosen(self, args: tuple[Any, ...], result: Any) -> None:
        dimension = args[2] if len(args) > 2 else -1
        self._experts[_key(result[1])] = result[1].untyped_storage(), args[0].shape[dimension]

    def _largest(self, args: tuple[Any, ...], result: Any) -> None:
        if len(args) > 1 and isinstance(args[1], int):
            places = result[1] if isinstance(result, tuple) else result
            self._experts[_key(places)] = places.untyped_storage(), args[0].shape[args[1]]

    def _compared(self, args: tuple[Any, ...], result: Any) -> None:
        experts = self._experts.get(_key(args[0]))
        if experts is not None and (not isinstance(args[1], Tensor) or args[1].numel() == 1):
            self._parts[_key(result)] = result.untyped_storage(), 1 / experts[1]

    def _any(self, args: tuple[Any, ...], result: Any) -> None:
        part = self.part(args[0])
        if part is not None and args[0].numel():
            choices = args[0].numel() / max(1, result.numel())
            self._parts[_key(result)] = result.untyped_storage(), min(1.0, part * choices)

    def _copied(self, args: tuple[Any, ...], result: Any) -> None:
        if _key(args[0]) in self._experts:
            self._experts[_key(result)] = result.untyped_storage(), self._experts[_key(args[0])][1]
        if _key(args[0]) in self._parts:
            self._parts[_key(result)] = result.untyped_storage(), self._parts[_key(args[0])][1]


_NOTES: Mapping[str, Callable[[Choices, tuple[Any, ...], Any], None]] = {
    "topk": Choices._chosen,
    "argmax": Choices._largest,
    "max": Choices._largest,
    "eq": Choices._compared,
    "any": Choices._any,
    "clone": Choices._copied,
    "_to_copy": Choices._copied,
}


def _key(tensor: Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def places_of(mask: Tensor, count: int) -> list[Tensor]:
    """Places that a mask selects, as many as said; their values are unknown."""
    return [torch.empty(count, dtype=torch.int64, device="meta") for _ in range(mask.dim())]
