"""Tables of measured runs (the columns of `runs`) as questions a forecaster can answer: which model, which recipe,
which device.

A row needs `model`, `device`, `batch_per_gpu` and one of `step_seconds` and `samples_per_second`; everything else
sharpens the question. Names of models differ by source; `model_names.toml` says what each means here, and what we
cannot build is said with the reason.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from epochcast.cost.setting import Setting, turns_channels_last
from epochcast.errors import BadInput, EpochcastError
from epochcast.fitting.detector_rows import FRAMEWORKS, PYTORCH, RESIZED, detector_row, mean_shape
from epochcast.fitting.run_layout import run_layout
from epochcast.fitting.run_tuning import run_tuning
from epochcast.forecasting.framework import setting_of
from epochcast.forecasting.job import Job
from epochcast.graph.recipe import Recipe
from epochcast.hardware.catalogue import find_device
from epochcast.hardware.device import Device
from epochcast.units import parse_shape, parse_uneven

_PRECISIONS = {"fp16(pure half)": "fp16", "bf16-true": "bf16", "bf16-true quant=None": "bf16", "float32": "fp32"}
_SUBMITTED = "mixed (submission-specific)"
_OPTIMIZERS = {
    "sgd_with_momentum": "momentum",
    "nag": "nesterov",
    "LAMB": "lamb",
    "lars": "momentum",
    "adam (distributed)": "adam",
}
# What a throughput counts where it does not count samples.
_PARTS_OF_SAMPLES = ("tokens", "mel_frames")
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
    job: Job
    gpus: int
    nodes: int
    interconnect: str | None
    strategy: str | None
    step_seconds: float
    family: str
    system: str
    framework: str = ""
    data: str = ""
    parameters: float | None = None
    """As the table says. Of a network that cannot be built (its `reference` is empty) nothing more is known."""

    @property
    def recipe(self) -> Recipe:
        """How one GPU does one pass."""
        return self.job.recipe(self.job.batch or 1)

    @property
    def setting(self) -> Setting:
        """What of the software decides kernels."""
        return setting_of(self.job, self.device)


@dataclass(frozen=True, slots=True)
class Failure:
    """A row that cannot be asked, and why."""

    place: int
    model: str
    reason: str


@cache
def _names() -> Mapping[str, Any]:
    return tomllib.loads(files("epochcast.fitting").joinpath("model_names.toml").read_text(encoding="utf-8"))


def read_runs(rows: list[dict[str, Any]], *, with_bare: bool = False) -> tuple[list[Run], list[Failure]]:
    """Every row as a run or as a failure with its reason; `with_bare`: networks that cannot be built are runs, too,
    where it is known how many parameters they have.
    """
    runs, failures = [], []
    for place, row in enumerate(rows):
        try:
            runs.append(_run(place, row, with_bare))
        except EpochcastError as error:
            failures.append(Failure(place, str(row.get("model")), str(error)))
    return runs, failures


def _run(place: int, row: Mapping[str, Any], with_bare: bool) -> Run:
    source = str(row.get("source") or "")
    model = str(_needed(row, "model"))
    gpus = int(row.get("gpus") or 1)
    if not (row.get("step_seconds") or row.get("samples_per_second")):
        raise BadInput("neither step_seconds nor samples_per_second")
    layout = run_layout(row)
    batch_per_gpu = float(_needed(row, "batch_per_gpu"))
    meant = _bare(model) if with_bare else None
    meant = meant or _meant(source, model, row.get("input_shape"), batch_per_gpu)
    reference, shape = meant.reference, meant.input_shape
    batch = round(batch_per_gpu / meant.batch_units)
    shared = re.fullmatch(r"dp(\d+)", str(row.get("strategy") or ""))
    if shared and row.get("global_batch") == row["batch_per_gpu"]:
        batch //= int(shared[1])  # one batch shared out over the replicas
    if batch < 1:
        raise BadInput(f"less than one sample per GPU: batch_per_gpu is {row['batch_per_gpu']}")
    seconds = _step_seconds(row, batch * gpus, meant)
    device = find_device(str(_needed(row, "device")), row.get("device_memory_bytes"), source or None)
    mode = str(row.get("mode") or "training")
    optimizer = row.get("optimizer")
    if mode == "training" and optimizer == "none":
        mode = "forward_backward"
    said = str(row.get("framework_version") or "")
    version = PYTORCH.get((source, said)) or _version(said)
    is_old = _is_torch(row) and version is not None and version < _OLD_TORCH
    job = Job(
        reference or model,
        input_shape=shape,
        batch=batch,
        optimizer=_optimizer(source, optimizer),
        precision=_precision(str(row.get("precision") or "fp32"), device),
        mode=mode,
        attention="eager" if is_old or source == "neusight" else "flash",
        update_style="loop" if is_old else "foreach",
        channels_last=_channels_last(row, device),
        accumulate=layout.accumulate if layout else int(row.get("grad_accum") or 1),
        with_loss=source != "neusight",
        uneven=meant.uneven or _uneven(row.get("input_shape")),
        framework=_framework(row),
        # Unknown counts as the last of the first series, which most tables used.
        framework_version="1.12" if version is None else f"{version[0]}.{version[1]}",
        **run_tuning(row, reference),
    )
    return Run(
        place,
        source,
        model,
        reference,
        shape,
        device,
        job,
        gpus,
        int(row.get("nodes") or (layout and layout.nodes) or 1),
        row.get("interconnect"),
        layout.strategy if layout else row.get("strategy"),
        float(seconds),
        family_of(model),
        str(row.get("system") or ""),
        str(row.get("framework") or "").casefold(),
        str(row.get("data") or ""),
        row.get("parameters") or meant.parameters,
    )


def family_of(model: str) -> str:
    """The leading word of a model's name, which is what its authors called the architecture: resnet50d → resnet.

    Used to split tables so that no relative of a tested network was trained on.
    """
    plain = (
        model.casefold()
        .removeprefix("tf_")
        .removeprefix("adv_")
        .removeprefix("ens_adv_")
        .removeprefix("legacy_")
        .removeprefix("gluon_")
    )
    for start, family in _names().get("family", {}).items():
        if plain.startswith(start):
            return str(family)
    return re.split(r"[_\d\-.]", plain, maxsplit=1)[0] or plain


def _needed(row: Mapping[str, Any], name: str) -> Any:
    value = row.get(name)
    if value is None:
        raise BadInput(f"no {name}")
    return value


@dataclass(frozen=True, slots=True)
class _Meant:
    """What a name means here: what `find_model` is asked for and at which input size. A sample counts `tokens` in a
    throughput of tokens, and `batch_units` in the table's batch (1 unless that counts tokens).
    """

    reference: str
    input_shape: tuple[int, ...] | None
    tokens: float | None = None
    batch_units: float = 1
    parameters: float | None = None
    uneven: float = 0.0


def _bare(model: str) -> _Meant | None:
    """A network that is listed with what is known of it because it cannot be built."""
    listed = _names()["bare"].get(model)
    if listed is None:
        return None
    parameters, uneven = float(listed["parameters"]), float(listed.get("uneven", 0.0))
    return _Meant("", None, listed.get("tokens"), parameters=parameters, uneven=uneven)


def _meant(source: str, model: str, shape: Any, batch_per_gpu: float) -> _Meant:
    """By `detector_rows` for zoos of detectors, else by `model_names.toml`; an entry there is a name, or a table with
    these keys:

    `model`; `input`, and `unshaped`, another model, for rows whose own input we cannot read; `tokens` of a sample, in
    all; `batch_in_tokens`.
    """
    size = _size(shape)
    if size == RESIZED:
        size = mean_shape(size[1:2], size[2], max(1, int(batch_per_gpu)))
    names = _names()
    reasons = {**names["cannot"], **names.get("cannot_source", {}).get(source, {})}
    if model in reasons or "*" in reasons:
        raise BadInput(f"{model}: {reasons.get(model) or reasons['*']}")
    if source in FRAMEWORKS:
        asked = detector_row(source, model, batch_per_gpu, str(shape))
        return _Meant(asked.reference, asked.mean_shape, batch_units=batch_per_gpu / asked.images)
    if size is None and source in names["needs_input"]:
        raise BadInput(f"{model}: the row does not say how many tokens a sample has")
    entry = {**names["any"], **names.get("source", {}).get(source, {})}.get(model)
    if entry is None:
        prefix = names["prefix"].get(source)
        return _Meant(model if prefix is None else f"{prefix}:{model}", size)
    if isinstance(entry, str):
        return _Meant(entry, size)
    reference = str(entry["model"] if size else entry.get("unshaped", entry["model"]))
    fallback = tuple(entry["input"]) if "input" in entry else None
    tokens = entry.get("tokens")
    return _Meant(reference, size or fallback, tokens, float(tokens) if entry.get("batch_in_tokens") else 1)


def _size(shape: Any) -> tuple[int, ...] | None:
    """3x224x224, seq512 or 512 tokens; None for what is no size, such as 3x(320..608)."""
    text = str(shape)
    if re.fullmatch(r"\d+(x\d+)*", text):
        return parse_shape(text)
    tokens = re.fullmatch(r"seq(\d+)", text)
    return (int(tokens[1]),) if tokens else None


def _uneven(shape: Any) -> float:
    """Of 3x(320..608): sides that are drawn anew for every batch; 0 for one size."""
    sides = re.search(r"\(\s*(\d+\s*\.\.\s*\d+)\s*\)", str(shape))
    return parse_uneven(sides[1]) if sides else 0.0


def _step_seconds(row: Mapping[str, Any], samples: int, meant: _Meant) -> float:
    """step_seconds, else samples of a step / rate; a rate of tokens needs to know how many a sample has."""
    seconds = row.get("step_seconds")
    if seconds is None:
        counted = float(row.get("global_batch") or samples * meant.batch_units)
        unit = row.get("unit")
        if unit in _PARTS_OF_SAMPLES:
            if meant.tokens is None:
                raise BadInput(f"the throughput counts {unit} and the row does not say how many a sample has")
            counted *= meant.tokens / meant.batch_units
        seconds = counted / float(row["samples_per_second"])
    if not 0 < float(seconds) < float("inf"):
        raise BadInput(f"step_seconds must be above 0, got {seconds}")
    return float(seconds)


def _precision(name: str, device: Device) -> str:
    """The precision under its name here; what a submission to MLPerf calls mixed is what its device does best."""
    if "quant=bnb" in name:
        raise BadInput(f"weights in 4 bits are not modelled: {name}")
    if name == _SUBMITTED:
        is_half = device.vendor == "NVIDIA" or "bf16" not in device.peak_flops_per_second
        return "amp_fp16" if is_half else "amp_bf16"
    return _PRECISIONS.get(name, name)


def _channels_last(row: Mapping[str, Any], device: Device) -> bool:
    """As the row says; else as its framework lays images out, and as submissions on NVIDIA's devices do (recalled)."""
    said = row.get("channels_last")
    if said is not None:
        return bool(said)
    name = str(row.get("precision") or "fp32")
    is_submitted = name == _SUBMITTED and device.vendor == "NVIDIA"
    return is_submitted or turns_channels_last(_framework(row), _precision(name, device), device)


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
