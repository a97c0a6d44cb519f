"""Births and deaths replayed through an allocator."""

from collections.abc import Iterable, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from epochcast.collecting import without_collecting


class OutOfMemory(Exception):
    """No more can be had from the device and nothing is left to give back."""


class Allocator(Protocol):
    """Hands out blocks and takes them back; keeps count of the most it gave and held."""

    peak_allocated_bytes: int
    peak_reserved_bytes: int

    def allocate(self, size_bytes: int) -> Any:
        """A block for a request."""
        ...

    def free(self, block: Any) -> None:
        """Give a block back."""
        ...


@dataclass(frozen=True, slots=True)
class Usage:
    """The most at any time: bytes handed out, bytes held from the device."""

    allocated_bytes: int
    reserved_bytes: int


@without_collecting()
def replay(
    allocator: Allocator,
    size_bytes: Sequence[int],
    before: Iterable[int],
    steps: Iterable[Sequence[int]],
    *,
    optional: Set[int] = frozenset(),
) -> Usage:
    """The most a job holds: `before` are the storages that are there before the first step; in each of the steps i is
    the birth of storage i and ~i its death. An `optional` storage is done without where there is no room for it.
    """
    allocate, free = allocator.allocate, allocator.free
    blocks = {i: allocate(size_bytes[i]) for i in before}
    for events in steps:
        for event in events:
            if event < 0:
                block = blocks.pop(~event, None)
                if block is not None:
                    free(block)
            elif optional and event in optional:
                with suppress(OutOfMemory):
                    blocks[event] = allocate(size_bytes[event])
            else:
                blocks[event] = allocate(size_bytes[event])
    return Usage(allocator.peak_allocated_bytes, allocator.peak_reserved_bytes)
