"""What the data loader of a job asks of its node: processors and memory.

    workers per GPU = ⌈seconds a worker takes for a batch / seconds of the step on the GPU⌉        (unless the job says)
    processors      = (workers + 1) per GPU: its own process, too
    memory          = the loader's batches ahead, its workers and its processes (`loader_queue.Feed.host_bytes`)

A loader counts where the job says its speed or its workers, or where images are decoded.
"""

from dataclasses import dataclass
from math import ceil, inf

from epochcast.predict.forecast.assumed import assumed_service, host_of, service_of
from epochcast.predict.forecast.forecast import Forecast
from epochcast.predict.forecast.loader_queue import MOST_AHEAD, PREFETCH, feed_for
from epochcast.predict.forecast.loader_step import is_decoded


@dataclass(frozen=True, slots=True)
class LoaderNeeds:
    """Of one node."""

    workers_per_gpu: int
    cpus: int
    memory_bytes: int


def loader_needs(forecast: Forecast) -> LoaderNeeds | None:
    """The needs of a forecast's loader; None where data needs no work."""
    details = forecast.details
    job, placement, trace = details.job, details.placement, details.trace
    if job.loader_seconds is not None:
        service, _ = service_of(trace, job.loader_seconds)
    elif is_decoded(trace, placement):
        service = assumed_service(trace)
    elif job.workers is not None:
        return LoaderNeeds(job.workers, (job.workers + 1) * placement.ranks_per_node, 0)
    else:
        return None
    parts = details.step.parts
    gpu_seconds = max(1e-9, details.step.seconds.mid - parts.exposed_input)
    most = max(1, MOST_AHEAD // PREFETCH)
    batch = trace.batch * trace.recipe.accumulate
    workers = min(most, max(1, ceil(service.seconds(batch) / gpu_seconds))) if job.workers is None else job.workers
    host, _ = host_of(placement, cpus=job.cpus, memory_bytes=inf)
    feed = feed_for(trace, placement, service, host, workers=workers)
    return LoaderNeeds(workers, (workers + 1) * placement.ranks_per_node, ceil(feed.host_bytes))
