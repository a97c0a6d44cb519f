"""Fit how sure forecasts of memory are (`predict.memory.memory_spreads`): `python -m training.memory_spreads`.

Every row of the tables of measured runs that has a peak is forecast, up to `MOST_ROWS` of a source; so are the pairs of
`nvidia-smi` and allocated bytes that one source prints side by side. The engine that forecasts them is not fitted to
them, so each row is one that was left out. Then

    E[log(measured/forecast)²] = Σ_p share_p² · variance_p         by non-negative least squares, reweighted

over parts, and by group the quantiles of z = log(measured/forecast) ÷ √variance. The parts of a plain step on one GPU
are fitted to such steps alone, and what quantised weights and several GPUs add to the others: an engine that is wrong
about sharding says nothing about one GPU. Every network of every source counts alike. To say how well that holds for a
source that nobody has seen, both steps are repeated without each source, and the share of its rows inside is written
beside the numbers.

Rows that leave out what decides memory (the lengths of texts, the rank of adapters, the precision) have a part of
their own, `assumed`. Rows whose measured peak is below the bytes of their parameters, those whose lengths are means
worked out of a throughput, and those of PyTorch before 1.1 are not used. Two sources are read as `studies.memory`
reads them: SchedTune's table, whose networks and GPUs are in columns of their own, and LitGPT's, whose ranks and
lengths are in that project's files.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.optimize import nnls

from epochcast.measure.evaluate.evaluate_runs import forecast_group
from epochcast.measure.tables.run_memory import MeasuredMemory, measured_memory
from epochcast.measure.tables.run_table import MeasuredRun, read_runs
from epochcast.measure.tables.table_files import with_known_columns
from epochcast.predict.cost.cost_models import find_cost_model
from epochcast.predict.memory.memory_kinds import ALLOCATED, ON_DEVICE
from epochcast.predict.memory.memory_spreads import (
    ALONE,
    GROUPS,
    PARTS,
    QUANTISED,
    REPLICAS,
    SHARDED,
    SPLIT,
    MemorySpreads,
    part_shares,
)
from epochcast.predict.memory.peak import PeakMemory
from studies.memory.finetuning import tuned
from studies.memory.schedtune import schedtune
from training.files import PACKAGE, data_folder, say, write
from training.spreads import outside_of, weighted_quantile

Array = NDArray[np.float64]

FILE = PACKAGE / "predict" / "memory" / "memory_spreads.toml"
MOST_ROWS = 40
"""Of one source and table; users' rows are all asked."""
USERS = "user_runs"
TABLES = ("runs_2026", "runs", "runs_more", "llm_runs", USERS)
SOURCE = 'source = "fitted by training/memory_spreads.py to the runs above"'
SHOWN = (0.02, 0.05, 0.25, 0.5, 0.75, 0.95, 0.98)
"""The quantiles that are written."""
MOST_LOG_ERROR = 0.35
"""An error beyond this is of another job than the row says: it counts, but no more than this. The quantiles count it as
it is."""
USUAL: Mapping[str, float] = {"context": 0.25**2, "communication": 0.25**2, "activations, opaque": 0.2**2}
"""Variances of parts that hardly any row depends on; `context.toml` has the range that the context's comes from."""
ADDED = (QUANTISED, "communication", "sharding", *(f"setup, {group}" for group in GROUPS if group != ALONE))
"""Parts that a plain step on one GPU does not have."""
ALIKE: Mapping[str, tuple[str, ...]] = {
    REPLICAS: (ALONE,),
    SHARDED: (REPLICAS, SPLIT, ALONE),
    SPLIT: (SHARDED, REPLICAS, ALONE),
    f"{ALONE}, {QUANTISED}": (ALONE,),
}
"""Groups whose networks stand in where a group has too few, the likest first."""
USUAL_VARIANCE, LEAST_VARIANCE = 0.05**2, 0.005**2
USUAL_CELLS, LEAST_CELLS = 2.0, 8
"""So many networks are as strong as what is usual, and so many a group needs for quantiles of its own."""
_ROUNDS = 8
_MEAN_LENGTHS, _WHOLE_LENGTH = ("fms_acceleration",), 512
"""Sources whose odd lengths are means, worked out of a throughput: the longest text is not known."""
_LEAST_VERSION = (1, 1)
_SMI = re.compile(r"nvidia-smi (\d+) MiB")
_PRINTED_BY_MM = ("mmdetection_v1", "mmdetection_v3", "detectron2", "maskrcnn_benchmark")
"""Sources whose GB are 1,000 MiB (studies/memory/detectors.py)."""
_JUNK = ("mlperf_training", "lambda")
"""Sources whose column is something else in many rows: a log's own counter, the last GPU of another job."""


@dataclass(frozen=True)
class MeasuredPeak:
    """One measured number and its forecast: log(measured/forecast), the shares of PARTS, group, source, network."""

    log_error: float
    shares: tuple[float, ...]
    group: str
    source: str
    cell: str
    number: str


def peaks(most: int = MOST_ROWS) -> list[MeasuredPeak]:
    """Of all tables."""
    collected = [*_schedtune(most), *_litgpt()]
    for table in TABLES:
        for run, row, memory in forecast_table(table, most):
            if is_clear(run):
                collected += _measured(run, row, memory)
        say(f"{table}: {len(collected)} peaks so far")
    return collected


def forecast_table(table: str, most: int) -> Iterator[tuple[MeasuredRun, Mapping[str, Any], PeakMemory]]:
    """Every run of a table that says something of memory and can be forecast, up to so many of a source."""
    rows = list(_rows(table, most))
    groups: dict[tuple[Any, ...], list[MeasuredRun]] = {}
    for run in read_runs(rows, with_memory=True)[0]:
        groups.setdefault((run.reference, run.input_shape), []).append(run)
    for group in groups.values():
        by_row = {run.row_index: run for run in group}
        for forecast in forecast_group(group, find_cost_model("analytic"))[0]:
            if forecast.memory is not None:
                run = by_row[forecast.row_index]
                run = replace(run, source=table) if table == USERS else run
                yield run, rows[run.row_index], forecast.memory


def _schedtune(most: int) -> Iterator[MeasuredPeak]:
    points = Random(0).sample(schedtune(), most)
    for point in points:
        yield _one("memory_schedtune", point.model, point.measured_bytes, ON_DEVICE, point.peak)


def _litgpt() -> Iterator[MeasuredPeak]:
    for row in tuned(data_folder())[0]:
        if row.is_possible:
            assert row.peak is not None
            yield _one("litgpt", f"{row.name} {row.way}", row.measured_bytes, ALLOCATED, row.peak)


def _rows(table: str, most: int) -> Iterator[dict[str, Any]]:
    """Rows that say something of memory, at most so many of a source, drawn with a fixed seed."""
    frame = with_known_columns(pl.read_parquet(data_folder() / f"{table}.parquet"))
    rows = [row for row in frame.to_dicts() if row["source"] not in _JUNK and measured_memory(row) is not None]
    Random(0).shuffle(rows)
    counts: dict[str, int] = {}
    for row in rows:
        # The sources of users' rows are single pages: together they are one.
        source = table if table == USERS else str(row["source"])
        counts[source] = counts.get(source, 0) + 1
        if counts[source] <= most or table == USERS:
            yield row


def is_clear(run: MeasuredRun) -> bool:
    """Whether the row says what decides its memory."""
    version, shape = run.job.framework_numbers, run.largest_job.input_shape
    is_mean = run.source in _MEAN_LENGTHS and shape is not None and shape[0] % _WHOLE_LENGTH != 0
    is_ancient = version is not None and version < _LEAST_VERSION
    return not (is_mean or is_ancient)


def _measured(run: MeasuredRun, row: Mapping[str, Any], memory: PeakMemory) -> Iterator[MeasuredPeak]:
    stated = run.memory
    if stated is None or stated.peak_bytes is None:
        return
    unit = 1.048576 if run.source in _PRINTED_BY_MM else 1.0
    yield from _peak(run, memory, replace(stated, peak_bytes=stated.peak_bytes * unit))
    on_device = _SMI.search(str(row.get("note") or ""))
    if on_device and stated.kind != ON_DEVICE:
        yield from _peak(run, memory, MeasuredMemory(float(on_device[1]) * 2**20, ON_DEVICE))


def _peak(run: MeasuredRun, memory: PeakMemory, stated: MeasuredMemory) -> Iterator[MeasuredPeak]:
    assert stated.peak_bytes is not None
    if stated.peak_bytes >= memory.breakdown.get("parameters", 0):
        yield _one(run.source, f"{run.model} {run.gpus > 1}", stated.peak_bytes, stated.compared_kind, memory)


def _one(source: str, network: str, measured_bytes: float, number: str, memory: PeakMemory) -> MeasuredPeak:
    shares = part_shares(memory.spread.kind, memory.breakdown, number)
    return MeasuredPeak(
        float(np.log(measured_bytes / memory.interval_of(number).mid)),
        tuple(shares.get(part, 0.0) for part in PARTS),
        memory.spread.kind.group,
        source,
        f"{source}/{network}",
        number,
    )


# ---- fitting --------------------------------------------------------------------------------------


def fitted(measured: Sequence[MeasuredPeak]) -> MemorySpreads:
    """Variances of parts and quantiles of groups."""
    design = np.array([peak.shares for peak in measured]) ** 2
    errors, weights = np.array([peak.log_error for peak in measured]), weights_of(measured)
    variances = _variances(design, errors, weights, np.array([peak.group == ALONE for peak in measured]))
    z = errors / np.sqrt(design @ variances)
    quantiles = {group: _quantiles(z, weights, measured, group) for group in GROUPS}
    return MemorySpreads(dict(zip(PARTS, variances.tolist(), strict=True)), quantiles)


def weights_of(measured: Sequence[MeasuredPeak]) -> Array:
    """Every network of a source alike."""
    _, place, count = np.unique([peak.cell for peak in measured], return_inverse=True, return_counts=True)
    return np.asarray(1.0 / count[place], dtype=np.float64)


def _variances(design: Array, errors: Array, weights: Array, is_plain: NDArray[np.bool_]) -> Array:
    """The parts of plain steps on one GPU first, then the others with those given."""
    squares = np.minimum(errors**2, MOST_LOG_ERROR**2)
    of_plain = np.array([part not in ADDED for part in PARTS])
    variances = np.array([USUAL.get(part, USUAL_VARIANCE) for part in PARTS])
    for rows, parts in ((is_plain, of_plain), (~is_plain, ~of_plain)):
        variances[parts] = _least_squares(design[rows], squares[rows], weights[rows], parts, variances)
    return variances


def _least_squares(design: Array, squares: Array, weights: Array, parts: NDArray[np.bool_], usual: Array) -> Array:
    """Of some parts, the others as usual."""
    given, wanted = design[:, ~parts] @ usual[~parts], design[:, parts]
    variances = usual[parts]
    for _ in range(_ROUNDS):
        scale = np.sqrt(weights) / (given + wanted @ variances)
        prior = np.sqrt(USUAL_CELLS) / np.maximum(variances, LEAST_VARIANCE)
        rows = np.concatenate([wanted * scale[:, None], np.diag(prior)])
        target = np.concatenate([np.maximum(0.0, squares - given) * scale, usual[parts] * prior])
        variances = np.maximum(nnls(rows, target)[0], LEAST_VARIANCE)
    return variances


def _quantiles(
    z: Array, weights: Array, measured: Sequence[MeasuredPeak], group: str
) -> tuple[tuple[float, float], ...]:
    """Of the rows of a group; where it has too few networks, also of those like it."""
    groups = {group}
    for other in ALIKE.get(group, ()):
        if len({peak.cell for peak in measured if peak.group in groups}) < LEAST_CELLS:
            groups.add(other)
    mine = np.array([peak.group in groups for peak in measured])
    cells = {peak.cell for peak in measured if peak.group in groups}
    low, _ = outside_of(max(2, len(cells)))
    inner = 0.05 - low  # so many networks stand for one more
    values: list[float] = []
    for share in SHOWN:
        moved = min(max(share + inner * (2 * share - 1) / 0.9, 0.0), 1.0)
        value = weighted_quantile(z[mine], weights[mine], moved)
        values.append(max(value, values[-1] + 0.01) if values else value)
    return tuple(zip(SHOWN, values, strict=True))


def is_inside(peak: MeasuredPeak, spreads: MemorySpreads) -> tuple[bool, float]:
    """Whether a measured number is in the interval of its forecast, and high ÷ low of that."""
    variance = float(np.array(peak.shares) ** 2 @ [spreads.variances[part] for part in PARTS])
    quantiles = dict(spreads.quantiles[peak.group])
    low, high = (quantiles[share] * np.sqrt(variance) for share in (0.05, 0.95))
    low, high = min(0.0, low), max(0.0, high)
    return bool(low <= peak.log_error <= high), float(np.exp(high - low))


def left_out(measured: Sequence[MeasuredPeak]) -> dict[str, tuple[int, float, float]]:
    """By source: rows, the share inside intervals that were fitted without the source, and their median width."""
    scores = {}
    for source in sorted({peak.source for peak in measured}):
        own = [peak for peak in measured if peak.source == source]
        spreads = fitted([peak for peak in measured if peak.source != source])
        inside, widths = zip(*(is_inside(peak, spreads) for peak in own), strict=True)
        scores[source] = len(own), float(np.mean(inside)), float(np.median(widths))
    return scores


# ---- writing --------------------------------------------------------------------------------------


def written(spreads: MemorySpreads, measured: Sequence[MeasuredPeak]) -> str:
    """The file."""
    scores = left_out(measured)
    lines = [
        "# How sure forecasts of memory are (predict/memory/memory_spreads.py). Written by",
        f"# `python -m training.memory_spreads` from {len(measured)} measured peaks of {len(scores)} sources,",
        "# each network of a source counted once.",
        "# Inside the 90 % interval with their source left out (rows, share inside, high ÷ low):",
        *(f"#   {source}: {rows}, {share:.0%}, {width:.2f}" for source, (rows, share, width) in scores.items()),
        f"#   all rows: {sum(rows * share for rows, share, _ in scores.values()) / len(measured):.0%}, "
        f"mean of sources: {np.mean([share for _, share, _ in scores.values()]):.0%}",
        "",
        "# Variances of log(measured/forecast), of the share of a number that depends on the part.",
        "[variances]",
        SOURCE,
        *(f'"{part}" = {variance:.6f}' for part, variance in spreads.variances.items()),
        "",
        "# By group: [probability, z], z = log(measured/forecast) over the square root of the variance.",
        "[quantiles]",
        SOURCE,
        *(f'"{group}" = {_pairs(rows)}' for group, rows in spreads.quantiles.items()),
        "",
    ]
    return "\n".join(lines)


def _pairs(rows: Iterable[tuple[float, float]]) -> str:
    return "[" + ", ".join(f"[{share:g}, {value:.3f}]" for share, value in rows) + "]"


def main() -> None:
    """Forecast, fit, write."""
    measured = peaks()
    write(FILE, written(fitted(measured), measured).encode())
    say(f"{FILE.name} is written")


if __name__ == "__main__":
    main()
