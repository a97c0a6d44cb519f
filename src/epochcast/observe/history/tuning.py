"""Hyper-parameters by cross-validation: the candidate with the smallest mean relative error over five parts.

    error = mean |y − φ(x)| / y                                          (Dube et al. 2019, AI Gauge)

What the chosen candidate predicted for rows that it had not seen also gives the intervals (`conformal.py`).
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from epochcast.errors import BadInput, EpochcastError
from epochcast.measure.evaluate.predicted import Progress
from epochcast.observe.history.job_table import Array
from epochcast.observe.history.learning_set import LearningSet
from epochcast.observe.history.models.model_table import ModelKind, Options
from epochcast.observe.history.splits import FOLDS, folds_of


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Matrix products of many small fits in one thread each; several threads would wait for each other."""
    try:
        from threadpoolctl import threadpool_limits
    except ModuleNotFoundError:  # it comes with scikit-learn
        yield
        return
    with threadpool_limits(1), warnings.catch_warnings():
        # That a net could be trained longer, and that scikit-learn's own threads were not used.
        warnings.filterwarnings("ignore", category=UserWarning, module=r"sklearn\.")
        yield


Tick = Callable[[], None]
"""Called after every fit."""


@dataclass(frozen=True)
class Tuned:
    """The chosen candidate, its error, and what it predicted for every row when it had not seen it; `each` has a line
    for each of its sums.
    """

    options: Options
    error: float
    unseen: Array
    each: Array


def tuned(
    kind: ModelKind,
    past: LearningSet,
    *,
    candidates: Sequence[Options] = (),
    seed: int = 0,
    workers: int = 1,
    tick: Tick | None = None,
) -> Tuned:
    """Every candidate on the same parts. One that cannot be fitted is left out; raises where none can."""
    tried = tuple(candidates) or kind.grid
    parts = folds_of(len(past), FOLDS, seed)
    unseen = np.full((len(tried), len(past)), np.nan)
    each: dict[int, Array] = {}
    failed: dict[int, EpochcastError] = {}

    def fit_part(place: int, part: int) -> tuple[int, int, Array, Array]:
        train, test = parts[part]
        fitted, inputs = kind.fit(past.take(train), tried[place], seed), past.take(test).inputs
        return place, part, fitted.predict(inputs), fitted.each(inputs)

    with one_thread_each(), ThreadPoolExecutor(max(1, workers)) as pool:
        futures: dict[Future[tuple[int, int, Array, Array]], int] = {
            pool.submit(fit_part, place, part): place for place in range(len(tried)) for part in range(len(parts))
        }
        for future in as_completed(futures):
            try:
                place, part, predicted, of_sums = future.result()
                unseen[place, parts[part][1]] = predicted
                sums = each.setdefault(place, np.full((len(of_sums), len(past)), np.nan))
                sums[:, parts[part][1]] = of_sums
            except EpochcastError as error:
                failed[futures[future]] = error
            if tick is not None:
                tick()
    if len(failed) == len(tried):
        raise failed[0]
    errors = np.where(
        np.isin(np.arange(len(tried)), list(failed)),
        np.inf,
        (np.abs(unseen - past.target) / past.target).mean(axis=1),
    )
    errors = np.where(np.isnan(errors), np.inf, errors)
    best = int(np.argmin(errors))
    if not np.isfinite(errors[best]):
        raise BadInput("the model predicts no numbers for these rows")
    return Tuned(tried[best], float(errors[best]), unseen[best], each[best])


def fits_of(kind: ModelKind, candidates: Sequence[Options] = ()) -> int:
    """How many fits `tuned` makes."""
    return FOLDS * len(tuple(candidates) or kind.grid)


def counted(progress: Progress, total: int) -> Tick:
    """A tick that reports how many of all fits are done."""
    done = 0

    def tick() -> None:
        nonlocal done
        done += 1
        progress(min(done, total), total)

    return tick
