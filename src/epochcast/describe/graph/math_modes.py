"""The one table of maths: in which formats multiply units work, and what is done where a device lacks one.

An op names its math (`Op.math`), a data sheet lists peaks by math (`hardware.device`), a cost model asks for the one
that bounds an op. A name that is not in the table raises.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from epochcast.errors import UnknownName


@dataclass(frozen=True, slots=True)
class Math:
    """A format of multiply units.

    `stand_in`: the format that software computes in where the hardware lacks this one; empty: there is none.
    `vector`: the math whose peak bounds arithmetic element by element; empty: no op runs in this math, it is only a
    line of data sheets. `on_tensor_cores`: products run on tensor or matrix cores where there are any. `convolution`:
    the math whose peak bounds convolutions and recurrent layers, where their library has no kernels for the tensor
    cores of this one; empty: its own.
    """

    stand_in: str = ""
    vector: str = ""
    on_tensor_cores: bool = False
    convolution: str = ""


# The maths of ops come first, in the order that fitted models know them by.
MATHS: Mapping[str, Math] = {
    "fp32": Math(vector="fp32_vector"),
    "tf32": Math("fp32", "fp32_vector", on_tensor_cores=True),  # before Ampere the flag has no effect
    # Stored as halves, computed as singles: native half rates of 1/64 are never used.
    "fp16": Math("fp32", "fp16_vector", on_tensor_cores=True),
    "bf16": Math("fp32", "fp32_vector", on_tensor_cores=True),  # emulated: widened to fp32
    # cuBLAS multiplies doubles on tensor cores, cuDNN's convolutions do not: an A100 has half the peak for them.
    "fp64": Math(vector="fp64_vector", convolution="fp64_vector"),
    "fp8": Math("fp16", "fp32_vector", on_tensor_cores=True),  # cast up
    "fp4": Math("fp8", "fp32_vector", on_tensor_cores=True),  # cast up
    "int8": Math(on_tensor_cores=True),
    "fp32_vector": Math("fp32"),
    "fp16_vector": Math("fp32"),
    "fp64_vector": Math("fp64"),
}

OP_MATHS = tuple(name for name, math in MATHS.items() if math.vector)
"""Every math an op can run in; the columns of a trace hold indices into this."""


def op_math_index(name: str) -> int:
    """The index of a math in OP_MATHS."""
    if name not in OP_MATHS:
        raise UnknownName("math of an op", name, OP_MATHS)
    return OP_MATHS.index(name)
