"""The model of a measured device as a readable text file, and the folder of the user's files.

JSON with a line per measured op: its coordinates (`features`, in their order), its direction, the logarithm of measured
over line, and its noise. `epochcast fit` writes it. Unknown keys are refused; files are written atomically.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from epochcast.base.atomic_files import write_text
from epochcast.base.documents import parse_json, read_text
from epochcast.base.name_matching import plain
from epochcast.describe.graph.op import Gradient
from epochcast.errors import BadInput, UnknownName
from epochcast.hardware.device import Device
from epochcast.hardware.link import Link
from epochcast.hardware.profile import profiles_folder, unless_unreadable
from epochcast.predict.cost.gaussian import CostKernel
from epochcast.predict.cost.local_model import FEATURES, CostLine, Local, MeasuredClass, StepCorrection

FORMAT = "epochcast local profile 1"
_DIRECTIONS = [gradient.value for gradient in Gradient]
_KEYS = ("format", "device", "source", "date", "machine", "link", "kernel", "frameworks", "features", "groups")
_KERNEL_KEYS = ("lengths", "signal", "common", "offset", "correlation", "noise")
_FRAMEWORK_KEYS = ("host_seconds", "fresh_seconds_per_byte", "class_factor", "deviation")
_GROUP_KEYS = ("op_class", "element_bytes", "launch_seconds", "seconds_per_flop", "seconds_per_byte", "ops")
_LINK_KEYS = ("latency_seconds", "bandwidth_bytes_per_second", "name", "source")


def local_path(device: Device) -> Path:
    """The path of the fitted model of a device; the file may not exist."""
    return profiles_folder() / f"{plain(device.name)}.json"


def own_model(device: Device) -> Local | None:
    """The model that `epochcast fit` saved for this device on this host, if there is one that can be read."""
    path = local_path(device)
    return unless_unreadable(path, lambda: _own_model_in(path, device))


def _own_model_in(path: Path, device: Device) -> Local:
    model = load_local(path)
    if model.device != device.name:
        raise BadInput(f"{path}: is a profile of {model.device}, not of {device.name}")
    return model


def save_local(model: Local, path: Path) -> None:
    """Write a model atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, to_text(model))


def load_local(path: Path) -> Local:
    """The model in a file."""
    return from_text(read_text(path), path.name)


# ---- writing ------------------------------------------------------------------------------------


def to_text(model: Local) -> str:
    """As `from_text` reads it."""
    kernel, link = model.kernel, model.link
    head = {
        "format": FORMAT,
        "device": model.device,
        "source": model.source,
        "date": model.date,
        "machine": dict(model.machine),
        "link": None if link is None else {key: getattr(link, key) for key in _LINK_KEYS},
        "kernel": {"lengths": kernel.lengths.tolist()} | {key: getattr(kernel, key) for key in _KERNEL_KEYS[1:]},
        "frameworks": {
            name: {key: getattr(correction, key) for key in _FRAMEWORK_KEYS}
            for name, correction in model.corrections.items()
        },
        "features": list(FEATURES),
    }
    lines = [f" {json.dumps(key)}: {json.dumps(value, allow_nan=False)}," for key, value in head.items()]
    groups = ",\n".join(_group_text(name, size, group) for (name, size), group in model.groups.items())
    return "\n".join(["{", *lines, ' "groups": [', groups, " ]", "}", ""])


def _group_text(name: str, element_bytes: int, group: MeasuredClass) -> str:
    head = {
        "op_class": name,
        "element_bytes": element_bytes,
        **{key: getattr(group.line, key) for key in _GROUP_KEYS[2:5]},
    }
    ops = zip(group.points, group.kinds, group.log_ratios, group.noises, strict=True)
    rows = [
        json.dumps([*np.round(point, 4).tolist(), _DIRECTIONS[kind], round(float(ratio), 4), round(float(noise), 4)])
        for point, kind, ratio, noise in ops
    ]
    body = ",\n    ".join(rows)
    return "  " + json.dumps(head, allow_nan=False)[:-1] + ', "ops": [' + (f"\n    {body}\n  " if rows else "") + "]}"


# ---- reading ------------------------------------------------------------------------------------


def from_text(text: str, file: str) -> Local:
    """The model in a text; errors name the file."""
    try:
        parsed = parse_json(text, file)
    except BadInput as problem:
        raise BadInput(f"{file} is not a profile of `epochcast fit`: {problem}") from None
    try:
        document = _only(parsed, _KEYS, "")
        if document["format"] != FORMAT:
            raise BadInput(f"format must be {FORMAT!r}, got {document['format']!r}")
        if tuple(document["features"]) != FEATURES:
            raise BadInput(f"features must be {', '.join(FEATURES)}")
        kernel = _only(document["kernel"], _KERNEL_KEYS, "kernel")
        link = document["link"]
        groups = [_group(entry) for entry in document["groups"]]
        return Local(
            device=document["device"],
            kernel=CostKernel(**{**kernel, "lengths": np.array(kernel["lengths"], dtype=np.float64)}),
            groups=dict(groups),
            corrections={
                name: StepCorrection(**_only(entry, _FRAMEWORK_KEYS, name))
                for name, entry in document["frameworks"].items()
            },
            source=document["source"],
            date=document["date"],
            machine=document["machine"],
            link=None if link is None else Link(**_only(link, _LINK_KEYS, "link")),
        )
    except (UnknownName, BadInput) as problem:
        raise BadInput(f"{file}: {problem}") from None
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as problem:
        raise BadInput(f"{file} is not a profile of `epochcast fit`: {problem}") from None


def _only(entry: Any, keys: tuple[str, ...], place: str) -> Mapping[str, Any]:
    """A table with these keys, all of them and no others."""
    where = f"{place}: " if place else ""
    if not isinstance(entry, dict):
        raise BadInput(f"{where}must be a table, got {entry!r}")
    for key in entry:
        if key not in keys:
            raise BadInput(f"{where}{UnknownName('key', key, keys)}")
    for key in keys:
        if key not in entry:
            raise BadInput(f"{where}{key} is missing")
    return entry


def _group(entry: Any) -> tuple[tuple[str, int], MeasuredClass]:
    cells = _only(entry, _GROUP_KEYS, "groups")
    size = len(FEATURES)
    ops = cells["ops"]
    for op in ops:
        if len(op) != size + 3 or op[size] not in _DIRECTIONS:
            raise BadInput(f"an op of {cells['op_class']} must be {size} sizes, a direction, a ratio and a noise: {op}")
    points = np.array([op[:size] for op in ops], dtype=np.float64).reshape(len(ops), size)
    kinds = np.array([_DIRECTIONS.index(op[size]) for op in ops], dtype=np.int64)
    ratios, noises = (np.array([op[size + i] for op in ops], dtype=np.float64) for i in (1, 2))
    line = CostLine(*(float(cells[key]) for key in _GROUP_KEYS[2:5]))
    return (str(cells["op_class"]), int(cells["element_bytes"])), MeasuredClass(line, points, kinds, ratios, noises)
