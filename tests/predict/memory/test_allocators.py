"""Hand-worked requests, and laws that hold for every allocator."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcast.predict.memory.bfc_allocator import BfcAllocator
from epochcast.predict.memory.caching_allocator import CachingAllocator
from epochcast.predict.memory.peak import ALLOCATORS
from epochcast.predict.memory.replay import OutOfMemory, replay

MIB = 2**20


def test_small_requests_share_a_segment_of_2_mib() -> None:
    allocator = CachingAllocator()
    for _ in range(3):
        allocator.allocate(513)
    assert (allocator.allocated_bytes, allocator.reserved_bytes) == (3 * 1024, 2 * MIB)


def test_requests_below_10_mib_take_20_and_share_them() -> None:
    allocator = CachingAllocator()
    allocator.allocate(9 * MIB)
    allocator.allocate(9 * MIB)
    assert allocator.reserved_bytes == 20 * MIB
    allocator.allocate(2 * MIB)  # two are left
    assert allocator.reserved_bytes == 20 * MIB


def test_large_requests_are_rounded_to_2_mib() -> None:
    allocator = CachingAllocator()
    allocator.allocate(11 * MIB)
    assert (allocator.allocated_bytes, allocator.reserved_bytes) == (12 * MIB, 12 * MIB)  # 1 MiB is not worth a split


def test_a_freed_block_is_used_again_and_joined_with_its_neighbours() -> None:
    allocator = CachingAllocator()
    blocks = [allocator.allocate(5 * MIB) for _ in range(4)]
    for block in blocks:
        allocator.free(block)
    allocator.allocate(20 * MIB)
    assert allocator.reserved_bytes == 20 * MIB


# 30 of 40 MiB are cached in one segment: too small for 35, so it is given back and the request tried again.
def test_a_full_device_gets_its_cached_segments_back() -> None:
    allocator = CachingAllocator(40 * MIB)
    allocator.free(allocator.allocate(30 * MIB))
    allocator.allocate(35 * MIB)
    assert allocator.reserved_bytes == 36 * MIB


def test_a_segment_with_a_live_block_is_not_given_back() -> None:
    allocator = CachingAllocator(40 * MIB)
    first, _ = allocator.allocate(15 * MIB), allocator.allocate(5 * MIB)
    allocator.free(first)
    with pytest.raises(OutOfMemory, match="34 MiB more do not fit beside 20 MiB"):
        allocator.allocate(33 * MIB)


def test_an_expandable_range_loses_nothing_to_the_ends_of_segments() -> None:
    plain, growing = CachingAllocator(), CachingAllocator(expandable_segments=True)
    for allocator in (plain, growing):
        blocks = [allocator.allocate(size * MIB) for size in (30, 30, 30)]
        for block in blocks:
            allocator.free(block)
        allocator.allocate(90 * MIB)
    assert plain.reserved_bytes == 180 * MIB
    assert growing.reserved_bytes == 100 * MIB  # whole pages of 20 MiB


def test_tensorflow_doubles_its_regions() -> None:
    allocator = BfcAllocator()
    allocator.allocate(1)
    assert (allocator.allocated_bytes, allocator.reserved_bytes) == (256, 2 * MIB)
    allocator.allocate(3 * MIB)
    assert allocator.reserved_bytes == 2 * MIB + 4 * MIB


def test_tensorflow_takes_everything_unless_it_may_grow() -> None:
    assert BfcAllocator(100 * MIB, allow_growth=False).reserved_bytes == 100 * MIB
    with pytest.raises(OutOfMemory):
        BfcAllocator(100 * MIB).allocate(101 * MIB)


def test_what_is_optional_is_done_without() -> None:
    assert (
        replay(CachingAllocator(20 * MIB), [[4 * MIB, 40 * MIB]], [0], [(1, ~1)], optional={1}).reserved_bytes
        == 20 * MIB
    )


lives = st.lists(st.tuples(st.integers(1, 60 * MIB), st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=25)


@pytest.mark.parametrize("name", ALLOCATORS)
@given(stories=lives)
def test_every_allocator_holds_what_is_alive(name: str, stories: list[tuple[int, int, int]]) -> None:
    """Held ≥ handed out ≥ alive, a replay within what a free one held succeeds, and at the end nothing is lost."""
    sizes = [size for size, _, _ in stories]
    times = [(min(a, b), max(a, b) + 1) for _, a, b in stories]
    events: list[int] = []
    most = 0
    for now in range(23):
        events += [~i for i, (_, end) in enumerate(times) if end == now]
        events += [i for i, (begin, _) in enumerate(times) if begin == now]
        most = max(most, sum(size for size, (begin, end) in zip(sizes, times, strict=True) if begin <= now < end))
    usage = replay(ALLOCATORS[name](None), [sizes], (), [events])
    assert usage.reserved_bytes >= usage.allocated_bytes >= most
    assert replay(ALLOCATORS[name](usage.reserved_bytes), [sizes], (), [events]).reserved_bytes <= usage.reserved_bytes
