"""A step with its data loader: which one a job has, and how long the step waits for it.

    loader seconds said           that loader, its queue solved batch by batch (`loader_queue`)
    images decoded on the host    the usual decoding (`assumed`), by the workers that the job or its script says
    texts, arrays in memory       a copy that no step waits for

The speed of usual decoding is known to a third, so its step is that of the fluid limit, max(GPU, loader): the order of
batches changes less. Copies of batches to the device are taken to run beside the step.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil, inf

from epochcast.base.notes import Importance, Note
from epochcast.describe.graph.trace import Trace
from epochcast.errors import BadInput
from epochcast.predict.forecast.assumed import DECODE_VALUES, assumed_service, host_of, service_of, values_of
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.loader_queue import Feed, feed_for, with_input
from epochcast.predict.forecast.placement import Placement
from epochcast.predict.forecast.step import StepForecast
from epochcast.units import show_seconds

# Pictures from here on are taken to be files that are decoded; smaller ones (MNIST, CIFAR) lie in memory as arrays.
LEAST_DECODED = DECODE_VALUES // 4
# So many workers are what people start with: the default of PyTorch's own ImageNet example.
USUAL_WORKERS = 4
# Waits that are a smaller part of a step are not worth a word.
LEAST_WAIT = 0.02


@dataclass(frozen=True)
class LoadedStep:
    """A step that waits for its data, and what to say of the loader."""

    step: StepForecast
    notes: tuple[str, ...] = ()


def is_decoded(trace: Trace, placement: Placement) -> bool:
    """Whether a step trains a GPU on images that its host decodes."""
    if placement.device.kind != "gpu" or trace.recipe.mode != "training":
        return False
    return max((values_of(tensor) for tensor in trace.inputs if len(tensor.shape) >= 4), default=0) >= LEAST_DECODED


def counted_workers(job: Job, placement: Placement, trace: Trace) -> int | None:
    """Workers of a loader whose speed nobody said, where it counts; None where it does not."""
    if job.loader_seconds is not None or not is_decoded(trace, placement):
        return None
    return job.workers


def loaded_step(job: Job, placement: Placement, trace: Trace, step: StepForecast) -> LoadedStep:
    """A step with what it waits for data."""
    if job.loader_seconds is not None:
        service, _ = service_of(trace, job.loader_seconds)
        host, assumed = host_of(placement, cpus=job.cpus, memory_bytes=inf)
        feed = feed_for(trace, placement, service, host, workers=job.workers, prefetch=job.prefetch)
        return LoadedStep(with_input(step, feed), assumed)
    workers = counted_workers(job, placement, trace)
    if workers is None:
        return LoadedStep(step, tuple(_unused(job, placement, trace)))
    host, _ = host_of(placement, cpus=job.cpus, memory_bytes=inf)
    feed = feed_for(trace, placement, assumed_service(trace), host, workers=workers, prefetch=job.prefetch)
    fed = with_input(step, replace(feed, copy_seconds=0.0), is_fluid=True)
    return LoadedStep(fed, tuple(_limits(feed, fed, step)))


def _limits(feed: Feed, fed: StepForecast, step: StepForecast) -> Iterator[Note]:
    """How many images the loader delivers, and how many the GPU takes."""
    if fed.parts.exposed_input <= LEAST_WAIT * fed.seconds.mid:
        return
    bounds, gpu_seconds = feed.bounds(step.seconds.mid), step.seconds.mid
    loaded, needed = feed.batch / fed.seconds.mid, feed.batch / gpu_seconds
    plural = "" if feed.workers == 1 else "s"
    said = f"{feed.workers} worker{plural} per GPU"
    wanted = ceil(feed.service.seconds(feed.batch) / gpu_seconds)
    is_short = bounds["cpus"] > gpu_seconds
    remedy = "Its CPUs cannot feed it" if is_short else f"Use {wanted} workers (`workers` {wanted})"
    taken = show_seconds(feed.service.sample_mean_seconds)
    yield Note(
        f"Data loading limits this job: {said} load {loaded:,.0f} images/s, the GPU can use {needed:,.0f}. {remedy}; "
        f"assuming {taken} per image and worker, or set `loader_seconds`.",
        Importance.LIMIT,
    )


def _unused(job: Job, placement: Placement, trace: Trace) -> Iterator[Note]:
    """Options of a loader that no step waits for."""
    if job.cpus is not None and not is_decoded(trace, placement):
        raise BadInput("cpus of a loader mean nothing without its speed: give `loader_seconds`")
    if job.workers is not None:
        yield Note(
            f"`workers` {job.workers} changes nothing here: no images are decoded. Set `loader_seconds` to include the "
            "loader.",
            Importance.DETAIL,
        )
