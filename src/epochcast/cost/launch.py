"""Host seconds to start the kernels of a step.

A framework spends a few microseconds of Python and C++ on every kernel it starts, whatever the kernel does. On a fast
device with small kernels this is the step. The device catalogue holds a fitted figure where there is one; elsewhere
the prior below stands in.
"""

import numpy as np
from numpy.typing import NDArray

from epochcast.graph.op import Phase
from epochcast.graph.trace import PHASES, Trace
from epochcast.hardware.device import Device

# Host seconds per kernel of PyTorch in eager mode.
PRIOR_LAUNCH_SECONDS = 7e-6
# Autograd's engine calls kernels from C++, without Python between them.
BACKWARD_FRACTION = 0.7


def host_seconds(trace: Trace, device: Device) -> NDArray[np.float64]:
    """Host seconds before each entry of the columns may start."""
    each = PRIOR_LAUNCH_SECONDS if device.launch_seconds is None else device.launch_seconds
    columns = trace.columns
    share = np.where(columns.phase == PHASES.index(Phase.BACKWARD), BACKWARD_FRACTION, 1.0)
    return columns.launches * each * share
