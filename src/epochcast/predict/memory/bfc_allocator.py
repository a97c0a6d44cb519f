"""TensorFlow's best-fit-with-coalescing allocator (tensorflow/core/common_runtime/bfc_allocator.cc).

A request is rounded up to 256 B. Bins by size make the search fast; the result is the best fit. A chunk is split
if it is at least twice the request or would waste 128 MiB. Memory comes in regions: with `allow_growth` each is twice
the one before (2 MiB at first) or what the request needs; without, the first takes all free memory of the device, so
that nvidia-smi shows a full device for any model. Nothing is returned to the device.
"""

from epochcast.predict.memory.best_fit import Block, BlockPool
from epochcast.predict.memory.replay import OutOfMemory
from epochcast.units import show_bytes

ROUND_BYTES = 256
FIRST_REGION_BYTES = 2 * 2**20
MOST_WASTED_BYTES = 128 * 2**20


class BfcAllocator:
    """The state of one device's allocator; without a limit it grows as needed."""

    def __init__(self, limit_bytes: int | None = None, *, allow_growth: bool = True) -> None:
        self.limit_bytes = limit_bytes
        self.allocated_bytes = self.reserved_bytes = 0
        self.peak_allocated_bytes = self.peak_reserved_bytes = 0
        self._pool = BlockPool()
        self._next_region_bytes = FIRST_REGION_BYTES
        self._next_address = 0
        if limit_bytes is not None and not allow_growth:
            self._pool.free(self._region(limit_bytes))

    def allocate(self, size_bytes: int) -> Block:
        """A block for a request."""
        size = max(ROUND_BYTES, -(-size_bytes // ROUND_BYTES) * ROUND_BYTES)
        address, found_bytes = self._pool.best_fit(size) or self._extended(size)
        if found_bytes >= 2 * size or found_bytes - size >= MOST_WASTED_BYTES:
            self._pool.put(address + size, found_bytes - size)
            found_bytes = size
        self.allocated_bytes += found_bytes
        self.peak_allocated_bytes = max(self.peak_allocated_bytes, self.allocated_bytes)
        return address, found_bytes

    def free(self, block: Block) -> None:
        """Give a block back."""
        self.allocated_bytes -= block[1]
        self._pool.free(block)

    def flush(self) -> None:
        """TensorFlow gives nothing back while it runs."""

    def _extended(self, size: int) -> Block:
        """A new region: twice the last one, or all that is available."""
        while self._next_region_bytes < size:
            self._next_region_bytes *= 2
        region_bytes = self._next_region_bytes
        if self.limit_bytes is not None:
            available_bytes = self.limit_bytes - self.reserved_bytes
            if size > available_bytes:
                raise OutOfMemory(f"{show_bytes(size)} more do not fit beside {show_bytes(self.reserved_bytes)}")
            region_bytes = max(size, min(region_bytes, available_bytes))
        self._next_region_bytes *= 2
        return self._region(region_bytes)

    def _region(self, size: int) -> Block:
        self.reserved_bytes += size
        self.peak_reserved_bytes = max(self.peak_reserved_bytes, self.reserved_bytes)
        block = self._next_address, size
        self._next_address += size + 1  # regions do not touch
        return block
