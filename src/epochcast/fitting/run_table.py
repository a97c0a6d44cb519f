"""Tables of measured runs (the columns of `runs`) as jobs to forecast.

A row needs `model`, `device`, `batch_per_gpu` and one of `step_seconds` and `samples_per_second`; the other columns are
optional. Names of models differ by source; `model_names.toml` has our name of each, or the reason why it cannot be
built.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from epochcast.caching import remembered
from epochcast.cost.setting import Setting, turns_channels_last
from epochcast.errors import BadInput, EpochcastError
from epochcast.fitting.detector_rows import FRAMEWORKS, PYTORCH, RESIZED, detector_row, mean_shape
from epochcast.fitting.run_layout import run_layout
from epochcast.fitting.run_stack import SUBMISSION, run_compiler, run_hook_seconds
from epochcast.fitting.run_tuning import run_tuning
from epochcast.forecasting.framework import setting_of
from epochcast.forecasting.job import Job
from epochcast.graph.recipe import Recipe
from epochcast.hardware.catalogue import find_device
from epochcast.hardware.device import Device
from epochcast.units import parse_shape, parse_uneven

_PRECISIONS = {"fp16(pure half)": "fp16", "bf16-true": "bf16", "bf16-true quant=None": "bf16", "float32": "fp32"}
_OPTIMIZERS = {
    "sgd_with_momentum": "momentum",
    "nag": "nesterov",
    "LAMB": "lamb",
    "lars": "momentum",
    "adam (distributed)": "adam",
}
# Units of throughput other than samples.
_PARTS_OF_SAMPLES = ("tokens", "mel_frames")
# PyTorch before this version updates one parameter after another by default, and has no fused attention.
_OLD_TORCH = (2, 0)


@dataclass(frozen=True, slots=True)
class Run:
    """One measured row: the job, where it ran, and its measured step."""

    row_index: int
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
    """From the table. Of a network that cannot be built (its `reference` is empty) nothing more is known."""

    @property
    def recipe(self) -> Recipe:
        """How one GPU does one pass."""
        return self.job.recipe(self.job.batch or 1)

    @property
    def setting(self) -> Setting:
        """The software that decides which kernels run."""
        return setting_of(self.job, self.device)


@dataclass(frozen=True, slots=True)
class Failure:
    """A row that cannot be forecast, and why."""

    row_index: int
    model: str
    reason: str


@remembered(1)
def _names() -> Mapping[str, Any]:
    return tomllib.loads(files("epochcast.fitting").joinpath("model_names.toml").read_text(encoding="utf-8"))


def read_runs(rows: list[dict[str, Any]], *, with_bare: bool = False) -> tuple[list[Run], list[Failure]]:
    """Every row as a run or as a failure with its reason; `with_bare`: networks that cannot be built are runs, too,
    where their number of parameters is known.
    """
    runs, failures = [], []
    for row_index, row in enumerate(rows):
        try:
            runs.append(_run(row_index, row, with_bare))
        except EpochcastError as error:
            failures.append(Failure(row_index, str(row.get("model")), str(error)))
    return runs, failures


def _run(row_index: int, row: Mapping[str, Any], with_bare: bool) -> Run:
    source = str(row.get("source") or "")
    model = str(_required(row, "model"))
    gpus = int(row.get("gpus") or 1)
    if not (row.get("step_seconds") or row.get("samples_per_second")):
        raise BadInput("neither step_seconds nor samples_per_second")
    layout = run_layout(row)
    batch_per_gpu = float(_required(row, "batch_per_gpu"))
    network = _bare(model) if with_bare else None
    network = network or _named_network(source, model, row.get("input_shape"), batch_per_gpu)
    reference, shape = network.reference, network.input_shape
    batch = round(batch_per_gpu / network.batch_units)
    replicas = re.fullmatch(r"dp(\d+)", str(row.get("strategy") or ""))
    if replicas and row.get("global_batch") == row["batch_per_gpu"]:
        batch //= int(replicas[1])  # one batch, divided over the replicas
    if batch < 1:
        raise BadInput(f"less than one sample per GPU: batch_per_gpu is {row['batch_per_gpu']}")
    seconds = _step_seconds(row, batch * gpus, network)
    device = find_device(str(_required(row, "device")), row.get("device_memory_bytes"), source or None)
    mode = str(row.get("mode") or "training")
    optimizer = row.get("optimizer")
    if mode == "training" and optimizer == "none":
        mode = "forward_backward"
    version_text = str(row.get("framework_version") or "")
    version = PYTORCH.get((source, version_text)) or _version(version_text)
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
        uneven=network.uneven or _uneven(row.get("input_shape")),
        framework=_framework(row),
        compile=run_compiler(row, _framework(row)),
        hook_seconds=run_hook_seconds(row),
        # Where the version is unknown: the last 1.x, which most tables used.
        framework_version="1.12" if version is None else f"{version[0]}.{version[1]}",
        **run_tuning(row, reference),
    )
    return Run(
        row_index,
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
        row.get("parameters") or network.parameters,
    )


def family_of(model: str) -> str:
    """The leading word of a model's name, which is what its authors called the architecture: resnet50d → resnet.

    Used to split tables so that no relative of a tested network was trained on.
    """
    name = (
        model.casefold()
        .removeprefix("tf_")
        .removeprefix("adv_")
        .removeprefix("ens_adv_")
        .removeprefix("legacy_")
        .removeprefix("gluon_")
    )
    for prefix, family in _names().get("family", {}).items():
        if name.startswith(prefix):
            return str(family)
    return re.split(r"[_\d\-.]", name, maxsplit=1)[0] or name


def _required(row: Mapping[str, Any], name: str) -> Any:
    value = row.get(name)
    if value is None:
        raise BadInput(f"no {name}")
    return value


@dataclass(frozen=True, slots=True)
class _NamedNetwork:
    """The network that a name means: the reference for `find_model`, and the input size. A sample has `tokens` tokens
    in a throughput of tokens, and `batch_units` units of the table's batch (1 unless that counts tokens).
    """

    reference: str
    input_shape: tuple[int, ...] | None
    tokens: float | None = None
    batch_units: float = 1
    parameters: float | None = None
    uneven: float = 0.0


def _bare(model: str) -> _NamedNetwork | None:
    """A network that cannot be built, with what the list says about it."""
    listed = _names()["bare"].get(model)
    if listed is None:
        return None
    parameters, uneven = float(listed["parameters"]), float(listed.get("uneven", 0.0))
    return _NamedNetwork("", None, listed.get("tokens"), parameters=parameters, uneven=uneven)


def _named_network(source: str, model: str, shape: Any, batch_per_gpu: float) -> _NamedNetwork:
    """By `detector_rows` for zoos of detectors, else by `model_names.toml`; an entry there is a name, or a table with
    these keys:

    `model`; `input`, and `unshaped` (another model), for rows whose own input cannot be read; `tokens` of a sample;
    `batch_in_tokens`.
    """
    size = _size(shape)
    if size == RESIZED:
        size = mean_shape(size[1:2], size[2], max(1, int(batch_per_gpu)))
    names = _names()
    reasons = {**names["cannot"], **names.get("cannot_source", {}).get(source, {})}
    if model in reasons or "*" in reasons:
        raise BadInput(f"{model}: {reasons.get(model) or reasons['*']}")
    if source in FRAMEWORKS:
        detector = detector_row(source, model, batch_per_gpu, str(shape))
        return _NamedNetwork(detector.reference, detector.mean_shape, batch_units=batch_per_gpu / detector.images)
    if size is None and source in names["needs_input"]:
        raise BadInput(f"{model}: the row does not say how many tokens a sample has")
    entry = {**names["any"], **names.get("source", {}).get(source, {})}.get(model)
    if entry is None:
        prefix = names["prefix"].get(source)
        return _NamedNetwork(model if prefix is None else f"{prefix}:{model}", size)
    if isinstance(entry, str):
        return _NamedNetwork(entry, size)
    reference = str(entry["model"] if size else entry.get("unshaped", entry["model"]))
    fallback = tuple(entry["input"]) if "input" in entry else None
    tokens = entry.get("tokens")
    return _NamedNetwork(reference, size or fallback, tokens, float(tokens) if entry.get("batch_in_tokens") else 1)


def _size(shape: Any) -> tuple[int, ...] | None:
    """3x224x224, seq512 or 512 tokens; None for other texts, such as 3x(320..608)."""
    text = str(shape)
    if re.fullmatch(r"\d+(x\d+)*", text):
        return parse_shape(text)
    tokens = re.fullmatch(r"seq(\d+)", text)
    return (int(tokens[1]),) if tokens else None


def _uneven(shape: Any) -> float:
    """How much sizes vary from batch to batch, from 3x(320..608); 0 for one size."""
    sides = re.search(r"\(\s*(\d+\s*\.\.\s*\d+)\s*\)", str(shape))
    return parse_uneven(sides[1]) if sides else 0.0


def _step_seconds(row: Mapping[str, Any], samples: int, network: _NamedNetwork) -> float:
    """step_seconds, else samples of a step / rate; a rate of tokens needs the tokens of a sample."""
    seconds = row.get("step_seconds")
    if seconds is None:
        count = float(row.get("global_batch") or samples * network.batch_units)
        unit = row.get("unit")
        if unit in _PARTS_OF_SAMPLES:
            if network.tokens is None:
                raise BadInput(f"the throughput counts {unit} and the row does not say how many a sample has")
            count *= network.tokens / network.batch_units
        seconds = count / float(row["samples_per_second"])
    if not 0 < float(seconds) < float("inf"):
        raise BadInput(f"step_seconds must be above 0, got {seconds}")
    return float(seconds)


def _precision(name: str, device: Device) -> str:
    """The precision by our name; "mixed" of an MLPerf submission is the usual one of its device."""
    if "quant=bnb" in name:
        raise BadInput(f"weights in 4 bits are not modelled: {name}")
    if name == SUBMISSION:
        is_half = device.vendor == "NVIDIA" or "bf16" not in device.peak_flops_per_second
        return "amp_fp16" if is_half else "amp_bf16"
    return _PRECISIONS.get(name, name)


def _channels_last(row: Mapping[str, Any], device: Device) -> bool:
    """From the row; else the default of its framework. MLPerf submissions on NVIDIA's devices use it (from memory)."""
    stated = row.get("channels_last")
    if stated is not None:
        return bool(stated)
    name = str(row.get("precision") or "fp32")
    is_submitted = name == SUBMISSION and device.vendor == "NVIDIA"
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
