"""Host seconds to start the kernels of a step.

A framework spends a few microseconds of Python and C++ on every kernel it starts, whatever the kernel does. On a fast
device with small kernels this is most of the step. A calibrated device has its own value; for the others it was fitted
with the learned model, per device where its steps were measured.
"""

import numpy as np
from numpy.typing import NDArray

from epochcast.caching import remembered
from epochcast.cost.hosts import Host, measured_launch
from epochcast.graph.trace import Trace
from epochcast.hardware.catalogue import devices
from epochcast.hardware.device import Device
from epochcast.hardware.sustained import stack_launch_seconds, sustained
from epochcast.interval import Interval

# The runs whose fitted launch seconds stand for PyTorch in eager mode: small batches of small networks, bound by them.
EAGER_SOURCE = "torchvision_gpu_bench"


# Host seconds per kernel without Python. A loop in C++ starts kernels of 2.9 µs every 3.8 µs, a CUDA graph every 3.4:
# Gray, "Getting Started with CUDA Graphs" (NVIDIA 2019). Submissions of vendors run as graphs.
COMPILED_LAUNCH_SECONDS = {"xla": 3.8e-6, "reduce-overhead": 0.5e-6, "vendor": 0.5e-6}


def launch_seconds(device: Device) -> float:
    """Host seconds per kernel: the device's own where it was calibrated, else what was fitted for the framework."""
    return stack_launch_seconds(EAGER_SOURCE, device) if device.launch_seconds is None else device.launch_seconds


def launch_interval(trace: Trace, device: Device, host: Host | None = None) -> Interval:
    """Host seconds per kernel of a step: the host's where it is known, else the device's. Inductor starts its kernels
    from Python, as eager mode does; other compilers do not, and are never slower.

    Of an unknown host nobody knows more than how much fitted launches differ between stacks.
    """
    if host is not None:
        eager = host.launch_seconds
    elif device.launch_seconds is not None:
        eager = measured_launch(device.launch_seconds)
    else:
        usual = launch_seconds(device)
        least, most = _fitted_range()
        eager = Interval(min(least, usual), usual, max(most, usual))
    bare = COMPILED_LAUNCH_SECONDS.get(trace.recipe.compile)
    if bare is None or bare >= eager.mid:
        return eager
    compiled = measured_launch(bare)
    return Interval(min(compiled.low, eager.low), bare, min(compiled.high, eager.high))


@remembered(1)
def _fitted_range() -> tuple[float, float]:
    """The least and the most seconds per launch that were fitted for a stack and a device."""
    fitted = [seconds for device in devices() for seconds in sustained(device).launch_seconds.values()]
    return min(fitted), max(fitted)


def host_seconds(trace: Trace, device: Device, host: Host | None = None) -> NDArray[np.float64]:
    """Host seconds before each entry of the columns may start."""
    return trace.columns.launches * launch_interval(trace, device, host).mid
