"""Two streams: the host launches kernels one after another, the device runs them in order as they arrive.

With h_i the moment kernel i has been launched and k_i its seconds, it ends at

    e_i = max(e_{i-1}, h_i) + k_i  =  K_i + max_{j ≤ i} (h_j - K_{j-1}),   K_i = k_1 + … + k_i.

A step of many small kernels is bound by the launches, a step of large ones by the kernels; most steps change from one
to the other on the way. Sums of single-layer times miss this: each was measured with its launch exposed.

Where the host reads a result (`.item()`, `nonzero`, non-maximum suppression), it cannot run ahead: kernel i is started
when kernel i-1 has ended, and kernel i+1 when kernel i has. `with_waits` adds that to the launch seconds.
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


def with_waits(kernel_seconds: Seconds, launch_seconds: Seconds, awaited: NDArray[np.bool_]) -> Seconds:
    """Host seconds per op with what the host waits for the device at `awaited` kernels, so that `kernel_ends` of both
    has the waits in it.
    """
    places = np.flatnonzero(awaited)
    if not len(places):
        return launch_seconds
    waiting = launch_seconds.copy()
    host = device = 0.0
    first = 0
    for place in places.tolist():
        kernels = kernel_seconds[first:place]
        if len(kernels):
            launched, busy = host + np.cumsum(launch_seconds[first:place]), np.cumsum(kernels)
            device = float(busy[-1] + max(device, float((launched - (busy - kernels)).max())))
            host = float(launched[-1])
        waiting[place] += max(0.0, device - host)
        host = max(host, device) + launch_seconds[place] + kernel_seconds[place]
        waiting[place + 1 : place + 2] += kernel_seconds[place]
        device, first = host, place + 1
    return waiting
