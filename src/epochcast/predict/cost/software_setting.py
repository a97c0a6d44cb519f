"""Software settings that decide which kernels run: memory layout, framework and its generation."""

from dataclasses import dataclass

from epochcast.describe.graph.precision import find_precision
from epochcast.hardware.device import Device

# PyTorch 2.0 on the scale of `Setting.framework_age`.
SECOND_GENERATION = 13 / 22
GENERATIONS = ("pytorch_1", "pytorch_2", "tensorflow_1", "tensorflow_2")

# NVIDIA's generations without tensor cores.
_BEFORE_TENSOR_CORES = frozenset({"fermi", "kepler", "maxwell", "pascal"})


@dataclass(frozen=True, slots=True)
class SoftwareSetting:
    """The layout of images, the framework, and how new it is (0 old … 1 new)."""

    channels_last: bool = False
    framework: str = "pytorch"
    framework_age: float = 0.0

    @property
    def generation(self) -> int:
        """The framework and its major version, as an index of GENERATIONS; bare libraries count as PyTorch."""
        return 2 * (self.framework == "tensorflow") + (self.framework_age >= SECOND_GENERATION)


TODAY = SoftwareSetting(framework_age=0.77)
"""The default: PyTorch 2.4."""


def turns_channels_last(framework: str, precision: str, device: Device) -> bool:
    """Whether the framework itself chooses channels last: TensorFlow's layout optimizer (grappler) does if convolutions
    in mixed precision run on tensor cores, and uses NCHW otherwise.
    """
    has_cores = device.vendor == "NVIDIA" and device.generation not in _BEFORE_TENSOR_CORES
    return framework == "tensorflow" and find_precision(precision).is_autocast and has_cores
