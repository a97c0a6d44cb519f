"""Convolutions that no one tunes, under PyTorch 1.1 and before.

PyTorch times the algorithms of a convolution only if asked to (`torch.backends.cudnn.benchmark`), and that pays only
where images have one size. Detectors scale images to different sizes, and their frameworks leave it off: cuDNN's
heuristics choose. Those of cuDNN 7.0 and 7.1, with which these versions were built, choose worse than later ones, in
fp32 and above all for grouped convolutions. Mask R-CNN (R-50-FPN) on eight V100s: 37 images/s by mmdetection with
PyTorch 1.1 and cuDNN 7.0.4, 35 by maskrcnn-benchmark with PyTorch 1.0 and cuDNN 7.1 (their model zoos); both 53 with
PyTorch 1.5 and cuDNN 7.6.5 (detectron2, "Benchmarks").

    seconds = 2.1 · those of tuned kernels, 6 · if grouped

The factors are the least absolute error over 51 steps of mmdetection's zoo of v1.0rc1 (7.7 % with 2.1 and 6.2) and
eight of maskrcnn-benchmark's (12 % with the factors of mmdetection's alone, 45 % without any).
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from epochcast.describe.graph.op_kinds import Conv, Elementwise
from epochcast.describe.graph.trace import Trace
from epochcast.hardware.device import Device
from epochcast.predict.cost.cost_model import Costs
from epochcast.predict.cost.software_setting import SoftwareSetting

DENSE_FACTOR, GROUPED_FACTOR = 2.1, 6.0
# PyTorch 1.2 on the scale of `SoftwareSetting.framework_age`: the first that is built with cuDNN 7.6.
TUNED_AGE = 2 / 22
_FULL_BYTES = 4.0


def at_untuned_rate(costs: Costs, trace: Trace, device: Device, setting: SoftwareSetting) -> Costs:
    """The costs of the ops of a detector's step, its convolutions as old heuristics run them."""
    is_old = setting.framework == "pytorch" and setting.framework_age < TUNED_AGE
    if not is_old or device.vendor != "NVIDIA" or not _is_detector(trace):
        return costs
    factor = np.where(trace.columns.element_bytes == _FULL_BYTES, _factors(trace), 1.0)
    return replace(costs, low=costs.low * factor, mid=costs.mid * factor, high=costs.high * factor)


def _is_detector(trace: Trace) -> bool:
    """Whether boxes are matched with the objects of images."""
    return any(isinstance(op.kind, Elementwise) and op.kind.function == "iou" for op in trace.template.base)


def _factors(trace: Trace) -> NDArray[np.float64]:
    """Of every entry of the columns."""
    by_op = [
        1.0 if not isinstance(op.kind, Conv) else GROUPED_FACTOR if op.kind.groups > 1 else DENSE_FACTOR
        for op in trace.template.base
    ]
    return np.array(by_op)[trace.places]
