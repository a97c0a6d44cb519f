"""Arguments of ultralytics' YOLO: `args.yaml` of a run, a file for `cfg=`, or `yolo detect train model=… data=…`.

Defaults are those of `ultralytics/cfg/default.yaml`. `batch` counts all GPUs; gradients are accumulated up to the
nominal batch `nbs` of 64; a moving average of the weights is always kept (`engine/trainer.py`). The optimizer `auto`
is SGD with momentum where there are more than 10,000 iterations, else AdamW.
"""

from pathlib import PurePosixPath
from typing import Any

from epochcast.describe.capture.config.key_table import (
    MODEL,
    Trainer,
    is_set,
    not_modelled,
    passed_over,
    positive,
    says,
    set_optimizer,
    stated,
    when,
)
from epochcast.describe.capture.config.setting import Reader
from epochcast.describe.capture.config.trainers.shared_rows import NOT_TIMED, set_dataset
from epochcast.describe.capture.model_reference import is_yolo_name
from epochcast.describe.capture.zoo import ZOO

BATCH, IMAGE, NOMINAL, WORKERS, EPOCHS = 16, 640, 64, 8, 100
"""Defaults of batch, imgsz, nbs, workers and epochs."""

_NO_MODEL = "no network called {0!r} here; give MODEL: file.py:factory that returns YOLO('{0}.yaml').model"


def _finish(reader: Reader) -> None:
    written = str(reader.take("model") or "")
    name = PurePosixPath(written.replace("\\", "/")).name
    if name:
        network = name.rpartition(".")[0] if name.endswith((".pt", ".yaml", ".yml")) else name
        is_known = network in ZOO or is_yolo_name(network)
        reader.set(MODEL, network, "model", problem="" if is_known else _NO_MODEL.format(network))
    mode = reader.text("mode")
    if mode not in ("", "train"):
        reader.leave("mode", f"{mode}: a training is forecast")
    _read_devices(reader)
    _read_batch(reader)
    size = _side(reader.take("imgsz"))
    reader.set("input_shape", (3, size or IMAGE, size or IMAGE), "imgsz", is_default=size is None)
    is_mixed = is_set(reader, "amp") or "amp" not in reader.document
    reader.set("precision", "amp_fp16" if is_mixed else "fp32", "amp", is_default="amp" not in reader.document)
    _read_optimizer(reader)
    reader.set("ema", True, "default", is_default=True)
    data = str(reader.take("data") or "")
    if data:
        set_dataset(reader, PurePosixPath(data).name.rpartition(".")[0] or data, "data")
    if is_set(reader, "compile"):
        reader.set("compile", "inductor", "compile")


def _read_batch(reader: Reader) -> None:
    """A batch below 1 or of -1 is chosen by ultralytics from the memory of the GPU."""
    batch = reader.take("batch")
    if isinstance(batch, int | float) and not isinstance(batch, bool) and (batch < 1 or not float(batch).is_integer()):
        reader.notes.append(f"batch {batch:g}: chosen by the free memory of the GPU; 16 is taken, give `batch`")
        batch = None
    count = int(batch) if isinstance(batch, int | float) else BATCH
    gpus = stated(reader, "gpus") or 1
    reader.set("batch", max(count // gpus, 1), "batch", is_default=batch is None)
    nominal = reader.integer("nbs") or NOMINAL
    if round(nominal / count) > 1:
        reader.set("accumulate", round(nominal / count), "nbs", is_default=True)


def _read_devices(reader: Reader) -> None:
    value = reader.take("device")
    parts = value if isinstance(value, list) else str(value).split(",") if value is not None else []
    count = len([part for part in parts if str(part).strip().lstrip("-").isdecimal()])
    if count > 1:
        reader.set("gpus", count, "device")
    elif parts and not count:
        reader.leave("device", f"{value}: name a device")


def _read_optimizer(reader: Reader) -> None:
    name = reader.text("optimizer")
    if name in ("", "auto"):
        reader.set("optimizer", "nesterov", "default", is_default=True)
        reader.notes.append(
            "optimizer auto: SGD with Nesterov momentum, as for more than 10,000 iterations; below it is AdamW"
        )
    elif name == "sgd":
        reader.set("optimizer", "nesterov", "optimizer")
    else:
        set_optimizer(reader, name, "optimizer")


def _side(value: Any) -> int | None:
    side = max(value) if isinstance(value, list) and value else value
    return side if isinstance(side, int) and not isinstance(side, bool) and side > 0 else None


ULTRALYTICS = Trainer(
    "ultralytics",
    marks=(
        frozenset({"model", "imgsz"}),
        frozenset({"task", "mode", "model"}),
        frozenset({"imgsz", "epochs"}),
        frozenset({"close_mosaic", "epochs"}),
    ),
    keys={
        "epochs": says("epochs", positive),
        "workers": says("workers"),
        "task": passed_over,
        "time": not_modelled("hours of training replace epochs"),
        "cache": not_modelled("images in memory load faster: give `loader_seconds`"),
        "fraction": lambda reader, key: reader.leave(key, "give `samples`") if reader.document[key] != 1 else None,
        "freeze": not_modelled("give `freeze`"),
        "multi_scale": not_modelled("give `uneven`"),
        "rect": not_modelled(),
        "channels_last": when("channels_last", True),
        "distill_model": not_modelled("the pass of the teacher"),
        "val": not_modelled(NOT_TIMED),
        "patience": passed_over,
        "deterministic": passed_over,
    },
    harmless=(
        *(
            "save*",
            "project",
            "name",
            "exist_ok",
            "pretrained",
            "verbose",
            "seed",
            "single_cls",
            "cos_lr",
            "close_mosaic",
        ),
        *(
            "resume",
            "profile",
            "overlap_mask",
            "mask_ratio",
            "dropout",
            "split",
            "conf",
            "iou",
            "max_det",
            "half",
            "dnn",
        ),
        *(
            "plots",
            "source",
            "vid_stride",
            "stream_buffer",
            "visualize",
            "augment",
            "agnostic_nms",
            "classes",
            "retina*",
        ),
        *("embed", "show*", "line_width", "format", "keras", "optimize", "int8", "dynamic", "simplify", "opset", "nms"),
        *(
            "workspace",
            "lr0",
            "lrf",
            "momentum",
            "weight_decay",
            "warmup_*",
            "box",
            "cls*",
            "dfl",
            "pose",
            "kobj",
            "hsv_*",
        ),
        *(
            "degrees",
            "translate",
            "scale",
            "shear",
            "perspective",
            "flipud",
            "fliplr",
            "bgr",
            "mosaic",
            "mixup",
            "cutmix",
        ),
        *(
            "copy_paste*",
            "auto_augment",
            "erasing",
            "crop_fraction",
            "cfg",
            "tracker",
            "end2end",
            "rle",
            "angle",
            "nbs",
            *("quantize", "dis", "dlog", "dgrad", "dlam"),
        ),
    ),
    defaults={"epochs": EPOCHS, "workers": WORKERS},
    finish=_finish,
    programs=("yolo",),
)
