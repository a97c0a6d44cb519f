"""What was seen of each column: its categories and the range of its numbers, so that a new row is known to be new.

A row may also be new by what comes together in it: a network on a device on which it never ran, though both are known;
or a larger batch, or more GPUs, than that network ever had on that device.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from epochcast.base.record import Record
from epochcast.observe.history.job_table import MISSING, Array, Flags, Jobs, Words
from epochcast.observe.history.roles import column_of

# A number this far beyond those that were seen (as a factor) is new.
SLACK = 1.05
PAIR = "model on this device"
"""What is new about a network on a device on which it never ran."""
_OF_PAIR = " of this model on this device"

Pair = tuple[str, str]


@dataclass(frozen=True)
class SeenColumns(Record):
    """Categories and ranges by column; by network and device the largest batch and number of GPUs, by their column."""

    levels: Mapping[str, tuple[str, ...]]
    ranges: Mapping[str, tuple[float, float]]
    pairs: tuple[tuple[str, str, Mapping[str, float]], ...] = ()

    @classmethod
    def of(cls, jobs: Jobs, *, has_pairs: bool = True) -> "SeenColumns":
        """Of the rows that are learned from."""
        levels = {name: tuple(map(str, np.unique(words))) for name, words in jobs.categories.items()}
        ranges = {}
        for name, column in jobs.numbers.items():
            values = column[~np.isnan(column)]
            ranges[name] = (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)
        return cls(levels, ranges, _largest(jobs) if has_pairs else ())

    def news(self, jobs: Jobs) -> list[tuple[str, ...]]:
        """In what each row is unlike all that were learned from: columns, or what comes together in it."""
        is_new = self._flags(jobs)
        names = [name for name, flags in is_new.items() if flags.any()]
        return [tuple(name for name in names if is_new[name][row]) for row in range(len(jobs))]

    def is_new(self, jobs: Jobs) -> Flags:
        """Which rows are, in any column."""
        is_new = np.zeros(len(jobs), dtype=np.bool_)
        for flags in self._flags(jobs).values():
            is_new |= flags
        return is_new

    def _flags(self, jobs: Jobs) -> dict[str, Flags]:
        alone = {**{n: self._words(jobs, n) for n in self.levels}, **{n: self._numbers(jobs, n) for n in self.ranges}}
        return {**alone, **self._of_pairs(jobs, alone)}

    def _words(self, jobs: Jobs, name: str) -> Flags:
        levels = set(self.levels[name])
        return np.array([str(word) not in levels and word != MISSING for word in jobs.category(name)], dtype=np.bool_)

    def _numbers(self, jobs: Jobs, name: str) -> Flags:
        low, high = self.ranges[name]
        values = jobs.number(name)
        with np.errstate(invalid="ignore"):
            return (values < low - (SLACK - 1) * abs(low)) | (values > high + (SLACK - 1) * abs(high))

    def _of_pairs(self, jobs: Jobs, alone: Mapping[str, Flags]) -> dict[str, Flags]:
        """What is new by coming together, in rows that are not new in the columns alone."""
        words = pair_words(jobs)
        if not self.pairs or words is None:
            return {}
        seen: dict[Pair, Mapping[str, float]] = {(model, device): largest for model, device, largest in self.pairs}
        pairs = list(zip(*(column.tolist() for column in words), strict=True))
        is_unseen = np.array([MISSING not in pair and pair not in seen for pair in pairs], dtype=np.bool_)
        flags = {PAIR: is_unseen & ~alone["model"] & ~alone["device"]}
        for name in sorted({name for largest in seen.values() for name in largest}):
            most = np.array([seen.get(pair, {}).get(name, np.inf) for pair in pairs])
            with np.errstate(invalid="ignore"):
                flags[of_pair(name)] = (jobs.number(name) > SLACK * most) & ~alone[name]
        return flags


def of_pair(column: str) -> str:
    """What is new about a number beyond all that its network had on its device."""
    return f"{column}{_OF_PAIR}"


def pair_words(jobs: Jobs) -> tuple[Words, Words] | None:
    """Network and device of every row; None where a table does not have both."""
    if "model" not in jobs.categories or "device" not in jobs.categories:
        return None
    return jobs.categories["model"], jobs.categories["device"]


def by_pair(jobs: Jobs) -> Iterator[tuple[Pair, Flags]]:
    """The rows of every network on every device."""
    words = pair_words(jobs)
    if words is not None:
        models, devices = words
        for model, device in sorted(set(zip(models.tolist(), devices.tolist(), strict=True))):
            if MISSING not in (model, device):
                yield (model, device), (models == model) & (devices == device)


def numbers_of_pair(jobs: Jobs) -> dict[str, Array]:
    """The columns of numbers that have a largest for each network and device."""
    names = (column_of("batch", jobs.numbers), column_of("gpus", jobs.numbers))
    return {name: jobs.numbers[name] for name in names if name is not None}


def _largest(jobs: Jobs) -> tuple[tuple[str, str, Mapping[str, float]], ...]:
    columns = numbers_of_pair(jobs)
    pairs = []
    for (model, device), mine in by_pair(jobs):
        numbers = {name: column[mine & ~np.isnan(column)] for name, column in columns.items()}
        pairs.append((model, device, {name: float(values.max()) for name, values in numbers.items() if len(values)}))
    return tuple(pairs)
