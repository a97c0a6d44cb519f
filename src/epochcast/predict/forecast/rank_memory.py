"""The memory of the GPU that holds most of a job's step."""

from dataclasses import replace
from typing import TypedDict

from epochcast.describe.capture.model import BuiltModel, Model
from epochcast.describe.capture.model_reference import CONFIGURED, FILE_ENDINGS, LIBRARIES, ModelReference
from epochcast.describe.graph.optimizer import OPTIMIZERS
from epochcast.describe.graph.trace import Trace
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.placement import Placement
from epochcast.predict.forecast.session import Session
from epochcast.predict.memory.communication_buffers import communication_bytes
from epochcast.predict.memory.device_context import FrameworkVersion
from epochcast.predict.memory.largest_batch import LargestBatch, largest_of
from epochcast.predict.memory.lifetimes import Role, lifetimes
from epochcast.predict.memory.memory_spreads import ALONE, CAPTURED, REPLICAS, SHARDED, SPLIT, ZOO, StepKind
from epochcast.predict.memory.peak import MemoryStep, PeakMemory, peak_memory, step_on
from epochcast.predict.memory.sharding import Held
from epochcast.predict.memory.varied_lengths import VariedLengths

SHORTEST_VARIED = 8
"""Lengths of texts whose maximum is shorter than this are taken as equal."""

_SET_TO_NONE = (2, 0)
"""The version of PyTorch since which gradients are dropped between steps and summed in place."""


class MemoryOptions(TypedDict):
    """What the memory of a step depends on besides the step and the device, as `predict.memory.peak` calls it."""

    set_to_none: bool
    sums_in_place: bool
    allocator: str
    framework_version: FrameworkVersion | None
    kind: StepKind


def memory_options(job: Job, placement: Placement) -> MemoryOptions:
    """How a framework allocates: the allocator is its own. PyTorch before 2.0 kept gradients between steps and summed
    them beside their parts.
    """
    version = job.framework_numbers if job.framework == "pytorch" else None
    is_old = version is not None and version < _SET_TO_NONE
    return {
        "set_to_none": not (job.keep_gradients or is_old),
        "sums_in_place": not is_old,
        "allocator": "bfc" if job.framework == "tensorflow" else "caching",
        "framework_version": version,
        "kind": StepKind(capture_of(job.model), sharing=_sharing(placement), is_assumed=bool(job.assumed)),
    }


def _sharing(placement: Placement) -> str:
    """What a GPU has of the model."""
    if placement.gpus == 1:
        return ALONE
    if placement.replicas < placement.gpus:
        return SPLIT
    return REPLICAS if placement.strategy.sharing_less is None else SHARDED


def capture_of(model: object) -> str:
    """How a job's network is known: written here, or traced of its own code or file."""
    if not isinstance(model, str):
        return ZOO if isinstance(model, BuiltModel) else CAPTURED
    reference = ModelReference.of(model)
    is_foreign = reference.is_code or reference.prefix in (*LIBRARIES, *CONFIGURED)
    return CAPTURED if is_foreign or model.lower().endswith(FILE_ENDINGS) else ZOO


def held_by_rank(placement: Placement, trace: Trace) -> Held:
    """What the GPU that holds most has of a step, by the strategy, and the buffers of its communicators."""
    held = placement.strategy.held(trace, placement.gpus)
    buffers_bytes = communication_bytes(placement.strategy.communicators(placement.group), placement.device)
    return held._replace(shares=replace(held.shares, communication_bytes=buffers_bytes))


def job_memory(job: Job, placement: Placement, model: Model, trace: Trace, session: Session) -> PeakMemory:
    """The peak memory of the GPU that holds most. With checkpointing or frozen parameters it needs no more than
    without, however blocks happen to fall into an allocator's.
    """

    def compute() -> PeakMemory:
        memory = rank_memory(job, placement, trace, varied_lengths(job, placement, trace, session))
        for recipe in trace.recipe.holding_more():
            memory = memory.at_most(job_memory(job, placement, model, session.trace(model, recipe), session))
        return memory

    options = tuple(memory_options(job, placement).items())
    key = (
        *(model, trace.recipe, placement.device, placement.group, placement.strategy, options),
        *(job.lengths, job.empty_cache_steps),
    )
    return session.memories.get(key, compute)


def varied_lengths(job: Job, placement: Placement, trace: Trace, session: Session) -> VariedLengths | None:
    """The step at three lengths, and a stretch of batches; None where all batches are as long."""
    lengths = job.length_distribution
    drawn = () if lengths is None else lengths.batches(trace.batch)
    if lengths is None or len(set(drawn)) < 2 or lengths.most < SHORTEST_VARIED:
        return None
    nodes = []
    for length in (lengths.most // 4, lengths.most // 2):
        shorter = session.model(replace(job, lengths=None, input_shape=(length,)))
        nodes.append((length, session.trace(shorter, trace.recipe)))
    return VariedLengths((*nodes, (lengths.most, trace)), drawn, job.empty_cache_steps)


def rank_memory(job: Job, placement: Placement, trace: Trace, varied: VariedLengths | None = None) -> PeakMemory:
    """The peak memory of the GPU that holds most. A compiled step needs no more than an eager one, and one whose
    storages are sharded no more than one whose are not, however their blocks happen to fall into an allocator's.
    """
    memory = _held_memory(job, placement, trace, varied)
    if trace.recipe.is_compiled:
        eager = varied and varied.changed(lambda step: step.under(step.recipe.eager()))
        memory = memory.at_most(_held_memory(job, placement, trace.under(trace.recipe.eager()), eager))
    less = placement.strategy.sharing_less
    if less is None:
        return memory
    return memory.at_most(rank_memory(job, replace(placement, strategy=less), trace, varied))


def _held_memory(job: Job, placement: Placement, trace: Trace, varied: VariedLengths | None) -> PeakMemory:
    """State that is paged leaves the device where it has no room for it."""
    held = held_by_rank(placement, trace)
    parts = varied and varied.changed(lambda step: held_by_rank(placement, step).trace)
    options = memory_options(job, placement)
    memory = peak_memory(held.trace, placement.device, shares=held.shares, varied=parts, **options)
    if memory.fits or not OPTIMIZERS[trace.recipe.optimizer].is_paged or placement.device.kind != "gpu":
        return memory
    state_bytes = lifetimes(held.trace).total_bytes(Role.OPTIMIZER_STATE)
    shares = replace(held.shares, state_fraction=0.0)
    paged = peak_memory(held.trace, placement.device, shares=shares, varied=parts, **options)
    return replace(paged, paged_bytes=round(state_bytes * held.shares.state_fraction))


def rank_step(job: Job, placement: Placement, trace: Trace) -> MemoryStep:
    """The storages of the GPU that holds most, at any batch."""
    held = held_by_rank(placement, trace)
    return step_on(held.trace, placement.device, shares=held.shares, **memory_options(job, placement))


def job_largest_batch(job: Job, placement: Placement, model: Model, trace: Trace, session: Session) -> LargestBatch:
    """The largest batch that the GPU that holds most has room for; as `job_memory` no smaller than what holds more."""
    largest = rank_largest_batch(job, placement, trace)
    for recipe in trace.recipe.holding_more():
        more = session.trace(model, recipe)
        largest = largest.at_least(job_largest_batch(job, placement, model, more, session))
    return largest


def rank_largest_batch(job: Job, placement: Placement, trace: Trace) -> LargestBatch:
    """The largest batch that the GPU that holds most has room for."""
    largest = largest_of(rank_step(job, placement, trace))
    less = placement.strategy.sharing_less
    if less is None:
        return largest
    return largest.at_least(rank_largest_batch(job, replace(placement, strategy=less), trace))
