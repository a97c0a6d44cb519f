"""PyTorch's CUDA caching allocator (c10/cuda/CUDACachingAllocator.cpp).

A request is rounded up to 512 B. Up to 1 MiB it is served from the small pool, whose segments are 2 MiB; above from the
large pool, whose segments are 20 MiB for requests below 10 MiB and otherwise the request rounded up to 2 MiB. A block
is split if enough remains: 512 B in the small pool, more than 1 MiB in the large one. When the device is full, all
segments without a live block are given back and the request is tried once more.

With `expandable_segments` each pool is one growing range, mapped in pages of 2 MiB (small) and 20 MiB (large): nothing
is lost to the ends of segments. Limit: a full device gets back only the free pages at the end of a range.
"""

from epochcast.predict.memory.best_fit import Block, BlockPool
from epochcast.predict.memory.replay import OutOfMemory
from epochcast.units import show_bytes

MIB = 2**20
ROUND_BYTES = 512
SMALL_REQUEST_BYTES = MIB
SMALL_SEGMENT_BYTES = 2 * MIB
LARGE_SEGMENT_BYTES = 20 * MIB
LARGE_REQUEST_BYTES = 10 * MIB
ROUND_LARGE_BYTES = 2 * MIB
# Where the range of the large pool begins, far above that of the small one.
LARGE_BEGIN = 2**46


class CachingAllocator:
    """The state of one device's allocator; `limit_bytes` is the memory available to it (None: no limit)."""

    def __init__(self, limit_bytes: int | None = None, *, expandable_segments: bool = False) -> None:
        self.limit_bytes = limit_bytes
        self.is_expandable = expandable_segments
        self.allocated_bytes = self.reserved_bytes = 0
        self.peak_allocated_bytes = self.peak_reserved_bytes = 0
        self._small, self._large = BlockPool(), BlockPool()
        self._ends: dict[BlockPool, int] = {self._small: 0, self._large: LARGE_BEGIN}
        self._segments: dict[int, int] = {}
        self._next_address = 0

    def allocate(self, size_bytes: int) -> Block:
        """A block for a request."""
        size = -(-size_bytes // ROUND_BYTES) * ROUND_BYTES or ROUND_BYTES
        is_small = size <= SMALL_REQUEST_BYTES
        pool = self._small if is_small else self._large
        block = pool.best_fit(size)
        if block is None:
            block = self._grown(pool, size) if self.is_expandable else self._segment(pool, size)
        address, found_bytes = block
        remaining_bytes = found_bytes - size
        if remaining_bytes and (is_small or self.is_expandable or remaining_bytes > SMALL_REQUEST_BYTES):
            pool.put(address + size, remaining_bytes)
            block = address, size
            self.allocated_bytes += size
        else:
            self.allocated_bytes += found_bytes
        self.peak_allocated_bytes = max(self.peak_allocated_bytes, self.allocated_bytes)
        return block

    def free(self, block: Block) -> None:
        """Give a block back. Its size tells its pool: whatever could be left of a small one was split off."""
        size = block[1]
        self.allocated_bytes -= size
        (self._small if size <= SMALL_REQUEST_BYTES else self._large).free(block)

    def _segment(self, pool: BlockPool, size: int) -> Block:
        if pool is self._small:
            segment_bytes = SMALL_SEGMENT_BYTES
        elif size < LARGE_REQUEST_BYTES:
            segment_bytes = LARGE_SEGMENT_BYTES
        else:
            segment_bytes = -(-size // ROUND_LARGE_BYTES) * ROUND_LARGE_BYTES
        if self._is_full(segment_bytes):
            self.flush()
        self._reserve(segment_bytes)
        address = self._next_address
        self._segments[address] = segment_bytes
        self._next_address += segment_bytes + 1  # segments do not touch
        return address, segment_bytes

    def _grown(self, pool: BlockPool, size: int) -> Block:
        """The free end of the pool's range, with as many new pages mapped after it as the request needs."""
        page = self._page(pool)
        if self._is_full(-(-(size - self._tail_bytes(pool)) // page) * page):
            self.flush()
        tail = pool.ending_at(self._ends[pool])
        tail_bytes = 0 if tail is None else tail[1]
        mapped_bytes = -(-(size - tail_bytes) // page) * page
        self._reserve(mapped_bytes)
        address = self._ends[pool] - tail_bytes
        if tail is not None:
            pool.take(*tail)
        self._ends[pool] += mapped_bytes
        return address, tail_bytes + mapped_bytes

    def _page(self, pool: BlockPool) -> int:
        return SMALL_SEGMENT_BYTES if pool is self._small else LARGE_SEGMENT_BYTES

    def _tail_bytes(self, pool: BlockPool) -> int:
        tail = pool.ending_at(self._ends[pool])
        return 0 if tail is None else tail[1]

    def _is_full(self, size_bytes: int) -> bool:
        return self.limit_bytes is not None and self.reserved_bytes + size_bytes > self.limit_bytes

    def _reserve(self, size_bytes: int) -> None:
        if self._is_full(size_bytes):
            raise OutOfMemory(f"{show_bytes(size_bytes)} more do not fit beside {show_bytes(self.reserved_bytes)}")
        self.reserved_bytes += size_bytes
        self.peak_reserved_bytes = max(self.peak_reserved_bytes, self.reserved_bytes)

    def flush(self) -> None:
        """Give back every segment without a live block, or the free pages at the end of every range."""
        if self.is_expandable:
            for any_pool in (self._small, self._large):
                self._trim(any_pool)
            return
        for pool in (self._small, self._large):
            for address, size_bytes in pool.free_blocks():
                if self._segments.get(address) == size_bytes:
                    pool.take(address, size_bytes)
                    del self._segments[address]
                    self.reserved_bytes -= size_bytes

    def _trim(self, pool: BlockPool) -> None:
        """Give back the free pages at the end of a range."""
        tail = pool.ending_at(self._ends[pool])
        pages = self._tail_bytes(pool) // self._page(pool) * self._page(pool)
        if tail is None or not pages:
            return
        pool.take(*tail)
        self._ends[pool] -= pages
        self.reserved_bytes -= pages
        if tail[1] > pages:
            pool.put(tail[0], tail[1] - pages)
