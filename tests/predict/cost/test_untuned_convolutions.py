"""Convolutions of detectors under PyTorch before 1.2."""

import numpy as np
import pytest

from epochcast.describe.capture.resolve import find_model
from epochcast.describe.graph.op_kinds import Conv
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.trace import Trace
from epochcast.hardware.catalogue import find_device
from epochcast.predict.cost.cost_model import Costs
from epochcast.predict.cost.software_setting import SoftwareSetting
from epochcast.predict.cost.untuned_convolutions import DENSE_FACTOR, GROUPED_FACTOR, at_untuned_rate
from epochcast.predict.forecast.framework import framework_age

V100 = find_device("V100")
OLD = SoftwareSetting(framework_age=framework_age((1, 1)))


def step(model: str, precision: str = "fp32") -> Trace:
    return find_model(model).trace(Recipe(1, "momentum", precision))


def costs_of(trace: Trace) -> Costs:
    """Every op in a second, between half and twice as much."""
    mid = np.ones(len(trace.columns))
    return Costs.by("tested", mid / 2, mid, mid * 2)


def test_convolutions_of_a_detector_are_slower_and_grouped_ones_most() -> None:
    trace = step("mmdetection_v1:retinanet_x101-32x4d_fpn_1x")
    slowed = at_untuned_rate(costs_of(trace), trace, V100, OLD)
    kinds = [trace.template.base[place].kind for place in trace.places.tolist()]
    groups = np.array([kind.groups if isinstance(kind, Conv) else 0 for kind in kinds])
    assert slowed.mid[groups == 1] == pytest.approx(DENSE_FACTOR)
    assert slowed.mid[groups == 32] == pytest.approx(GROUPED_FACTOR)
    assert slowed.mid[groups == 0] == pytest.approx(1)
    assert slowed.low == pytest.approx(slowed.mid / 2)
    assert slowed.high == pytest.approx(slowed.mid * 2)


@pytest.mark.parametrize(
    ("model", "device", "setting"),
    [
        ("detectron2:faster_rcnn_R_50_FPN_1x", "V100", SoftwareSetting(framework_age=framework_age((1, 3)))),
        ("detectron2:faster_rcnn_R_50_FPN_1x", "V100", SoftwareSetting(framework="tensorflow")),
        ("detectron2:faster_rcnn_R_50_FPN_1x", "MI100", OLD),
        ("resnet50", "V100", OLD),
    ],
)
def test_newer_versions_other_frameworks_and_tuned_networks_are_left_alone(
    model: str, device: str, setting: SoftwareSetting
) -> None:
    trace = step(model)
    costs = costs_of(trace)
    assert at_untuned_rate(costs, trace, find_device(device), setting) is costs


def test_halves_are_left_alone() -> None:
    trace = step("mmdetection_v1:retinanet_r50_fpn_1x", "fp16")
    slowed = at_untuned_rate(costs_of(trace), trace, V100, OLD)
    assert slowed.mid[trace.columns.element_bytes == 2] == pytest.approx(1)
