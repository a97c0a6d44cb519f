"""PyTorch's CUDA caching allocator (c10/cuda/CUDACachingAllocator.cpp).

A request is rounded up to 512 B. Up to 1 MiB it is served from the small pool, whose segments are 2 MiB; above from the
large pool, whose segments are 20 MiB for requests below 10 MiB and otherwise the request rounded up to 2 MiB. A block
is split if enough remains: 512 B in the small pool, more than 1 MiB in the large one. When the device is full, all
segments without a live block are given back and the request is tried once more.

With `expandable_segments` each pool is one growing range, mapped in pages of 2 MiB (small) and 20 MiB (large): nothing
is lost to the ends of segments. Limit: a full device gets back only the free pages at the end of a range.
"""

from epochcast.memory.best_fit import Block, Pool
from epochcast.memory.replay import OutOfMemory
from epochcast.units import show_bytes

MIB = 2**20
ROUND_BYTES = 512
SMALL_REQUEST_BYTES = MIB
SMALL_SEGMENT_BYTES = 2 * MIB
LARGE_SEGMENT_BYTES = 20 * MIB
LARGE_REQUEST_BYTES = 10 * MIB
ROUND_LARGE_BYTES = 2 * MIB


class CachingAllocator:
    """The state of one device's allocator; `limit_bytes` is the memory available to it (None: no limit)."""

    def __init__(self, limit_bytes: int | None = None, *, expandable_segments: bool = False) -> None:
        self.limit_bytes = limit_bytes
        self.is_expandable = expandable_segments
        self.allocated_bytes = self.reserved_bytes = 0
        self.peak_allocated_bytes = self.peak_reserved_bytes = 0
        self._small, self._large = Pool(), Pool()
        self._ends: dict[Pool, Block | None] = {self._small: None, self._large: None}
        self._next_address = 0

    def allocate(self, size_bytes: int) -> tuple[Pool, Block]:
        """A block for a request, and the pool it belongs to."""
        size = -(-size_bytes // ROUND_BYTES) * ROUND_BYTES or ROUND_BYTES
        is_small = size <= SMALL_REQUEST_BYTES
        pool = self._small if is_small else self._large
        block = pool.best_fit(size)
        if block is None:
            block = self._grown(pool, size) if self.is_expandable else self._segment(pool, size)
        remaining_bytes = block.size_bytes - size
        if remaining_bytes and (is_small or self.is_expandable or remaining_bytes > SMALL_REQUEST_BYTES):
            end = pool.split(block, size)
            if self.is_expandable and self._ends[pool] is block:
                self._ends[pool] = end
        self.allocated_bytes += block.size_bytes
        self.peak_allocated_bytes = max(self.peak_allocated_bytes, self.allocated_bytes)
        return pool, block

    def free(self, allocation: tuple[Pool, Block]) -> None:
        """Give a block back."""
        pool, block = allocation
        self.allocated_bytes -= block.size_bytes
        joined = pool.free(block)
        if self.is_expandable and joined.above is None:
            self._ends[pool] = joined

    def _segment(self, pool: Pool, size: int) -> Block:
        if pool is self._small:
            segment_bytes = SMALL_SEGMENT_BYTES
        elif size < LARGE_REQUEST_BYTES:
            segment_bytes = LARGE_SEGMENT_BYTES
        else:
            segment_bytes = -(-size // ROUND_LARGE_BYTES) * ROUND_LARGE_BYTES
        if self._is_full(segment_bytes):
            self._flush()
        self._reserve(segment_bytes)
        block = Block(self._next_address, segment_bytes)
        self._next_address += segment_bytes
        return block

    def _grown(self, pool: Pool, size: int) -> Block:
        """The free end of the pool's range, with as many new pages mapped after it as the request needs."""
        page = self._page(pool)
        if self._is_full(-(-(size - self._tail_bytes(pool)) // page) * page):
            for any_pool in (self._small, self._large):
                self._trim(any_pool)
        mapped_bytes = -(-(size - self._tail_bytes(pool)) // page) * page
        self._reserve(mapped_bytes)
        end = self._ends[pool]
        if end is not None and end.is_free:
            pool.take(end)
            end.size_bytes += mapped_bytes
            return end
        block = Block(0 if end is None else end.address + end.size_bytes, mapped_bytes)
        block.below = end
        if end is not None:
            end.above = block
        self._ends[pool] = block
        return block

    def _page(self, pool: Pool) -> int:
        return SMALL_SEGMENT_BYTES if pool is self._small else LARGE_SEGMENT_BYTES

    def _tail_bytes(self, pool: Pool) -> int:
        end = self._ends[pool]
        return end.size_bytes if end is not None and end.is_free else 0

    def _is_full(self, size_bytes: int) -> bool:
        return self.limit_bytes is not None and self.reserved_bytes + size_bytes > self.limit_bytes

    def _reserve(self, size_bytes: int) -> None:
        if self._is_full(size_bytes):
            raise OutOfMemory(f"{show_bytes(size_bytes)} more do not fit beside {show_bytes(self.reserved_bytes)}")
        self.reserved_bytes += size_bytes
        self.peak_reserved_bytes = max(self.peak_reserved_bytes, self.reserved_bytes)

    def _flush(self) -> None:
        """Give back every segment without a live block."""
        for pool in (self._small, self._large):
            for _, _, block in tuple(pool.free_blocks):
                if block.below is None and block.above is None:
                    pool.take(block)
                    self.reserved_bytes -= block.size_bytes

    def _trim(self, pool: Pool) -> None:
        """Give back the free pages at the end of a range."""
        end = self._ends[pool]
        pages = self._tail_bytes(pool) // self._page(pool) * self._page(pool)
        if end is None or not pages:
            return
        pool.take(end)
        end.size_bytes -= pages
        self.reserved_bytes -= pages
        if end.size_bytes:
            pool.free(end)
            return
        self._ends[pool] = end.below
        if end.below is not None:
            end.below.above = None
