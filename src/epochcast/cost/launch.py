"""Host seconds to start the kernels of a step.

A framework spends a few microseconds of Python and C++ on every kernel it starts, whatever the kernel does. On a fast
device with small kernels this is most of the step. A calibrated device has its own value; for the others it was fitted
with the learned model, per device where its steps were measured.
"""

import numpy as np
from numpy.typing import NDArray

from epochcast.graph.trace import Trace
from epochcast.hardware.device import Device
from epochcast.hardware.sustained import stack_launch_seconds

# The runs whose fitted launch seconds stand for PyTorch in eager mode: small batches of small networks, bound by them.
EAGER_SOURCE = "torchvision_gpu_bench"


# Host seconds per kernel without Python. A loop in C++ starts kernels of 2.9 µs every 3.8 µs, a CUDA graph every 3.4 µs:
# Gray, "Getting Started with CUDA Graphs" (NVIDIA 2019). Submissions of vendors run as graphs.
COMPILED_LAUNCH_SECONDS = {"xla": 3.8e-6, "reduce-overhead": 0.5e-6, "vendor": 0.5e-6}


def compiled_launch_seconds(compiler: str, eager_seconds: float) -> float:
    """Per kernel under a compiler; Inductor starts its kernels from Python, as eager mode does."""
    return min(eager_seconds, COMPILED_LAUNCH_SECONDS.get(compiler, eager_seconds))


def launch_seconds(device: Device) -> float:
    """Host seconds per kernel: the device's own where it was calibrated, else what was fitted for the framework."""
    return stack_launch_seconds(EAGER_SOURCE, device) if device.launch_seconds is None else device.launch_seconds


def host_seconds(trace: Trace, device: Device) -> NDArray[np.float64]:
    """Host seconds before each entry of the columns may start."""
    return trace.columns.launches * compiled_launch_seconds(trace.recipe.compile, launch_seconds(device))
