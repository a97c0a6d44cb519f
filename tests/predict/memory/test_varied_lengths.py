"""Batches of different lengths: sizes by hand, and what an allocator reserves for them."""

import numpy as np
import pytest

from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.trace import Trace
from epochcast.hardware.catalogue import find_device
from epochcast.predict.memory.caching_allocator import CachingAllocator
from epochcast.predict.memory.lifetimes import lifetimes
from epochcast.predict.memory.peak import peak_memory
from epochcast.predict.memory.replay import replay
from epochcast.predict.memory.varied_lengths import VariedLengths, VariedStorages

A100 = find_device("A100-SXM4-80GB")
MIB = 2**20


def step(length: int, attention: str = "sdpa") -> Trace:
    return zoo_model("gpt2", (length,)).trace(Recipe(4, "adamw", "bf16", attention=attention))


def varied(*drawn: int) -> VariedLengths:
    return VariedLengths(((128, step(128)), (256, step(256)), (512, step(512))), drawn)


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_sizes_at_any_length_follow_from_three(attention: str) -> None:
    nodes = tuple((length, lifetimes(step(length, attention))) for length in (128, 256, 512))
    (sizes,) = VariedStorages(nodes, (384,)).sizes(lambda lives: lives.bytes_at(4))
    assert np.array_equal(sizes, lifetimes(step(384, attention)).bytes_at(4))


def test_shorter_batches_leave_blocks_that_the_longest_cannot_use() -> None:
    alone = peak_memory(step(512), A100)
    among = peak_memory(step(512), A100, varied=varied(190, 400, 130, 300, 512, 190))
    assert among.allocated_bytes == pytest.approx(alone.allocated_bytes, rel=0.01)
    assert among.reserved_bytes > alone.reserved_bytes
    same = peak_memory(step(512), A100, varied=varied(512, 512))
    assert same.reserved_bytes == pytest.approx(alone.reserved_bytes, rel=0.01)


def test_a_cache_that_is_emptied_starts_again() -> None:
    """Two requests of 30 MiB do not fit in what one of 40 MiB left; given back, it does not count."""
    sizes = [[40 * MIB, 0], [30 * MIB, 30 * MIB]]
    steps = [(0, ~0), (0, 1, ~0, ~1)]
    kept = replay(CachingAllocator(), sizes, (), steps)
    emptied = replay(CachingAllocator(), sizes, (), steps, flushed_every=1)
    assert (kept.reserved_bytes, emptied.reserved_bytes) == (70 * MIB, 60 * MIB)
