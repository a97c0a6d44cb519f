"""What was seen of each column: its categories and the range of its numbers, so that a new row is known to be new."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from epochcast.history.jobs import MISSING, Flags, Jobs

# A number this far beyond those that were seen (as a factor) is new.
SLACK = 1.05


@dataclass(frozen=True)
class Seen:
    """Categories and ranges by column."""

    levels: Mapping[str, frozenset[str]]
    ranges: Mapping[str, tuple[float, float]]

    @classmethod
    def of(cls, jobs: Jobs) -> "Seen":
        """Of the rows that are learned from."""
        levels = {name: frozenset(map(str, np.unique(words))) for name, words in jobs.categories.items()}
        ranges = {}
        for name, column in jobs.numbers.items():
            known = column[~np.isnan(column)]
            ranges[name] = (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)
        return cls(levels, ranges)

    def news(self, jobs: Jobs) -> list[tuple[str, ...]]:
        """The columns in which each row is unlike all that were learned from."""
        is_new = self._flags(jobs)
        names = [name for name, flags in is_new.items() if flags.any()]
        return [tuple(name for name in names if is_new[name][row]) for row in range(len(jobs))]

    def is_new(self, jobs: Jobs) -> Flags:
        """Which rows are, in any column."""
        found = np.zeros(len(jobs), dtype=np.bool_)
        for flags in self._flags(jobs).values():
            found |= flags
        return found

    def _flags(self, jobs: Jobs) -> dict[str, Flags]:
        return {**{n: self._words(jobs, n) for n in self.levels}, **{n: self._numbers(jobs, n) for n in self.ranges}}

    def _words(self, jobs: Jobs, name: str) -> Any:
        levels = self.levels[name]
        return np.array([str(word) not in levels and word != MISSING for word in jobs.category(name)], dtype=np.bool_)

    def _numbers(self, jobs: Jobs, name: str) -> Any:
        low, high = self.ranges[name]
        values = jobs.number(name)
        with np.errstate(invalid="ignore"):
            return (values < low - (SLACK - 1) * abs(low)) | (values > high + (SLACK - 1) * abs(high))

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "levels": {name: sorted(levels) for name, levels in self.levels.items()},
            "ranges": {name: list(ends) for name, ends in self.ranges.items()},
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> "Seen":
        """Back from JSON."""
        return cls(
            {str(name): frozenset(map(str, levels)) for name, levels in document["levels"].items()},
            {str(name): (float(low), float(high)) for name, (low, high) in document["ranges"].items()},
        )
