"""What a job is taken to be where nobody said: precision, optimizer and the lengths of its texts. Answers list it.

    language models     AdamW in mixed precision: bf16 where the device has it, fp16 on older tensor cores, else fp32
    with LoRA           the same over a base loaded in half, adapters in float32: what transformers and PEFT do since
                        models load in the format of their files (dtype="auto"; transformers 5 by default)
    diffusion models    the same as language models
    other networks      SGD in fp32
    texts               the data set's own mean and maximum, each batch padded to its longest text; of one without a
                        known mean its usual maximum; the network's length where it takes none so long
    packed texts        the data set's own mean, in sequences of the job's length, else the network's

A language model is recognised by its graph (`describe.graph.language_model`): it reads tokens, scores a vocabulary.
What the user, a job file, a script or a config file says is never assumed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from epochcast.describe.graph.precision import mixed_precision
from epochcast.describe.graph.quantised_base import NOT_QUANTISED
from epochcast.errors import BadInput
from epochcast.hardware.device import Device
from epochcast.predict.forecast.job import AUTO, PLAIN, Job
from epochcast.predict.forecast.lengths import PACKED, PADDED, Lengths
from epochcast.predict.forecast.placement import Placement
from epochcast.predict.forecast.session import Session
from epochcast.predict.forecast.where import Where

LANGUAGE_OPTIMIZER = "adamw"
_HALVES = ("bf16", "fp16")
_DIFFUSION_HOSTS = ("diffusion_trainer", "diffusion_transformer")
"""Classes of hosts that networks of diffusion models are trained on (`hosts.toml`)."""


@dataclass(frozen=True)
class Settled:
    """A job with nothing left open, and the options that were assumed for it."""

    job: Job
    assumed: Mapping[str, Any] = field(default_factory=dict)


def settled(job: Job, device: Device | None, session: Session) -> Settled:
    """The job as it is forecast on a device. Without one, the precision of a language model stays open."""
    assumed: dict[str, Any] = {}
    lengths = _text_lengths(job, session)
    if lengths is not None:
        assumed["lengths"] = lengths.text
        if lengths.way == PACKED and job.input_shape is None:
            assumed["input_shape"] = (lengths.most,)
        job = replace(job, lengths=lengths.text, input_shape=None)
    elif (length := _text_length(job, session)) is not None:
        assumed["input_shape"] = length
        job = replace(job, input_shape=length)
    if AUTO in (job.precision, job.optimizer):
        is_mixed = _is_language_model(job, session) or _is_diffusion_model(job, session)
        if job.precision == AUTO and not (is_mixed and device is None):
            assumed["precision"] = usual_mixed_precision(device) if is_mixed and device else PLAIN["precision"]
        half = half_base(str(assumed.get("precision")))
        if half is not None and isinstance(job.model, str) and _loads_base(job):
            assumed["weights"] = half
        if job.optimizer == AUTO:
            assumed["optimizer"] = LANGUAGE_OPTIMIZER if is_mixed else PLAIN["optimizer"]
    named: dict[str, Any] = {name: assumed[name] for name in ("precision", "weights", "optimizer") if name in assumed}
    if job.mode != "training":
        assumed.pop("optimizer", None)  # nothing is updated
    order = [name for name in ("precision", "weights", "optimizer", "input_shape", "lengths") if name in assumed]
    if unsaid := _deciding_memory(job, assumed):
        named["assumed"] = unsaid
    return Settled(replace(job, **named) if named else job, {name: assumed[name] for name in order})


def half_base(precision: str) -> str | None:
    """How a frozen base beside adapters is loaded under a mixed precision; None under any other."""
    half = precision.removeprefix("amp_")
    return half if precision.startswith("amp_") and half in _HALVES else None


def _loads_base(job: Job) -> bool:
    """Whether adapters are trained beside a frozen base whose storage nobody said."""
    is_quantised = job.four_bit or job.eight_bit or job.quantize != NOT_QUANTISED
    return bool(job.lora) and job.weights is None and not is_quantised


def _deciding_memory(job: Job, assumed: Mapping[str, Any]) -> tuple[str, ...]:
    """Of what was assumed, what changes memory and a user can hardly see: how long texts are."""
    return tuple(dict.fromkeys((*job.assumed, *(name for name in ("lengths",) if name in assumed))))


def plain_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options in types that JSON has."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in options.items()}


def placement_of(where: Where, job: Job, session: Session) -> Placement:
    """The place of a job. A measured product that names no format is in the job's."""
    if where.gemm_seconds is None or job.precision != AUTO:
        return where.placement(job.precision)
    return where.placement(settled(job, where.found_device(), session).job.precision)


def _is_language_model(job: Job, session: Session) -> bool:
    try:
        return session.is_language_model(job)
    except BadInput:
        return False  # a network that cannot be built: the forecast says why


def _is_diffusion_model(job: Job, session: Session) -> bool:
    try:
        return getattr(session.model(job), "host_class", None) in _DIFFUSION_HOSTS
    except BadInput:
        return False


def usual_mixed_precision(device: Device) -> str:
    """The usual mixed precision of a device, where it multiplies halves faster than float32."""
    mixed = mixed_precision(device.peak_flops_per_second)
    peaks = device.peak_flops_per_second
    is_faster = device.tensor_cores and peaks.get(mixed.math, 0.0) > peaks.get("fp32", 0.0)
    return mixed.name if is_faster else PLAIN["precision"]


def _text_lengths(job: Job, session: Session) -> Lengths | None:
    """How long the texts of a data set are that tells their mean; None where the job says it, or takes no texts."""
    dataset = job.known_dataset
    if dataset is None or dataset.mean_tokens is None or job.lengths is not None:
        return None
    if not job.packing and (job.input_shape is not None or not isinstance(job.model, str)):
        return None
    most = _sequence_tokens(job, session) if job.packing else dataset.sample_shape[0]
    if most is None:
        return None
    lengths = Lengths(min(dataset.mean_tokens, most), most, PACKED if job.packing else PADDED)
    return lengths if _takes(replace(job, lengths=lengths.text, input_shape=None), session) else None


def _sequence_tokens(job: Job, session: Session) -> int | None:
    """Tokens of a sequence: the job's, else the network's."""
    if job.input_shape is not None:
        return job.input_shape[0]
    try:
        shape = session.model(job).graph(1).inputs[0].shape
    except BadInput:
        return None
    return shape[1] if len(shape) == 2 else None


def _takes(job: Job, session: Session) -> bool:
    """Whether the network takes texts as long as the longest of the job."""
    try:
        session.model(job).graph(1)
    except BadInput:
        return False
    return True


def _text_length(job: Job, session: Session) -> tuple[int, ...] | None:
    """The length of the texts of a data set; None where the job says one, or the network takes no texts so long."""
    dataset = job.known_dataset
    if dataset is None or dataset.kind != "text" or dataset.counts_tokens:
        return None
    if job.input_shape is not None or job.lengths is not None or not isinstance(job.model, str):
        return None
    if not _takes(replace(job, input_shape=dataset.sample_shape), session):
        return None  # no network of texts, or one of shorter texts: its own length is asked for instead
    return dataset.sample_shape
