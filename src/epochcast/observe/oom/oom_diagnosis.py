"""Which part filled the card, when, and what would fit.

From the message alone: tensors, what the allocator holds in none of them, the context, other processes. With a job, the
tensors are separated by the forecast memory of its step, and the one that was asked for is looked up by its size.

A job that ran out of memory needs more than its forecast may say. Remedies are forecast for a card of

    (capacity - others) / max(1, (allocated + asked for) / forecast allocated)

bytes: what the forecast is short of, it is short of after a change, too. Larger cards are divided by the same factor,
and memory is shown multiplied by it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from epochcast.base.display import Displayed
from epochcast.base.record import Record, paths
from epochcast.describe.graph.op import Op
from epochcast.describe.graph.training import LOSS_LAYER
from epochcast.errors import BadInput
from epochcast.observe.oom.oom_message import (
    BACKWARD,
    EVALUATION,
    FORWARD,
    JAX,
    LOADING,
    LOSS,
    PYTORCH,
    UPDATE,
    OomMessage,
)
from epochcast.predict.forecast.forecast import Forecast
from epochcast.predict.forecast.forecaster import forecast_job
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.placement import Placement
from epochcast.predict.forecast.remedies import EFFORTS, Remedy, larger_devices
from epochcast.predict.forecast.session import Session
from epochcast.predict.memory.device_context import context_bytes, usable_bytes
from epochcast.predict.memory.timeline import Timeline
from epochcast.units import show_bytes

WEIGHTS, GRADIENTS, STATE, ACTIVATIONS, LOGITS = "weights", "gradients", "optimizer state", "activations", "logits"
FRAGMENTATION, OTHERS, CONTEXT, TENSORS = "fragmentation", "another process", "context", "tensors"
OTHERS_SHOW, FRAGMENTS_SHOW, LARGE_SHOWS = 0.05, 0.1, 0.3
"""Shares of the card from which other processes, memory held in no tensor, and one tensor count. Set by hand."""
FREE_SHOWS = 1.5
"""With so many times what was asked for free, the card was not full."""
OTHER_CARD = 0.15
"""A capacity that differs from the data sheet's by more is that of another GPU."""
LOGITS_SHOW = 0.15
"""Share of the peak from which what belongs to the loss and the scores of a vocabulary counts as the filling part."""
SEGMENT_BYTES, LARGE_BYTES, PRINTED = 2 << 20, 10 << 20, 0.005
"""PyTorch asks the driver for 2 MiB or multiples of them (20 MiB for what is smaller than 10); two decimals are
printed."""
_ROLES: Mapping[str, str] = {
    "parameters": WEIGHTS,
    "gathered": WEIGHTS,
    "autocast_copies": WEIGHTS,
    "buffers": WEIGHTS,
    "gradients": GRADIENTS,
    "buckets": GRADIENTS,
    "optimizer_state": STATE,
    "fragmentation": FRAGMENTATION,
    "context": CONTEXT,
    "communication": CONTEXT,
}
"""The part that each content of a forecast peak belongs to; all others are activations."""
_BY_MOMENT: Mapping[str, str] = {
    LOADING: WEIGHTS,
    FORWARD: ACTIVATIONS,
    LOSS: LOGITS,
    BACKWARD: ACTIVATIONS,
    UPDATE: STATE,
    EVALUATION: ACTIVATIONS,
}


@dataclass(frozen=True, slots=True)
class MemoryPart(Record):
    """Bytes of one part; `is_forecast` where the message does not say them."""

    name: str
    bytes: int
    is_forecast: bool = False


@dataclass(frozen=True, slots=True)
class OomSetting(Record):
    """A setting or action that changes nothing of what is trained, and why it would help."""

    setting: str
    reason: str


@dataclass(frozen=True)
class OomDiagnosis(Displayed, Record):
    """What filled the card (`culprit`, None where nothing says it), when, and what would fit.

    `asked_for` is the tensor of the job whose size was asked for. `shortfall_bytes` were missing. `settings` are tried
    first; `remedies` change the job, each with its memory and step after it.
    """

    view: ClassVar[str] = "oom"
    json_paths: ClassVar[Mapping[str, str]] = paths(
        "culprit",
        "evidence",
        "asked_for",
        "shortfall_bytes",
        "parts",
        "settings",
        "remedies",
        "warnings",
        message="message",
        moment="moment",
        model="forecast.model",
        device="forecast.device",
        batch_per_gpu="forecast.batch_per_gpu",
        forecast_peak_bytes="forecast.peak_bytes",
        forecast_step_seconds="forecast.step_seconds",
    )

    message: OomMessage
    culprit: str | None
    evidence: str
    parts: tuple[MemoryPart, ...]
    moment: str | None
    shortfall_bytes: int | None = None
    asked_for: str | None = None
    settings: tuple[OomSetting, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    forecast: Forecast | None = None
    warnings: tuple[str, ...] = ()


def diagnosed(message: OomMessage) -> OomDiagnosis:
    """By the message alone."""
    parts = tuple(_parts(message))
    culprit, evidence = _beside_tensors(message) or _by_moment(message)
    return OomDiagnosis(
        message,
        culprit,
        evidence,
        parts,
        message.moment,
        _shortfall(message),
        settings=tuple(_settings(message, culprit)),
    )


def diagnosed_job(message: OomMessage, job: Job, placement: Placement, session: Session) -> OomDiagnosis:
    """By the message and the job that ran out."""
    _check_card(message, placement)
    alone = diagnosed(message)
    forecast = forecast_job(job, placement, session)
    peak = _peak_parts(forecast)
    asked = _asked_for(message, forecast)
    culprit, evidence = _beside_tensors(message) or _by_job(message, forecast, peak, asked)
    moment = message.moment or _crossing(forecast)
    own = [part for part in alone.parts if part.name != TENSORS]
    said = {part.name for part in own}
    parts = (*own, *(MemoryPart(name, size, True) for name, size in peak.items() if size and name not in said))
    return replace(
        alone,
        culprit=culprit,
        evidence=evidence,
        parts=tuple(sorted(parts, key=lambda part: -part.bytes)),
        moment=moment,
        asked_for=None if asked is None else f"{asked.name} ({asked.layer})" if asked.layer else asked.name,
        settings=tuple(_settings(message, culprit)),
        remedies=tuple(sorted(_remedies(message, forecast, job, placement, session), key=_order)),
        forecast=forecast,
        warnings=forecast.warnings,
    )


def _check_card(message: OomMessage, placement: Placement) -> None:
    """Refuse a message of another GPU than the job's."""
    capacity, device = message.capacity_bytes, placement.device
    if message.framework == PYTORCH and capacity and abs(capacity / device.memory_bytes - 1) > OTHER_CARD:
        raise BadInput(
            f"the message is of a GPU with {show_bytes(capacity)}, and {device.name} has "
            f"{show_bytes(device.memory_bytes)}: give the device on which it ran"
        )


def _parts(message: OomMessage) -> Iterator[MemoryPart]:
    """What a message tells apart, the largest first."""
    sizes = {
        TENSORS: message.allocated_bytes,
        FRAGMENTATION: message.fragmented_bytes,
        CONTEXT: message.context_bytes,
        OTHERS: message.others_bytes,
    }
    parts = [MemoryPart(name, size) for name, size in sizes.items() if size]
    yield from sorted(parts, key=lambda part: -part.bytes)


def _beside_tensors(message: OomMessage) -> tuple[str | None, str] | None:
    """Another process or fragmentation, where it holds what was missing; a limit, where the card had room."""
    capacity, tried = message.capacity_bytes, message.tried_bytes or 0
    if not capacity:
        return None
    others, loose = message.others_bytes or 0, message.fragmented_bytes or 0
    if others > OTHERS_SHOW * capacity and others + (message.free_bytes or 0) >= tried:
        return OTHERS, f"other processes hold {show_bytes(others)} of {show_bytes(capacity)}"
    if loose > FRAGMENTS_SHOW * capacity and loose + (message.free_bytes or 0) >= tried:
        return FRAGMENTATION, f"{show_bytes(loose)} are reserved and in no tensor, {show_bytes(tried)} were asked for"
    if message.free_bytes is not None and message.free_bytes > FREE_SHOWS * tried > 0:
        asked = f"{show_bytes(tried)} were asked for with {show_bytes(message.free_bytes)} free"
        return None, f"{asked}: a limit of the process (set_per_process_memory_fraction), or a fault of the driver"
    return None


def _by_moment(message: OomMessage) -> tuple[str | None, str]:
    tried, capacity = message.tried_bytes or 0, message.capacity_bytes or 0
    if message.moment is None and capacity and tried > LARGE_SHOWS * capacity:
        share = f"{tried / capacity:.0%}".replace("%", " %")
        return ACTIVATIONS, f"one tensor of {show_bytes(tried)} was asked for, {share} of the card"
    if message.moment is None:
        return None, "the message has no traceback: give it, or the job, to tell the tensors apart"
    steps = message.steps
    after = "" if steps is None else f", after {steps:,.0f} steps"
    return _BY_MOMENT[message.moment], f"memory ran out in {PLACES[message.moment]}{after}{_longest(message)}"


PLACES: Mapping[str, str] = {
    LOADING: "loading the model",
    FORWARD: "the forward pass",
    LOSS: "the loss",
    BACKWARD: "the backward pass",
    UPDATE: "the optimizer's step",
    EVALUATION: "the evaluation",
}
_MANY_STEPS = 10


def _longest(message: OomMessage) -> str:
    """What goes wrong after many steps that went well."""
    is_late = message.steps is not None and message.steps > _MANY_STEPS
    return ": a batch larger than those before it, as of longer texts" if is_late and message.moment != UPDATE else ""


def _shortfall(message: OomMessage) -> int | None:
    if message.tried_bytes is None or message.free_bytes is None:
        return None
    return max(0, message.tried_bytes - message.free_bytes)


def _peak_parts(forecast: Forecast) -> dict[str, int]:
    """The forecast peak by part; logits are what the loss and its layer keep."""
    sums: dict[str, int] = {}
    for name, size in forecast.peak_breakdown.items():
        part = _ROLES.get(name, ACTIVATIONS)
        sums[part] = sums.get(part, 0) + size
    memory = forecast.details.memory
    logits = 0 if memory is None else sum(each.bytes for each in memory.alive if each.layer == LOSS_LAYER)
    logits = min(logits, sums.get(ACTIVATIONS, 0))
    if logits:
        sums[LOGITS], sums[ACTIVATIONS] = logits, sums[ACTIVATIONS] - logits
    return sums


def _asked_for(message: OomMessage, forecast: Forecast) -> Op | None:
    """The op whose result has the size that was asked for; None where several kinds of layers have, or none."""
    tried = message.tried_bytes
    if tried is None or tried <= 2 * LARGE_BYTES:
        return None
    printed = PRINTED * (1 << 30 if tried >= 1 << 30 else 1 << 20)
    ops = [
        op
        for op in forecast.details.trace.ops
        if any(abs(_segment(tensor.bytes) - tried) <= printed for tensor in op.outputs)
    ]
    return ops[0] if ops else None


def _segment(size: int) -> int:
    """What the caching allocator asks the driver for."""
    return -(-size // SEGMENT_BYTES) * SEGMENT_BYTES


def _by_job(
    message: OomMessage, forecast: Forecast, peak: Mapping[str, int], asked: Op | None
) -> tuple[str | None, str]:
    """The part that was growing then: what the moment allows, by what is largest in the forecast."""
    if message.moment == LOADING:
        return WEIGHTS, f"memory ran out in loading the model: its weights take {show_bytes(peak.get(WEIGHTS, 0))}"
    if message.moment == UPDATE:
        return STATE, f"the optimizer's first step allocates {show_bytes(peak.get(STATE, 0))} of state"
    if asked is not None and asked.layer == LOSS_LAYER:
        return (
            LOGITS,
            f"{show_bytes(message.tried_bytes or 0)} were asked for {asked.name}, the scores of the vocabulary",
        )
    of_tensors = {name: peak.get(name, 0) for name in (WEIGHTS, GRADIENTS, STATE, ACTIVATIONS, LOGITS)}
    all_bytes = sum(of_tensors.values())
    largest = max(of_tensors, key=lambda name: of_tensors[name])
    if of_tensors[LOGITS] > LOGITS_SHOW * all_bytes and of_tensors[LOGITS] >= of_tensors[ACTIVATIONS]:
        largest = LOGITS
    size = of_tensors[largest]
    return largest, f"{largest} take {show_bytes(size)} of a forecast {show_bytes(all_bytes)}{_longest(message)}"


def _crossing(forecast: Forecast) -> str | None:
    """The phase of the forecast step in which it first needs more than the card has; None where it never does."""
    timeline: Timeline | None = forecast.details.timeline
    if timeline is None:
        return None
    device = forecast.details.placement.device
    room = usable_bytes(device) - context_bytes(device, forecast.details.job.framework_numbers)
    over = (place for place, size in enumerate(timeline.total_bytes.tolist()) if size > room)
    first = next(over, None)
    return None if first is None else timeline.phases[first] if first else LOADING


def _settings(message: OomMessage, culprit: str | None) -> Iterator[OomSetting]:
    """What may be enough without a change of the job."""
    if culprit == OTHERS:
        yield OomSetting("stop the other processes", "nvidia-smi lists them; a crashed run often keeps one")
    if (
        message.framework == PYTORCH
        and (message.fragmented_bytes or 0) > FRAGMENTS_SHOW * (message.capacity_bytes or 0) > 0
    ):
        yield OomSetting(
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
            f"{show_bytes(message.fragmented_bytes or 0)} are reserved and in no tensor",
        )
    if message.framework == JAX and not message.steps:
        yield OomSetting("XLA_PYTHON_CLIENT_MEM_FRACTION=0.95", "JAX takes three quarters of the card by default")
    if message.moment == EVALUATION:
        yield OomSetting("evaluate under torch.no_grad(), with a smaller batch", "it ran out while evaluating")


def _remedies(
    message: OomMessage, forecast: Forecast, job: Job, placement: Placement, session: Session
) -> Iterator[Remedy]:
    """What fits the card as the message shows it, the cheapest first; its memory as the message has it."""
    device = placement.device
    if device.kind != "gpu":
        return
    short = _short_factor(message, forecast)
    left = device.memory_bytes - (message.others_bytes or 0)
    seen = replace(device, name=f"{device.name} as seen", aliases=(), memory_bytes=max(1 << 28, int(left / short)))
    answer = forecast_job(job, replace(placement, device=seen), session)
    if answer.fits:
        seen = replace(seen, memory_bytes=max(1 << 28, int(min(left, answer.allocated_bytes or left) / short)))
        answer = forecast_job(job, replace(placement, device=seen), session)
    if answer.fits:
        return
    larger = [replace(other, memory_bytes=int(other.memory_bytes / short)) for other in larger_devices(device)]
    for remedy in replace(answer.details.unfit, larger=larger).remedies():
        where = device.name if remedy.device == seen.name else remedy.device
        yield replace(remedy, device=where, peak_bytes=remedy.peak_bytes.scaled(short))


def _order(remedy: Remedy) -> tuple[int, float]:
    """What stays the same job comes first, then what costs the least time."""
    return EFFORTS.index(remedy.effort), remedy.time_factor


def _short_factor(message: OomMessage, forecast: Forecast) -> float:
    """What tensors needed over what was forecast for them, at least 1."""
    needed = (message.allocated_bytes or 0) + (message.tried_bytes or 0)
    return max(1.0, needed / forecast.allocated_bytes) if forecast.allocated_bytes and message.allocated_bytes else 1.0
