from math import prod

import pytest

from epochcast.describe.capture.zoo import ZOO, zoo_model
from epochcast.describe.capture.zoo.detectors import DETECTORS
from epochcast.describe.graph.op import Graph, Phase
from epochcast.describe.graph.op_kinds import Conv, Norm, Opaque
from epochcast.describe.graph.recipe import Recipe
from epochcast.errors import BadInput, UnknownName

# num_params of torchvision's published weights.
PUBLISHED = {
    "fasterrcnn_resnet50_fpn": 41_755_286,
    "maskrcnn_resnet50_fpn": 44_401_393,
    "keypointrcnn_resnet50_fpn": 59_137_258,
    "retinanet_resnet50_fpn": 34_014_999,
    "fcos_resnet50_fpn": 32_269_600,
    "ssd300_vgg16": 35_641_826,
}
# Darknet's own count of YOLOv3 for COCO, scale and shift of its norms included.
YOLO = 61_949_149
SMALL = (3, 256, 320)


def graph(name: str, batch: int = 2, input_shape: tuple[int, ...] | None = SMALL) -> Graph:
    return zoo_model(name, input_shape if "ssd" not in name else None).graph(batch)


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_are_those_of_the_published_weights(name: str) -> None:
    assert graph(name).parameter_count == PUBLISHED[name]


@pytest.mark.parametrize("name", PUBLISHED)
def test_dense_flops_are_those_torch_counts_in_torchvisions_module(name: str) -> None:
    """Backbone, pyramid and the heads that see every position; what sees sampled boxes is not in it."""
    torch = pytest.importorskip("torch")
    from torch.utils.flop_counter import FlopCounterMode

    from epochcast.describe.capture.torch.torchvision_shim import import_torchvision

    ours = graph(name)
    with torch.device("meta"):
        module = getattr(import_torchvision().models.detection, name)(weights=None, weights_backbone=None)
        images = torch.empty(ours.inputs[0].shape)
    with FlopCounterMode(display=False) as counter:
        levels = list(module.backbone(images).values())
        (module.rpn.head if hasattr(module, "rpn") else module.head)(levels)
    dense = [op for op in ours.ops if op.op_class.is_matrix and not op.layer.startswith("roi_heads")]
    assert sum(op.work.flops for op in dense) == pytest.approx(counter.get_total_flops(), rel=0.01)


def test_every_detector_is_in_the_zoo_and_trains_at_any_batch() -> None:
    assert set(DETECTORS) <= set(ZOO)
    small, large = (zoo_model("maskrcnn_resnet50_fpn", SMALL).trace(Recipe(n)) for n in (2, 6))
    assert large.flops["matrix"] == pytest.approx(3 * small.flops["matrix"])


def test_anchors_by_hand() -> None:
    """At 800x1344 the levels have 200x336, 100x168, 50x84, 25x42 and 13x21 positions, three anchors each; RetinaNet
    nine from the second on, and 7x11 positions more.
    """
    positions = [200 * 336, 100 * 168, 50 * 84, 25 * 42, 13 * 21, 7 * 11]
    scores = {op.name: op.output.shape for op in graph("fasterrcnn_resnet50_fpn", input_shape=None).ops}
    assert scores["rpn.scores/out"] == (2, 3 * sum(positions[:5]), 1)
    dense = {op.name: op.output.shape for op in graph("retinanet_resnet50_fpn", input_shape=None).ops}
    assert dense["head.classification_head.cls_logits.join/out"] == (2, 9 * sum(positions[1:]), 91)


def test_as_many_boxes_are_seen_as_are_sampled() -> None:
    made = {op.name: op.output.shape for op in graph("maskrcnn_resnet50_fpn", batch=3).ops}
    assert made["roi_heads.box_roi_pool.join/out"] == (3 * 512, 256, 7, 7)
    assert made["roi_heads.mask_roi_pool.join/out"] == (3 * 128, 256, 14, 14)
    assert made["roi_heads.mask_predictor.mask_fcn_logits/out"] == (3 * 128, 91, 28, 28)


def test_what_is_frozen_has_no_backward_pass() -> None:
    """The stem and the first stage: no gradient of weights, and nothing before them wants one of data."""
    trace = zoo_model("fasterrcnn_resnet50_fpn", SMALL).trace(Recipe(2))
    layers = {op.layer for op in trace.ops if op.phase is Phase.BACKWARD}
    assert not [layer for layer in layers if layer.startswith(("backbone.body.conv1", "backbone.body.layer1"))]
    assert "backbone.body.layer2.0.conv1" in layers
    frozen = [p for p in trace.parameters if not p.trainable]
    # 7x7 of 3 to 64, then bottlenecks: 64→64→64→256 with a projection of 64→256, and two of 256→64→64→256.
    block = 64 * 64 * 9 + 64 * 256
    assert sum(p.elements for p in frozen) == 7 * 7 * 3 * 64 + 3 * block + 64 * 64 + 64 * 256 + 2 * 256 * 64


def test_proposals_get_no_gradient() -> None:
    trace = zoo_model("fasterrcnn_resnet50_fpn", SMALL).trace(Recipe(2))
    assert trace.opaque == ("nms",)
    assert not [op for op in trace.ops if isinstance(op.kind, Opaque) and op.phase is Phase.BACKWARD]


def test_constant_norms_keep_nothing_for_the_backward_pass() -> None:
    ops = graph("fasterrcnn_resnet50_fpn").ops
    assert not [op for op in ops if isinstance(op.kind, Norm)]
    assert sum(op.layer.endswith("bn1.mul") for op in ops) == 1 + 16


def test_images_are_padded_to_the_coarsest_stride() -> None:
    assert graph("retinanet_resnet50_fpn", input_shape=(3, 250, 300)).inputs[0].shape == (2, 3, 256, 320)


def test_a_c4_detector_runs_the_fifth_stage_over_every_box() -> None:
    ops = graph("fasterrcnn_resnet50_c4").ops
    inside = [op for op in ops if op.layer.startswith("roi_heads.res5") and isinstance(op.kind, Conv)]
    assert {op.output.shape[0] for op in inside} == {2 * 512}
    assert inside[-1].output.shape[1:] == (2048, 7, 7)


def test_a_dilated_stage_keeps_its_size() -> None:
    ops = {op.layer: op.output.shape for op in graph("fasterrcnn_resnet50_dc5").ops}
    assert ops["backbone.body.layer4.2.conv3"][2:] == ops["backbone.body.layer3.5.conv3"][2:]


def test_a_cascade_has_its_heads_three_times() -> None:
    names = {p.name for p in graph("cascademaskrcnn_resnet50_fpn").parameters}
    assert {f"roi_heads.{n}.mask_head.0.0.weight" for n in range(3)} <= names


def test_the_losses_are_the_outputs() -> None:
    losses = graph("maskrcnn_resnet50_fpn").outputs
    assert [prod(t.shape) for t in losses] == [1] * 5


def test_yolo_has_its_published_parameters_and_predicts_at_three_scales() -> None:
    made = graph("yolov3", input_shape=(3, 416, 416))
    assert made.parameter_count == YOLO
    shapes = {op.name: op.output.shape for op in made.ops}
    assert shapes["boxes/out"] == (2, 3 * (13**2 + 26**2 + 52**2), 85)


def test_ssd_on_a_residual_network_has_as_many_boxes_as_on_vgg() -> None:
    """Maps of 38, 19, 10, 5, 3 and 1 pixels: 8,732 boxes (Liu et al. 2016)."""
    for name in ("ssd300_vgg16", "ssd300_resnet34", "ssd300_resnet50"):
        made = {op.layer: op.output.shape for op in graph(name).ops}
        assert made["scores"][1] == 8732


def test_ssd_says_which_sizes_there_are() -> None:
    with pytest.raises(BadInput, match="takes images of 300 or 512 pixels, got 320"):
        zoo_model("ssd300_vgg16", (3, 320, 320)).graph(1)


def test_a_detector_cannot_be_timed_on_made_up_images() -> None:
    pytest.importorskip("torch")
    from epochcast.measure.bench.bench_networks import find_network

    with pytest.raises(UnknownName, match="no network to train called 'fasterrcnn_resnet50_fpn'"):
        find_network("fasterrcnn_resnet50_fpn")
