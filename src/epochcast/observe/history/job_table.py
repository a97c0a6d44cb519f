"""A table of past jobs as numbers and categories, every number in its base unit.

A cell that is empty is NaN among numbers and `MISSING` among categories; both are handled by whoever makes features of
them (`design.py`). What physics says of each row is kept beside its columns (`Physics`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epochcast.errors import BadInput

Array = NDArray[np.float64]
Words = NDArray[np.str_]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

MISSING = "(missing)"
"""The category of an empty cell."""
PHYSICS, OVERHEAD, PHYSICS_KIND, PARALLEL = "physics", "physics_overhead", "physics_kind", "parallel"
"""Columns that physics adds for models that correct it."""
NO_FORECAST = "forecast"
"""What is new about a row whose physics is of a kind that no row had (`scales.py`)."""


@dataclass(frozen=True)
class Physics:
    """What is known of each row without its history: seconds (or bytes) of the target, up to a constant factor that
    only `kind` decides. `kinds` say who answered: the forecast, the roofline of the row's columns, or its sizes alone.
    `overheads` are seconds over those without exposed communication between GPUs, 1 where nobody knows.
    `counts` are the steps (or epochs) that `values` are made of; None: one. `stand_ins` are what poorer kinds would say
    of the same rows, NaN where they say nothing (`scales.py`).
    """

    values: Array
    kinds: Words
    overheads: Array | None = None
    counts: Array | None = None
    stand_ins: Mapping[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.values) != len(self.kinds) or not (np.isfinite(self.values) & (self.values > 0)).all():
            raise BadInput("physics needs a number above 0 for every row")

    def take(self, rows: Integers) -> "Physics":
        """Of these rows."""
        overheads = None if self.overheads is None else self.overheads[rows]
        counts = None if self.counts is None else self.counts[rows]
        stand_ins = {kind: values[rows] for kind, values in self.stand_ins.items()}
        return Physics(self.values[rows], self.kinds[rows], overheads, counts, stand_ins)

    @property
    def times(self) -> Array:
        """The steps (or epochs) of every row."""
        return np.ones(len(self.values)) if self.counts is None else self.counts

    @property
    def units(self) -> Array:
        """Of one step (or epoch): what does not grow with epochs and samples."""
        return self.values / self.times


@dataclass(frozen=True)
class Jobs:
    """Columns by name, all of one length. `notes` say what was left out or assumed when they were read."""

    numbers: Mapping[str, Array]
    categories: Mapping[str, Words]
    physics: Physics | None = None
    notes: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        lengths = {len(column) for column in (*self.numbers.values(), *self.categories.values())}
        if len(lengths) > 1:
            raise BadInput(f"the columns of a table have {min(lengths)} to {max(lengths)} rows")

    def __len__(self) -> int:
        columns = (*self.numbers.values(), *self.categories.values())
        return len(columns[0]) if columns else 0

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns."""
        return (*self.numbers, *self.categories)

    def take(self, rows: Sequence[int] | Integers) -> "Jobs":
        """The table of these rows."""
        places = np.asarray(rows, dtype=np.int64)
        return replace(
            self,
            numbers={name: column[places] for name, column in self.numbers.items()},
            categories={name: column[places] for name, column in self.categories.items()},
            physics=None if self.physics is None else self.physics.take(places),
        )

    def only(self, columns: Sequence[str]) -> "Jobs":
        """The table of these columns."""
        wanted = set(columns)
        return replace(
            self,
            numbers={name: column for name, column in self.numbers.items() if name in wanted},
            categories={name: column for name, column in self.categories.items() if name in wanted},
        )

    def with_physics_columns(self) -> "Jobs":
        """With what physics says as columns, for corrections that depend on it."""
        if self.physics is None:
            return self
        p = self.physics
        overheads = np.ones(len(self)) if p.overheads is None else p.overheads
        words = {PHYSICS_KIND: p.kinds}
        if "gpus" in self.numbers:
            words[PARALLEL] = np.where(self.numbers["gpus"] > 1, "many", "one")
        return replace(
            self,
            numbers={**self.numbers, PHYSICS: p.units, OVERHEAD: overheads},
            categories={**self.categories, **words},
        )

    def number(self, name: str) -> Array:
        """A column of numbers; NaN everywhere where there is none."""
        return self.numbers.get(name, np.full(len(self), np.nan))

    def category(self, name: str) -> Words:
        """A column of categories; `MISSING` everywhere where there is none. Numbers are their own names."""
        if name in self.categories:
            return self.categories[name]
        if name in self.numbers:
            return np.array([MISSING if np.isnan(x) else f"{x:g}" for x in self.numbers[name]])
        return np.full(len(self), MISSING)

    def row(self, place: int) -> dict[str, Any]:
        """The cells of one row that are not empty."""
        numbers = {name: float(column[place]) for name, column in self.numbers.items() if not np.isnan(column[place])}
        words = {name: str(column[place]) for name, column in self.categories.items() if column[place] != MISSING}
        return {**numbers, **words}
