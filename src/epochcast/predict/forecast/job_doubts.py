"""What one should know of a job before believing its forecast: where it does something else than one would think."""

from collections.abc import Iterator, Sequence
from math import ceil, prod

import numpy as np

from epochcast.base.notes import Importance, Note
from epochcast.describe.graph.math_modes import OP_MATHS
from epochcast.describe.graph.op_kinds import Attention
from epochcast.describe.graph.recipe import SELECTIVE
from epochcast.describe.graph.trace import Columns, Trace
from epochcast.hardware.device import Device
from epochcast.predict.cost.op_bounds import as_run
from epochcast.predict.forecast.assumed import assumed_service, host_of
from epochcast.predict.forecast.attention_kernels import seen_windows
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.loader_queue import feed_for
from epochcast.predict.forecast.loader_step import (
    LEAST_DECODED,
    USUAL_WORKERS,
    CountedLoader,
    counted_workers,
    is_decoded,
)
from epochcast.predict.forecast.placement import Placement
from epochcast.predict.forecast.step import StepForecast
from epochcast.units import show_seconds

# Images with so many times the values take that much longer.
SIZES_DIFFER = 1.3
_LOADER_LIMITS = "Data loading may limit this job"
_LOADER_MANY = (
    _LOADER_LIMITS + " on {count} GPUs: {names}. Use more workers per GPU, or set `loader_seconds` to include it."
)
NOT_AS_ASKED = Importance.NOT_AS_ASKED
# From this part of a step on, the host decides how long it takes.
HOST_FRACTION = 0.3
# Casts that add less than this to a step are not worth a word.
CASTS_FRACTION = 0.02


def is_about_loader(note: str) -> bool:
    """Whether a note says that data loading may limit a job without a loader."""
    return isinstance(note, Note) and note.many == _LOADER_MANY


def job_doubts(
    job: Job, placement: Placement, trace: Trace, step: StepForecast, loader: CountedLoader = CountedLoader.USUAL
) -> Iterator[Note]:
    """Formats the device lacks, nothing to train, a loader that nobody mentioned, a host that nobody named."""
    yield from format_doubts(trace, placement.device)
    if trace.recipe.mode == "training" and trace.parameters and not trace.parameter_counts[1]:
        yield Note("Every parameter is frozen: the step is a forward pass and trains nothing.", NOT_AS_ASKED)
    if step.casts_seconds > CASTS_FRACTION * step.seconds.mid:
        with_casts = show_seconds(step.seconds.mid + step.casts_seconds)
        yield Note(
            f"{trace.recipe.precision} gains nothing here: with its casts the step may take {with_casts}, so this is "
            "the forecast for fp32. A larger batch gains.",
            NOT_AS_ASKED,
        )
    if trace.recipe.checkpointing == SELECTIVE and any(isinstance(op.kind, Attention) for op in trace.template.base):
        text = "`checkpointing` selective recomputes stored attention scores, and fused attention stores none: it "
        yield Note(f"{text}changes nothing here. Use `operators` or `full`.", NOT_AS_ASKED)
    yield from _mask_doubts(job, trace)
    yield from _size_doubts(job, trace)
    yield from _loader_doubts(job, placement, trace, step, loader)
    is_unknown = placement.host is None and placement.device.launch_seconds is None
    if is_unknown and step.parts.host > HOST_FRACTION * step.seconds.mid:
        share = step.parts.host / step.seconds.mid
        yield Note(
            f"Kernel launches take {share:.0%} of the step on an assumed host: set `host_class`.",
            Importance.LIMIT,
            about=f"{share:.0%}",
            many="Kernel launches take much of {count} steps on an assumed host ({names}): set `host_class`.",
        )


def _mask_doubts(job: Job, trace: Trace) -> Iterator[Note]:
    """Whether a window saves nothing, because PyTorch's own attention reads it as a mask."""
    if not job.padding_mask and any(window is not None and window.is_mask for window in seen_windows(trace)):
        text = (
            "PyTorch's own attention reads the sliding window as a mask: it saves no time, and each layer keeps a bias."
        )
        yield Note(f"{text} Use `attention` flash.", Importance.LIMIT)


def _size_doubts(job: Job, trace: Trace) -> Iterator[Note]:
    """Whether small images of a data set are fed at another size than they have: somebody resizes them, or a network's
    own size was taken.
    """
    dataset = job.known_dataset
    if dataset is None or dataset.kind != "image" or prod(dataset.sample_shape) >= LEAST_DECODED or not trace.inputs:
        return
    fed, own = trace.inputs[0].shape[1:], dataset.sample_shape
    if len(fed) != len(own) or not 1 / SIZES_DIFFER < prod(fed) / prod(own) < SIZES_DIFFER:
        text = f"{dataset.name} has images of {_shown_shape(own)}, and the step is forecast for {_shown_shape(fed)}."
        hint = f" Use `input_shape` {_shown_shape(own)} if they are not resized." if len(fed) == len(own) else ""
        yield Note(text + hint, Importance.EVIDENCE)


def _shown_shape(shape: Sequence[int]) -> str:
    """3x32x32"""
    return "x".join(map(str, shape))


def format_doubts(trace: Trace, device: Device) -> Iterator[Note]:
    """Which format really multiplies where the device lacks that of the precision, and which would be faster."""
    math, peaks = trace.recipe.precision_rules.math, device.peak_flops_per_second
    if device.kind != "gpu" or math in peaks:
        return
    said = f"{device.name} has no {math} arithmetic: {trace.recipe.precision} is computed in"
    runs_as = _most_multiplied(as_run(trace.columns, device))
    faster = "; amp_fp16 runs on its tensor cores" if device.tensor_cores and runs_as == "fp32" else ""
    yield Note(f"{said} {runs_as}{faster}.", NOT_AS_ASKED)


def _most_multiplied(columns: Columns) -> str:
    """The format of most products."""
    flops = np.bincount(columns.math[columns.is_matrix], columns.flops[columns.is_matrix], len(OP_MATHS))
    return OP_MATHS[int(flops.argmax())]


def _loader_doubts(
    job: Job, placement: Placement, trace: Trace, step: StepForecast, loader: CountedLoader
) -> Iterator[Note]:
    """Whether pictures could be decoded as quickly as the step takes them, where nobody said how long that takes."""
    if job.loader_seconds is not None or step.parts.exposed_input > 0 or not is_decoded(trace, placement):
        return
    if counted_workers(job, placement, trace, loader) is not None:
        return
    service = assumed_service(trace)
    host, _ = host_of(placement, cpus=job.cpus)
    feed = feed_for(trace, placement, service, host)
    needed = feed.least_step_seconds(0.0)
    step_seconds = step.seconds.mid
    busy = service.seconds(feed.batch) / step_seconds
    wanted = feed.batch / step_seconds
    ranks = placement.ranks_per_node
    if needed > step_seconds:
        text = (
            f"{_LOADER_LIMITS}: {host.cpus:g} CPUs load {ranks * feed.batch / needed:,.0f} images/s, "
            f"{'the GPU needs' if ranks == 1 else f'{ranks} GPUs need'} {ranks * wanted:,.0f}. "
            "Set `loader_seconds` to include it."
        )
    elif busy > USUAL_WORKERS:
        loaded = USUAL_WORKERS * feed.batch / service.seconds(feed.batch)
        text = (
            f"{_LOADER_LIMITS}: {USUAL_WORKERS} workers per GPU load {loaded:,.0f} images/s, "
            f"{'the GPU' if ranks == 1 else 'each GPU'} needs {wanted:,.0f}. "
            f"Use {ceil(busy)} workers, or set `loader_seconds` to include it."
        )
    else:
        return
    yield Note(text, Importance.LIMIT, about=placement.device.name, many=_LOADER_MANY)
