"""The rows to learn from: checked targets, and the columns that may predict them.

Left out as features, with a note: outcomes (`reading.OUTCOMES`), when a job ran, columns with one value, and texts that
name almost every row anew. Rows without a target are left out; a target of 0 or less is refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from epochcast.errors import BadInput, UnknownName
from epochcast.observe.history.job_table import MISSING, Array, Integers, Jobs, Physics
from epochcast.observe.history.job_table_reader import OUTCOMES, as_jobs
from epochcast.observe.history.roles import with_devices

if TYPE_CHECKING:
    from polars import DataFrame

LEAST_ROWS = 10
# Above this share of different values a text names rows and says nothing of the next one.
MOST_DIFFERENT = 0.9
# Ends of the names of columns that say when something was.
_TIMES = ("_at", "_at_seconds", "_date", "timestamp", "date", "submit_seconds")


@dataclass(frozen=True)
class LearningSet:
    """Jobs with what is known of the target; `features` are the columns that models may use."""

    jobs: Jobs
    target_name: str
    target: Array
    features: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.target)

    def take(self, rows: Sequence[int] | Integers) -> "LearningSet":
        """The same of these rows."""
        return replace(self, jobs=self.jobs.take(rows), target=self.target[np.asarray(rows, dtype=np.int64)])

    @property
    def inputs(self) -> Jobs:
        """The jobs with the columns that models may use, and with their physics."""
        return self.jobs.only(self.features)


def learning_set(
    frame: "DataFrame",
    target_name: str,
    *,
    columns: Sequence[str] = (),
    ignored: Sequence[str] = (),
    physics: Physics | None = None,
) -> LearningSet:
    """The rows of a table (`reading.read_frame`) with a target. `columns` are the only features, or `ignored` are no
    features; `physics` is that of every row (`physics.physics_of`).
    """
    jobs = replace(with_devices(as_jobs(frame)), physics=physics)
    for name in (*columns, *ignored):
        if name not in jobs.columns:
            raise UnknownName("column", name, jobs.columns)
    target = _target(jobs, target_name)
    measured = np.flatnonzero(~np.isnan(target))
    notes = []
    if len(measured) < len(target):
        notes.append(f"{len(target) - len(measured):,} rows have no {target_name} and are left out")
    jobs, target = jobs.take(measured), target[measured]
    _check_target(target, target_name)
    features, left_out = _features(jobs, target_name, columns, ignored)
    notes += left_out
    if len(target) <= len(features):
        raise BadInput(
            f"{len(target)} rows are too few for {len(features)} columns; add rows, or name fewer columns to use"
        )
    return LearningSet(replace(jobs, notes=tuple(notes)), target_name, target, features)


def _target(jobs: Jobs, name: str) -> Array:
    if name in jobs.numbers:
        return jobs.numbers[name]
    if name == "step_seconds" and {"samples_per_second", "global_batch"} <= set(jobs.numbers):
        return np.asarray(jobs.numbers["global_batch"] / jobs.numbers["samples_per_second"])
    if name in jobs.categories:
        raise BadInput(f"the column {name!r} is no column of numbers")
    candidates = [column for column in jobs.numbers if column.endswith(("_seconds", "_bytes"))]
    raise UnknownName("target column", name, candidates or jobs.numbers)


def _check_target(target: Array, name: str) -> None:
    wrong = np.flatnonzero(target <= 0)
    if len(wrong):
        raise BadInput(
            f"{name} must be above 0; {len(wrong):,} of {len(target):,} rows are not, the first of them has"
            f" {target[wrong[0]]:g}"
        )
    if len(target) < LEAST_ROWS:
        raise BadInput(f"history needs at least {LEAST_ROWS} rows with {name}, got {len(target)}")
    if np.ptp(target) == 0:
        raise BadInput(f"{name} is {target[0]:g} in every row; there is nothing to learn")


def _features(
    jobs: Jobs, target_name: str, columns: Sequence[str], ignored: Sequence[str]
) -> tuple[tuple[str, ...], list[str]]:
    """The columns that predict, and what was left out, in words."""
    if columns:
        if target_name in columns:
            raise BadInput(f"{target_name} is the target and cannot predict itself")
        return tuple(columns), []
    features, notes = [], []
    for name in jobs.columns:
        if name == target_name or name in ignored or name in OUTCOMES or is_time(name):
            continue
        reason = _useless(jobs, name)
        if reason:
            notes.append(f"column {name} is not used: {reason}")
        else:
            features.append(name)
    if not features:
        raise BadInput(
            "no column of the table can predict: all are outcomes, empty, constant or different in every row"
        )
    return tuple(features), notes


def is_time(name: str) -> bool:
    """Whether a column says when a job ran."""
    return name.endswith(_TIMES)


def _useless(jobs: Jobs, name: str) -> str:
    """Why a column says nothing; empty where it may."""
    if name in jobs.numbers:
        values = jobs.numbers[name]
        numbers = values[~np.isnan(values)]
        if not len(numbers):
            return "it is empty"
        return "it has one value" if np.ptp(numbers) == 0 and len(numbers) == len(values) else ""
    words = jobs.categories[name]
    different = len(np.unique(words))
    if different == 1:
        return "it is empty" if words[0] == MISSING else "it has one value"
    return "almost every row has its own" if different > MOST_DIFFERENT * len(words) else ""
