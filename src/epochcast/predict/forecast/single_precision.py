"""What fp32 means on a device: which of its products the framework rounds to TF32 for the tensor cores by default.

| framework | convolutions | other products | |
|---|---|---|---|
| PyTorch from 1.12 | tf32 | fp32 | `cudnn.allow_tf32` is on, `cuda.matmul.allow_tf32` off |
| PyTorch 1.7 to 1.11 | tf32 | tf32 | both are on |
| TensorFlow from 2.4 | tf32 | tf32 | `enable_tensor_float_32_execution` is on |
| before | fp32 | fp32 | |

NVIDIA's GPUs from Ampere on have such tensor cores; elsewhere fp32 is fp32. `fp32_strict` means fp32 everywhere, and
`tf32` means TF32 for all products. A framework whose version nobody said is today's. JAX, which rounds all products,
is not told from PyTorch.
"""

from typing import TYPE_CHECKING

from epochcast.describe.graph.precision import SINGLE, SINGLE_ROUNDED, SINGLE_STRICT
from epochcast.hardware.device import Device

if TYPE_CHECKING:
    from epochcast.predict.forecast.job import Job

# From which version on convolutions are rounded, and for how long or since when all products are:
# https://docs.pytorch.org/docs/stable/notes/cuda.html#tensorfloat-32-tf32-on-ampere-and-later-devices
_TORCH_ROUNDS, _TORCH_MULTIPLIES_AS_STORED = (1, 7), (1, 12)
# https://www.tensorflow.org/api_docs/python/tf/config/experimental/enable_tensor_float_32_execution
_TENSORFLOW_ROUNDS = (2, 4)


def has_tf32(device: Device) -> bool:
    """Whether libraries round float32 for its tensor cores by default. Others have the format and leave it off."""
    return device.vendor == "NVIDIA" and "tf32" in device.peak_flops_per_second


def run_precision(name: str, job: "Job", device: Device | None) -> str:
    """The precision that a job in a given one has on a device, by the table above; without a device the given one."""
    if name != SINGLE or device is None:
        return name
    if not has_tf32(device):
        return SINGLE_STRICT
    version = job.framework_numbers
    if job.framework == "tensorflow":
        return SINGLE_STRICT if version is not None and version < _TENSORFLOW_ROUNDS else SINGLE_ROUNDED
    if version is None or version >= _TORCH_MULTIPLIES_AS_STORED:
        return SINGLE
    return SINGLE_STRICT if version < _TORCH_ROUNDS else SINGLE_ROUNDED
