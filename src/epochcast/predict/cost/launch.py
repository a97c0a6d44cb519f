"""Host seconds to start the kernels of a step.

A framework spends microseconds of Python and C++ on every kernel it starts, whatever the kernel does. On a fast device
with small kernels this is most of the step. A calibrated device has its own value. An unknown host may be any measured
one (`hosts.toml`): launch seconds depend on the host, not on the device.

PyTorch 1, which updates one tensor after another (`loop`), zeroes gradients where they are, and adds to them: two more
kernels for every trained tensor. PyTorch 2 drops them, and adds only where several passes share an update.
"""

import numpy as np
from numpy.typing import NDArray

from epochcast.describe.graph.op import Phase
from epochcast.describe.graph.op_kinds import HostLoop
from epochcast.describe.graph.trace import PHASES, Trace
from epochcast.hardware.device import Device
from epochcast.interval import Interval
from epochcast.predict.cost.hosts import LaunchHost, host_classes, measured_launch, sample_work, unknown_host

_INDUCTOR = "inductor"
_UPDATE = PHASES.index(Phase.UPDATE)

# Host seconds per kernel without Python. A loop in C++ starts kernels of 2.9 µs every 3.8 µs, a CUDA graph every 3.4:
# Gray, "Getting Started with CUDA Graphs" (NVIDIA 2019). Submissions of vendors run as graphs.
COMPILED_LAUNCH_SECONDS = {"xla": 3.8e-6, "reduce-overhead": 0.5e-6, "vendor": 0.5e-6}
VENDOR = "vendor"
# Of eager mode's seconds per kernel. Inductor's code calls its kernels one after another, without modules, dispatch and
# autograd between them. No row of the tables is bound by it: assumed, between a loop in C++ and eager mode.
INDUCTOR_LOW, INDUCTOR_FRACTION = 0.3, 0.55


def launch_seconds(device: Device) -> float:
    """Host seconds per kernel: the device's own where it was calibrated, else those of an unknown host."""
    return unknown_host().launch_seconds.mid if device.launch_seconds is None else device.launch_seconds


def launch_interval(trace: Trace, device: Device, host: LaunchHost | None = None) -> Interval:
    """Host seconds per kernel of a step: the host's where it is known, else the device's, else those of any host that
    was measured. Inductor starts its kernels from Python, too, but without the modules around them; other compilers do
    without Python. None is slower than eager mode.
    """
    if host is not None:
        eager = host.launch_seconds
    elif device.launch_seconds is not None:
        eager = measured_launch(device.launch_seconds)
    else:
        eager = unknown_host().launch_seconds
    if trace.recipe.compile == _INDUCTOR:
        if host is not None and host.is_of_job:
            return eager.scaled(INDUCTOR_FRACTION)
        return Interval(INDUCTOR_LOW * eager.low, INDUCTOR_FRACTION * eager.mid, eager.high)
    bare = COMPILED_LAUNCH_SECONDS.get(trace.recipe.compile)
    if bare is None or bare >= eager.mid:
        return eager
    compiled = measured_launch(bare)
    return Interval(min(compiled.low, eager.low), bare, min(compiled.high, eager.high))


def assumed_host(name: str) -> LaunchHost:
    """The host of a class that nobody named: its middle, and as uncertain as any unknown host."""
    own, unknown = host_classes()[name].launch_seconds, unknown_host().launch_seconds
    return LaunchHost(name, Interval(min(own.low, unknown.low), own.mid, max(own.high, unknown.high)))


def started_kernels(trace: Trace) -> NDArray[np.float64]:
    """Kernels that the host starts for each entry of the columns, those that sum and zero gradients included.

    The zeroes are counted with the first kernel of the update, or of the step where there is none.
    """
    recipe = trace.recipe
    keeps = recipe.update_style == "loop"
    summed = 1.0 if keeps else (recipe.accumulate - 1) / recipe.accumulate
    launches = trace.columns.launches
    if recipe.mode == "forward" or recipe.is_compiled or not summed or not len(launches):
        return launches
    places = [place for place, _ in trace.gradient_entries(trace.parameters)]
    started = launches + summed * np.bincount(places, minlength=len(launches))
    if keeps:
        started[int(trace.in_phase(_UPDATE).argmax())] += len(places)
    return started


def work_seconds(trace: Trace) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """What the host itself computes before each entry of the columns may start: low, middle, high. A vendor's
    submission computes it on the device, as a CUDA graph has to (NVIDIA's Mask R-CNN of MLPerf since version 1.1).
    """
    if trace.recipe.compile == VENDOR:
        nothing = np.zeros(len(trace.places))
        return nothing, nothing, nothing
    base, place_of = trace.template.base, trace.places.tolist()
    loops = [(entry, base[place].kind) for entry, place in enumerate(place_of)]
    seconds = np.zeros((3, len(place_of)))
    for entry, kind in loops:
        if isinstance(kind, HostLoop) and kind.work:
            each = sample_work(kind.work)
            seconds[:, entry] = trace.batch * np.array([each.low, each.mid, each.high])
    low, mid, high = seconds
    return low, mid, high


def host_seconds(trace: Trace, device: Device, host: LaunchHost | None = None) -> NDArray[np.float64]:
    """Host seconds before each entry of the columns may start."""
    return started_kernels(trace) * launch_interval(trace, device, host).mid + work_seconds(trace)[1]
