"""What a row says of its memory: the measured peak, which number that is, and whether the run ran out of memory.

People quote three numbers (`predict.memory.memory_kinds`). `memory_kind` says which, in the words of `row_names.toml`;
a row that does not say is compared with what the allocator reserves, which is between the other two. Some say it in
their note, or it is known of their source:

    12.23 GB allocated as printed; peak = reserved max          as it says
    memory 35.07 % of 32 GB                                     nvidia-smi, whose share of the card monitors show
    fits in 24 GB; needs at least 16 GB; under 12 GB            no peak, where the number is the row's own: a bound

A bound says that the run ran, not what it took. A `quality` that says "failed" is a run that ran out of memory.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from epochcast.measure.tables.cells import Row, number, text
from epochcast.measure.tables.row_names import listed, row_names
from epochcast.predict.memory.memory_kinds import ON_DEVICE, RESERVED

UNSTATED = "not stated"
"""The kind of a peak whose row does not say what was read."""
_COLUMNS: Mapping[str, int] = {"peak_memory_bytes": 1, "peak_memory_mib": 2**20, "peak_memory_gib": 2**30}
"""Columns that have a peak, and their unit in bytes."""
_NOTED_KIND = re.compile(r"\bg(?:i?b) (allocated|reserved)\b|\bpeak = (allocated|reserved) max\b")
_SHARE_OF_CARD = re.compile(r"\bmemory \d+(?:\.\d+)? ?% of \d+ ?g")
_BOUND = re.compile(
    r"(?:\bfits (?:in|on|into)|\bruns (?:in|on)|\bneeds?|\brequires?|\bat (?:least|most)|\bup to|\bunder|\bbelow"
    r"|\bwithin|\b(?:less|more) than|\bminimum(?: of)?|[<>≤≥])"
    r"\s*(?:a |an |about |around )?[~≈]?\s*(\d+(?:\.\d+)?)\s*-?g(?:i?b)?\b"
)
_OPEN: Mapping[str, str] = {
    "the rank of LoRA": "lora",
    "only the maximum length": "lengths",
    "answered as": "options",
}
"""Notes of rows that leave out what decides memory, and what that is."""
_SAME = 0.005
"""Two spellings of one number: 24 GB is 22.35 GiB, or 24 as it was copied."""


@dataclass(frozen=True, slots=True)
class MeasuredMemory:
    """The measured peak (None: not measured, or merely bounded), which number it is, and whether the run ran out."""

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
    if _is_bound(text(row, "note").casefold(), peak_bytes):
        return MeasuredMemory(None)
    return MeasuredMemory(peak_bytes, listed("memory_kind", text(row, "memory_kind")) or _noted_kind(row))


def _is_bound(note: str, peak_bytes: float) -> bool:
    """Whether a note names the number of the row as what a run fits in or needs, in GB or GiB."""
    bounds = [float(match[1]) for match in _BOUND.finditer(note)]
    sizes = [bound * unit for bound in bounds for unit in (1e9, 2**30)]
    return any(abs(size / peak_bytes - 1) < _SAME for size in sizes)


def _noted_kind(row: Row) -> str:
    """What a note says behind the number, else what the source is known to print."""
    if text(row, "memory_kind"):
        return UNSTATED
    note = text(row, "note").casefold()
    match = _NOTED_KIND.search(note)
    if match is not None:
        return match[1] or match[2]
    if _SHARE_OF_CARD.search(note):
        return ON_DEVICE
    words = f"{text(row, 'source')} {text(row, 'framework')}".casefold()
    kinds: Mapping[str, str] = row_names()["source_memory_kind"]
    return next((kind for name, kind in kinds.items() if name != "source" and name in words), UNSTATED)


def left_open(row: Row, notes: Iterable[str]) -> tuple[str, ...]:
    """What a row leaves out that decides memory, by what was assumed of it, as `Job.assumed` has it."""
    named = {name: None for note in notes for words, name in _OPEN.items() if words in note}
    return (*named, *(() if text(row, "precision") else ("precision",)))


def ran_out_of_memory(row: Row) -> bool:
    """Whether a row is a layout that failed."""
    return text(row, "quality").casefold().startswith(tuple(row_names()["quality"]["ran_out"]))
