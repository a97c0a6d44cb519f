"""Two models side by side: what each needs, and the second as a fraction of the first."""

from collections.abc import Mapping
from dataclasses import dataclass

from epochcast.describe.capture.inspection import Inspection

QUANTITIES: Mapping[str, str] = {
    "parameters": "parameters",
    "activations_per_sample": "activations",
    "forward_flops_per_sample": "forward, matrix work",
    "elementwise_flops_per_sample": "forward, elementwise",
    "training_flops_per_sample": "training step, matrix work",
}
"""What is compared, by the name of the inspection's field, in words."""


@dataclass(frozen=True)
class ModelComparison:
    """Two models; ratios are `other` over `one`."""

    one: Inspection
    other: Inspection

    def ratio(self, quantity: str) -> float | None:
        """other / one; None where `one` has none of it."""
        before, after = getattr(self.one, quantity), getattr(self.other, quantity)
        return after / before if before else None

    def as_dict(self) -> dict[str, object]:
        """What `inspect --versus` adds to the JSON object: the other's totals and the ratios."""
        return {
            "model": self.other.model,
            "input_shape": list(self.other.input_shape),
            "output_shape": list(self.other.output_shape),
            **{name: getattr(self.other, name) for name in QUANTITIES},
            "ratios": {name: self.ratio(name) for name in QUANTITIES},
        }
