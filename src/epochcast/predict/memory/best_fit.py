"""A pool of memory with best fit, splitting and coalescing: what PyTorch's and TensorFlow's allocators share.

A request gets the smallest free block that is large enough; of equal ones the one with the lowest address. The rest of
the block becomes a new free block if the allocator splits it. A freed block is joined with its free neighbours: those
that touch it. Segments of an allocator do not touch, so that nothing is joined across their ends.

A block is its address and its size. Free ones are kept as single numbers, size first, in order: comparing these is
what a replay does most.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator

Block = tuple[int, int]
"""Address and bytes."""

# Bits of an address: what a step may need at most (`bounds.MOST_STEP_BYTES`, far more than any device has) and its
# rounding. The answer for a batch of ten million is "does not fit", and it has to be computed first.
ADDRESS_BITS = 64
_ADDRESS = (1 << ADDRESS_BITS) - 1


class BlockPool:
    """Free blocks in order of size, then address."""

    __slots__ = ("_bytes_at", "_ends", "_keys")

    def __init__(self) -> None:
        self._keys: list[int] = []
        self._bytes_at: dict[int, int] = {}
        self._ends: dict[int, int] = {}

    def best_fit(self, size_bytes: int) -> Block | None:
        """Remove a block from the pool; None if no free block is large enough."""
        keys = self._keys
        at = bisect_left(keys, size_bytes << ADDRESS_BITS)
        if at == len(keys):
            return None
        key = keys.pop(at)
        address = key & _ADDRESS
        found_bytes = self._bytes_at.pop(address)
        del self._ends[address + found_bytes]
        return address, found_bytes

    def put(self, address: int, size_bytes: int) -> None:
        """Add a free block that has no free neighbours."""
        self._bytes_at[address] = size_bytes
        self._ends[address + size_bytes] = address
        insort(self._keys, size_bytes << ADDRESS_BITS | address)

    def free(self, block: Block) -> None:
        """Put a block back into the pool, joined with its free neighbours."""
        address, size_bytes = block
        end = address + size_bytes
        above_bytes = self._bytes_at.get(end)
        if above_bytes is not None:
            self.take(end, above_bytes)
            size_bytes += above_bytes
        below = self._ends.get(address)
        if below is not None:
            below_bytes = self._bytes_at[below]
            self.take(below, below_bytes)
            address, size_bytes = below, size_bytes + below_bytes
        self.put(address, size_bytes)

    def take(self, address: int, size_bytes: int) -> None:
        """Remove a free block from the pool."""
        keys = self._keys
        del keys[bisect_left(keys, size_bytes << ADDRESS_BITS | address)]
        del self._bytes_at[address]
        del self._ends[address + size_bytes]

    def ending_at(self, address: int) -> Block | None:
        """The free block that ends there."""
        begin = self._ends.get(address)
        return None if begin is None else (begin, address - begin)

    def free_blocks(self) -> Iterator[Block]:
        """All of them, the smallest first."""
        for key in tuple(self._keys):
            yield key & _ADDRESS, key >> ADDRESS_BITS
