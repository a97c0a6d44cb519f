from math import inf

import numpy as np
import pytest

from epochcast.decide.advise.batch_search import (
    BATCH_TOLERANCE,
    LOADER_TOLERANCE,
    MOST_WORKERS,
    PREFETCHES,
    LoaderHost,
    best_feed,
    candidate_batches,
    search,
)
from epochcast.interval import Interval
from epochcast.predict.cost.cost_model import Costs
from epochcast.predict.forecast.loader_queue import Service, WorkerHost
from epochcast.predict.forecast.step import StepForecast, StepParts


def step(batch: int) -> StepForecast:
    """10 ms and 1 ms a sample: larger batches are faster, less and less."""
    seconds = 0.010 + 0.001 * batch
    costs = Costs.by("hand", np.array([seconds]), np.array([seconds]), np.array([seconds]))
    return StepForecast(Interval.exact(seconds), StepParts(seconds, 0, 0, 0, 0, 0), seconds, {"hand": 1.0}, costs)


def loader_host(
    cpu_seconds: float = 0.004, cpus: float = 16, memory_bytes: float = inf, most_workers: int = MOST_WORKERS
) -> LoaderHost:
    service = Service(cpu_seconds, variation=0.5, sample_bytes=1e6)
    return LoaderHost(service, WorkerHost(cpus, memory_bytes), most_workers=most_workers)


def test_the_search_finds_what_trying_everything_finds() -> None:
    wide = loader_host(cpus=3, most_workers=6)
    tried = {
        (workers, prefetch): wide.feed(16, workers, prefetch).step_seconds(0.026)
        for workers in range(7)
        for prefetch in PREFETCHES
    }
    best = best_feed(16, 0.026, wide)
    assert best is not None
    found, seconds = best
    assert seconds == found.step_seconds(0.026)
    assert seconds <= min(tried.values()) * (1 + LOADER_TOLERANCE) ** 2
    fewer = [w for (w, p), seconds in tried.items() if seconds <= min(tried.values())]
    assert found.workers <= min(fewer)


def test_the_advised_batch_is_the_smallest_near_the_fastest() -> None:
    found = search(candidate_batches(256), step, loader_host(cpu_seconds=1e-5))
    assert found is not None
    assert found.fastest.batch == 256
    assert found.smallest.samples_per_second >= (1 - BATCH_TOLERANCE) * found.fastest.samples_per_second
    smaller = [b for b in candidate_batches(256) if b < found.smallest.batch]
    best = found.fastest.samples_per_second
    assert all(b / (0.010 + 0.001 * b) < (1 - BATCH_TOLERANCE) * best for b in smaller)


def test_few_processors_make_a_small_batch_enough() -> None:
    """One core decodes 250 samples a second, which the device does at batch 4."""
    found = search(candidate_batches(64), step, loader_host(cpus=1))
    assert found is not None
    assert found.fastest.samples_per_second == pytest.approx(250, rel=0.05)
    assert found.smallest.batch < 16


def test_host_memory_bounds_batches_and_workers() -> None:
    tight = loader_host(memory_bytes=500 * 2**20)
    found = search(candidate_batches(256), step, tight)
    assert found is not None
    assert found.fastest.feed.host_bytes <= 500 * 2**20


def test_no_host_memory_finds_nothing() -> None:
    assert search([1], step, loader_host(memory_bytes=1.0)) is None


@pytest.mark.parametrize(
    ("largest", "some"), [(1, [1]), (6, [1, 2, 4, 6]), (21, [1, 2, 4, 6, 8, 10, 12, 14, 16, 20, 21])]
)
def test_candidates_are_four_a_doubling_and_the_largest(largest: int, some: list[int]) -> None:
    assert candidate_batches(largest) == some
