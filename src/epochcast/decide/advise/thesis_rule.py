"""The rule of thumb of a thesis, to compare ours with (Tripathi, on storage bottlenecks in training, chapter 4).

Memory: I and O are the bytes of a sample's input and output, X is what does not grow with the batch B (parameters,
gradients, optimizer state), Y the feature maps of a sample, which are needed a second time as gradients:

    M = B·I + B·O + X + 2·B·Y        (4.7)     two batches b₁, b₂ are measured, which gives X and Y
    GPU_M = B_m·I + B_m·O + X + 2·B_m·Y     (4.8)
    B_m = (GPU_M − X) / (I + O + 2·Y)       (4.9)

Workers: maximise B subject to W·B·I < DRAM (4.14), t_d ≤ t_g·W (4.15; with N GPUs t_d ≤ t_g·W/N, 4.17) and B ≤ B_m
(4.16), then take the smallest W. The ratio t_d/t_g is taken as the same for every batch, as in the thesis. W and B are
those of the whole node.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, floor
from typing import ClassVar

from epochcast.base.record import Record, paths
from epochcast.errors import BadInput

# The two batches of the thesis.
PROBE_BATCHES = (10, 50)


@dataclass(frozen=True, slots=True)
class Coefficients(Record):
    """What equations 4.7–4.9 need. `memory_bytes` are M₁ and M₂, at `batches` b₁ and b₂."""

    batches: tuple[int, int]
    memory_bytes: tuple[float, float]
    input_bytes: float
    output_bytes: float

    def __post_init__(self) -> None:
        first, second = self.batches
        if not 1 <= first < second:
            raise BadInput(f"two batches are needed, the second larger than the first, got {first} and {second}")
        if self.slope_bytes <= 0:
            raise BadInput(
                f"memory does not grow with the batch: {self.memory_bytes[0]:.0f} bytes at {first}, "
                f"{self.memory_bytes[1]:.0f} at {second}; probe larger batches"
            )

    @property
    def slope_bytes(self) -> float:
        """I + O + 2Y: bytes a sample adds."""
        return (self.memory_bytes[1] - self.memory_bytes[0]) / (self.batches[1] - self.batches[0])

    @property
    def fixed_bytes(self) -> float:
        """X: bytes that do not grow with the batch."""
        return self.memory_bytes[0] - self.batches[0] * self.slope_bytes

    @property
    def feature_bytes(self) -> float:
        """Y: feature maps of one sample; negative where more is freed than the thesis counts."""
        return (self.slope_bytes - self.input_bytes - self.output_bytes) / 2

    def bytes_at(self, batch: int) -> float:
        """M (4.7)."""
        return self.fixed_bytes + batch * self.slope_bytes

    def largest_batch(self, memory_bytes: float) -> int:
        """B_m (4.9); 0 where X alone does not fit."""
        return max(0, floor((memory_bytes - self.fixed_bytes) / self.slope_bytes))

    json_paths: ClassVar[Mapping[str, str]] = paths(
        "batches",
        measured_bytes="memory_bytes",
        I="input_bytes",
        O="output_bytes",
        X="fixed_bytes",
        Y="feature_bytes",
    )
    """The letters of the equations with their values."""


MEANINGS = {
    "I": "input of one sample",
    "O": "output of one sample",
    "X": "does not grow with the batch: parameters, gradients, optimizer state, library",
    "Y": "feature maps of one sample (counted twice: once more as gradients)",
}


@dataclass(frozen=True, slots=True)
class ThesisRule(Record):
    """The settings by the thesis: batch over all GPUs, and workers of the node."""

    coefficients: Coefficients
    max_batch: int
    batch: int
    workers: int
    json_paths: ClassVar[Mapping[str, str]] = paths("max_batch", "batch", "workers", "coefficients")


def thesis_rule(
    coefficients: Coefficients,
    *,
    gpu_bytes: float,
    host_bytes: float,
    load_over_step: float,
    gpus: int = 1,
) -> ThesisRule:
    """(4.13)–(4.17); `load_over_step` is t_d/t_g: one worker's seconds for a batch over one GPU's."""
    largest = gpus * coefficients.largest_batch(gpu_bytes)
    workers = max(1, ceil(gpus * load_over_step - 1e-9))
    # W·B·I < DRAM, strictly.
    host_batch = ceil(host_bytes / (workers * coefficients.input_bytes)) - 1 if host_bytes < float("inf") else largest
    return ThesisRule(coefficients, largest, max(0, min(largest, host_batch)), workers)
