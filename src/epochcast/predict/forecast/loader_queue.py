"""Waiting for data: the in-order queue of a DataLoader, solved batch by batch.

Each rank has W workers with p batches ahead of each. Batch i is made by worker i mod W; it is asked for when batch
i − pW is taken, and batches are taken in order:

    done_i  = max(done_{i−W}, taken_{i−pW}) + s_i          s_i: what the worker needs for the batch
    taken_i = max(taken_{i−1} + g, done_i)                  g: step without waiting (slowest rank), copy to the device

s_i has three phases: waiting (latency, sleeping), reading (the disk's rate is shared by all who read) and computing
(decoding: k workers that compute on c idle cores run at min(1, c/k) each, processor sharing). A node shares disk
and cores among its ranks, which begin a step together: the exchange of gradients makes them.

What a batch needs varies: samples have mean and coefficient of variation; B of them, taken as gamma distributed, need a
gamma time with cv/√B. Measured samples are drawn from instead. Draws are seeded: the same question has the same answer.

Limits: cores are alike, memory bandwidth is not shared, a worker's start at each epoch is not counted.
"""

from dataclasses import dataclass, replace
from heapq import heappop, heappush
from math import hypot, inf, isfinite, log, sqrt

import numpy as np
from numpy.typing import NDArray

from epochcast.describe.graph.trace import Trace
from epochcast.errors import BadInput
from epochcast.hardware.catalogue import find_link
from epochcast.hardware.device import Device
from epochcast.hardware.link import Link
from epochcast.interval import Interval
from epochcast.predict.forecast.placement import Placement
from epochcast.predict.forecast.step import INPUT, StepForecast

# torch.utils.data.DataLoader's own default.
PREFETCH = 2
# Nominal rate a copy to the device sustains: 11 GB/s of PCIe 3.0's 15.75 from pinned memory (thread under NVIDIA's "How
# to Optimize Data Transfers in CUDA C/C++"); pageable memory is first copied to a pinned buffer: taken as half of that.
PINNED_FRACTION = 0.7
PAGEABLE_FRACTION = 0.35
# Memory a forked worker has to itself (28–31 MiB), and a training process with torch 2.13 loaded (222 MiB), as Linux
# counts them (smaps_rollup). The host side of a CUDA context is not in it.
WORKER_BYTES = 32 * 2**20
RANK_BYTES = 256 * 2**20
# Steps that are averaged at least, behind those that fill the queue.
STEPS = 240
STEADY_STEPS = 48
# Batches that one rank may have ahead: 64 workers with 16 each. Every one of them is simulated.
MOST_AHEAD = 1024
# How far a worker may be from the seconds per sample that were told: two measurements of one loader on one core were
# 3.4 and 4.6 ms (`assumed.DECODE_SECONDS`), and the queue is 9 % low to 16 % high for decoding
# (docs/explanation/loader.md).
TOLD_LOW, TOLD_HIGH = 0.75, 1.35
_SEED = 7


@dataclass(frozen=True, slots=True)
class Service:
    """What one worker needs for one sample, alone on a core; `batch_seconds` comes on top once per batch (collating).

    `stored_bytes` are read from disk, `sample_bytes` go to the device. `receive_seconds` of each batch are spent by the
    training process itself, when it takes the batch. `samples_seconds` are measured times, used for their spread.
    """

    cpu_seconds: float
    wait_seconds: float = 0.0
    variation: float = 0.0
    batch_seconds: float = 0.0
    receive_seconds: float = 0.0
    stored_bytes: float = 0.0
    sample_bytes: float = 0.0
    samples_seconds: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for name in self.__slots__[:-1]:
            value = getattr(self, name)
            if not (isfinite(value) and value >= 0):
                raise BadInput(f"{name.replace('_', ' ')} of a loader must be at least 0, got {value}")

    @property
    def sample_mean_seconds(self) -> float:
        """A sample by one worker, disk aside."""
        return self.cpu_seconds + self.wait_seconds

    def seconds(self, batch: int) -> float:
        """The thesis' t_d: a batch by one worker, disk aside."""
        return batch * self.sample_mean_seconds + self.batch_seconds


@dataclass(frozen=True, slots=True)
class WorkerHost:
    """What the workers of one node share. `cpus` are idle ones: those that training itself leaves."""

    cpus: float
    memory_bytes: float = inf
    disk_bytes_per_second: float = inf

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if not getattr(self, name) > 0:
                raise BadInput(f"{name.replace('_', ' ')} of the host must be above 0, got {getattr(self, name)}")


@dataclass(frozen=True, slots=True)
class Feed:
    """How data reaches the device: the loader's settings per rank, on a host that `ranks` share."""

    service: Service
    host: WorkerHost
    batch: int
    workers: int
    prefetch: int = PREFETCH
    ranks: int = 1
    copy_seconds: float = 0.0

    def __post_init__(self) -> None:
        for what, value, least in (
            ("batch", self.batch, 1),
            ("workers", self.workers, 0),
            ("prefetch", self.prefetch, 1),
            ("ranks", self.ranks, 1),
        ):
            if value < least:
                raise BadInput(f"{what} must be at least {least}, got {value}")
        if self.workers * self.prefetch > MOST_AHEAD:
            raise BadInput(
                f"{self.workers:,} workers with {self.prefetch:,} batches ahead of each hold "
                f"{self.workers * self.prefetch:,} batches per GPU; at most {MOST_AHEAD:,} are simulated"
            )

    def paced(self, factor: float) -> "Feed":
        """The same with workers that need `factor` times as long for a sample."""
        service = self.service
        changed = replace(
            service,
            cpu_seconds=factor * service.cpu_seconds,
            wait_seconds=factor * service.wait_seconds,
            batch_seconds=factor * service.batch_seconds,
        )
        return replace(self, service=changed)

    @property
    def host_bytes(self) -> float:
        """R·((pW + 2)·B·I + W·worker + process): batches ahead, one in use, one on its way to the device."""
        held = (self.prefetch * self.workers + 2) * self.batch * self.service.sample_bytes
        return self.ranks * (held + self.workers * WORKER_BYTES + RANK_BYTES)

    def least_step_seconds(self, gpu_seconds: float) -> float:
        """max(g, t_d/W, R·CPU/c, R·bytes/disk): no order of events is faster (fluid limit)."""
        return max(self.bounds(gpu_seconds).values())

    def bounds(self, gpu_seconds: float) -> dict[str, float]:
        """Seconds per step that each resource alone would allow."""
        service = self.service
        computing = self.batch * service.cpu_seconds + service.batch_seconds
        reading = self.batch * service.stored_bytes / self.host.disk_bytes_per_second
        alone = computing + self.batch * service.wait_seconds + reading
        step = gpu_seconds + self.copy_seconds + service.receive_seconds
        return {
            "gpu": step if self.workers else step + alone,
            "workers": alone / max(1, self.workers),
            "cpus": self.ranks * computing / self.host.cpus,
            "disk": self.ranks * reading,
        }

    def step_seconds(self, gpu_seconds: float) -> float:
        """Mean seconds of a step that needs `gpu_seconds` where data is there."""
        if not self.workers:
            return self._in_line_seconds(gpu_seconds)
        return max(_LoaderBox(self, gpu_seconds).run(), self.least_step_seconds(gpu_seconds))

    def stall_fraction(self, gpu_seconds: float) -> float:
        """Part of a step in which the device waits for data."""
        step = self.step_seconds(gpu_seconds)
        return max(0.0, step - gpu_seconds) / step if step else 0.0

    def _in_line_seconds(self, gpu_seconds: float) -> float:
        """No workers: the training process loads, then trains; ranks compete for cores and disk."""
        share = max(1.0, self.ranks / self.host.cpus)
        service = self.service
        computing = share * (self.batch * service.cpu_seconds + service.batch_seconds)
        reading = self.ranks * self.batch * service.stored_bytes / self.host.disk_bytes_per_second
        return gpu_seconds + self.copy_seconds + computing + self.batch * service.wait_seconds + reading


def copy_seconds(size_bytes: float, link: Link, *, pinned: bool = True) -> float:
    """α + n/(f·B): a batch to the device; f is what pinned or pageable memory sustains of the link."""
    fraction = PINNED_FRACTION if pinned else PAGEABLE_FRACTION
    return link.latency_seconds + size_bytes / (fraction * link.bandwidth_bytes_per_second)


def device_copy_seconds(size_bytes: float, device: Device) -> float:
    """A batch over the device's own link, from pinned memory; nothing where the processor trains."""
    return 0.0 if device.kind == "cpu" else copy_seconds(size_bytes, find_link(device.host_link))


def sample_bytes(trace: Trace) -> float:
    """What one sample brings to the device."""
    return float(sum(tensor.bytes for tensor in trace.inputs if tensor.shape and tensor.shape[0] == 1))


def left_cpus(cpus: float, ranks: int) -> float:
    """Processors the workers have: each training process keeps one busy with launches, half of them at the most."""
    return max(cpus - ranks, cpus / 2)


def feed_for(
    trace: Trace,
    placement: Placement,
    service: Service,
    host: WorkerHost,
    *,
    workers: int | None = None,
    prefetch: int = PREFETCH,
) -> Feed:
    """The loader of a step, all its accumulated passes as one batch; a worker per idle processor unless said."""
    ranks, samples = placement.ranks_per_node, trace.batch * trace.recipe.accumulate
    idle = min(max(1, int(host.cpus / ranks)), max(1, MOST_AHEAD // prefetch))
    chosen = idle if workers is None else workers
    copying = device_copy_seconds(samples * service.sample_bytes, placement.device)
    return Feed(service, host, samples, chosen, prefetch, ranks, copying)


def cache_hit_fraction(cached_fraction: float) -> float:
    """c + (1−c)·ln(1−c): hits of an LRU cache that holds a fraction c of a data set read in a new random order each
    epoch.

    A sample read at place u of one epoch and v of the next has 1 − u(1−v) of the data set read in between; the product
    of two uniform numbers is at least 1 − c with this probability.
    """
    rest = 1 - min(1.0, max(0.0, cached_fraction))
    return 1.0 if not rest else 1 - rest + rest * log(rest)


def with_page_cache(service: Service, host: WorkerHost, data_bytes: float, used_bytes: float) -> Service:
    """The service once what training leaves of the host's memory caches the data set."""
    if not (data_bytes and isfinite(host.memory_bytes)):
        return service
    hits = cache_hit_fraction(max(0.0, host.memory_bytes - used_bytes) / data_bytes)
    return replace(service, stored_bytes=service.stored_bytes * (1 - hits))


def with_input(step: StepForecast, feed: Feed, *, is_fluid: bool = False) -> StepForecast:
    """The step with what it waits for data: a faster device waits longer. Device and loader err apart, so what they
    may be off adds as squares. `is_fluid` leaves the order of batches out.
    """

    def step_seconds(of: Feed, gpu_seconds: float) -> float:
        return of.least_step_seconds(gpu_seconds) if is_fluid else of.step_seconds(gpu_seconds)

    low, mid, high = (step_seconds(feed, end) for end in (step.seconds.low, step.seconds.mid, step.seconds.high))
    quick, slow = (step_seconds(feed.paced(factor), step.seconds.mid) for factor in (TOLD_LOW, TOLD_HIGH))
    below = hypot(max(0.0, mid - low), max(0.0, mid - quick))
    above = hypot(max(0.0, high - mid), max(0.0, slow - mid))
    seconds = Interval(max(0.0, mid - below), mid, mid + above, step.seconds.coverage)
    exposed = max(0.0, mid - step.seconds.mid)
    # What the loader hides of the step's own doubt is gone; its own is that of the two paces.
    hidden = ((high - low) / max(step.seconds.high - step.seconds.low, 1e-30)) ** 2
    variances = {part: hidden * variance for part, variance in step.variances.items()}
    variances[INPUT] = (max(0.0, slow - quick) / 2 / mid) ** 2
    return replace(step, seconds=seconds, parts=replace(step.parts, exposed_input=exposed), variances=variances)


# ---- the queue ----------------------------------------------------------------------------------


@dataclass(slots=True)
class _Shared:
    """Jobs that run side by side, each at rate min(`each`, `total`/jobs).

    All run at one rate, so a job of work w that begins when V has been done by each ends when V + w has: the next to
    end is the top of a heap.
    """

    each: float
    total: float
    seconds: float
    done: float
    heap: list[tuple[float, int, int]]

    @classmethod
    def of(cls, each: float, total: float) -> "_Shared":
        return cls(each, total, 0.0, 0.0, [])

    def _advance(self, now: float) -> None:
        if self.heap:
            self.done += min(self.each, self.total / len(self.heap)) * (now - self.seconds)
        self.seconds = now

    def begin(self, now: float, work: float, rank: int, place: int) -> None:
        self._advance(now)
        heappush(self.heap, (self.done + work, place, rank))

    def next_end(self) -> float:
        if not self.heap:
            return inf
        rate = min(self.each, self.total / len(self.heap))
        return self.seconds + max(0.0, self.heap[0][0] - self.done) / rate

    def end(self, now: float) -> tuple[int, int]:
        self._advance(now)
        _, place, rank = heappop(self.heap)
        return rank, place


class _LoaderBox:
    """The ranks of one node, their workers and what they share, from the first batch to the last."""

    def __init__(self, feed: Feed, gpu_seconds: float) -> None:
        service, host = feed.service, feed.host
        ahead = feed.prefetch * feed.workers
        self.feed, self.ahead, self.filling = feed, ahead, 2 * ahead + feed.workers
        is_steady = not service.samples_seconds and not service.variation
        self.steps = self.filling + max(STEADY_STEPS if is_steady else STEPS, 4 * ahead)
        self.gpu_seconds = gpu_seconds + feed.copy_seconds + service.receive_seconds
        spread = _spread(service, feed.batch, feed.ranks * self.steps).reshape(feed.ranks, self.steps)
        disk = host.disk_bytes_per_second
        # Phases that take no time are left out; the last, computing, is always there.
        phases = [
            (spread * feed.batch * service.wait_seconds, _Shared.of(1.0, inf)),
            (np.full_like(spread, feed.batch * service.stored_bytes if isfinite(disk) else 0), _Shared.of(disk, disk)),
            (spread * feed.batch * service.cpu_seconds + service.batch_seconds, _Shared.of(1.0, host.cpus)),
        ]
        used = [phase for place, phase in enumerate(phases) if place == len(phases) - 1 or phase[0].any()]
        self.work = [work.tolist() for work, _ in used]
        self.servers = [server for _, server in used]
        self.asked = [min(ahead, self.steps)] * feed.ranks  # batches before this one have been asked for
        self.is_done = [[False] * self.steps for _ in range(feed.ranks)]
        self.waiting: dict[int, int] = {}
        self.is_idle = [[True] * feed.workers for _ in range(feed.ranks)]
        self.next_place = [list(range(feed.workers)) for _ in range(feed.ranks)]

    def run(self) -> float:
        """Mean seconds per step once the queue has filled."""
        for rank in range(self.feed.ranks):
            for worker in range(self.feed.workers):
                self._start(rank, worker, 0.0)
        begun, now = 0.0, 0.0
        for place in range(self.steps):
            self._run_until(now)
            self.waiting = {rank: place for rank in range(self.feed.ranks)}
            for rank in range(self.feed.ranks):
                self._take(rank, place, now)
            while self.waiting:
                now = self._next_end()
                self._run_until(now)
            now += self.gpu_seconds
            if place == self.filling - 1:
                begun = now
        return (now - begun) / (self.steps - self.filling)

    def _take(self, rank: int, place: int, now: float) -> None:
        """Batch `place`, where the rank waits for it and it is done; another is asked for in its stead."""
        if self.waiting.get(rank) != place or not self.is_done[rank][place]:
            return
        del self.waiting[rank]
        self.asked[rank] = min(self.steps, self.asked[rank] + 1)
        self._start(rank, place % self.feed.workers, now)

    def _next_end(self) -> float:
        return min(server.next_end() for server in self.servers)

    def _run_until(self, moment: float) -> None:
        """Everything that ends by `moment`."""
        while True:
            ends = [server.next_end() for server in self.servers]
            first = min(ends)
            if first > moment:
                return
            phase = ends.index(first)
            rank, place = self.servers[phase].end(first)
            if phase + 1 < len(self.servers):
                self.servers[phase + 1].begin(first, self.work[phase + 1][rank][place], rank, place)
                continue
            self.is_done[rank][place] = True
            worker = place % self.feed.workers
            self.is_idle[rank][worker] = True
            self._start(rank, worker, first)
            self._take(rank, place, first)

    def _start(self, rank: int, worker: int, now: float) -> None:
        """The worker's next batch, where it is idle and one has been asked of it."""
        place = self.next_place[rank][worker]
        if not self.is_idle[rank][worker] or place >= self.asked[rank]:
            return
        self.is_idle[rank][worker] = False
        self.next_place[rank][worker] = place + self.feed.workers
        self.servers[0].begin(now, self.work[0][rank][place], rank, place)


def _spread(service: Service, batch: int, count: int) -> NDArray[np.float64]:
    """Factors by which batches differ; their mean is exactly 1."""
    chance = np.random.default_rng(_SEED)
    if service.samples_seconds:
        measured = np.asarray(service.samples_seconds)
        drawn = chance.choice(measured / measured.mean(), size=(count, min(batch, 64))).mean(axis=1)
        # The mean of more than 64 is normal enough to be narrowed: √64/√B.
        factors = np.maximum(1 + (drawn - 1) * sqrt(min(batch, 64) / batch), 0.0)
    elif service.variation > 1e-6:
        factors = chance.gamma(batch / service.variation**2, size=count)
    else:
        factors = np.ones(count)
    mean = float(factors.mean())
    return factors / mean if mean else np.ones(count)
