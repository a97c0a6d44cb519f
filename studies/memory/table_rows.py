"""Rows of the tables of measured runs: each measured number beside ours and accelerate's, and each verdict beside what
happened.

accelerate's estimate for training with Adam is four times the model, whatever the batch, and knows one GPU.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epochcast.measure.evaluate.scores import MemoryScores, memory_scores
from epochcast.measure.tables.run_memory import UNSTATED
from epochcast.predict.memory.memory_spreads import ALONE
from epochcast.predict.memory.verdict import DOES_NOT_FIT, FITS, TIGHT
from studies.memory.megatron import megatron_bytes
from training.memory_spreads import forecast_table, is_clear

TABLES = ("user_runs", "runs_2026", "runs_more", "llm_runs", "failed_2026", "llm_failed")
LEAST_ROWS = 3
"""Smaller groups are counted and not shown."""
MODEL_TIMES = 4
"""What accelerate's estimate multiplies a model by."""


@dataclass(frozen=True)
class ScoredRow:
    """One row: where it is from, what it is, the measured number (NaN of a run that ran out) and ours; `is_clear`
    if the row says all that decides memory.
    """

    table: str
    source: str
    task: str
    number: str
    measured_bytes: float
    low_bytes: float
    mid_bytes: float
    high_bytes: float
    accelerate_bytes: float
    megatron_bytes: float
    verdict: str
    ran_out: bool
    is_clear: bool

    @property
    def has_peak(self) -> bool:
        """Whether its peak was measured."""
        return not np.isnan(self.measured_bytes)


def scored_rows(most: int, tables: Iterable[str] = TABLES) -> list[ScoredRow]:
    """Up to so many rows of a source."""
    return [row for table in tables for row in _of_table(table, most)]


def _of_table(table: str, most: int) -> Iterator[ScoredRow]:
    for run, row, memory in forecast_table(table, most):
        stated, job = run.memory, run.job
        assert stated is not None and memory.verdict is not None
        method = "4-bit LoRA" if job.four_bit else "LoRA" if job.lora else "all weights"
        where = memory.spread.kind.sharing
        peak = memory.interval_of(stated.compared_kind)
        number = f"{stated.kind} (reserved)" if stated.kind == UNSTATED else stated.kind
        yield ScoredRow(
            table,
            table if table == "user_runs" else run.source,
            f"{method}, {where}",
            number,
            stated.peak_bytes or float("nan"),
            *(peak.low, peak.mid, peak.high),
            MODEL_TIMES * memory.breakdown.get("parameters", 0) if where == ALONE else float("nan"),
            megatron_bytes(run, row),
            memory.verdict,
            stated.ran_out,
            is_clear(run),
        )


def scores_of(rows: Sequence[ScoredRow]) -> MemoryScores:
    """Of rows with a peak: those that ran, unless all that is known is what they fitted in."""
    ran = [row for row in rows if row.has_peak]
    columns = ("measured_bytes", "low_bytes", "mid_bytes", "high_bytes")
    return memory_scores(*(np.array([getattr(row, name) for row in ran]) for name in columns))


def wrong_fraction(rows: Sequence[ScoredRow]) -> float:
    """Verdicts outside the tight band that were wrong, of all rows."""
    wrong = [row for row in rows if row.verdict == (FITS if row.ran_out else DOES_NOT_FIT)]
    return len(wrong) / max(1, len(rows))


def verdict_lines(rows: Sequence[ScoredRow]) -> Iterator[str]:
    """By source: what ran and what ran out, by verdict; sources with the most wrong verdicts first."""
    yield "| source | ran: does not fit | tight | fits | ran out: fits | tight | does not fit |"
    yield "|---|---|---|---|---|---|---|"
    sources = {row.source for row in rows if row.verdict != (DOES_NOT_FIT if row.ran_out else FITS)}
    for source in sorted(sources, key=lambda name: (-_wrong(rows, name), name)):
        counts = Counter((row.ran_out, row.verdict) for row in rows if row.source == source)
        cells = [counts[False, word] for word in (DOES_NOT_FIT, TIGHT, FITS)]
        cells += [counts[True, word] for word in (FITS, TIGHT, DOES_NOT_FIT)]
        yield f"| {source} | {' | '.join(map(str, cells))} |"
    rest = sorted({row.source for row in rows} - sources)
    if rest:
        yield ""
        yield f"All right: {', '.join(rest)}."


def megatron_lines(rows: Sequence[ScoredRow]) -> Iterator[str]:
    """Megatron's own estimate beside ours, by source, of layouts that it has formulas for."""
    yield "## Megatron's own estimate, beside ours"
    yield ""
    yield "Megatron-Bridge publishes layouts and throughput, and no memory. What it reports is an estimate by formulas"
    yield "(`theoretical_memory_utils.py`, those of Megatron-LM): weights and optimizer state by rank, activations by"
    yield "Korthikanti et al. 2022. Asked of the decoders above whose rows have degrees and recompute no whole blocks."
    yield ""
    yield "| source | number | rows | Megatron: mean | median | bias | ours: mean | median | bias |"
    yield "|---|---|---|---|---|---|---|---|---|"
    groups: dict[tuple[str, str], list[ScoredRow]] = {}
    for row in rows:
        if row.has_peak and not np.isnan(row.megatron_bytes):
            groups.setdefault((row.source, row.number), []).append(row)
    for key in sorted(groups):
        measured = np.array([row.measured_bytes for row in groups[key]])
        both = (np.array([getattr(row, name) for row in groups[key]]) for name in ("megatron_bytes", "mid_bytes"))
        cells = [cell for estimate in both for cell in _error_cells(estimate / measured - 1)]
        yield f"| {' | '.join(key)} | {len(measured)} | {' | '.join(cells)} |"
    yield ""


def _error_cells(errors: NDArray[np.float64]) -> Iterator[str]:
    """Mean and median of their size, and their mean."""
    absolute = np.abs(errors)
    yield f"{absolute.mean():.0%}"
    yield f"{np.median(absolute):.0%}"
    yield f"{errors.mean():+.0%}"


def _wrong(rows: Sequence[ScoredRow], source: str) -> float:
    return wrong_fraction([row for row in rows if row.source == source])


def peak_lines(rows: Sequence[ScoredRow]) -> Iterator[str]:
    """By source, task and number; the worst median first."""
    yield "| source | task | number | rows | mean | median | bias | inside | width | accelerate, mean |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    groups: dict[tuple[str, str, str], list[ScoredRow]] = {}
    for row in rows:
        if row.has_peak:
            groups.setdefault((row.source, row.task, row.number), []).append(row)
    scored = {key: scores_of(group) for key, group in groups.items() if len(group) >= LEAST_ROWS}
    for key in sorted(scored, key=lambda key: -(scored[key].median_ape or 0)):
        one = scored[key]
        rival = np.array([abs(row.accelerate_bytes / row.measured_bytes - 1) for row in groups[key]])
        beside = "–" if np.isnan(rival).all() else f"{rival.mean():.0%}"
        yield (
            f"| {' | '.join(key)} | {one.n} | {one.mape:.0%} | {one.median_ape:.0%} | {one.bias:+.0%} | "
            f"{one.coverage:.0%} | {one.width:.1f} | {beside} |"
        )
    small = [row for key, group in groups.items() if key not in scored for row in group]
    if small:
        yield ""
        inside = scores_of(small)
        yield f"Smaller groups, together {inside.n} rows: median {inside.median_ape:.0%}, {inside.coverage:.0%} inside."
