"""How what is trained is kept: the format of parameters and gradients, and whether the optimizer has its own copy.

    weights               bytes a parameter with Adam    as
                          weight + gradient + master + moments
    fp32                  4 + 4 + 0 + 8 = 16             float32, TF32; PyTorch AMP (autocast), whose casts come on top
    bf16, fp16            2 + 2 + 0 + 4 = 8              pure half: model.to(torch.bfloat16)
    bf16+master, …        2 + 2 + 4 + 8 = 16             DeepSpeed's bf16, fp16 (Rajbhandari et al. 2020, section 3.1)
    bf16+master+fp32grad  2 + 4 + 4 + 8 = 18             Megatron-LM's main gradients, nanotron
    fp64                  8 + 8 + 0 + 16 = 32            float64

Master weights are the optimizer's state: it updates them in float32 and rewrites the parameters from them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from epochcast.describe.graph.tensor import DType
from epochcast.errors import UnknownName


@dataclass(frozen=True, slots=True)
class Weights:
    """A policy: `named_as` says who keeps them so."""

    name: str
    parameters: DType
    gradients: DType
    has_masters: bool
    named_as: str

    @property
    def sums_wider(self) -> bool:
        """Whether gradients are added up in a wider format than the backward pass makes them in."""
        return self.gradients.bytes > self.parameters.bytes


def find_weights(name: str) -> Weights:
    """A policy by its name."""
    key = name.strip().casefold().replace(" ", "")
    if key not in WEIGHTS:
        raise UnknownName("way to keep weights", name, WEIGHTS)
    return WEIGHTS[key]


_HALVES = {"bf16": DType.BFLOAT16, "fp16": DType.FLOAT16}
WEIGHTS: Mapping[str, Weights] = {
    weights.name: weights
    for weights in (
        Weights("fp32", DType.FLOAT32, DType.FLOAT32, False, "float32, or PyTorch AMP"),
        *(Weights(name, half, half, False, f"pure {name}") for name, half in _HALVES.items()),
        *(Weights(f"{name}+master", half, half, True, f"DeepSpeed {name}") for name, half in _HALVES.items()),
        *(
            Weights(f"{name}+master+fp32grad", half, DType.FLOAT32, True, "Megatron-LM")
            for name, half in _HALVES.items()
        ),
        Weights("fp64", DType.FLOAT64, DType.FLOAT64, False, "float64"),
    )
}
