"""A pool of memory with best fit, splitting and coalescing: what PyTorch's and TensorFlow's allocators share.

A request gets the smallest free block that is large enough; of equal ones the one with the lowest address. The rest of
the block becomes a new free block if the allocator splits it. A freed block is joined with its free neighbours.
"""

from bisect import bisect_left, insort


class Block:
    """A stretch of memory between two neighbours of the same segment."""

    __slots__ = ("above", "address", "below", "is_free", "size_bytes")

    def __init__(self, address: int, size_bytes: int) -> None:
        self.address, self.size_bytes = address, size_bytes
        self.below: Block | None = None
        self.above: Block | None = None
        self.is_free = False


class Pool:
    """Free blocks in order of size, then address."""

    def __init__(self) -> None:
        self.free_blocks: list[tuple[int, int, Block]] = []

    def best_fit(self, size_bytes: int) -> Block | None:
        """Remove a block from the pool; None if no free block is large enough."""
        blocks = self.free_blocks
        at = bisect_left(blocks, (size_bytes,))
        if at == len(blocks):
            return None
        block = blocks.pop(at)[2]
        block.is_free = False
        return block

    def split(self, block: Block, size_bytes: int) -> Block:
        """Split off what a request does not need, as a new free block of the pool; returns that block."""
        above, remaining_bytes = block.above, block.size_bytes - size_bytes
        remainder = Block(block.address + size_bytes, remaining_bytes)
        remainder.below, remainder.above = block, above
        if above is not None:
            above.below = remainder
        block.size_bytes, block.above = size_bytes, remainder
        self._put(remainder)
        return remainder

    def free(self, block: Block) -> Block:
        """Put a block back into the pool, joined with its free neighbours; returns the joined block."""
        above, below = block.above, block.below
        if above is not None and above.is_free:
            self.take(above)
            _join(block, above)
        if below is not None and below.is_free:
            self.take(below)
            _join(below, block)
            block = below
        self._put(block)
        return block

    def take(self, block: Block) -> None:
        """Remove a free block from the pool."""
        del self.free_blocks[bisect_left(self.free_blocks, (block.size_bytes, block.address))]
        block.is_free = False

    def _put(self, block: Block) -> None:
        block.is_free = True
        insort(self.free_blocks, (block.size_bytes, block.address, block))


def _join(block: Block, above: Block) -> None:
    block.size_bytes += above.size_bytes
    block.above = above.above
    if above.above is not None:
        above.above.below = block
