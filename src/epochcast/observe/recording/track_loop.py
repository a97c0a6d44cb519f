"""`ec.track`: a raw loop, counted while it runs."""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any, Generic, TypeVar, overload

from epochcast.errors import BadInput
from epochcast.observe.recording.recorded_rows import AttemptStart
from epochcast.observe.recording.recorded_run import Track, launched_rank, new_attempt
from epochcast.observe.recording.sink import Destination, Sink, sinks

T = TypeVar("T")


class TrackedLoop(Track, Generic[T]):
    """A loop's batches, as they are, with each counted as a step once the next one is asked for."""

    batches: Iterable[T]

    def __iter__(self) -> Iterator[T]:
        """One epoch. The run ends with its last epoch; a loop that is left early continues when iterated again."""
        if self.is_over:
            raise BadInput("this run is over; call `track` again for another")
        source = iter(self.batches)
        requested_at = perf_counter()
        for batch in source:
            waited = perf_counter() - requested_at
            try:
                yield batch
            except GeneratorExit:
                self.settle()
                raise
            self.step(data_seconds=waited)
            requested_at = perf_counter()
        self.epoch()
        if self._epochs >= (self.start.total_epochs or 1):
            self.close()

    def __len__(self) -> int:
        """Batches of an epoch."""
        return len(self.batches)  # type: ignore[arg-type]


@overload
def track(
    batches: None = ...,
    *,
    job: str | None = ...,
    total: float | None = ...,
    epochs: float | None = ...,
    to: Destination | Sequence[Destination] | None = ...,
    start: int = ...,
    show: bool = ...,
    rank: int | None = ...,
    attempt: int | None = ...,
) -> TrackedLoop[Any]: ...


@overload
def track(
    batches: Iterable[T],
    *,
    job: str | None = ...,
    total: float | None = ...,
    epochs: float | None = ...,
    to: Destination | Sequence[Destination] | None = ...,
    start: int = ...,
    show: bool = ...,
    rank: int | None = ...,
    attempt: int | None = ...,
) -> TrackedLoop[T]: ...


def track(
    batches: Iterable[Any] | None = None,
    *,
    job: str | None = None,
    total: float | None = None,
    epochs: float | None = None,
    to: Destination | Sequence[Destination] | None = None,
    start: int = 0,
    show: bool = False,
    rank: int | None = None,
    attempt: int | None = None,
) -> TrackedLoop[Any]:
    """Record a training while it runs: `for batch in ec.track(loader, job="mine", epochs=90): …`, or by hand.

    `to` is a file (by default JOB.track.jsonl here, which `epochcast track` reads), `store`, the URL of a server or of
    a database, or several; `total` steps in all, known by itself where `batches` has a length; `start` are the steps
    that attempts before have done. `show=True` writes a line with the remaining time. Of several ranks the first is
    recorded, others where `rank` says so. Without `batches`, call `step()` after each:

    >>> import os, epochcast as ec
    >>> with ec.track(total=3, job="by hand", to=os.devnull) as run:
    ...     for loss in (0.9, 0.5, 0.4):
    ...         run.step(loss=loss)
    ...     with run.pause("validation"):
    ...         pass
    >>> run.steps
    3
    """
    this_rank, ranks = launched_rank()
    length = _length(batches)
    steps_in_all = total if total is not None or not length else length * (epochs or 1)
    begun = AttemptStart(
        job=default_job() if job is None else job,
        attempt=new_attempt() if attempt is None else attempt,
        started_at_seconds=time.time(),
        start_step=start,
        total_steps=steps_in_all,
        total_epochs=epochs,
        steps_per_epoch=length or None,
        rank=this_rank if rank is None else rank,
        ranks=ranks,
    )
    if length is None and total and epochs and total % epochs == 0:
        begun = replace(begun, steps_per_epoch=int(total / epochs))
    run: TrackedLoop[Any] = TrackedLoop(begun, _sinks(begun, to, show, has_rank=rank is not None))
    run.batches = () if batches is None else batches
    return run


def _length(batches: object) -> int | None:
    """A loader of endless data has a length that raises."""
    try:
        return len(batches)  # type: ignore[arg-type]
    except TypeError:
        return None


def _sinks(
    begun: AttemptStart, to: Destination | Sequence[Destination] | None, show: bool, has_rank: bool
) -> list[Sink]:
    if begun.rank > 0 and not has_rank:
        return []
    chosen = sinks(to, begun)
    if show:
        from epochcast.observe.recording.progress_line import LiveLine

        chosen.append(LiveLine())
    return chosen


def default_job() -> str:
    """The program's name."""
    import sys

    name = Path(sys.argv[0] or "run").stem if sys.argv else "run"
    return name if name not in ("", "-c", "-m", "__main__") else "run"
