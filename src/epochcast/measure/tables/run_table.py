"""Tables of measured runs (the columns of `runs`) as jobs to forecast.

A row needs `model`, `device`, `batch_per_gpu` and one of `step_seconds` and `samples_per_second`; the other columns are
optional. Who asks for memory also gets rows without a time (`run_memory`). Tables are read as people write them:
`row_names.toml` has the aliases of words, `model_names.toml` those of models. A cell that cannot be used costs its row.
Rows whose `quality` is doubtful are left out unless asked for.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import isnan, nan
from typing import Any

from epochcast.base.name_matching import plain
from epochcast.describe.capture.model_reference import ModelReference
from epochcast.describe.graph.compilers import EAGER
from epochcast.describe.graph.precision import PRECISIONS
from epochcast.describe.graph.recipe import Recipe
from epochcast.errors import CodeNotAllowed, EpochcastError
from epochcast.hardware.catalogue import family, find_device
from epochcast.hardware.device import Device
from epochcast.measure.tables.cells import Row, count, flag, needed, number, text
from epochcast.measure.tables.detector_rows import TIMED_EARLIER
from epochcast.measure.tables.precision_words import NamedPrecision, named_precision
from epochcast.measure.tables.row_errors import (
    DoubtfulRow,
    FailedRow,
    LessThanOneSample,
    MissingCell,
    OtherSoftware,
    UnknownSampleLength,
)
from epochcast.measure.tables.row_names import (
    NamedOptimizer,
    has_own_kernels,
    is_good,
    is_trainer,
    named_framework,
    named_optimizer,
)
from epochcast.measure.tables.run_layout import RunLayout, check_copies, run_layout
from epochcast.measure.tables.run_lengths import length_distribution, says_lengths
from epochcast.measure.tables.run_memory import MeasuredMemory, left_open, measured_memory
from epochcast.measure.tables.run_network import (
    NamedNetwork,
    bare_network,
    family_of,
    longest_sample,
    model_names,
    named_network,
    step_seconds,
    uneven_of,
)
from epochcast.measure.tables.run_options import SUBMISSION, compiler_notes, run_options
from epochcast.measure.tables.run_scripts import RunScript, run_script
from epochcast.measure.tables.run_submissions import SubmittedStep, submitted_step, trains_another_network
from epochcast.measure.tables.run_tuning import RunTuning, run_tuning
from epochcast.measure.tables.run_versions import Version, framework_version, least_version, noted_version
from epochcast.measure.tables.written_rows import completed, trainer_default
from epochcast.predict.cost.software_setting import SoftwareSetting, turns_channels_last
from epochcast.predict.forecast.framework import setting_of
from epochcast.predict.forecast.job import Job

__all__ = ["MeasuredRun", "family_of", "read_runs"]

REFUSED = "_refused"
"""The column in which a row of another kind of table has the error that keeps it from being a run."""
REAL = "real"
"""How `data` begins where samples are read and decoded."""
# The quality of rows whose texts are neither padded nor packed to one length.
_VARIABLE = "variable length"
# PyTorch before this version updates one parameter after another by default, and has no fused attention.
_OLD_TORCH = (2, 0)
_FUSED_ATTENTION = "flash_attention=true"
# A decoder whose formulas are written out one by one has an optimizer of its own, too (`zoo/handwritten.py`).
_HANDWRITTEN = "style=handwritten"
_HALVES = ("fp16", "bf16")


@dataclass(frozen=True, slots=True)
class MeasuredRun:
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
    compiled: bool = False
    """Whether the step was compiled (torch.compile, XLA)."""
    memory: MeasuredMemory | None = None
    """Where the row says something of memory."""
    largest_shape: tuple[int, ...] | None = None
    """The largest sample, where samples differ."""
    notes: tuple[str, ...] = ()
    """What was assumed to answer the row."""

    @property
    def is_timed(self) -> bool:
        """Whether the row has a step time; else `step_seconds` is NaN."""
        return not isnan(self.step_seconds)

    @property
    def recipe(self) -> Recipe:
        """How one GPU does one pass."""
        return self.job.recipe(self.job.batch or 1, self.device)

    @property
    def largest_job(self) -> Job:
        """The job at its largest sample, whose batch has the peak of memory."""
        return self.job if self.largest_shape is None else replace(self.job, input_shape=self.largest_shape)

    @property
    def setting(self) -> SoftwareSetting:
        """The software that decides which kernels run."""
        return setting_of(self.job, self.device)


def read_runs(
    rows: list[dict[str, Any]],
    *,
    with_bare: bool = False,
    with_doubtful: bool = False,
    with_memory: bool = False,
    own_device: Device | None = None,
    allow_code: bool = False,
) -> tuple[list[MeasuredRun], list[FailedRow]]:
    """Every row as a run or as a failure with its reason; `with_bare`: networks that cannot be built are runs, too,
    where their number of parameters is known; `with_doubtful`: rows whose `quality` says that they are not to be
    trusted, too; `with_memory`: what rows say of memory, and rows that say only that. `own_device` is a user's data
    sheet: rows know it by its name or its file. A row whose model is Python code is refused unless `allow_code`.
    """
    runs, failures = [], []
    for row_index, row in enumerate(rows):
        try:
            memory = measured_memory(row) if with_memory else None
            is_failed = memory is not None and memory.ran_out
            if not (with_doubtful or is_failed or is_good(text(row, "quality"))):
                raise DoubtfulRow(text(row, "quality"))
            run = _run(row_index, row, with_bare, memory is None, own_device, allow_code)
            runs.append(replace(run, memory=memory))
        except EpochcastError as error:
            failures.append(FailedRow.because(row_index, str(row.get("model")), error))
    return runs, failures


def _device(row: Row, source: str, own_device: Device | None) -> Device:
    name = text(row, "device")
    if not name:
        raise MissingCell("device")
    if own_device is not None and own_device.sheet and plain(name) in (plain(own_device.name), plain(own_device.sheet)):
        return own_device
    stated, memory = number(row, "device_memory_bytes"), measured_memory(row)
    device = find_device(name, stated, source or None)
    peak_bytes = (memory and memory.peak_bytes) or 0.0
    if stated is None and peak_bytes > device.memory_bytes:  # of a family, the board that the peak was measured on
        larger = [each for each in family(name) if each.memory_bytes >= peak_bytes]
        return min(larger, key=lambda each: each.memory_bytes, default=device)
    return device


def _run(
    row_index: int, row: Row, with_bare: bool, needs_time: bool, own_device: Device | None, allow_code: bool
) -> MeasuredRun:
    if REFUSED in row:
        raise row[REFUSED]
    row, filled = completed(row)
    source, model = text(row, "source"), text(row, "model")
    if not model:
        raise MissingCell("model")
    if needs_time:
        _check_time(row, source, model)
    gpus, layout = count(row, "gpus") or 1, run_layout(row)
    batch_per_gpu = _batch_per_gpu(row, gpus, layout)
    network = bare_network(model) if with_bare else None
    network = network or named_network(row, source, model, batch_per_gpu)
    if not allow_code and ModelReference.of(network.reference).is_code:
        raise CodeNotAllowed(network.reference)
    batch = _batch(row, batch_per_gpu / network.batch_units)
    seconds = _seconds(row, batch * gpus, network, needs_time=needs_time)
    device = _device(row, source, own_device)
    script = run_script(source, _framework(row), network.reference)
    submitted = submitted_step(row, device, network)
    precision = _precision(row, device, script) if submitted is None else NamedPrecision(submitted.precision)
    tuning = run_tuning(row, network, precision.quantisation)
    optimizer = _optimizer(row, precision, script, submitted, tuning)
    job = _job(row, network, device, batch, optimizer, layout, precision, tuning)
    if layout is None and network.is_of_texts:
        check_copies(row, network.reference, job.quantize, device)
    if script is not None and job.attention == "flash":
        job = replace(job, attention=script.attention)
    notes = (*_notes(row, network, optimizer), *tuning.notes, *compiler_notes(row))
    return MeasuredRun(
        row_index,
        source,
        model,
        network.reference,
        network.input_shape,
        device,
        replace(job, assumed=left_open(row, notes)),
        gpus,
        count(row, "nodes") or (layout and layout.nodes) or 1,
        text(row, "interconnect") or None,
        layout.strategy if layout else text(row, "strategy") or (submitted.strategy if submitted else None),
        seconds,
        family_of(model),
        text(row, "system"),
        text(row, "framework").casefold(),
        text(row, "data"),
        number(row, "parameters") or network.parameters,
        job.compile != EAGER,
        largest_shape=network.largest_shape,
        notes=(*filled, *notes),
    )


def _check_time(row: Row, source: str, model: str) -> None:
    """A row that is asked for its time has one, of software whose kernels are known."""
    if not _has_time(row):
        raise MissingCell("step_seconds", "samples_per_second")
    if has_own_kernels(source, text(row, "framework")):
        raise OtherSoftware(f"{model}: {text(row, 'framework')} has kernels of its own, which are not forecast here")
    if trains_another_network(row):
        raise OtherSoftware(f"{model}: MLPerf's open division may train another network than it names")
    reason = TIMED_EARLIER.get((source, text(row, "framework_version")))
    if reason is not None:
        raise OtherSoftware(f"{model}: {reason}")


def _notes(row: Row, network: NamedNetwork, optimizer: NamedOptimizer) -> Iterator[str]:
    """What is assumed of a row."""
    if optimizer.note:
        yield optimizer.note
    if text(row, "framework") and named_framework(text(row, "framework")) is None:
        yield f"the framework {text(row, 'framework')} is not known and answered as pytorch"
    if _is_longest(row, network):
        yield "only the maximum length of the texts is given: they are taken as spread evenly up to it"
    if text(row, "data").casefold().startswith(REAL):
        yield "real data without the loader's speed: waiting for data is not in the forecast"


def _has_time(row: Row) -> bool:
    return number(row, "step_seconds") is not None or number(row, "samples_per_second") is not None


def _seconds(row: Row, samples: float, network: NamedNetwork, *, needs_time: bool) -> float:
    """The step's; NaN where the row has no time, or not the mean length of texts that differ, on which it depends."""
    if not _has_time(row):
        return nan
    is_varied = _VARIABLE in text(row, "quality").casefold()
    if not (is_varied and _is_longest(row, network)):
        return step_seconds(row, samples, network)
    if needs_time:
        raise UnknownSampleLength(f"{row.get('model')}: texts vary in length, and the row says only the longest")
    return nan


def _is_longest(row: Row, network: NamedNetwork) -> bool:
    """Whether the row says no more of its samples than the length of the longest."""
    longest = longest_sample(row)
    return longest is not None and network.input_shape == (longest,) and not says_lengths(row)


def _batch_per_gpu(row: Row, gpus: int, layout: RunLayout | None) -> float:
    """As the row says; else the share of a global batch, unless a layout divides that into micro-batches."""
    if number(row, "batch_per_gpu") is None and layout is None:
        global_batch = number(row, "global_batch")
        if global_batch:
            return global_batch / (gpus * (count(row, "grad_accum") or 1))
    return needed(row, "batch_per_gpu")


def _batch(row: Row, samples: float) -> int:
    """Whole samples of one GPU."""
    batch = round(samples)
    replicas = re.fullmatch(r"dp(\d+)", text(row, "strategy"))
    if replicas and number(row, "global_batch") == number(row, "batch_per_gpu"):
        batch //= int(replicas[1])  # one batch, divided over the replicas
    if batch < 1:
        raise LessThanOneSample(f"less than one sample per GPU: batch_per_gpu is {row.get('batch_per_gpu')}")
    return batch


def _job(
    row: Row,
    network: NamedNetwork,
    device: Device,
    batch: int,
    optimizer: NamedOptimizer,
    layout: RunLayout | None,
    precision: NamedPrecision,
    tuning: RunTuning,
) -> Job:
    source = text(row, "source")
    framework = _framework(row)
    version = framework_version(source, text(row, "framework").casefold(), text(row, "framework_version"))
    version = version or (noted_version(text(row, "note")) if framework == "pytorch" else None)
    attention, update_style = _eras(row, version, optimizer)
    lengths = length_distribution(row) if network.is_of_texts else None
    if _HANDWRITTEN in network.reference:
        update_style = "loop"
    options = run_options(row, framework)
    features = [name for name, is_used in _features(options, tuning, text(row, "framework")) if is_used]
    ran_version = version or least_version(device.generation, features)
    mode = text(row, "mode") or "training"
    if mode == "training" and optimizer.name == "none":
        mode = "forward_backward"
    return Job(
        network.reference or text(row, "model"),
        input_shape=None if lengths else network.input_shape,
        lengths=lengths,
        aux=network.aux,
        batch=batch,
        optimizer=optimizer.name,
        precision=precision.name,
        weights=precision.weights,
        mode=mode,
        attention="eager" if source == "neusight" else attention,
        update_style=update_style,
        channels_last=_channels_last(row, device, precision.name),
        accumulate=layout.accumulate if layout else count(row, "grad_accum") or 1,
        with_loss=source != "neusight",
        uneven=network.uneven or uneven_of(text(row, "input_shape")),
        framework=framework,
        framework_version=f"{ran_version[0]}.{ran_version[1]}",
        **options,
        **tuning.options,
    )


def _features(options: Mapping[str, Any], tuning: RunTuning, words: str) -> tuple[tuple[str, bool], ...]:
    """What a job uses of newer software, by its name in `least_version`."""
    return (
        ("compile", options["compile"] not in (EAGER, "xla", "vendor")),
        ("adapters", bool(tuning.options)),
        ("recent_trainer", is_trainer("recent", words)),
    )


def _eras(row: Row, version: Version | None, optimizer: NamedOptimizer) -> tuple[str, str]:
    """By which kernels attention runs, and how parameters are updated, by the age of the software."""
    words = text(row, "framework")
    is_noted_fused = _FUSED_ATTENTION in text(row, "note").casefold()
    is_old = version is not None and version < _OLD_TORCH
    is_old_torch = "torch" in words.casefold() and is_old
    is_other = is_trainer("eager_attention", words) and (is_old or version is None)
    is_undated = version is None and is_trainer("fused_softmax_undated", words)
    if is_noted_fused:
        attention = "flash"
    elif is_undated or (is_old and is_trainer("fused_softmax", words)):
        attention = "fused_softmax"
    else:
        attention = "eager" if is_old_torch or is_other or _framework(row) == "tensorflow" else "flash"
    if optimizer.is_fused or is_trainer("fused_update", words):
        return attention, "fused"
    return attention, "loop" if is_old_torch or optimizer.is_loop else "foreach"


def _precision(row: Row, device: Device, script: RunScript | None) -> NamedPrecision:
    """The precision by our name; "mixed" of an MLPerf submission is the usual one of its device."""
    words = text(row, "precision") or _usual_precision(row, device)
    if script is not None and words == "amp_fp16":
        words = script.half_precision
    if words == SUBMISSION:
        is_half = device.vendor == "NVIDIA" or "bf16" not in device.peak_flops_per_second
        return NamedPrecision("amp_fp16" if is_half else "amp_bf16")
    precision = named_precision(text(row, "source"), words)
    precision = _as_trained(row, precision)
    if precision.name == "tf32" and "tf32" not in device.peak_flops_per_second:
        return replace(precision, name="fp32")  # where the device has no such cores, the framework's tf32 is plain fp32
    return precision


def _as_trained(row: Row, precision: NamedPrecision) -> NamedPrecision:
    """A precision as the row's trainer means it: what is computed in half, and how weights are stored beside that."""
    framework, half = text(row, "framework"), precision.name.removeprefix("amp_")
    if precision.quantisation is not None and is_trainer("half_beside_quantised", text(row, "note")):
        precision = replace(precision, name=half, weights=half)
    if half in _HALVES and is_trainer("library_kernels", framework) and "lora" in text(row, "method").casefold():
        precision = replace(precision, name=f"amp_{half}", weights=half)
    if precision.name in _HALVES and is_trainer("autocast", framework):
        precision = replace(precision, name=f"amp_{half}", weights=None)
    if is_trainer("master_weights", framework):
        precision = replace(precision, name=_mastered(precision.name, framework), weights=None)
    return precision


def _usual_precision(row: Row, device: Device) -> str:
    """Of a row without one: that of its trainer; a quantised base computes in half, everything else in fp32."""
    usual = trainer_default(row, "precision")
    if usual is not None and usual != "half":
        return str(usual)
    if usual is None and "qlora" not in text(row, "method").casefold():
        return "fp32"
    return "bf16" if "bf16" in device.peak_flops_per_second else "fp16"


def _mastered(name: str, framework: str) -> str:
    """Half with a copy in float32 for the update, where there is such a precision: what a trainer calls mixed.
    DeepSpeed adds gradients up in float32 in bf16 (BF16_Optimizer) and leaves them in half in fp16.
    """
    half = name.removeprefix("amp_")
    if half == "fp16" and is_trainer("half_gradients", framework):
        return "fp16_deepspeed"
    return f"{half}_master" if f"{half}_master" in PRECISIONS else name


def _channels_last(row: Row, device: Device, precision: str) -> bool:
    """From the row; else the default of its framework. MLPerf submissions on NVIDIA's devices use it (from memory)."""
    stated = flag(row, "channels_last")
    if stated is not None:
        return stated
    is_submitted = text(row, "precision") == SUBMISSION and device.vendor == "NVIDIA"
    return is_submitted or turns_channels_last(_framework(row), precision, device)


def _optimizer(
    row: Row, precision: NamedPrecision, script: RunScript | None, submitted: SubmittedStep | None, tuning: RunTuning
) -> NamedOptimizer:
    source, words = text(row, "source"), text(row, "optimizer")
    if script is not None and words != "none":
        return script.full_optimizer if precision.weights is None else script.optimizer
    if not words:  # trainers of adapters default to AdamW (transformers, TrainingArguments.optim)
        usual = trainer_default(row, "optimizer") or ("adamw" if tuning.options else "momentum")
        return NamedOptimizer(submitted.optimizer if submitted else usual)
    if source in model_names()["momentum_sources"] and words == "sgd":
        return NamedOptimizer("momentum")
    return named_optimizer(words)


def _framework(row: Row) -> str:
    return named_framework(text(row, "framework")) or "pytorch"
