import pytest

from epochcast.describe.capture.model_reference import DETECTORS
from epochcast.describe.capture.resolve import find_model
from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.capture.zoo.detector_configs import FRAMEWORKS, configured_detector, detector_entry
from epochcast.describe.graph.op_kinds import Elementwise, Norm
from epochcast.describe.graph.recipe import Recipe
from epochcast.errors import BadInput
from epochcast.predict.memory.peak import peak_memory

SMALL = (3, 256, 320)


@pytest.mark.parametrize(
    ("framework", "name"),
    [
        ("mmdetection", "faster-rcnn_r50-caffe_fpn_ms-3x_coco"),
        ("mmdetection", "cascade-mask-rcnn_x101-32x4d_fpn_20e_coco"),
        ("mmdetection", "fcos_r101-caffe_fpn_gn-head_ms-640-800-2x_coco"),
        ("mmdetection_v1", "fast_mask_rcnn_r50_fpn_1x"),
        ("detectron2", "mask_rcnn_X_101_32x8d_FPN_3x"),
        ("detectron2", "faster_rcnn_R_50_DC5_1x"),
        ("maskrcnn_benchmark", "e2e_mask_rcnn_R_50_C4_1x"),
    ],
)
def test_names_of_configurations_are_read(framework: str, name: str) -> None:
    model = find_model(f"{framework}:{name}", SMALL)
    assert model.name == f"{framework}:{name}"
    assert model.graph(1).parameter_count > 30e6


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "faster-rcnn_r50-dconv-c3-c5_fpn_1x_coco",
            "no builder for 'faster-rcnn_r50-dconv-c3-c5_fpn_1x_coco'; there are",
        ),
        ("mask-rcnn_r50_fpn_gn-ws-all_2x_coco", "no builder for 'gn ws all' in 'mask-rcnn_r50_fpn_gn-ws-all_2x_coco'"),
        ("mask-rcnn_x101_fpn_1x", "no builder for 'mask-rcnn_x101_fpn_1x'"),
        ("detr_r50_8xb2-150e_coco", "such as faster_rcnn_r50_fpn_1x"),
    ],
)
def test_another_network_is_refused_by_its_words(name: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        detector_entry("mmdetection", name)


def test_the_resolver_knows_every_framework() -> None:
    assert DETECTORS == FRAMEWORKS


def test_mmdetection_trains_its_norms_and_detectron2_has_none() -> None:
    ours = configured_detector("mmdetection", "faster_rcnn_r50_fpn_1x", SMALL).graph(1)
    theirs = configured_detector("detectron2", "faster_rcnn_R_50_FPN_1x", SMALL).graph(1)
    assert sum(isinstance(op.kind, Norm) for op in ours.ops) == 53
    assert not any(isinstance(op.kind, Norm) for op in theirs.ops)
    # Every norm has a scale and a shift per channel; those of the stem and the first stage stay as they are.
    norms = [p for p in ours.parameters if ".bn" in p.name or ".downsample.1" in p.name]
    assert sum(p.elements for p in norms) == 2 * 26_560
    assert {p.trainable for p in norms if ".layer1." in p.name} == {False}
    assert {p.trainable for p in norms if ".layer2." in p.name} == {True}
    caffe = configured_detector("mmdetection", "faster_rcnn_r50_caffe_fpn_1x", SMALL).graph(1)
    assert not any(p.trainable for p in caffe.parameters if ".bn" in p.name)


def test_caffe_strides_on_the_first_convolution_of_a_block() -> None:
    shapes = {
        style: {op.layer: op.output.shape for op in configured_detector("mmdetection", name, SMALL).graph(1).ops}
        for style, name in (("caffe", "rpn_r50_caffe_fpn_1x"), ("pytorch", "rpn_r50_fpn_1x"))
    }
    first = "backbone.body.layer2.0.conv1"
    assert shapes["caffe"][first][2:] == (32, 40)
    assert shapes["pytorch"][first][2:] == (64, 80)


def test_a_relu_that_is_not_in_place_keeps_its_input() -> None:
    """Of detectron2's heads; its residual blocks work in place."""
    ops = configured_detector("detectron2", "mask_rcnn_R_50_FPN_1x", SMALL).graph(1).ops
    apart = {op.layer for op in ops if op.kind == Elementwise("threshold")}
    assert "rpn.head.conv.0.1" in apart and "roi_heads.mask_head.0.1" in apart
    assert not any(layer.startswith("backbone.body") for layer in apart)
    trace = configured_detector("detectron2", "rpn_R_50_FPN_1x", SMALL).trace(Recipe(2))
    kept = {t.name for op in trace.ops if op.is_gradient for t in op.inputs}
    assert "rpn.head.conv.0.0/out" in kept


def test_constant_norms_follow_the_precision_of_the_data_where_a_framework_casts_them() -> None:
    """torchvision's stay in float32 and so widen what they scale; detectron2's do not."""
    recipe = Recipe(2, precision="amp")
    wide = zoo_model("fasterrcnn_resnet50_fpn", SMALL).trace(recipe)
    narrow = configured_detector("detectron2", "faster_rcnn_R_50_FPN_1x", SMALL).trace(recipe)
    scaled = [next(op for op in t.ops if op.layer == "backbone.body.layer2.0.bn1.mul") for t in (wide, narrow)]
    assert [op.output.dtype.value for op in scaled] == ["float32", "float16"]


def test_cropping_masks_on_the_device_takes_a_mask_per_positive_box() -> None:
    """128 of 800x1344, one byte and four: 0.69 GB for a moment, where the host's take none."""
    shape, recipe = (3, 800, 1333), Recipe(2, optimizer="momentum", update_style="loop")
    device, host = (
        configured_detector("mmdetection", f"mask-rcnn_r50_fpn{words}-3x_coco", shape).trace(recipe)
        for words in ("_ms", "_ms-poly")
    )
    made = {op.name: op.output.bytes for op in device.ops}
    assert made["roi_heads.mask_predictor.masks_as_numbers/out"] == 128 * 800 * 1344 * 4
    assert 0.2e9 < peak_memory(device).allocated_bytes - peak_memory(host).allocated_bytes < 0.7e9
