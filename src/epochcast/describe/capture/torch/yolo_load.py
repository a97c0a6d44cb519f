"""`ultralytics:yolo11n`: networks of the YOLO family, built by the user's own ultralytics from its YAML files.

ultralytics is no dependency and none of it is copied: it is imported where the user has installed it, and builds on
`meta` without weights. Boxes are assigned to predictions by their values, so the loss is the mean of the predictions;
what it costs beside the network is small and said.
"""

import os
import re
from collections.abc import Mapping
from typing import Any

import torch

from epochcast.describe.capture.model import Model
from epochcast.describe.capture.torch.example_arguments import image, tensors_in
from epochcast.describe.capture.torch.meta_modules import constructed, on_meta
from epochcast.describe.capture.torch.torch_model import TorchModel
from epochcast.describe.capture.torch.torchvision_shim import import_torchvision
from epochcast.errors import BadInput

SIDE = 640
_TASKS = {"seg": "SegmentationModel", "pose": "PoseModel", "obb": "OBBModel", "cls": "ClassificationModel"}
_NAME = re.compile(r"(?P<family>[\w.]+?)(?:-(?P<task>seg|pose|obb|cls))?(?:\.pt|\.yaml)?")
_NOTE = "The loss of YOLO assigns boxes by their values and is not captured: the mean of the predictions stands for it."


def load_yolo(name: str, input_shape: tuple[int, ...] | None, options: Mapping[str, Any]) -> Model:
    """The network of a name like yolo11n, yolov8s-seg or yolo11n.pt."""
    for setting, value in (("YOLO_OFFLINE", "true"), ("YOLO_AUTOINSTALL", "false")):
        os.environ.setdefault(setting, value)  # it asks for the network and installs packages on its own
    try:
        import_torchvision()
        from ultralytics.nn import tasks
    except ModuleNotFoundError as absent:
        package = (absent.name or "").partition(".")[0]
        raise BadInput(
            f"{name} is built by your own ultralytics, which is not installed here ({package} is missing): "
            "pip install ultralytics (AGPL-3.0)"
        ) from None
    match = _NAME.fullmatch(name)
    if match is None:
        raise BadInput(f"{name!r} is no model of ultralytics; write it like yolo11n, yolov8s-seg or rtdetr-l")
    kind = "RTDETRDetectionModel" if name.startswith("rtdetr") else _TASKS.get(match["task"] or "", "DetectionModel")
    yaml = f"{name.removesuffix('.pt').removesuffix('.yaml')}.yaml"
    module = constructed(lambda: getattr(tasks, kind)(yaml, ch=3, verbose=False), f"ultralytics:{name}")
    shape = input_shape or (3, 224 if match["task"] == "cls" else SIDE, 224 if match["task"] == "cls" else SIDE)
    return TorchModel(f"ultralytics:{name}", on_meta(module), image(shape), loss=_mean, notes=(_NOTE,), **options)


def _mean(result: Any) -> torch.Tensor:
    return torch.stack([t.float().mean() for _, t in tensors_in(result) if t.requires_grad]).sum()
