"""Peaks of detectors against the model zoos that publish them (mmdetection, detectron2, maskrcnn-benchmark), 8 V100.

A published peak is the largest of a whole training, so the step is asked at the largest images. The frameworks log MiB
and their pages print thousands of them as GB, so a row's GB counts 1,000 MiB. mmdetection 0.6 printed
max_memory_cached, what the allocator holds; all others max_memory_allocated, what is alive.

Every row is answered twice: as shipped, and with the workspaces that cuDNN's transforms ask for on Turing. Those
explain what Volta's rows have beyond the first, with the library of 2018-2020; that was seen on these very rows.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import polars as pl

from epochcast.describe.capture.resolve import find_model
from epochcast.describe.graph.recipe import Recipe
from epochcast.errors import EpochcastError
from epochcast.hardware.catalogue import find_device
from epochcast.measure.tables.detector_rows import FRAMEWORKS, detector_row
from epochcast.predict.memory.peak import PeakMemory, peak_memory
from epochcast.predict.memory.sharding import WHOLE, RankShares
from training.files import data_folder

PRINTED_GB_BYTES = 1000 * 2**20
CACHED = ("mmdetection_v1", "v0.6.0")
"""The source and version whose figures are what the allocator holds."""
# Version 1 of mmdetection reduces gradients by itself, behind the backward pass; later DistributedDataParallel does.
WITHOUT_BUCKETS = "mmdetection_v1"
WORST = 2


@dataclass(frozen=True)
class Peak:
    """One row: the published peak, our forecast, and our forecast with transforms."""

    source: str
    model: str
    precision: str
    measured_bytes: float
    forecast_bytes: float
    transformed_bytes: float


def detector_peaks() -> tuple[list[Peak], Counter[str]]:
    """Every row with a peak that can be forecast, and how many of each source cannot."""
    peaks: list[Peak] = []
    refused: Counter[str] = Counter()
    table = pl.read_parquet(data_folder() / "runs.parquet").drop_nulls("peak_memory_bytes")
    for row in table.filter(pl.col("source").is_in(list(FRAMEWORKS))).iter_rows(named=True):
        source, version = row["source"], row["framework_version"]
        name = f"mmdetection {version}" if source == "mmdetection_v1" else source
        try:
            asked = detector_row(source, row["model"], row["batch_per_gpu"], row["input_shape"])
            question = (asked.reference, asked.largest_shape, asked.images, row["precision"], source)
            found = [_peak(*question, generation) for generation in ("", "turing")]
        except EpochcastError:
            refused[name] += 1
            continue
        is_cached = (source, version) == CACHED
        ours = [f.reserved_bytes if is_cached else f.allocated_bytes for f in found]
        measured = row["peak_memory_bytes"] / 1e9 * PRINTED_GB_BYTES
        peaks.append(Peak(name, row["model"].strip(), row["precision"], measured, *ours))
    return peaks, refused


@cache
def _peak(
    reference: str, shape: tuple[int, ...] | None, images: int, precision: str, source: str, generation: str
) -> PeakMemory:
    """On PyTorch before 2.0, which keeps gradients and adds them up beside their parts."""
    device = find_device("V100-SXM2-16GB")
    if generation:
        device = replace(device, generation=generation)
    recipe = Recipe(images, optimizer="momentum", precision=precision, update_style="loop")
    shares = WHOLE if source == WITHOUT_BUCKETS else RankShares(bucket_fraction=1.0)
    trace = find_model(reference, shape).trace(recipe)
    return peak_memory(trace, device, set_to_none=False, sums_in_place=False, shares=shares)


def section(peaks: Sequence[Peak], refused: Counter[str]) -> Iterator[str]:
    """Markdown, worst first."""
    yield "## Detectors, 8 V100, allocated"
    yield ""
    yield "Published peaks of whole trainings, asked at the largest images, a GB counted as the 1,000 MiB that the"
    yield "frameworks log. *With transforms* adds the workspaces that cuDNN asks for on Turing. What a GB is, buckets"
    yield "of gradients and mask crops were found by looking at these rows: no blind test."
    yield ""
    yield "| source | rows | not asked | MAPE | median | bias | with transforms: MAPE | median |"
    yield "|---|---|---|---|---|---|---|---|"
    for source in sorted({p.source for p in peaks}, key=lambda s: -_errors(peaks, s)[0].mean()):
        errors, signed, transformed = _errors(peaks, source)
        yield (
            f"| {source} | {len(errors)} | {refused[source]} | {errors.mean():.1%} | {np.median(errors):.1%} | "
            f"{signed.mean():+.1%} | {transformed.mean():.1%} | {np.median(transformed):.1%} |"
        )
    yield ""
    yield "Farthest off, each network once; SSD lets cuDNN try out its algorithms, whatever workspace they take:"
    yield ""
    yield "| source | configuration | precision | published | forecast | error |"
    yield "|---|---|---|---|---|---|"
    seen: set[tuple[str, str, str]] = set()
    for p in sorted(peaks, key=lambda p: -abs(p.forecast_bytes / p.measured_bytes - 1)):
        key = (p.source, p.model, p.precision)
        if key in seen or p.source in ("maskrcnn_benchmark", "mmdetection v0.6.0") or len(seen) == WORST:
            continue
        seen.add(key)
        yield (
            f"| {p.source} | {p.model.replace('|', ' ')} | {p.precision} | {p.measured_bytes / 1e9:.2f} GB | "
            f"{p.forecast_bytes / 1e9:.2f} GB | {p.forecast_bytes / p.measured_bytes - 1:+.0%} |"
        )
    yield ""


def _errors(peaks: Sequence[Peak], source: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """|error|, error, and |error| with transforms, of one source."""
    mine = [p for p in peaks if p.source == source]
    signed = np.array([p.forecast_bytes / p.measured_bytes - 1 for p in mine])
    return abs(signed), signed, np.array([abs(p.transformed_bytes / p.measured_bytes - 1) for p in mine])
