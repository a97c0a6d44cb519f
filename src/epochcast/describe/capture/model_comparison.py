"""Two models side by side: what each needs, and the second as a fraction of the first."""

from collections.abc import Mapping
from dataclasses import dataclass

from epochcast.base.record import Record, json_hidden
from epochcast.describe.capture.inspection import Inspection

FLOPS: Mapping[str, str] = {
    "forward_flops_per_sample": "forward, matrix work",
    "elementwise_flops_per_sample": "forward, elementwise",
    "training_flops_per_sample": "training step, matrix work",
}
"""Counts of flops, by the name of the inspection's field, in words."""
QUANTITIES: Mapping[str, str] = {"parameters": "parameters", "activations_per_sample": "activations", **FLOPS}
"""What is compared, by the name of the inspection's field, in words."""


@dataclass(frozen=True)
class ModelComparison(Record):
    """What `inspect --versus` adds to the JSON object: the second model's totals, and their ratios to the first's."""

    model: str
    input_shape: tuple[int, ...]
    output_shape: tuple[int, ...]
    parameters: int
    activations_per_sample: int
    forward_flops_per_sample: int
    elementwise_flops_per_sample: int
    training_flops_per_sample: int
    ratios: Mapping[str, float | None]
    """second / first by quantity; None where `first` has none of it."""
    first: Inspection = json_hidden()
    second: Inspection = json_hidden()


def compare_models(first: Inspection, second: Inspection) -> ModelComparison:
    """Two models by their totals."""
    before, after = ({name: getattr(side, name) for name in QUANTITIES} for side in (first, second))
    ratios = {name: after[name] / before[name] if before[name] else None for name in QUANTITIES}
    return ModelComparison(
        model=second.model,
        input_shape=second.input_shape,
        output_shape=second.output_shape,
        **after,
        ratios=ratios,
        first=first,
        second=second,
    )
