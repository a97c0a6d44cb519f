from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epochcast.errors import BadInput
from epochcast.hardware.link import Link
from epochcast.predict.forecast.loader_queue import (
    RANK_BYTES,
    WORKER_BYTES,
    Feed,
    Service,
    WorkerHost,
    cache_hit_fraction,
    copy_seconds,
    with_page_cache,
)

EIGHT_MS = Service(cpu_seconds=0.008)
ENOUGH = WorkerHost(cpus=64)

feeds = st.builds(
    Feed,
    service=st.builds(
        Service,
        cpu_seconds=st.floats(0, 0.01),
        wait_seconds=st.floats(0, 0.01),
        variation=st.floats(0, 2),
        stored_bytes=st.sampled_from([0.0, 1e5]),
    ),
    host=st.builds(WorkerHost, cpus=st.floats(0.5, 8), disk_bytes_per_second=st.sampled_from([1e8, 1e9])),
    batch=st.integers(1, 64),
    workers=st.integers(0, 4),
    prefetch=st.integers(1, 4),
    ranks=st.integers(1, 2),
)
few = settings(max_examples=12, deadline=None)


# By hand: 64 samples of 8 ms are 0.512 s for one worker.
@pytest.mark.parametrize(("workers", "seconds"), [(0, 0.672), (1, 0.512), (2, 0.256), (3, 0.512 / 3), (4, 0.16)])
def test_workers_divide_the_loading_until_the_device_is_slower(workers: int, seconds: float) -> None:
    assert Feed(EIGHT_MS, ENOUGH, 64, workers).step_seconds(0.16) == pytest.approx(seconds)


def test_more_workers_than_idle_cores_share_them() -> None:
    assert Feed(EIGHT_MS, WorkerHost(cpus=2), 64, 8).step_seconds(0.16) == pytest.approx(0.256)


def test_sleeping_workers_need_no_cores() -> None:
    asleep = Service(0.0, wait_seconds=0.008)
    assert Feed(asleep, WorkerHost(cpus=1), 64, 8).step_seconds(0.16) == pytest.approx(0.16)


def test_ranks_of_a_box_share_its_disk() -> None:
    """64 samples of 100 kB for each of 4 ranks, from a disk of 100 MB/s."""
    reading = Service(0.0, stored_bytes=1e5)
    slow = WorkerHost(cpus=64, disk_bytes_per_second=1e8)
    assert Feed(reading, slow, 64, 8, ranks=4).step_seconds(0.01) == pytest.approx(0.256, rel=0.02)


def test_the_recursion_of_the_docstring_gives_the_same_step() -> None:
    """done_i = max(done_{i−W}, taken_{i−pW}) + s_i; taken_i = max(taken_{i−1} + g, done_i), with cores for all."""
    from epochcast.predict.forecast.loader_queue import _LoaderBox, _spread

    service = Service(0.0, wait_seconds=0.008, variation=8.0)
    for workers, prefetch in ((1, 1), (2, 2), (4, 1), (4, 4)):
        box = _LoaderBox(Feed(service, ENOUGH, 64, workers, prefetch), 0.16)
        made = _spread(service, 64, box.steps) * 0.512
        done, taken = np.zeros(box.steps), np.zeros(box.steps)
        for i in range(box.steps):
            before = done[i - workers] if i >= workers else 0.0
            asked = taken[i - prefetch * workers] if i >= prefetch * workers else 0.0
            done[i] = max(before, asked) + made[i]
            taken[i] = max(taken[i - 1] + 0.16 if i else 0.0, done[i])
        mean = (taken[-1] - taken[box.filling - 1]) / (box.steps - box.filling)
        assert box.run() == pytest.approx(mean)


def test_heavy_tails_cost_more_than_their_mean_and_prefetch_helps() -> None:
    tailed = replace(EIGHT_MS, variation=8.0)
    steps = [Feed(tailed, ENOUGH, 64, 4, prefetch).step_seconds(0.16) for prefetch in (1, 2, 8)]
    assert steps[0] > steps[1] > steps[2] >= 0.16


def test_measured_samples_stand_for_the_spread() -> None:
    mostly_fast = replace(EIGHT_MS, samples_seconds=(0.001,) * 19 + (0.141,))
    assert Feed(mostly_fast, ENOUGH, 8, 2, 1).step_seconds(0.032) > 1.1 * 0.032


@few
@given(feed=feeds, gpu=st.floats(0, 0.5))
def test_no_step_is_shorter_than_its_fluid_limit(feed: Feed, gpu: float) -> None:
    assert feed.step_seconds(gpu) >= feed.least_step_seconds(gpu) * (1 - 1e-9)


@few
@given(feed=feeds, gpu=st.floats(0.001, 0.5))
def test_the_same_question_has_the_same_answer(feed: Feed, gpu: float) -> None:
    assert feed.step_seconds(gpu) == feed.step_seconds(gpu)


@few
@given(feed=feeds, gpu=st.floats(0.001, 0.5), factor=st.floats(1.5, 10), computes=st.booleans())
def test_a_slower_device_never_has_a_shorter_step(feed: Feed, gpu: float, factor: float, computes: bool) -> None:
    """Where workers need one thing alone: see the next test."""
    seconds = feed.service.cpu_seconds
    alone = Service(seconds, variation=feed.service.variation) if computes else Service(0.0, wait_seconds=seconds)
    feed = replace(feed, service=alone)
    assert feed.step_seconds(factor * gpu) >= feed.step_seconds(gpu) * 0.98  # the ends of the averaged window


@pytest.mark.parametrize(("gpu_seconds", "step_seconds"), [(1e-6, 0.15), (0.05, 0.125), (0.1, 0.1), (0.12, 0.12)])
def test_a_fast_device_sets_workers_off_together(gpu_seconds: float, step_seconds: float) -> None:
    """Two workers wait 0.1 s and then need the one processor for 0.1 s. Taken one right behind the other, they wait
    together and compute together, two batches in 0.3 s; taken 0.1 s apart, one waits while the other computes.
    """
    feed = Feed(Service(0.01, wait_seconds=0.01), WorkerHost(cpus=1), 10, 2, 1)
    assert feed.step_seconds(gpu_seconds) == pytest.approx(step_seconds, rel=0.01)


def test_host_memory_by_hand() -> None:
    """4 workers with 2 batches each, two more on the way, 10 samples of 1 MB each."""
    feed = Feed(replace(EIGHT_MS, sample_bytes=1e6), ENOUGH, 10, 4, 2)
    assert feed.host_bytes == 10 * 10e6 + 4 * WORKER_BYTES + RANK_BYTES


def test_pinned_memory_is_copied_twice_as_fast() -> None:
    link = Link(0.0, 10e9)
    assert copy_seconds(7e9, link) == pytest.approx(1.0)
    assert copy_seconds(7e9, link, pinned=False) == pytest.approx(2.0)


def test_the_cache_formula_is_what_an_lru_cache_does() -> None:
    """A cache of 150 of 300 samples read in a new random order each epoch."""
    chance = np.random.default_rng(0)
    kept: dict[int, None] = {}
    hits = reads = 0
    for epoch in range(30):
        for sample in chance.permutation(300).tolist():
            reads += epoch > 0
            hits += epoch > 0 and sample in kept
            kept.pop(sample, None)
            kept[sample] = None
            if len(kept) > 150:
                del kept[next(iter(kept))]
    assert hits / reads == pytest.approx(cache_hit_fraction(0.5), abs=0.02)


def test_a_data_set_in_memory_is_not_read_again() -> None:
    service = Service(0.001, stored_bytes=1e5)
    assert with_page_cache(service, WorkerHost(1, memory_bytes=10e9), 1e9, 1e9).stored_bytes == 0
    assert with_page_cache(service, WorkerHost(1, memory_bytes=1e9), 1e12, 1e9).stored_bytes == 1e5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"workers": -1}, "workers must be at least 0, got -1"),
        ({"prefetch": 0}, "prefetch must be at least 1, got 0"),
        ({"batch": 0}, "batch must be at least 1, got 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(changes: dict[str, int], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        replace(Feed(EIGHT_MS, ENOUGH, 64, 2), **changes)  # type: ignore[arg-type]


def test_negative_seconds_are_refused() -> None:
    with pytest.raises(BadInput, match="cpu seconds of a loader must be at least 0"):
        Service(-1.0)
