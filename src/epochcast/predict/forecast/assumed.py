"""What is taken where nobody said: the host of a device, and a loader for the kind of input. Answers say so."""

from math import inf, prod

from epochcast.base.notes import Note
from epochcast.describe.graph.tensor import Tensor
from epochcast.describe.graph.trace import Trace
from epochcast.errors import BadInput
from epochcast.hardware.host_device import HOST_NAMES
from epochcast.hardware.price import usual_box
from epochcast.predict.forecast.loader_queue import Service, WorkerHost, left_cpus, sample_bytes
from epochcast.predict.forecast.placement import Placement
from epochcast.units import show_seconds

# Decoding, cutting and normalising one 500×375 JPEG file to 3×224×224 by Pillow and numpy on one core, and how much it
# varies: processor seconds, 3.4 and 4.6 ms in two runs of `measure_loader` on one busy cloud core. Larger pictures are
# taken to cost in proportion.
DECODE_SECONDS = 4.5e-3
DECODE_VARIATION = 0.15
DECODE_VALUES = 3 * 224 * 224
# Copying an array (tokens, tables) that lies in memory or a mapped file: 1 GB/s through Python and collating.
COPY_BYTES_PER_SECOND = 1e9
# A node nobody described.
CPUS_PER_GPU = 8


def assumed_service(trace: Trace) -> Service:
    """JPEG decoding for pictures and films, a copy for everything else."""
    pictures = [values_of(tensor) for tensor in trace.inputs if len(tensor.shape) >= 4]
    carried = sample_bytes(trace)
    if pictures:
        return Service(
            DECODE_SECONDS * max(1.0, sum(pictures) / DECODE_VALUES), variation=DECODE_VARIATION, sample_bytes=carried
        )
    return Service(carried / COPY_BYTES_PER_SECOND, sample_bytes=carried)


def service_of(trace: Trace, loader_seconds: float | None) -> tuple[Service, tuple[str, ...]]:
    """A loader by its seconds per sample, all of them computing; with a note where they are assumed."""
    if loader_seconds is not None:
        return Service(loader_seconds, sample_bytes=sample_bytes(trace)), ()
    service = assumed_service(trace)
    taken = show_seconds(service.sample_mean_seconds)
    return service, (Note(f"No `loader_seconds` given: assuming {taken} per sample and worker."),)


def host_of(
    placement: Placement,
    *,
    cpus: float | None = None,
    memory_bytes: float | None = None,
    disk_bytes_per_second: float | None = None,
) -> tuple[WorkerHost, tuple[str, ...]]:
    """The box of so many ranks. What is not given is that of the usual machine with this device, its share for them."""
    if cpus is not None and not cpus > 0:
        raise BadInput(f"cpus must be above 0, got {cpus}")
    ranks = placement.ranks_per_node
    known_cpus, known_bytes, source = _box(placement, ranks)
    host = WorkerHost(
        left_cpus(known_cpus if cpus is None else cpus, ranks),
        known_bytes if memory_bytes is None else memory_bytes,
        inf if disk_bytes_per_second is None else disk_bytes_per_second,
    )
    missing = [what for what, given in (("CPUs", cpus), ("host memory", memory_bytes)) if given is None]
    return host, ((Note(f"No {' or '.join(missing)} given: assuming {source}"),) if missing else ())


def _box(placement: Placement, ranks: int) -> tuple[float, float, str]:
    """Processors, bytes of memory, and who told."""
    device = placement.device
    if set(HOST_NAMES) & set(device.aliases):
        return device.compute_units, device.memory_bytes, "this host"
    instance = usual_box(device, ranks)
    if instance is None:
        return CPUS_PER_GPU * ranks, inf, f"a node with {CPUS_PER_GPU} CPUs per GPU and unlimited memory"
    share = min(1.0, ranks / instance.gpus)
    part = "" if share == 1 else f"{ranks} of {instance.gpus} GPUs of "
    return share * instance.cpus, share * instance.host_memory_bytes, f"{part}{instance.cloud} {instance.name}"


def values_of(tensor: Tensor) -> int:
    """Numbers in one sample of an input."""
    return prod(tensor.shape[1:])
