"""Measuring a loader: how long one worker takes for a sample and a batch, for what, and how many cores are idle.

Samples are made in this process as a worker makes them (one thread) and timed one by one: CPU seconds and waiting
seconds. Time in which another program had the core is left out: it counts as waiting only where the process gave up the
core itself. Collating is timed per batch. Transfer is what a real worker process needs for a batch beyond that (shared
memory, pipes), in CPU seconds.

Takes a torch DataLoader, or anything that is iterated over (tf.data): of those only whole batches can be timed.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice, pairwise
from statistics import mean, median, pstdev
from typing import Any

from epochcast.base.record import Record, json_hidden
from epochcast.describe.capture.torch.factory import named_object
from epochcast.describe.capture.torch.traceback_notes import explained
from epochcast.errors import BadInput, MissingExtra
from epochcast.measure.bench.idle_cpus import idle_cpus
from epochcast.predict.forecast.loader_queue import Service

BATCH = 32
# Batches that a real worker process sends while it is timed, and the warm-up batches before them.
TIMED_BATCHES = 8
WARM_UP_BATCHES = 2
# Seconds of at most this many samples are kept, for their spread.
MOST_SAMPLES = 512
# Warm-up batches of tf.data and other iterables, which start threads, are not counted.
_WARM_UP = 1


@dataclass(frozen=True, slots=True)
class LoaderMeasurement(Record):
    """A measured loader. Per sample: decode and wait; per batch: collate and transfer by the worker, receive by the
    training process; None where they cannot be separated. `worker_seconds` is a whole batch by one worker.
    """

    name: str
    batch: int
    samples: int
    decode_seconds: float
    wait_seconds: float
    variation: float
    collate_seconds: float | None
    transfer_seconds: float | None
    receive_seconds: float | None
    worker_seconds: float
    sample_bytes: float
    stored_bytes: float | None
    idle_cpus: float
    workers: int | None
    prefetch: int | None
    samples_seconds: tuple[float, ...] = json_hidden()

    def service(self) -> Service:
        """The loader as the queue model uses it."""
        return Service(
            self.decode_seconds,
            self.wait_seconds,
            self.variation,
            (self.collate_seconds or 0.0) + (self.transfer_seconds or 0.0),
            self.receive_seconds or 0.0,
            stored_bytes=self.stored_bytes or 0.0,
            sample_bytes=self.sample_bytes,
            samples_seconds=self.samples_seconds,
        )


def find_loader(reference: str) -> object:
    """The loader that `pkg.module:factory` or `file.py:factory` makes, or names."""
    factory = named_object(reference)
    if not callable(factory) or _is_loader(factory):
        return factory
    with explained(f"the loader {reference}"):
        loader: object = factory()
    return loader


def measure_loader(
    loader: object = None, *, batch: int = BATCH, budget_seconds: float = 4.0, name: str | None = None
) -> LoaderMeasurement:
    """Time a loader; without one, the decoding of a generated folder of JPEG files in batches of `batch`."""
    if batch < 1:
        raise BadInput(f"batch must be at least 1, got {batch}")
    if not budget_seconds > 0:
        raise BadInput(f"budget_seconds must be above 0, got {budget_seconds}")
    if loader is None:
        from epochcast.measure.bench.jpegs import jpeg_folder

        with jpeg_folder() as dataset:
            jpeg_loader = _torch_data().DataLoader(dataset, batch_size=batch, num_workers=0)
            return measure_loader(jpeg_loader, budget_seconds=budget_seconds, name=name or "JPEG decoding")
    if not isinstance(loader, Iterable):
        raise BadInput(f"a loader is a DataLoader or an iterable, got {type(loader).__name__}")
    loader_name = name or type(loader).__name__
    idle = idle_cpus()
    with explained(f"the loader {loader_name}"):
        if _has_samples(loader):
            return _by_sample(loader, loader_name, budget_seconds, idle)
        return _by_batch(loader, loader_name, budget_seconds, idle)


# ---- sample by sample ---------------------------------------------------------------------------


def _by_sample(loader: Any, name: str, budget_seconds: float, idle: float) -> LoaderMeasurement:
    """Decode and collate in this process as a worker does, then run a real worker."""
    cpu, waits, collate, bytes_, count = [], [], [], 0.0, 0
    dataset, get_many = loader.dataset, getattr(loader.dataset, "__getitems__", None)
    batches = list(islice(iter(loader.batch_sampler), 4096))
    if not batches:
        raise BadInput(f"the loader {name} has no batches")
    started = time.perf_counter()
    with _one_thread():
        for done, indices in enumerate(batches):
            if done > 1 and time.perf_counter() - started > budget_seconds / 2:
                break
            if get_many is not None:
                timed = _timed(lambda indices=indices: get_many(indices))  # type: ignore[misc]
                samples = timed.result
                cpu += [timed.cpu_seconds / len(indices)] * len(indices)
                waits += [timed.wait_seconds / len(indices)] * len(indices)
            else:
                samples = []
                for index in indices:
                    timed = _timed(lambda index=index: dataset[index])  # type: ignore[misc]
                    samples.append(timed.result)
                    cpu.append(timed.cpu_seconds)
                    waits.append(timed.wait_seconds)
            timed = _timed(lambda samples=samples: loader.collate_fn(samples))  # type: ignore[misc]
            collate.append(timed.cpu_seconds + timed.wait_seconds)
            bytes_ += _bytes(timed.result)
            count += len(indices)
    batch = len(batches[0])
    first = batch if len(cpu) > batch else 0  # the first batch fills caches
    cpu, waits = cpu[first:], waits[first:]
    totals = [c + w for c, w in zip(cpu, waits, strict=True)]
    decode, wait, collated = mean(cpu), mean(waits), median(collate[1:] or collate)
    worker = batch * (decode + wait) + collated
    sent, receive = _transferred(loader, batches)
    transfer = None if sent is None else max(0.0, sent - batch * decode - collated)
    return LoaderMeasurement(
        name,
        batch,
        len(totals),
        decode,
        wait,
        pstdev(totals) / mean(totals) if mean(totals) else 0.0,
        collated,
        transfer,
        receive,
        worker + (transfer or 0.0),
        bytes_ / count,
        getattr(dataset, "stored_bytes", None),
        idle,
        loader.num_workers,
        loader.prefetch_factor,
        tuple(totals[:MOST_SAMPLES]),
    )


def _transferred(loader: Any, batches: list[Any]) -> tuple[float | None, float | None]:
    """CPU seconds per batch of one worker process (all its threads), and of this process, which receives the batch.

    Medians; None where there were too few batches. Wall-clock seconds would include the wait for a worker that has no
    core, which the queue model counts already.
    """
    used_batches = batches[: WARM_UP_BATCHES + TIMED_BATCHES]
    real_loader = _torch_data().DataLoader(
        loader.dataset,
        batch_sampler=used_batches,
        collate_fn=_TimedCollate(loader.collate_fn),
        worker_init_fn=loader.worker_init_fn,
        num_workers=1,
    )
    cpu_readings, receive_seconds = [], []
    source = iter(real_loader)
    for _ in used_batches:
        began = time.thread_time()
        _, cpu_seconds = next(source)
        receive_seconds.append(time.thread_time() - began)
        cpu_readings.append(cpu_seconds)
    gaps = [after - before for before, after in pairwise(cpu_readings)][WARM_UP_BATCHES - 1 :]
    receive_seconds = receive_seconds[WARM_UP_BATCHES:]
    return (median(gaps) if gaps else None), (median(receive_seconds) if receive_seconds else None)


@dataclass(frozen=True)
class _TimedCollate:
    """Collates, and returns the CPU seconds of the worker process so far."""

    collate: Callable[[Any], Any]

    def __call__(self, samples: Any) -> tuple[Any, float]:
        return self.collate(samples), time.process_time()


# ---- batch by batch -----------------------------------------------------------------------------


def _by_batch(loader: Iterable[Any], name: str, budget_seconds: float, idle: float) -> LoaderMeasurement:
    """Whole batches, made in this process."""
    seconds: list[float] = []
    cpu: list[float] = []
    sizes: list[int] = []
    bytes_ = 0.0
    source: Iterator[Any] = iter(loader)
    started = time.perf_counter()
    while len(seconds) <= _WARM_UP + 1 or time.perf_counter() - started < budget_seconds:
        timed = _timed(lambda: next(source, _END))
        if timed.result is _END:
            break
        size = _samples(timed.result)
        sizes.append(size)
        cpu.append(timed.cpu_seconds / size)
        seconds.append((timed.cpu_seconds + timed.wait_seconds) / size)
        bytes_ += _bytes(timed.result)
    if not seconds:
        raise BadInput(f"the loader {name} has no batches")
    if len(seconds) > _WARM_UP + 1:
        seconds, cpu = seconds[_WARM_UP:], cpu[_WARM_UP:]
    batch, decode = sizes[0], mean(cpu)
    wait = max(0.0, mean(seconds) - decode)
    # The variation of a batch is 1/√B of that of its samples.
    variation = pstdev(seconds) / mean(seconds) * batch**0.5 if mean(seconds) else 0.0
    return LoaderMeasurement(
        name,
        batch,
        sum(sizes),
        decode,
        wait,
        variation,
        None,
        None,
        None,
        batch * (decode + wait),
        bytes_ / sum(sizes),
        None,
        idle,
        None,
        None,
        (),
    )


_END = object()


# ---- parts --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Timed:
    result: Any
    cpu_seconds: float
    wait_seconds: float


def _timed(run: Callable[[], Any]) -> _Timed:
    """CPU and waiting seconds of one call."""
    switches, wall, cpu = _voluntary_switches(), time.perf_counter(), time.thread_time()
    result = run()
    cpu_seconds, wall_seconds = time.thread_time() - cpu, time.perf_counter() - wall
    gave_up_core = _voluntary_switches() > switches
    return _Timed(result, cpu_seconds, max(0.0, wall_seconds - cpu_seconds) if gave_up_core else 0.0)


def _voluntary_switches() -> float:
    """How often this thread has given up the processor; a growing number where the system does not count it."""
    try:
        import resource
    except ModuleNotFoundError:
        return time.perf_counter()
    who = getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)
    return float(resource.getrusage(who).ru_nvcsw)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Torch with one thread, as in a worker."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _torch_data() -> Any:
    try:
        import torch.utils.data
    except ModuleNotFoundError:
        raise MissingExtra("torch") from None
    return torch.utils.data


def _is_loader(value: object) -> bool:
    return hasattr(value, "dataset") and hasattr(value, "collate_fn")


def _has_samples(loader: Any) -> bool:
    """Whether it is a DataLoader whose data set gives single samples."""
    if not _is_loader(loader) or getattr(loader, "batch_sampler", None) is None:
        return False
    return hasattr(loader.dataset, "__getitem__") and not isinstance(loader.dataset, _torch_data().IterableDataset)


def _arrays(value: Any) -> Iterator[Any]:
    """All arrays in nested containers."""
    if hasattr(value, "shape"):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _arrays(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _arrays(item)


def _bytes(batch: Any) -> float:
    return float(sum(array.nbytes if hasattr(array, "nbytes") else 0 for array in _arrays(batch)))


def _samples(batch: Any) -> int:
    sizes = [int(array.shape[0]) for array in _arrays(batch) if len(array.shape)]
    return sizes[0] if sizes and sizes[0] else 1
