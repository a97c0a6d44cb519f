"""Precisions: how a step is stored, how its products are computed, and how a float32 step is rewritten to get there.

    fp32                    stored in float32; convolutions on tensor cores (TF32) where the device has them, products
                            in float32: the defaults of PyTorch since 1.12 (`torch.backends.cudnn.allow_tf32` is on,
                            `torch.backends.cuda.matmul.allow_tf32` is off). Other frameworks and versions:
                            `predict.forecast.single_precision`
    fp32_strict             everything in float32
    tf32                    stored in float32, convolutions and products on tensor cores
    amp_fp16, amp_bf16      stored in float32, cast op by op (`autocast`)
    amp_fp16_half, …        the same with weights loaded in half; adapters (LoRA) stay in float32, as PEFT keeps them
    fp16, bf16, fp64        everything stored in it, the optimizer's state too (`half`)
    fp16_deepspeed, …       parameters, activations and gradients stored in it, the update in float32 (`master`)
    fp16_master, …          the same, gradients are added up in float32, as Megatron-LM and nanotron train
    fp8, mxfp8, nvfp4       products of linear layers in eight or four bits, the rest in bfloat16 (`eight_bit`)

A precision says in which format products are computed and how weights are kept (`weights`); `precision_with` finds the
one for both.

Limit: cuDNN's recurrent layers are taken to multiply in float32 under fp32, though it may round their operands, too.

Loss scaling (amp_fp16) is charged only where a front end asks for it.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass
from enum import Enum

from epochcast.describe.graph.tensor import DType
from epochcast.describe.graph.weights import WEIGHTS, Weights, find_weights
from epochcast.errors import BadInput, UnknownPrecision

SINGLE, SINGLE_STRICT, SINGLE_ROUNDED = "fp32", "fp32_strict", "tf32"
"""Stored in float32, without casts: convolutions, nothing or everything on tensor cores."""


class Method(Enum):
    """How a step in float32 becomes one in a precision."""

    AS_IT_IS = "as it is"
    AUTOCAST = "autocast"
    STORED = "stored"
    MASTERED = "mastered"
    QUANTISED = "quantised"


@dataclass(frozen=True, slots=True)
class Precision:
    """`products` is the dtype of the operands of products; `on_tensor_cores`: float32 ones are rounded to tf32, and
    `convolutions_on_tensor_cores`: those of convolutions alone are. `weights` says how parameters, their gradients and
    the optimizer's copy are kept.
    """

    name: str
    products: DType = DType.FLOAT32
    method: Method = Method.AS_IT_IS
    on_tensor_cores: bool = False
    weights: Weights = WEIGHTS["fp32"]
    convolutions_on_tensor_cores: bool = False

    @property
    def is_single(self) -> bool:
        """Products are in float32: a narrower precision would halve the bytes."""
        return self.products is DType.FLOAT32

    @property
    def is_wide(self) -> bool:
        """Parameters are used in 32 bits or more."""
        return self.products.bytes >= DType.FLOAT32.bytes

    @property
    def is_autocast(self) -> bool:
        """Cast op by op."""
        return self.method is Method.AUTOCAST

    @property
    def is_stored(self) -> bool:
        """Parameters, activations and the optimizer's state are in `products`, too."""
        return self.method is Method.STORED

    @property
    def scales_loss(self) -> bool:
        """Whether the loss is scaled so that small gradients do not vanish: float16 has only five bits of exponent."""
        return self.is_autocast and self.products is DType.FLOAT16

    @property
    def math(self) -> str:
        """The row of `maths.MATHS` that products run in."""
        return "tf32" if self.on_tensor_cores else self.products.math

    @property
    def convolution_math(self) -> str:
        """The row of `maths.MATHS` that convolutions run in."""
        return "tf32" if self.convolutions_on_tensor_cores else self.math


def find_precision(name: str) -> Precision:
    """A precision by its name or an alias of it; torch.float16 is float16."""
    key = name.casefold().removeprefix("torch.").replace("-", "_")
    key = ALIASES.get(key, key)
    if key not in PRECISIONS:
        raise UnknownPrecision(name, [*PRECISIONS, *ALIASES])
    return PRECISIONS[key]


def precision_with(name: str, weights: str | None = None) -> Precision:
    """A precision whose weights are kept in a given way. Products of half weights are computed in half, so a step in
    float32 with half weights is one in half.
    """
    precision = find_precision(name)
    if weights is None:
        return precision
    wanted = find_weights(weights)
    alike = [
        other
        for other in PRECISIONS.values()
        if (other.products, other.on_tensor_cores) == (precision.products, precision.on_tensor_cores)
    ]
    choices = {other.weights.name: other for other in sorted(alike, key=lambda other: other.method is precision.method)}
    if precision.is_single:
        choices |= {other.weights.name: other for other in PRECISIONS.values() if _is_half(other)}
    choices[precision.weights.name] = precision
    if wanted.name not in choices:
        raise BadInput(f"weights in {wanted.name} do not go with {precision.name}; known: {', '.join(choices)}")
    return choices[wanted.name]


def _is_half(precision: Precision) -> bool:
    return precision.method in (Method.STORED, Method.MASTERED) and precision.products.bytes == 2


def mixed_precision(maths: Container[str]) -> Precision:
    """The mixed precision for a device with these maths: bfloat16 if it has that, since it needs no loss scaling."""
    return PRECISIONS["amp_bf16" if "bf16" in maths else "amp_fp16"]


PRECISIONS: Mapping[str, Precision] = {
    precision.name: precision
    for precision in (
        Precision(SINGLE, convolutions_on_tensor_cores=True),
        Precision(SINGLE_STRICT),
        Precision(SINGLE_ROUNDED, on_tensor_cores=True),
        Precision("amp_fp16", DType.FLOAT16, Method.AUTOCAST),
        Precision("amp_bf16", DType.BFLOAT16, Method.AUTOCAST),
        Precision("amp_fp16_half", DType.FLOAT16, Method.AUTOCAST, weights=WEIGHTS["fp16"]),
        Precision("amp_bf16_half", DType.BFLOAT16, Method.AUTOCAST, weights=WEIGHTS["bf16"]),
        Precision("fp16", DType.FLOAT16, Method.STORED, weights=WEIGHTS["fp16"]),
        Precision("bf16", DType.BFLOAT16, Method.STORED, weights=WEIGHTS["bf16"]),
        Precision("fp64", DType.FLOAT64, Method.STORED, weights=WEIGHTS["fp64"]),
        Precision("fp16_deepspeed", DType.FLOAT16, Method.MASTERED, weights=WEIGHTS["fp16+master"]),
        Precision("bf16_deepspeed", DType.BFLOAT16, Method.MASTERED, weights=WEIGHTS["bf16+master"]),
        Precision("fp16_master", DType.FLOAT16, Method.MASTERED, weights=WEIGHTS["fp16+master+fp32grad"]),
        Precision("bf16_master", DType.BFLOAT16, Method.MASTERED, weights=WEIGHTS["bf16+master+fp32grad"]),
        Precision("fp8", DType.FLOAT8, Method.QUANTISED, weights=WEIGHTS["bf16+master+fp32grad"]),
        Precision("mxfp8", DType.FLOAT8, Method.QUANTISED, weights=WEIGHTS["bf16+master+fp32grad"]),
        Precision("nvfp4", DType.FLOAT4, Method.QUANTISED, weights=WEIGHTS["bf16+master+fp32grad"]),
    )
}
OF_HALF_WEIGHTS = {"amp_fp16_half": "amp_fp16", "amp_bf16_half": "amp_bf16"}
"""Autocast with weights in half, by the autocast that it is."""
ALIASES = {
    "amp": "amp_fp16",
    "mixed": "amp_fp16",
    "float32": "fp32",
    "float16": "fp16",
    "half": "fp16",
    "bfloat16": "bf16",
    "fp16_megatron": "fp16_master",
    "bf16_megatron": "bf16_master",
}
