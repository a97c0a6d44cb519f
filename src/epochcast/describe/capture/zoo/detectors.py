"""The object detectors of the zoo, by name: torchvision's where it has them, in its manner where it has not.

They are as trained: stem and first stage frozen, boxes and anchors sampled, losses included. `detector_configs` knows
the same networks as other frameworks configure them.
"""

from collections.abc import Mapping
from dataclasses import replace

from epochcast.describe.capture.zoo.entry import ZooEntry
from epochcast.describe.capture.zoo.pyramid import Backbone
from epochcast.describe.capture.zoo.rcnn import Heads

BACKBONES: Mapping[str, Backbone] = {
    "resnet50": Backbone(),
    "resnet101": Backbone((3, 4, 23, 3)),
    "resnext50_32x4d": Backbone(groups=32, width_per_group=4),
    "resnext101_32x4d": Backbone((3, 4, 23, 3), 32, 4),
    "resnext101_64x4d": Backbone((3, 4, 23, 3), 64, 4),
    "resnext101_32x8d": Backbone((3, 4, 23, 3), 32, 8),
}
"""Residual networks under detectors."""

_LARGE = ("resnet50", "resnet101", "resnext101_32x4d", "resnext101_64x4d", "resnext101_32x8d")
_SHOWN = {
    "resnet50": "ResNet-50",
    "resnet101": "ResNet-101",
    "resnext101_32x4d": "ResNeXt-101 32x4d",
    "resnext101_64x4d": "ResNeXt-101 64x4d",
    "resnext101_32x8d": "ResNeXt-101 32x8d",
}


def _rcnn(title: str, backbone: str, heads: Heads, **more: object) -> ZooEntry:
    options = {"backbone": BACKBONES[backbone], "heads": heads, **more}
    return ZooEntry("rcnn", "rcnn", f"{title} on {_SHOWN[backbone]}", options)


def _dense(function: str, title: str, backbone: str, **more: object) -> ZooEntry:
    options = {"backbone": BACKBONES[backbone], **more}
    return ZooEntry("dense_detection", function, f"{title} on {_SHOWN[backbone]}", options)


def _ssd(size: int) -> ZooEntry:
    return ZooEntry("ssd", "ssd", f"SSD{size} on VGG-16, Liu et al. 2016", {"input_shape": (3, size, size)})


def _ssd_resnet(title: str, blocks: tuple[int, ...], bottleneck: bool) -> ZooEntry:
    options = {"blocks": blocks, "bottleneck": bottleneck}
    return ZooEntry("ssd", "ssd_resnet", f"SSD300 on {title}", options)


_FASTER, _MASK = "Faster R-CNN, Ren et al. 2015,", "Mask R-CNN, He et al. 2017,"
_CASCADE = "Cascade R-CNN, Cai & Vasconcelos 2018,"

DETECTORS: Mapping[str, ZooEntry] = {
    **{f"fasterrcnn_{name}_fpn": _rcnn(_FASTER, name, Heads()) for name in _LARGE},
    "fasterrcnn_resnet50_c4": _rcnn(_FASTER, "resnet50", Heads(), neck="c4"),
    "fasterrcnn_resnet50_dc5": _rcnn(_FASTER, "resnet50", Heads(), neck="dc5"),
    **{f"maskrcnn_{name}_fpn": _rcnn(_MASK, name, Heads(masks="one")) for name in _LARGE},
    "keypointrcnn_resnet50_fpn": _rcnn("Keypoint R-CNN, He et al. 2017,", "resnet50", Heads(keypoints=True, classes=2)),
    "cascadercnn_resnet50_fpn": _rcnn(_CASCADE, "resnet50", Heads(cascade=3, boxes_per_class=False)),
    "cascademaskrcnn_resnet50_fpn": _rcnn(
        "Cascade Mask R-CNN, Cai & Vasconcelos 2018,",
        "resnet50",
        Heads(cascade=3, masks="every", boxes_per_class=False),
    ),
    **{
        f"retinanet_{name}_fpn": _dense("retinanet", "RetinaNet, Lin et al. 2017,", name)
        for name in ("resnet50", "resnet101", "resnext101_32x4d", "resnext101_64x4d")
    },
    # As submissions run it: apex has kernels for frozen norms in half and for the loss.
    "retinanet_resnext50_32x4d_fpn": ZooEntry(
        "dense_detection",
        "retinanet",
        "RetinaNet of MLPerf, for OpenImages, on ResNeXt-50 32x4d",
        {
            "backbone": replace(BACKBONES["resnext50_32x4d"], norm="cast"),
            "classes": 264,
            "fuses_loss": True,
            "input_shape": (3, 800, 800),
        },
    ),
    "fcos_resnet50_fpn": _dense("fcos", "FCOS, Tian et al. 2019,", "resnet50"),
    "ssd300_vgg16": _ssd(300),
    "ssd512_vgg16": _ssd(512),
    "ssd300_resnet34": _ssd_resnet("ResNet-34, as in MLPerf", (3, 4, 6), False),
    "ssd300_resnet50": _ssd_resnet("ResNet-50", (3, 4, 6), True),
    "yolov3": ZooEntry("yolo", "yolov3", "YOLOv3 on Darknet-53, Redmon & Farhadi 2018"),
    "yolov3_voc": ZooEntry("yolo", "yolov3", "YOLOv3 for PASCAL VOC", {"classes": 20}),
}
