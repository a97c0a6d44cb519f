"""Detectors by the names of other frameworks' configurations: `mmdetection:mask-rcnn_r50_fpn_1x_coco`,
`detectron2:faster_rcnn_R_50_FPN_3x`, `maskrcnn_benchmark:e2e_mask_rcnn_R_50_C4_1x`.

A name is a method, a backbone, where features come from, and words about schedule and data, which change no step. Any
other word (deformable convolution, another normalisation …) makes another network and is refused. What the frameworks
do differently, all of it on COCO with 80 classes:

| | mmdetection | detectron2, maskrcnn_benchmark |
|---|---|---|
| norms of the backbone | trained; caffe: frozen | constant, in the precision of the data |
| stride of a bottleneck | on 3x3; caffe: on 1x1 | on 1x1; ResNeXt: on 3x3 |
| masks of a cascade | of every stage | of the last |
| targets of masks | cropped on the device, unless polygons; version 1: on the host | on the host |
| focal loss | one kernel | written out |
| relu of the heads | in place | apart: PyTorch before 1.10 then keeps its input |
"""

import re
from dataclasses import replace
from functools import partial

from epochcast.describe.capture.model import BuiltModel
from epochcast.describe.capture.zoo.detectors import BACKBONES
from epochcast.describe.capture.zoo.entry import ZooEntry
from epochcast.describe.capture.zoo.pyramid import Backbone
from epochcast.describe.capture.zoo.rcnn import Heads
from epochcast.errors import NoBuilder, UnknownName

_MMDETECTION = ("mmdetection", "mmdetection_v1")
FRAMEWORKS = (*_MMDETECTION, "detectron2", "maskrcnn_benchmark")
CLASSES = 80
# Draw the masks of boxes one by one in Python, where detectron2 calls a library for each.
_DRAWING = ("maskrcnn_benchmark", "mmdetection_v1")

_NAME = re.compile(
    r"(?:e2e_)?(?P<method>(?:cascade_|cascade_mask_|faster_|fast_|fast_mask_|mask_|keypoint_)rcnn|rpn|retinanet|fcos)"
    r"_(?P<kind>[rx])_?(?P<depth>50|101)(?:_(?P<width>\d+x\d+d))?(?P<caffe>_caffe)?_(?P<neck>fpn|c4|dc5)"
    r"(?P<rest>(?:_[a-z0-9.]+)*)"
)
_SSD = re.compile(r"ssd(?P<size>300|512)(?P<rest>(?:_[a-z0-9.]+)*)")
# Schedules, batches, scales and data: none changes what a step computes of an image of a given size.
_IDLE = re.compile(r"[\d.]+x|\d+e|\d+xb\d+|amp|coco|ms|poly|640|800|instaboost|person|bicycle|car")
_HEADS = {
    "rpn": Heads(boxes=False),
    "faster_rcnn": Heads(),
    "fast_rcnn": Heads(),
    "mask_rcnn": Heads(masks="one"),
    "fast_mask_rcnn": Heads(masks="one"),
    "keypoint_rcnn": Heads(keypoints=True, classes=2),
    "cascade_rcnn": Heads(cascade=3, boxes_per_class=False),
    "cascade_mask_rcnn": Heads(cascade=3, masks="every", boxes_per_class=False),
}
# Trained on proposals that are computed beforehand.
_GIVEN_PROPOSALS = ("fast_rcnn", "fast_mask_rcnn")


def configured_detector(framework: str, name: str, input_shape: tuple[int, ...] | None = None) -> BuiltModel:
    """The detector a framework's configuration of that name trains."""
    if framework not in FRAMEWORKS:
        raise UnknownName("detection framework", framework, FRAMEWORKS)
    entry, label = detector_entry(framework, name), f"{framework}:{name}"
    return BuiltModel(label, partial(entry.build, label, input_shape=input_shape))


def detector_entry(framework: str, name: str) -> ZooEntry:
    """The builder and its options; a name with unknown words is refused; the error lists them."""
    plain = name.strip().casefold().replace("-", "_")
    # Apart, the derivative was read from what came in before PyTorch 1.10, and that is kept.
    relu = "relu" if framework in _MMDETECTION else "threshold"
    ssd = _SSD.fullmatch(plain)
    if ssd:
        _check(framework, name, ssd["rest"])
        size = int(ssd["size"])
        options = {"input_shape": (3, size, size), "classes": CLASSES + 1, "frozen_stages": 0, "relu": relu}
        return ZooEntry("ssd", "ssd", f"SSD{size} of {framework}", options)
    match = _NAME.fullmatch(plain)
    if not match or (match["kind"] == "x") != (match["width"] is not None):
        raise NoBuilder(
            f"{framework}: no builder for {name.strip()!r}; there are Faster, Fast, Mask, Keypoint and Cascade R-CNN, "
            "RPN, RetinaNet, FCOS on ResNet and ResNeXt, and SSD, such as faster_rcnn_r50_fpn_1x"
        )
    method, rest, backbone = match["method"], match["rest"], _backbone(framework, match)
    if method == "fcos" and framework in _MMDETECTION:
        rest = rest.replace("_gn_head", "")
    _check(framework, name, rest)
    if method in ("retinanet", "fcos"):
        options = {"backbone": backbone, "classes": CLASSES, "extra": "c5", "fuses_loss": framework in _MMDETECTION}
        options["relu"] = relu
        return ZooEntry("dense_detection", method, f"{method} of {framework}", options)
    options = {
        "backbone": backbone,
        "heads": _heads(framework, method, is_polygonal="_poly" in rest),
        "neck": match["neck"],
        "proposes": method not in _GIVEN_PROPOSALS,
        "relu": relu,
    }
    return ZooEntry("rcnn", "rcnn", f"{method} of {framework}", options)


def _heads(framework: str, method: str, is_polygonal: bool) -> Heads:
    heads = _HEADS[method]
    return replace(
        heads,
        classes=min(heads.classes, CLASSES + 1),
        masks="one" if heads.masks and framework not in _MMDETECTION else heads.masks,
        crops_masks=framework == "mmdetection" and not is_polygonal,
        draws_masks=framework in _DRAWING,
    )


def _backbone(framework: str, match: "re.Match[str]") -> Backbone:
    plain = f"resnet{match['depth']}" if match["kind"] == "r" else f"resnext{match['depth']}_{match['width']}"
    if plain not in BACKBONES:
        raise UnknownName("backbone", plain, BACKBONES)
    base = BACKBONES[plain]
    if framework in _MMDETECTION:
        is_caffe = match["caffe"] is not None
        return replace(base, norm="frozen" if is_caffe else "trained", strides_first=is_caffe)
    return replace(base, norm="cast", strides_first=match["kind"] == "r")


def _check(framework: str, name: str, rest: str) -> None:
    unknown = [word for word in rest.split("_") if word and not _IDLE.fullmatch(word)]
    if unknown:
        raise NoBuilder(f"{framework}: no builder for {' '.join(unknown)!r} in {name!r}")
