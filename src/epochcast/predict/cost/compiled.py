"""The kernels of a compiled step: each at most as long as the ops it was made of.

A fused kernel is costed by what it reads and writes, as an op of its leader's class (`describe.graph.fusion`). A
compiler keeps the better of both, so the ops one after another bound it from above: a compiled step never has slower
kernels.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from epochcast.describe.graph.compilers import COMPILERS
from epochcast.describe.graph.inductor_layout import turns_channels_last
from epochcast.describe.graph.trace import Trace
from epochcast.hardware.device import Device
from epochcast.predict.cost.cost_model import CostModel, Costs
from epochcast.predict.cost.software_setting import SoftwareSetting


def fused_costs(trace: Trace, device: Device, model: CostModel, setting: SoftwareSetting) -> Costs:
    """Of the kernels of a compiled trace, bounded by its ops in eager mode and its `setting`."""
    fusion, eager = trace.fusion, trace.under(trace.recipe.eager())
    assert fusion is not None
    costs = model.costs(trace.columns, device, compiled_setting(trace, device, setting))
    alone = model.costs(eager.columns, device, setting)
    kernel = np.full(eager.op_count, -1, dtype=np.int64)
    for number, members in enumerate(fusion.members):
        kernel[list(members)] = number
    kernel = kernel[eager.places]
    runs = kernel >= 0

    def sums(seconds: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.bincount(kernel[runs], seconds[runs], minlength=len(costs)).astype(np.float64)

    low, mid, high = (
        np.minimum(own, sums(ops))
        for own, ops in ((costs.low, alone.low), (costs.mid, alone.mid), (costs.high, alone.high))
    )
    return replace(costs, low=np.minimum(low, mid), mid=mid, high=np.maximum(high, mid))


def compiled_setting(trace: Trace, device: Device, setting: SoftwareSetting) -> SoftwareSetting:
    """The setting in which a compiled step runs: its compiler may store images channels last, on GPUs."""
    compiler = COMPILERS.get(trace.recipe.compile)
    if compiler is None or not compiler.turns_layout or setting.channels_last or device.kind != "gpu":
        return setting
    return replace(setting, channels_last=turns_channels_last(trace))
