"""Features made of columns: terms that can be read, written down and made again of new rows.

A **term** is a product of powers of numbers (batch, 1/gpus, batch/gpus), a logarithm, "this column is that category",
or "this cell is empty". A **design** is a list of terms with what fills empty cells: preprocessing and features in one.

An empty number is the median of the rows that were learned from (beside a term that says so); a category that was not
seen, or an empty cell, sets none of the terms of its column.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations_with_replacement

import numpy as np

from epochcast.base.record import Record, json_name
from epochcast.errors import BadInput
from epochcast.observe.history.job_table import MISSING, Array, Jobs
from epochcast.observe.history.roles import GROWING

MOST_LEVELS = 1000
"""Categories of a column that have a term of their own; the rarest of more have none."""
MOST_TERMS = 5000
# Numbers that span more than this factor are features by their logarithm where a model asks for logarithms.
WIDE = 4.0


@dataclass(frozen=True, slots=True)
class Term(Record):
    """One feature. `powers` of columns; or `is_log` of the only column; or a `level` of it; or `is_missing`."""

    powers: tuple[tuple[str, int], ...]
    is_log: bool = json_name("log", default=False)
    level: str | None = None
    is_missing: bool = json_name("missing", default=False)

    def __post_init__(self) -> None:
        if not self.powers:
            raise BadInput("a term needs a column")

    @property
    def name(self) -> str:
        """As a formula: batch_per_gpu / gpus, log(parameters), device = V100."""
        column = self.powers[0][0]
        if self.level is not None:
            return f"{column} = {self.level}"
        if self.is_missing:
            return f"{column} is empty"
        if self.is_log:
            return f"log({column})"
        above = [_power(name, power) for name, power in self.powers if power > 0]
        below = [_power(name, -power) for name, power in self.powers if power < 0]
        return " / ".join([" · ".join(above) or "1", *below])

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it is made of."""
        return tuple(name for name, _ in self.powers)

    def values(self, jobs: Jobs, fills: Mapping[str, float]) -> Array:
        """Of every row."""
        column = self.powers[0][0]
        if self.level is not None:
            return np.asarray(jobs.category(column) == self.level, dtype=np.float64)
        if self.is_missing:
            return np.isnan(jobs.number(column)).astype(np.float64)
        if self.is_log:
            return np.log(np.maximum(_filled(jobs, column, fills), 1e-300))
        product = np.ones(len(jobs))
        for name, power in self.powers:
            values = _filled(jobs, name, fills)
            if power < 0:
                values = np.where(values == 0, 1.0, values)  # only of columns that had no zero when they were learned
            product = product * values**power
        return product


def _power(name: str, power: int) -> str:
    return name if power == 1 else f"{name}^{power}"


def _filled(jobs: Jobs, column: str, fills: Mapping[str, float]) -> Array:
    values = jobs.number(column)
    return np.where(np.isnan(values), fills[column], values)


@dataclass(frozen=True)
class Design(Record):
    """Terms, and what an empty cell of each number counts as."""

    terms: tuple[Term, ...]
    fills: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        needed = {name for term in self.terms if term.level is None and not term.is_missing for name in term.columns}
        if missing := sorted(needed - set(self.fills)):
            raise BadInput(f"a design has no fill for {', '.join(missing)}")

    @property
    def names(self) -> list[str]:
        """Of the features, in order."""
        return [term.name for term in self.terms]

    def matrix(self, jobs: Jobs) -> Array:
        """A row per job, a column per term."""
        columns = [term.values(jobs, self.fills) for term in self.terms]
        matrix = np.column_stack(columns) if columns else np.zeros((len(jobs), 0))
        return np.asarray(np.clip(matrix, -1e30, 1e30), dtype=np.float64)

    def only(self, places: Iterable[int]) -> "Design":
        """The design of these terms."""
        return Design(tuple(self.terms[place] for place in places), self.fills)


def design_of(
    jobs: Jobs,
    *,
    logs: bool = False,
    inverses: bool = False,
    degree: int = 1,
    without: Sequence[str] = (),
) -> Design:
    """The features of a table: each number (or its logarithm), each category, each "is empty"; with `inverses` also
    1/x, with `degree` products of up to so many of them (Gianniti et al. 2019; a-MLLibrary).
    """
    numbers = {name: column for name, column in jobs.numbers.items() if name not in without}
    fills = {name: _median(column) for name, column in numbers.items()}
    terms = [_plain(name, column, logs) for name, column in numbers.items()]
    if inverses or degree > 1:
        terms += _augmented(numbers, inverses, degree)
    terms += [Term(((name, 1),), is_missing=True) for name, column in numbers.items() if _has_some(column)]
    for name, column in jobs.categories.items():
        if name not in without:
            terms += [Term(((name, 1),), level=level) for level in _levels(column.tolist())]
    if len(terms) > MOST_TERMS:
        raise BadInput(f"{len(terms):,} features are too many (at most {MOST_TERMS:,}); use a lower degree")
    return Design(tuple(terms), fills)


def _plain(name: str, column: Array, logs: bool) -> Term:
    values = column[~np.isnan(column)]
    is_wide = len(values) > 0 and values.min() > 0 and values.max() > WIDE * values.min()
    return Term(((name, 1),), is_log=logs and is_wide)


def _augmented(numbers: Mapping[str, Array], inverses: bool, degree: int) -> list[Term]:
    """1/x and products to the degree, of columns that are never 0 where they are below the line.

    What never shortens a job (`GROWING`) is never below the line, and is multiplied only with what is never negative: a
    weight of 0 or more is then enough to keep it from shortening a job.
    """
    powers = [(name, 1) for name in numbers]
    if inverses:
        powers += [
            (name, -1)
            for name, column in numbers.items()
            if name not in GROWING and np.nanmin(np.abs(column), initial=np.inf) > 0
        ]
    negative = {name for name, column in numbers.items() if np.nanmin(column, initial=0.0) < 0}
    terms = []
    for count in range(1, degree + 1):
        for chosen in combinations_with_replacement(powers, count):
            total: dict[str, int] = {}
            for name, power in chosen:
                total[name] = total.get(name, 0) + power
            left = tuple((name, power) for name, power in total.items() if power)
            if negative & set(total) and GROWING & set(total):
                continue
            # x/x is no feature, and products that cancel have a lower degree
            if sum(abs(power) for _, power in left) == count and left != ((chosen[0][0], 1),):
                terms.append(Term(left))
    return list(dict.fromkeys(terms))


def _has_some(column: Array) -> bool:
    empty = np.isnan(column)
    return bool(empty.any() and not empty.all())


def _median(column: Array) -> float:
    values = column[~np.isnan(column)]
    return float(np.median(values)) if len(values) else 0.0


def _levels(words: Sequence[str]) -> list[str]:
    """The categories, the most frequent first."""
    counts: dict[str, int] = {}
    for word in words:
        counts[word] = counts.get(word, 0) + 1
    counts.pop(MISSING, None)
    return sorted(counts, key=lambda word: (-counts[word], word))[:MOST_LEVELS]
