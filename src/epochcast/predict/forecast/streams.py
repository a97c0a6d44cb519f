"""Two streams: the host launches kernels one after another, the device runs them in order as they arrive.

With h_i the moment kernel i has been launched and k_i its seconds, it ends at

    e_i = max(e_{i-1}, h_i) + k_i  =  K_i + max_{j ≤ i} (h_j - K_{j-1}),   K_i = k_1 + … + k_i.

A step of many small kernels is bound by the launches, a step of large ones by the kernels; most steps change from one
to the other on the way. Sums of single-layer times miss this: each was measured with its launch exposed.
"""

import numpy as np
from numpy.typing import NDArray

Seconds = NDArray[np.float64]


def kernel_ends(kernel_seconds: Seconds, launch_seconds: Seconds) -> Seconds:
    """When each kernel ends; both streams start at 0 and `launch_seconds` is host time per op."""
    if not len(kernel_seconds):
        return np.zeros(0)
    launched = np.cumsum(launch_seconds)
    busy = np.cumsum(kernel_seconds)
    return busy + np.maximum.accumulate(launched - (busy - kernel_seconds))
