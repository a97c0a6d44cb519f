"""SchedTune's table (Albahar et al. 2022): peaks of 12 networks at 4 batches on 5 GPUs, as nvidia-smi showed them.

Its script is not published. Momentum with weight decay, kept gradients and sums beside their parts (PyTorch before 2.0)
explain the rows best, and the contexts of four generations are fitted to them. So these rows are no test of the context
of a GPU that is among them; `left_out` says how far off one is that is not.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import polars as pl

from epochcast.describe.capture.resolve import find_model
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.trace import Trace
from epochcast.hardware.catalogue import find_device
from epochcast.hardware.device import Device
from epochcast.predict.memory.memory_spreads import CAPTURED, StepKind
from epochcast.predict.memory.peak import PeakMemory, peak_memory
from studies.memory.decay import with_weight_decay
from studies.memory.peers import accelerate_bytes, line_bytes, torchinfo_bytes
from training.files import data_folder

MIB = 2**20
VERSION = (1, 12)
"""Of PyTorch: the last that loads all kernels at the start."""
# The GPUs are known by their cores alone; two guesses are doubtful, so their memory is left out of it.
GPUS = {2496: "K80", 2560: "T4", 5888: "RTX 3070", 5120: "V100-SXM2-16GB", 10496: "RTX 3090"}
KEPLER, KEPLER_CONTEXT_BYTES = "K80", 450 * MIB
"""Where its context is not fitted: the middle of the 200 to 700 MB that PyTorch 1.3 with CUDA 10.1 held by machine, the
reporter's with two Tesla K40c (github.com/pytorch/pytorch/issues/28113)."""


@dataclass(frozen=True)
class Point:
    """One measured peak: model, device, our forecast, and other estimates."""

    model: str
    batch: int
    device: str
    measured_bytes: float
    peak: PeakMemory
    accelerate_bytes: float
    torchinfo_bytes: float

    @property
    def reserved_bytes(self) -> float:
        """Without a context."""
        return self.peak.reserved_bytes

    @property
    def forecast_bytes(self) -> float:
        """With the shipped context."""
        return self.peak.bytes.mid


@cache
def _trace(reference: str) -> Trace:
    return with_weight_decay(find_model(reference).trace(Recipe(1, optimizer="momentum", update_style="loop")))


def _device(cores: int) -> Device:
    return replace(find_device(GPUS[cores]), memory_bytes=24 * 2**30)


def schedtune() -> list[Point]:
    """The 240 points."""
    points = []
    for row in pl.read_parquet(data_folder() / "memory_schedtune.parquet").iter_rows(named=True):
        trace, device = _trace(f"torchvision:{row['model']}").rebatch(row["batch"]), _device(row["cuda_cores"])
        peak = peak_memory(
            trace, device, set_to_none=False, sums_in_place=False, framework_version=VERSION, kind=StepKind(CAPTURED)
        )
        points.append(
            Point(
                row["model"],
                row["batch"],
                GPUS[row["cuda_cores"]],
                row["peak_mib"] * MIB,
                peak,
                accelerate_bytes(trace),
                torchinfo_bytes(trace),
            )
        )
    return points


def ape(points: Sequence[Point], forecast: Callable[[Point], float]) -> np.ndarray:
    """|forecast − measured| / measured."""
    return np.array([abs(forecast(p) / p.measured_bytes - 1) for p in points])


def fitted_context_bytes(points: Sequence[Point]) -> float:
    """The context with which the points of a GPU err least, among what they measured beyond the allocator."""
    beyond = sorted({p.measured_bytes - p.reserved_bytes for p in points})
    return min(beyond, key=lambda c: np.mean([abs((p.reserved_bytes + c) / p.measured_bytes - 1) for p in points]))


def left_out(points: Sequence[Point]) -> Iterator[tuple[str, float, np.ndarray]]:
    """Each GPU with the context of a line in compute units through those of the others, which is what a generation
    without measurements gets: (device, context, measured over forecast).
    """
    own = {device: [p for p in points if p.device == device] for device in GPUS.values()}
    known = {d: (find_device(d).compute_units, fitted_context_bytes(rows)) for d, rows in own.items() if d != KEPLER}
    for device, rows in own.items():
        others = [pair for name, pair in known.items() if name != device]
        slope, base = np.polyfit([units for units, _ in others], [context for _, context in others], 1)
        yield device, *with_context(rows, float(base + slope * find_device(device).compute_units))


def with_context(points: Sequence[Point], context: float) -> tuple[float, np.ndarray]:
    """The context, and measured over forecast with it."""
    return context, np.array([p.measured_bytes / (p.reserved_bytes + context) for p in points])


def line_errors(points: Sequence[Point]) -> list[float]:
    """The thesis' line through the measured batches 8 and 16, at 32 and 64."""
    measured = {(p.model, p.device, p.batch): p.measured_bytes for p in points}
    return [
        abs(line_bytes((8, 16), (measured[m, d, 8], measured[m, d, 16]), n) / value - 1)
        for (m, d, n), value in measured.items()
        if n > 16
    ]
