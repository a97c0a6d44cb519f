"""Forecasts of memory against measured peaks, and verdicts against what ran and what ran out of memory.

A run that ran out has no peak. Its forecast is wrong where the verdict is "fits"; that of a run that ran is wrong where
the verdict is "does not fit". A "tight" verdict decides nothing, so it is counted apart and is never wrong.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from epochcast.base.record import INLINE, Record
from epochcast.measure.evaluate.scored_rows import BYTES, ScoredRows, by_column
from epochcast.measure.evaluate.scores import SEPARATOR, MemoryScores, memory_scores
from epochcast.predict.memory.verdict import DOES_NOT_FIT, FITS, TIGHT

if TYPE_CHECKING:
    from polars import DataFrame


@dataclass(frozen=True, slots=True)
class VerdictCounts(Record):
    """Rows that ran and rows that ran out of memory, and how many of each have which verdict."""

    ran: int
    ran_tight: int
    ran_does_not_fit: int
    ran_out: int
    ran_out_tight: int
    ran_out_fits: int

    json_also: ClassVar[tuple[str, ...]] = ("wrong_fraction",)

    @property
    def wrong_fraction(self) -> float | None:
        """Wrong verdicts of all rows, those that are tight among them."""
        rows = self.ran + self.ran_out
        return (self.ran_does_not_fit + self.ran_out_fits) / rows if rows else None


@dataclass(frozen=True, slots=True)
class MemoryEvaluation(Record):
    """The scores of measured peaks: of all, of each number that people quote, and by group; and of verdicts."""

    scores: MemoryScores = field(metadata=INLINE)
    kinds: dict[str, MemoryScores]
    groups: dict[str, MemoryScores]
    verdicts: VerdictCounts


def memory_evaluation(rows: ScoredRows, by: Sequence[str]) -> MemoryEvaluation | None:
    """Of all rows that say something of memory and were forecast; None if there is none."""
    if not rows.has_memory:
        return None
    frame = rows.memory_rows(by)
    if not len(frame):
        return None
    peaks = frame.filter(~frame["measured_bytes"].is_nan())
    return MemoryEvaluation(
        _scores(peaks),
        _grouped(peaks, ["memory_kind"]),
        _grouped(peaks, [by_column(name) for name in by]) if by else {},
        _verdicts(frame),
    )


def _scores(frame: "DataFrame") -> MemoryScores:
    return memory_scores(*(frame[name].to_numpy() for name in BYTES))


def _grouped(frame: "DataFrame", keys: list[str]) -> dict[str, MemoryScores]:
    """The largest group first."""
    groups = {
        SEPARATOR.join("" if value is None else str(value) for value in values): _scores(group)
        for values, group in frame.group_by(keys, maintain_order=True)
    }
    return dict(sorted(groups.items(), key=lambda group: (-group[1].n, group[0])))


def _verdicts(frame: "DataFrame") -> VerdictCounts:
    verdicts, ran_out = np.array(frame["memory_verdict"].to_list(), dtype=object), frame["ran_out"].to_numpy()
    return VerdictCounts(
        int((~ran_out).sum()),
        int((~ran_out & (verdicts == TIGHT)).sum()),
        int((~ran_out & (verdicts == DOES_NOT_FIT)).sum()),
        int(ran_out.sum()),
        int((ran_out & (verdicts == TIGHT)).sum()),
        int((ran_out & (verdicts == FITS)).sum()),
    )
