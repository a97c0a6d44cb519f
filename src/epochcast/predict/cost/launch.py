"""Host seconds to start the kernels of a step.

A framework spends a few microseconds of Python and C++ on every kernel it starts, whatever the kernel does. On a fast
device with small kernels this is most of the step. A calibrated device has its own value; for the others it was fitted
with the learned model over all devices: launches are the host's, whatever device stands beside it.
"""

import numpy as np
from numpy.typing import NDArray

from epochcast.describe.graph.trace import Trace
from epochcast.hardware.device import Device
from epochcast.hardware.sustained import usual_launch_seconds
from epochcast.interval import Interval
from epochcast.predict.cost.hosts import LaunchHost, host_classes, measured_launch, slowest_host

# The runs whose fitted launch seconds stand for PyTorch in eager mode: small batches of small networks, bound by them.
EAGER_SOURCE = "torchvision_gpu_bench"
# Of a host that nobody named: measured over forecast seconds of steps bound by launches, on devices left out of the
# training, between the 5th and the 95th of a hundred (studies/accuracy/left_out.csv, 199 rows with bound = host).
UNKNOWN_LOW, UNKNOWN_HIGH = 0.49, 3.03

# Host seconds per kernel without Python. A loop in C++ starts kernels of 2.9 µs every 3.8 µs, a CUDA graph every 3.4:
# Gray, "Getting Started with CUDA Graphs" (NVIDIA 2019). Submissions of vendors run as graphs.
COMPILED_LAUNCH_SECONDS = {"xla": 3.8e-6, "reduce-overhead": 0.5e-6, "vendor": 0.5e-6}


def launch_seconds(device: Device) -> float:
    """Host seconds per kernel: the device's own where it was calibrated, else what was fitted for the framework."""
    return usual_launch_seconds(EAGER_SOURCE) if device.launch_seconds is None else device.launch_seconds


def launch_interval(trace: Trace, device: Device, host: LaunchHost | None = None) -> Interval:
    """Host seconds per kernel of a step: the host's where it is known, else the device's. Inductor starts its kernels
    from Python, as eager mode does; other compilers do not, and are never slower.

    An unknown host may be as far off as launch-bound steps were, and as slow as the slowest that was measured.
    """
    if host is not None:
        eager = host.launch_seconds
    elif device.launch_seconds is not None:
        eager = measured_launch(device.launch_seconds)
    else:
        eager = _unknown(launch_seconds(device))
    bare = COMPILED_LAUNCH_SECONDS.get(trace.recipe.compile)
    if bare is None or bare >= eager.mid:
        return eager
    compiled = measured_launch(bare)
    return Interval(min(compiled.low, eager.low), bare, min(compiled.high, eager.high))


def assumed_host(name: str) -> LaunchHost:
    """The host of a class that nobody named: its middle, and as uncertain as any unknown host."""
    return LaunchHost(name, _unknown(host_classes()[name].launch_seconds.mid))


def _unknown(middle_seconds: float) -> Interval:
    usual = usual_launch_seconds(EAGER_SOURCE)
    low, high = UNKNOWN_LOW * usual, max(UNKNOWN_HIGH * usual, slowest_host())
    return Interval(min(low, middle_seconds), middle_seconds, max(high, middle_seconds))


def host_seconds(trace: Trace, device: Device, host: LaunchHost | None = None) -> NDArray[np.float64]:
    """Host seconds before each entry of the columns may start."""
    return trace.columns.launches * launch_interval(trace, device, host).mid
