"""Replays the allocations and frees of a job through an allocator."""

from collections.abc import Iterable, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from epochcast.base.garbage import without_collecting


class OutOfMemory(Exception):
    """The device has no more memory and nothing is left to free."""


class Allocator(Protocol):
    """Allocates and frees blocks; records the peak of allocated and of reserved bytes."""

    peak_allocated_bytes: int
    peak_reserved_bytes: int

    def allocate(self, size_bytes: int) -> Any:
        """A block for a request."""
        ...

    def free(self, block: Any) -> None:
        """Give a block back."""
        ...

    def flush(self) -> None:
        """Give back to the device what no block needs (`torch.cuda.empty_cache`)."""
        ...


@dataclass(frozen=True, slots=True)
class Usage:
    """Peaks: bytes allocated to tensors, bytes reserved from the device."""

    allocated_bytes: int
    reserved_bytes: int


@without_collecting()
def replay(
    allocator: Allocator,
    sizes: Sequence[Sequence[int]],
    before: Iterable[int],
    steps: Iterable[Sequence[int]],
    *,
    optional: Set[int] = frozenset(),
    flushed_every: int | None = None,
) -> Usage:
    """The peak of a job: `before` are the storages that exist before the first step; in each step i allocates storage i
    and ~i frees it. `sizes` are the bytes of the storages in each step. An `optional` storage is skipped if there is no
    room for it. `flushed_every`: so many steps apart the job gives back what its allocator caches.
    """
    allocate, free = allocator.allocate, allocator.free
    blocks = {i: allocate(sizes[0][i]) for i in before}
    for number, (size_bytes, events) in enumerate(zip(sizes, steps, strict=True)):
        if flushed_every and number and number % flushed_every == 0:
            allocator.flush()
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
