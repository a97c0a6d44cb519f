"""A Gaussian process over mixed columns: numbers have a distance, categories are the same or not.

    k(x, x') = c² + Σ_g a_g²·[x_g = x'_g] + s²·exp(−½ Σ_j w_j·(z_j − z'_j)² − Σ_g v_g·[x_g ≠ x'_g])

The sum are effects of categories, the last term what is special to rows that are alike (z: numbers, standardised). A
category that was never seen differs from all: of it only what is common to all rows is known. Far from every number
that was seen the effects alone are left. `models.process` finds the deviations.
"""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import ClassVar

import numpy as np

from epochcast.base.record import Record
from epochcast.errors import BadInput
from epochcast.observe.history.job_table import Array, Integers
from epochcast.observe.history.standardize import Standardization, check_finite

# Logarithms of squared deviations: a prior that wants them small, and how strongly.
PRIOR_EFFECT, PRIOR_LOCAL = -4.0, -2.0
LEAST = -14.0
"""The logarithm of a deviation that is none."""
BLOCK_ROWS = 500


@dataclass(frozen=True)
class Blocks:
    """The columns of a matrix: `numbers` first, then the indicators of each category."""

    numbers: int
    groups: tuple[int, ...]

    @property
    def width(self) -> int:
        """Of the matrix."""
        return self.numbers + sum(self.groups)

    def slices(self) -> list[slice]:
        """The indicators of each category."""
        ends = np.cumsum([self.numbers, *self.groups])
        return [slice(int(start), int(end)) for start, end in pairwise(ends)]


@dataclass(frozen=True)
class Deviations:
    """Logarithms of what the kernel squares: constant, local, noise, effects by group, v by group, w."""

    values: Array
    blocks: Blocks

    @property
    def common(self) -> float:
        return float(np.exp(self.values[0]))

    @property
    def local(self) -> float:
        return float(np.exp(self.values[1]))

    @property
    def noise(self) -> float:
        return float(np.exp(self.values[2]))

    def _part(self, place: int, count: int) -> Array:
        return np.exp(self.values[place : place + count])

    @property
    def effects(self) -> Array:
        return self._part(3, len(self.blocks.groups))

    @property
    def differences(self) -> Array:
        return self._part(3 + len(self.blocks.groups), len(self.blocks.groups))

    @property
    def lengths(self) -> Array:
        return self._part(3 + 2 * len(self.blocks.groups), self.blocks.numbers)

    @staticmethod
    def prior(blocks: Blocks) -> Array:
        """Where the search begins, and what it is pulled towards."""
        groups, numbers = len(blocks.groups), blocks.numbers
        return np.concatenate(
            [
                [-3.0, PRIOR_LOCAL, -6.0],
                np.full(groups, PRIOR_EFFECT),
                np.zeros(groups),
                np.full(numbers, -1.0),
            ]
        )


@dataclass(frozen=True)
class HistoryProcess(Record):
    """Rows that were learned from and their weights. `rows` are the scaled numbers of each row, `numbers` of them;
    `categories` has for each group, in every row, the place of its indicator, -1 for none.
    """

    kind: ClassVar[str] = "process"
    json_also: ClassVar[tuple[str, ...]] = ("kind",)
    scaling: Standardization
    numbers: int
    groups: tuple[int, ...]
    deviations: Array
    rows: Array
    categories: tuple[Integers, ...]
    weights: Array
    centre: float
    _matrix: Array = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        blocks, count = Blocks(self.numbers, self.groups), len(self.weights)
        if len(self.scaling.mean) != blocks.width or self.rows.size != count * self.numbers:
            raise BadInput("the rows of a process do not fit its columns")
        if len(self.deviations) != len(Deviations.prior(blocks)):
            raise BadInput("a process needs a deviation for each part of its kernel")
        check_finite(self.kind, self.deviations, self.rows, self.weights, np.array([self.centre]))
        numbers = self.rows.reshape(count, self.numbers)  # without numbers, JSON has empty lists
        indicators = [
            codes.reshape(count, 1) == np.arange(size) for size, codes in zip(self.groups, self.categories, strict=True)
        ]
        object.__setattr__(self, "_matrix", np.hstack([numbers, *indicators]))

    @classmethod
    def of(
        cls, scaling: Standardization, deviations: "Deviations", rows: Array, weights: Array, centre: float
    ) -> "HistoryProcess":
        """The process of scaled rows, a column for each indicator."""
        blocks = deviations.blocks
        codes = [
            np.where(rows[:, part].any(axis=1), rows[:, part] @ np.arange(size), -1).astype(np.int64)
            for size, part in zip(blocks.groups, blocks.slices(), strict=True)
        ]
        numbers = rows[:, : blocks.numbers]
        return cls(scaling, blocks.numbers, blocks.groups, deviations.values, numbers, tuple(codes), weights, centre)

    def values(self, rows: Array) -> Array:
        """Of every row."""
        return self.centre + self.scaled_values(self.scaling.scaled(rows))

    def scaled_values(self, scaled: Array) -> Array:
        """Of rows that are scaled, about the centre."""
        deviations = Deviations(self.deviations, Blocks(self.numbers, self.groups))
        parts = [
            covariance(scaled[start : start + BLOCK_ROWS], self._matrix, deviations) @ self.weights
            for start in range(0, len(scaled), BLOCK_ROWS)
        ]
        return np.concatenate(parts) if parts else np.zeros(0)


def covariance(left: Array, right: Array, deviations: Deviations) -> Array:
    """k of every pair, without noise; rows are scaled."""
    blocks, total = deviations.blocks, np.full((len(left), len(right)), deviations.common)
    exponent = np.zeros_like(total)
    for part, effect, difference in zip(blocks.slices(), deviations.effects, deviations.differences, strict=True):
        same = left[:, part] @ right[:, part].T
        total += effect * same
        exponent += difference * (1 - same)
    numbers = slice(0, blocks.numbers)
    root = np.sqrt(deviations.lengths)
    a, b = left[:, numbers] * root, right[:, numbers] * root
    squares = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1)[None, :] - 2 * a @ b.T
    return np.asarray(total + deviations.local * np.exp(-exponent - 0.5 * np.maximum(squares, 0.0)))
