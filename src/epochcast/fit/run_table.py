"""Tables of measured runs (the columns of `runs`) as questions a forecaster can answer: which model, which recipe, which device.

A row needs `model`, `device`, `batch_per_gpu` and one of `step_seconds` and `samples_per_second`; everything else sharpens the question.
Names of models differ by source; `model_names.toml` says what each means here, and what we cannot build is said with the reason.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from epochcast.cost.features import Setting
from epochcast.errors import BadInput, EpochcastError
from epochcast.graph.recipe import Recipe
from epochcast.hardware.catalogue import find_device
from epochcast.hardware.device import Device
from epochcast.units import parse_shape

_PRECISIONS = {"fp16(pure half)": "fp16", "bf16-true": "bf16", "float32": "fp32"}
_OPTIMIZERS = {"sgd_with_momentum": "momentum", "nag": "nesterov", "LAMB": "lamb", "lars": "momentum"}
# The last PyTorch that updates one parameter after another unless told otherwise, and that has no fused attention.
_OLD_TORCH = (2, 0)


@dataclass(frozen=True, slots=True)
class Run:
    """One measured row as a question, and its answer."""

    place: int
    source: str
    model: str
    reference: str
    input_shape: tuple[int, ...] | None
    device: Device
    recipe: Recipe
    setting: Setting
    gpus: int
    nodes: int
    interconnect: str | None
    strategy: str | None
    step_seconds: float
    family: str
    system: str


@dataclass(frozen=True, slots=True)
class Failure:
    """A row that cannot be asked, and why."""

    place: int
    model: str
    reason: str


@cache
def _names() -> Mapping[str, Any]:
    return tomllib.loads(files("epochcast.fit").joinpath("model_names.toml").read_text(encoding="utf-8"))


def read_runs(rows: list[dict[str, Any]]) -> tuple[list[Run], list[Failure]]:
    """Every row as a run or as a failure with its reason."""
    runs, failures = [], []
    for place, row in enumerate(rows):
        try:
            runs.append(_run(place, row))
        except EpochcastError as error:
            failures.append(Failure(place, str(row.get("model")), str(error)))
    return runs, failures


def _run(place: int, row: Mapping[str, Any]) -> Run:
    source = str(row.get("source") or "")
    model = str(_needed(row, "model"))
    batch = round(float(_needed(row, "batch_per_gpu")))
    gpus = int(row.get("gpus") or 1)
    seconds = row.get("step_seconds")
    if seconds is None:
        rate = row.get("samples_per_second")
        if not rate:
            raise BadInput("neither step_seconds nor samples_per_second")
        seconds = float(row.get("global_batch") or batch * gpus) / float(rate)
    if not float(seconds) > 0:
        raise BadInput(f"step_seconds must be above 0, got {seconds}")
    reference, shape = _reference(source, model, row.get("input_shape"))
    mode = str(row.get("mode") or "training")
    optimizer = row.get("optimizer")
    if mode == "training" and optimizer == "none":
        mode = "forward_backward"
    version = _version(str(row.get("framework_version") or ""))
    is_old = _is_torch(row) and version is not None and version < _OLD_TORCH
    recipe = Recipe(
        batch,
        optimizer=_optimizer(source, optimizer),
        precision=_precision(str(row.get("precision") or "fp32")),
        mode=mode,
        attention="eager" if is_old or source == "neusight" else "flash",
        update_style="loop" if is_old else "foreach",
        channels_last=bool(row.get("channels_last")),
        accumulate=int(row.get("grad_accum") or 1),
        with_loss=source != "neusight",
    )
    return Run(
        place,
        source,
        model,
        reference,
        shape,
        find_device(str(_needed(row, "device")), row.get("device_memory_bytes"), source or None),
        recipe,
        Setting(recipe.channels_last, _framework(row), _age(version)),
        gpus,
        int(row.get("nodes") or 1),
        row.get("interconnect"),
        row.get("strategy"),
        float(seconds),
        family_of(model),
        str(row.get("system") or ""),
    )


def family_of(model: str) -> str:
    """The leading word of a model's name, which is what its authors called the architecture: resnet50d → resnet.

    Used to split tables so that no relative of a tested network was trained on.
    """
    plain = model.casefold().removeprefix("tf_").removeprefix("adv_").removeprefix("ens_adv_").removeprefix("legacy_").removeprefix("gluon_")
    for start, family in _names().get("family", {}).items():
        if plain.startswith(start):
            return str(family)
    return re.split(r"[_\d\-.]", plain, maxsplit=1)[0] or plain


def _needed(row: Mapping[str, Any], name: str) -> Any:
    value = row.get(name)
    if value is None:
        raise BadInput(f"no {name}")
    return value


def _reference(source: str, model: str, shape: Any) -> tuple[str, tuple[int, ...] | None]:
    """What `find_model` is asked for, and the input size where the row gives one we can read."""
    sizes = re.fullmatch(r"\d+(x\d+)*", str(shape)) if shape is not None else None
    size = parse_shape(str(shape)) if sizes else None
    if (tokens := re.match(r"seq(\d+)$", str(shape))) is not None:
        size = (int(tokens[1]),)
    names = _names()
    prefix = names["prefix"].get(source)
    table = {**names["any"], **names.get("source", {}).get(source, {})}
    if model in table:
        entry = table[model]
        if isinstance(entry, dict):
            return str(entry["model"]), tuple(entry["input"])
        return str(entry), size
    if model in names["cannot"]:
        raise BadInput(f"{model}: {names['cannot'][model]}")
    if prefix is not None:
        return f"{prefix}:{model}", size
    return model, size


def _precision(name: str) -> str:
    return _PRECISIONS.get(name, name)


def _optimizer(source: str, name: Any) -> str:
    if name is None:
        return "momentum"
    if source in _names()["momentum_sources"] and name == "sgd":
        return "momentum"
    return _OPTIMIZERS.get(str(name), str(name))


def _is_torch(row: Mapping[str, Any]) -> bool:
    return "torch" in str(row.get("framework") or "").casefold()


def _framework(row: Mapping[str, Any]) -> str:
    name = str(row.get("framework") or "pytorch").casefold()
    return "tensorflow" if "tensorflow" in name or "tf" in name.split() else "pytorch"


def _version(text: str) -> tuple[int, int] | None:
    match = re.match(r"(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else None


def _age(version: tuple[int, int] | None) -> float:
    """0 for PyTorch 1.0 … 1 for 2.9; unknown counts as 1.12, the last of the first series that most tables used."""
    major, minor = version or (1, 12)
    steps = minor if major == 1 else 13 + minor
    return min(1.0, max(0.0, steps / 22))


def by_question(runs: list[Run]) -> Iterator[tuple[tuple[Any, ...], list[Run]]]:
    """Runs grouped by what must be captured for them: model, input and recipe without its batch."""
    groups: dict[tuple[Any, ...], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.reference, run.input_shape, run.recipe.at(1)), []).append(run)
    yield from groups.items()
