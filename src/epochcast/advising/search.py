"""Batch, workers and prefetch together: the fastest, found exactly by branch and bound over small integers.

For a batch B the device needs g(B) seconds per step (the forecast); the queue of the loader makes of it T(B, W, p). No
setting can be faster than its fluid limit (`Feed.bounds`), so a setting whose limit is behind what was already found is
never simulated. Among settings within `CLOSE` of the fastest the one with the fewest workers is taken, then the least
prefetch: workers and memory are not free.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

from epochcast.forecasting.loader import Feed, Host, Service, with_input, with_page_cache
from epochcast.forecasting.step import StepForecast

PREFETCHES = (2, 1, 3, 4, 6, 8)
MOST_WORKERS = 64
# Differences that no one would notice: settings of a loader, and batches.
CLOSE = 0.005
NEAR = 0.02


@dataclass(frozen=True)
class LoaderHost:
    """The loader, its host, and how the ranks of a box share it.

    A step takes `accumulate` batches of a GPU, and loads each sample in `augment` copies.
    """

    service: Service
    host: Host
    ranks: int = 1
    data_bytes: float = 0.0
    copy_seconds: Callable[[int], float] = lambda batch: 0.0
    most_workers: int = MOST_WORKERS
    accumulate: int = 1
    augment: int = 1

    def feed(self, batch: int, workers: int, prefetch: int) -> Feed:
        """The loader at these settings, with what is left of the host's memory as page cache."""
        samples = batch * self.accumulate * self.augment
        feed = Feed(self.service, self.host, samples, workers, prefetch, self.ranks, self.copy_seconds(samples))
        if not self.data_bytes:
            return feed
        return replace(feed, service=with_page_cache(self.service, self.host, self.data_bytes, feed.host_bytes))

    def feeds(self, batch: int) -> Iterator[Feed]:
        """All settings that fit in the host's memory; those without workers have no prefetch to choose."""
        for workers in range(self.most_workers + 1):
            for prefetch in PREFETCHES if workers else PREFETCHES[:1]:
                feed = self.feed(batch, workers, prefetch)
                if feed.host_bytes <= self.host.memory_bytes:
                    yield feed


@dataclass(frozen=True)
class Choice:
    """One way to run: a batch, a loader, and the step with its waiting."""

    batch: int
    feed: Feed
    step_seconds: float
    gpu: StepForecast
    accumulate: int = 1

    @property
    def step(self) -> StepForecast:
        """The step with what it waits for data."""
        return with_input(self.gpu, self.feed)

    @property
    def samples_per_second(self) -> float:
        """Of one rank."""
        return self.batch * self.accumulate / self.step_seconds

    @property
    def stall_fraction(self) -> float:
        """Part of the step in which the device waits for data."""
        return max(0.0, 1 - self.gpu.seconds.mid / self.step_seconds)


def best_feed(batch: int, gpu_seconds: float, host: LoaderHost) -> tuple[Feed, float] | None:
    """The loader's settings for a batch, and the step with them; None where none fits in the host's memory.

    The fewest workers within `CLOSE` of the fastest.
    """
    limits = [(feed.least_step_seconds(gpu_seconds), feed) for feed in host.feeds(batch)]
    simulated: dict[tuple[int, int], float] = {}

    def seconds(feed: Feed) -> float:
        key = (feed.workers, feed.prefetch)
        if key not in simulated:
            simulated[key] = feed.step_seconds(gpu_seconds)
        return simulated[key]

    fastest = inf
    for limit, feed in sorted(limits, key=lambda pair: (pair[0], pair[1].workers)):
        if limit * (1 + CLOSE) >= fastest:
            break
        fastest = min(fastest, seconds(feed))
    close = fastest * (1 + CLOSE)
    return next(((feed, seconds(feed)) for limit, feed in limits if limit <= close and seconds(feed) <= close), None)


def candidate_batches(largest: int) -> list[int]:
    """1, 2, 4, 8, then four a doubling, and the largest itself: 8, 10, 12, 14, 16, 20, …"""
    batches = {1, 2, 4, 6, largest}
    octave = 8
    while octave <= largest:
        batches |= {octave + quarter * octave // 4 for quarter in range(4)}
        octave *= 2
    return sorted(batch for batch in batches if 1 <= batch <= largest)


@dataclass(frozen=True)
class Solution:
    """The fastest batch, and the smallest that is within 2 % of it."""

    fastest: Choice
    smallest: Choice


def search(batches: Sequence[int], gpu: Callable[[int], StepForecast], host: LoaderHost) -> Solution | None:
    """Over all batches; None where the host's memory holds no batch at all."""
    steps = {batch: gpu(batch) for batch in batches}
    # No loader makes a step shorter than the device needs, nor shorter than all cores and the whole disk allow.
    limits = {
        batch: host.accumulate
        * batch
        / replace(host.feed(batch, 0, 1), workers=host.most_workers).least_step_seconds(step.seconds.mid)
        for batch, step in steps.items()
    }

    choices: dict[int, Choice | None] = {}

    def choice(batch: int) -> Choice | None:
        if batch not in choices:
            best = best_feed(batch, steps[batch].seconds.mid, host)
            choices[batch] = None if best is None else Choice(batch, *best, steps[batch], host.accumulate)
        return choices[batch]

    fastest: Choice | None = None
    for batch in sorted(batches, key=lambda batch: (-limits[batch], batch)):
        if fastest and limits[batch] <= fastest.samples_per_second * (1 + CLOSE):
            break
        tried = choice(batch)
        if tried and (fastest is None or tried.samples_per_second > fastest.samples_per_second):
            fastest = tried
    if fastest is None:
        return None
    enough = (1 - NEAR) * fastest.samples_per_second
    for batch in sorted(batches):
        tried = choice(batch) if limits[batch] >= enough else None
        if tried and tried.samples_per_second >= enough:
            return Solution(fastest, tried)
    return Solution(fastest, fastest)
