"""The fastest batch, workers and prefetch together, found exactly by branch and bound over small integers.

For a batch B the device needs g(B) seconds per step (the forecast). With W workers and prefetch p, the queue of the
loader makes it T(B, W, p). No setting is faster than its fluid limit (`Feed.bounds`). So a setting is not simulated
where its limit is slower than the best so far. Among settings within `LOADER_TOLERANCE` of the fastest, the one with
the fewest workers is taken, then the one with the least prefetch: workers and memory are not free.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

from epochcast.predict.forecast.loader_queue import Feed, Service, WorkerHost, with_input, with_page_cache
from epochcast.predict.forecast.step import StepForecast

PREFETCHES = (2, 1, 3, 4, 6, 8)
MOST_WORKERS = 64
# Relative differences in speed that do not matter: between settings of a loader, and between batches.
LOADER_TOLERANCE = 0.005
BATCH_TOLERANCE = 0.02


@dataclass(frozen=True)
class LoaderHost:
    """The loader, its host, and how the ranks of a node share it.

    A step takes `accumulate` batches of a GPU, and loads each sample in `augment` copies.
    """

    service: Service
    host: WorkerHost
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
class BatchChoice:
    """One setting: a batch, the loader's settings, and the step with its waiting time."""

    batch: int
    feed: Feed
    step_seconds: float
    gpu: StepForecast
    accumulate: int = 1

    @property
    def step(self) -> StepForecast:
        """The step, including its wait for data."""
        return with_input(self.gpu, self.feed)

    @property
    def samples_per_second(self) -> float:
        """Throughput of one rank."""
        return self.batch * self.accumulate / self.step_seconds

    @property
    def stall_fraction(self) -> float:
        """Part of the step in which the device waits for data."""
        return max(0.0, 1 - self.gpu.seconds.mid / self.step_seconds)


def best_feed(batch: int, gpu_seconds: float, host: LoaderHost) -> tuple[Feed, float] | None:
    """The best loader settings for a batch, and seconds per step with them; None where none fits in host memory.

    Of all settings within `LOADER_TOLERANCE` of the fastest, the one with the fewest workers.
    """
    limits = [(feed.least_step_seconds(gpu_seconds), feed) for feed in host.feeds(batch)]
    simulated: dict[tuple[int, int], float] = {}

    def simulated_seconds(feed: Feed) -> float:
        key = (feed.workers, feed.prefetch)
        if key not in simulated:
            simulated[key] = feed.step_seconds(gpu_seconds)
        return simulated[key]

    fastest = inf
    for limit, feed in sorted(limits, key=lambda pair: (pair[0], pair[1].workers)):
        if limit * (1 + LOADER_TOLERANCE) >= fastest:
            break
        fastest = min(fastest, simulated_seconds(feed))
    close_seconds = fastest * (1 + LOADER_TOLERANCE)
    close = (feed for limit, feed in limits if limit <= close_seconds and simulated_seconds(feed) <= close_seconds)
    return next(((feed, simulated_seconds(feed)) for feed in close), None)


def candidate_batches(largest: int) -> list[int]:
    """1, 2, 4, 6, then four per doubling, and the largest itself: 8, 10, 12, 14, 16, 20, …"""
    batches = {1, 2, 4, 6, largest}
    power_of_two = 8
    while power_of_two <= largest:
        batches |= {power_of_two + quarter * power_of_two // 4 for quarter in range(4)}
        power_of_two *= 2
    return sorted(batch for batch in batches if 1 <= batch <= largest)


@dataclass(frozen=True)
class Solution:
    """The fastest batch, and the smallest that is within 2 % of it."""

    fastest: BatchChoice
    smallest: BatchChoice


def search(batches: Sequence[int], gpu: Callable[[int], StepForecast], host: LoaderHost) -> Solution | None:
    """The best setting over all batches; None where host memory holds no batch at all."""
    steps = {batch: gpu(batch) for batch in batches}
    # No step is shorter than the device needs, nor shorter than all cores and the whole disk allow.
    most_samples_per_second = {
        batch: host.accumulate
        * batch
        / replace(host.feed(batch, 0, 1), workers=host.most_workers).least_step_seconds(step.seconds.mid)
        for batch, step in steps.items()
    }

    choices: dict[int, BatchChoice | None] = {}

    def choice(batch: int) -> BatchChoice | None:
        if batch not in choices:
            best = best_feed(batch, steps[batch].seconds.mid, host)
            choices[batch] = None if best is None else BatchChoice(batch, *best, steps[batch], host.accumulate)
        return choices[batch]

    fastest: BatchChoice | None = None
    for batch in sorted(batches, key=lambda batch: (-most_samples_per_second[batch], batch)):
        if fastest and most_samples_per_second[batch] <= fastest.samples_per_second * (1 + LOADER_TOLERANCE):
            break
        candidate = choice(batch)
        if candidate and (fastest is None or candidate.samples_per_second > fastest.samples_per_second):
            fastest = candidate
    if fastest is None:
        return None
    enough_samples_per_second = (1 - BATCH_TOLERANCE) * fastest.samples_per_second
    for batch in sorted(batches):
        candidate = choice(batch) if most_samples_per_second[batch] >= enough_samples_per_second else None
        if candidate and candidate.samples_per_second >= enough_samples_per_second:
            return Solution(fastest, candidate)
    return Solution(fastest, fastest)
