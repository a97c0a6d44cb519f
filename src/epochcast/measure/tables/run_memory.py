"""What a row says of its memory: the measured peak, which number that is, and whether the run ran out of memory.

People quote three numbers (`predict.memory.memory_kinds`). `memory_kind` says which, in the words of `row_names.toml`;
a row that does not say is compared with what the allocator reserves, which is between the other two. A `quality` that
says "failed" is a run that ran out of memory.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from epochcast.measure.tables.cells import Row, number, text
from epochcast.measure.tables.row_names import listed, row_names
from epochcast.predict.memory.memory_kinds import RESERVED

UNSTATED = "not stated"
"""The kind of a peak whose row does not say what was read."""
_COLUMNS: Mapping[str, int] = {"peak_memory_bytes": 1, "peak_memory_mib": 2**20, "peak_memory_gib": 2**30}
"""Columns that have a peak, and their unit in bytes."""
_NOTED_KIND = re.compile(r"\bg(?:i?b) (allocated|reserved)\b|\bpeak = (allocated|reserved) max\b")


@dataclass(frozen=True, slots=True)
class MeasuredMemory:
    """The measured peak (None: not measured), which number it is, and whether the run ran out of memory."""

    peak_bytes: float | None
    kind: str = UNSTATED
    ran_out: bool = False

    @property
    def compared_kind(self) -> str:
        """The forecast number that the measured one is compared with."""
        return RESERVED if self.kind == UNSTATED else self.kind


def measured_memory(row: Row) -> MeasuredMemory | None:
    """The memory of a row; None where it says nothing. The peak of a run that failed is that of its last moment."""
    if ran_out_of_memory(row):
        return MeasuredMemory(None, ran_out=True)
    peaks = [value * unit for column, unit in _COLUMNS.items() if (value := number(row, column)) is not None]
    peak_bytes = peaks[0] if peaks else 0.0
    if peak_bytes <= 0:  # tables write 0 for "not measured"
        return None
    return MeasuredMemory(peak_bytes, listed("memory_kind", text(row, "memory_kind")) or _noted_kind(row))


def _noted_kind(row: Row) -> str:
    """What a note says behind the number: "12.23 GB allocated as printed", "peak = reserved max"."""
    if text(row, "memory_kind"):
        return UNSTATED
    match = _NOTED_KIND.search(text(row, "note").casefold())
    return next(filter(None, match.groups())) if match else UNSTATED


def ran_out_of_memory(row: Row) -> bool:
    """Whether a row is a layout that failed."""
    return text(row, "quality").casefold().startswith(tuple(row_names()["quality"]["ran_out"]))
