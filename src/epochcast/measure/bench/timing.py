"""How long one execution takes, on a machine that also runs other programs.

Warm-up first. Then samples, each of as many executions as fill `SAMPLE_SECONDS`, until the median is known to
`TOLERANCE`: the standard error of a median is about 1.2533·σ/√n (Kenney & Keeping 1962), with σ from the median
absolute deviation (1.4826·MAD), so that outliers neither change the median nor delay the end. The tenth
percentile is kept, too: the time of an execution without disturbance.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil, inf, sqrt
from time import perf_counter, process_time
from typing import Any

import numpy as np

from epochcast.measure.bench.machine_fingerprint import processor_ticks, steal_fraction
from epochcast.measure.bench.torch_device import device_type

SAMPLE_SECONDS = 1e-4
TOLERANCE = 0.02
LEAST_SAMPLES = 7
MOST_SAMPLES = 400
# At least this many are taken, even where a slow start (a kernel compiled at its first call) has used up the limit.
FEW_SAMPLES = 3
WARM_UP_EXECUTIONS = 2
# Warm-up takes at most this part of the time limit, however slow the first executions are.
WARM_UP_FRACTION = 0.25

Sample = Callable[[Callable[[], object], int], float]
"""Seconds of one execution, averaged over a number of them."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one execution over `repeats` of them. `processor_seconds` is the processor time of the process per
    execution (all its threads): with one thread, less than `seconds` where other programs wanted the same core.
    """

    seconds: float
    low_seconds: float
    spread: float
    repeats: int
    steal_fraction: float | None = None
    processor_seconds: float | None = None


def time_executions(
    execute: Callable[[], object],
    limit_seconds: float,
    sample: Sample | None = None,
    tolerance: float = TOLERANCE,
    most_samples: int = MOST_SAMPLES,
) -> Timing:
    """Repeat until the median is stable or the limit is reached, which the execution under way may overrun."""
    sample = sample or host_sample
    began, ticks = perf_counter(), processor_ticks()
    estimate = inf
    for _ in range(WARM_UP_EXECUTIONS):
        estimate = min(estimate, sample(execute, 1))
        if perf_counter() - began > WARM_UP_FRACTION * limit_seconds:
            break
    count = max(1, min(1000, ceil(SAMPLE_SECONDS / max(estimate, 1e-9))))
    samples: list[float] = []
    processor_seconds: list[float] = []
    while len(samples) < most_samples:
        before = process_time()
        samples.append(sample(execute, count))
        processor_seconds.append((process_time() - before) / count)
        if len(samples) >= LEAST_SAMPLES and median_error(samples) <= tolerance:
            break
        is_enough = len(samples) >= FEW_SAMPLES or count * samples[-1] > limit_seconds / FEW_SAMPLES
        if is_enough and perf_counter() - began + count * samples[-1] > limit_seconds:
            break
    steal = steal_fraction(ticks, processor_ticks())
    return replace(summary(samples, count), steal_fraction=steal, processor_seconds=float(np.median(processor_seconds)))


def median_error(samples: list[float]) -> float:
    """Relative standard error of the median."""
    values = np.asarray(samples)
    middle = float(np.median(values))
    deviation = 1.4826 * float(np.median(np.abs(values - middle)))
    return 1.2533 * deviation / sqrt(len(samples)) / middle if middle > 0 else 0.0


def summary(samples: list[float], count: int = 1) -> Timing:
    """The figures of samples of `count` executions each."""
    low, first, middle, third = (float(q) for q in np.quantile(samples, (0.1, 0.25, 0.5, 0.75)))
    return Timing(middle, low, (third - first) / middle if middle > 0 else 0.0, len(samples) * count)


# ---- clocks -------------------------------------------------------------------------------------


def host_sample(execute: Callable[[], object], count: int) -> float:
    """Seconds by the host's clock; for calls that return when the work is done."""
    began = perf_counter()
    for _ in range(count):
        execute()
    return (perf_counter() - began) / count


def sample_on(device: str) -> Sample:
    """The clock of a torch device: events on CUDA and ROCm, the host's clock with a synchronisation on MPS."""
    match device_type(device):
        case "cuda":
            return _cuda_sample
        case "mps":
            return _mps_sample
        case _:
            return host_sample


def _cuda_sample(execute: Callable[[], object], count: int) -> float:
    import torch

    event: Any = torch.cuda.Event
    began, ended = event(enable_timing=True), event(enable_timing=True)
    torch.cuda.synchronize()
    began.record()
    for _ in range(count):
        execute()
    ended.record()
    ended.synchronize()
    milliseconds: float = began.elapsed_time(ended)
    return milliseconds / 1000 / count


def _mps_sample(execute: Callable[[], object], count: int) -> float:
    import torch

    torch.mps.synchronize()
    began = perf_counter()
    for _ in range(count):
        execute()
    torch.mps.synchronize()
    return (perf_counter() - began) / count
