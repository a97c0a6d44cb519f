"""Measuring a loader: what one worker needs for a sample and a batch, where the time goes, and how many cores are idle.

Samples are made in this process as a worker makes them (one thread), timed one by one: seconds of the processor, and
seconds of waiting. Time without either (another program had the core) is left out: it is counted as waiting only where
the process gave the core away itself. Collating is timed per batch. Handing over is what a real worker process needs
for a batch beyond that (shared memory, pipes), in seconds of its processor.

Takes a torch DataLoader, or anything that is iterated over (tf.data): of those only whole batches can be timed.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from itertools import islice, pairwise
from statistics import mean, median, pstdev
from typing import Any

from epochcast.bench.idle_cpus import idle_cpus
from epochcast.capture.torch.factory import named_object
from epochcast.capture.torch.notes import explained
from epochcast.errors import BadInput, MissingExtra
from epochcast.forecasting.loader import Service

BATCH = 32
# Batches a real worker process hands over while it is timed, and those before them that start it.
HANDED_BATCHES = 8
FIRST_BATCHES = 2
# Samples kept for their spread.
MOST_SAMPLES = 512
# tf.data and other iterables show no samples: the batches that start threads are not counted.
_STARTING = 1


@dataclass(frozen=True, slots=True)
class LoaderMeasurement:
    """What was measured. Per sample: decode and wait; per batch: collate and transfer by the worker, receive by the
    training process; None where they cannot be told apart. `worker_seconds` is a whole batch by one worker.
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
    samples_seconds: tuple[float, ...]

    def service(self) -> Service:
        """As the queue model takes it."""
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

    def as_dict(self) -> dict[str, object]:
        """All but the single samples."""
        return {part.name: getattr(self, part.name) for part in fields(self) if part.name != "samples_seconds"}


def find_loader(reference: str) -> object:
    """What `pkg.module:factory` or `file.py:factory` makes, or names."""
    named = named_object(reference)
    if not callable(named) or _is_loader(named):
        return named
    with explained(f"the loader {reference}"):
        loader: object = named()
    return loader


def measure_loader(
    loader: object = None, *, batch: int = BATCH, budget_seconds: float = 4.0, name: str | None = None
) -> LoaderMeasurement:
    """Time a loader; none: decoding a generated folder of JPEG files, `batch` a time."""
    if batch < 1:
        raise BadInput(f"batch must be at least 1, got {batch}")
    if not budget_seconds > 0:
        raise BadInput(f"the budget must be above 0 seconds, got {budget_seconds}")
    if loader is None:
        from epochcast.bench.jpegs import jpeg_folder

        with jpeg_folder() as pictures:
            decoding = _torch_data().DataLoader(pictures, batch_size=batch, num_workers=0)
            return measure_loader(decoding, budget_seconds=budget_seconds, name=name or "JPEG decoding")
    if not isinstance(loader, Iterable):
        raise BadInput(f"a loader is a DataLoader or something to iterate over, got {type(loader).__name__}")
    called = name or type(loader).__name__
    idle = idle_cpus()
    with explained(f"the loader {called}"):
        if _has_samples(loader):
            return _by_sample(loader, called, budget_seconds, idle)
        return _by_batch(loader, called, budget_seconds, idle)


# ---- sample by sample ---------------------------------------------------------------------------


def _by_sample(loader: Any, name: str, budget_seconds: float, idle: float) -> LoaderMeasurement:
    """Decode and collate as a worker does, one thread; then a real worker."""
    cpu, waits, collate, bytes_, count = [], [], [], 0.0, 0
    dataset, together = loader.dataset, getattr(loader.dataset, "__getitems__", None)
    batches = list(islice(iter(loader.batch_sampler), 4096))
    if not batches:
        raise BadInput(f"the loader {name} has no batches")
    started = time.perf_counter()
    with _one_thread():
        for number, indices in enumerate(batches):
            if number > 1 and time.perf_counter() - started > budget_seconds / 2:
                break
            if together is not None:
                spent = _timed(lambda indices=indices: together(indices))  # type: ignore[misc]
                samples = spent.result
                cpu += [spent.cpu_seconds / len(indices)] * len(indices)
                waits += [spent.wait_seconds / len(indices)] * len(indices)
            else:
                samples = []
                for index in indices:
                    spent = _timed(lambda index=index: dataset[index])  # type: ignore[misc]
                    samples.append(spent.result)
                    cpu.append(spent.cpu_seconds)
                    waits.append(spent.wait_seconds)
            spent = _timed(lambda samples=samples: loader.collate_fn(samples))  # type: ignore[misc]
            collate.append(spent.cpu_seconds + spent.wait_seconds)
            bytes_ += _bytes(spent.result)
            count += len(indices)
    batch = len(batches[0])
    first = batch if len(cpu) > batch else 0  # the first batch warms caches
    cpu, waits = cpu[first:], waits[first:]
    totals = [c + w for c, w in zip(cpu, waits, strict=True)]
    decode, wait, collated = mean(cpu), mean(waits), median(collate[1:] or collate)
    worker = batch * (decode + wait) + collated
    handed, receive = _handed(loader, batches)
    transfer = None if handed is None else max(0.0, handed - batch * decode - collated)
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


def _handed(loader: Any, batches: list[Any]) -> tuple[float | None, float | None]:
    """Processor seconds per batch of one worker process, all its threads, and of this one, which takes the batch.

    Medians; None where too few batches came. Seconds of the clock would count the wait for a worker that is kept from
    its core, which the queue counts already.
    """
    plan = batches[: FIRST_BATCHES + HANDED_BATCHES]
    real = _torch_data().DataLoader(
        loader.dataset,
        batch_sampler=plan,
        collate_fn=_Clocked(loader.collate_fn),
        worker_init_fn=loader.worker_init_fn,
        num_workers=1,
    )
    moments, takes = [], []
    source = iter(real)
    for _ in plan:
        begun = time.thread_time()
        _, spent_seconds = next(source)
        takes.append(time.thread_time() - begun)
        moments.append(spent_seconds)
    gaps = [after - before for before, after in pairwise(moments)][FIRST_BATCHES - 1 :]
    takes = takes[FIRST_BATCHES:]
    return (median(gaps) if gaps else None), (median(takes) if takes else None)


@dataclass(frozen=True)
class _Clocked:
    """Collates, and says what the worker process has spent by then."""

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
    while len(seconds) <= _STARTING + 1 or time.perf_counter() - started < budget_seconds:
        spent = _timed(lambda: next(source, _END))
        if spent.result is _END:
            break
        size = _samples(spent.result)
        sizes.append(size)
        cpu.append(spent.cpu_seconds / size)
        seconds.append((spent.cpu_seconds + spent.wait_seconds) / size)
        bytes_ += _bytes(spent.result)
    if not seconds:
        raise BadInput(f"the loader {name} has no batches")
    if len(seconds) > _STARTING + 1:
        seconds, cpu = seconds[_STARTING:], cpu[_STARTING:]
    batch, decode = sizes[0], mean(cpu)
    wait = max(0.0, mean(seconds) - decode)
    # Batches vary by a √B-th of what their samples do.
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
class _Spent:
    result: Any
    cpu_seconds: float
    wait_seconds: float


def _timed(run: Callable[[], Any]) -> _Spent:
    """Processor and waiting seconds of one call."""
    switches, wall, cpu = _given_away(), time.perf_counter(), time.thread_time()
    result = run()
    cpu_seconds, wall_seconds = time.thread_time() - cpu, time.perf_counter() - wall
    gave_away = _given_away() > switches
    return _Spent(result, cpu_seconds, max(0.0, wall_seconds - cpu_seconds) if gave_away else 0.0)


def _given_away() -> float:
    """How often this thread has given the processor away of its own; always more where the system does not tell."""
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


def _is_loader(named: object) -> bool:
    return hasattr(named, "dataset") and hasattr(named, "collate_fn")


def _has_samples(loader: Any) -> bool:
    """Whether it is a DataLoader over a data set that gives single samples in batches."""
    if not _is_loader(loader) or getattr(loader, "batch_sampler", None) is None:
        return False
    return hasattr(loader.dataset, "__getitem__") and not isinstance(loader.dataset, _torch_data().IterableDataset)


def _arrays(value: Any) -> Iterator[Any]:
    """Everything with a shape inside nested containers."""
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
