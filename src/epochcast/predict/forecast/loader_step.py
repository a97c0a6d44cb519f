"""A step with its data loader: which one a job has, and how long the step waits for it.

    loader seconds said           that loader, its queue solved batch by batch (`loader_queue`)
    images decoded on the host    the usual decoding (`assumed`), by the workers that the job or its script says; by the
                                  usual ones where it names a data set of image files
    synthetic data                no step waits for it, unless the job says workers
    texts, arrays in memory       a copy that no step waits for

The speed of usual decoding is known to a third, so its step is that of the fluid limit, max(GPU, loader): the order of
batches changes less. Copies of batches to the device are taken to run beside the step. Whoever has more workers, idle
processors for them or a quicker decoder may not wait at all: where the workers are assumed, the interval of the step
begins where that of the GPU alone does.

Verbs that choose machines count a loader only where the job says one: more workers cost nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from math import ceil, inf, prod

from epochcast.base.notes import Importance, Note
from epochcast.describe.graph.trace import Trace
from epochcast.errors import BadInput
from epochcast.predict.forecast.assumed import DECODE_VALUES, assumed_service, host_of, service_of, values_of
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.loader_queue import Feed, feed_for, with_input
from epochcast.predict.forecast.placement import Placement
from epochcast.predict.forecast.step import INPUT, StepForecast
from epochcast.units import show_seconds

# Pictures from here on are taken to be files that are decoded; smaller ones (MNIST, CIFAR) lie in memory as arrays.
LEAST_DECODED = DECODE_VALUES // 4
# So many workers per GPU are what people start with: `-j` of timm's train.py and of PyTorch's ImageNet example. Others
# start with more (torchvision's references 16, ultralytics 8), which the interval holds.
USUAL_WORKERS = 4
# Waits that are a smaller part of a step are not worth a word.
LEAST_WAIT = 0.02


class CountedLoader(Enum):
    """Which loader a step waits for: none, one that the job says, else the usual one of its data set."""

    NONE = "none"
    SAID = "said"
    USUAL = "usual"


@dataclass(frozen=True)
class LoadedStep:
    """A step that waits for its data, and what to say of the loader. `assumed_workers`: nobody said how many load."""

    step: StepForecast
    notes: tuple[str, ...] = ()
    assumed_workers: int | None = None


def is_decoded(trace: Trace, placement: Placement) -> bool:
    """Whether a step trains a GPU on images that its host decodes."""
    if placement.device.kind != "gpu" or trace.recipe.mode != "training":
        return False
    return max((values_of(tensor) for tensor in trace.inputs if len(tensor.shape) >= 4), default=0) >= LEAST_DECODED


def reads_image_files(job: Job) -> bool:
    """Whether the data set of a job is of images that PyTorch's loader reads and decodes."""
    dataset = job.known_dataset
    is_files = dataset is not None and dataset.kind == "image" and prod(dataset.sample_shape) >= LEAST_DECODED
    return is_files and job.framework == "pytorch"


def counted_workers(job: Job, placement: Placement, trace: Trace, loader: CountedLoader) -> int | None:
    """Workers of a loader whose speed nobody said, where it counts; None where it does not."""
    if loader is CountedLoader.NONE or job.loader_seconds is not None or not is_decoded(trace, placement):
        return None
    is_assumed = job.workers is None and loader is CountedLoader.USUAL and reads_image_files(job)
    return USUAL_WORKERS if is_assumed else job.workers


def loaded_step(
    job: Job, placement: Placement, trace: Trace, step: StepForecast, loader: CountedLoader = CountedLoader.USUAL
) -> LoadedStep:
    """A step with what it waits for data."""
    if job.loader_seconds is not None:
        service, _ = service_of(trace, job.loader_seconds)
        host, assumed = host_of(placement, cpus=job.cpus, memory_bytes=inf)
        feed = feed_for(trace, placement, service, host, workers=job.workers, prefetch=job.prefetch)
        return LoadedStep(with_input(step, feed), assumed)
    if loader is CountedLoader.NONE:
        return LoadedStep(step)
    workers = counted_workers(job, placement, trace, loader)
    if workers is None:
        return LoadedStep(step, tuple(_unused(job, placement, trace)))
    host, _ = host_of(placement, cpus=job.cpus, memory_bytes=inf)
    feed = feed_for(trace, placement, assumed_service(trace), host, workers=workers, prefetch=job.prefetch)
    fed = with_input(step, replace(feed, copy_seconds=0.0), is_fluid=True)
    notes = tuple(_limits(feed, fed, step))
    if job.workers is None and fed.seconds != step.seconds:
        return LoadedStep(_perhaps_waiting(fed, step), notes, workers)
    return LoadedStep(fed, notes)


def waits(step: StepForecast) -> bool:
    """Whether a step waits for its data as long as is worth a word."""
    return step.parts.exposed_input > LEAST_WAIT * step.seconds.mid


def _perhaps_waiting(fed: StepForecast, step: StepForecast) -> StepForecast:
    """A step that may as well never wait: its interval begins with that of the GPU alone."""
    seconds = replace(fed.seconds, low=min(fed.seconds.low, step.seconds.low))
    if not waits(fed):
        return replace(fed, seconds=seconds)
    spread = (seconds.high - seconds.low) / 2 / seconds.mid
    return replace(fed, seconds=seconds, variances={**fed.variances, INPUT: spread**2})


def _limits(feed: Feed, fed: StepForecast, step: StepForecast) -> Iterator[Note]:
    """How many images the loader delivers, and how many the GPU takes."""
    if not waits(fed):
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
