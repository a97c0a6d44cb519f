"""What a job asks of a scheduler: time, GPUs, processors and memory, at the 95th percentile.

The 90 % interval of a forecast leaves as many above it as below: its high end is the time that
95 of 100 such jobs do not exceed. The limit adds the start-up: that of the plan's machine, else an image pull.
Processors and memory are what the data loader needs (`loader_needs`), at most nine tenths of the GPUs' share of the
machine: the rest is for its system. Without a loader they are that share. Memory is never less than what is offloaded.
"""

import re
from dataclasses import dataclass
from math import ceil, inf

from epochcast.decide.handover.loader_needs import loader_needs
from epochcast.decide.plan.startup import IMAGE_BYTES, IMAGE_BYTES_PER_SECOND
from epochcast.describe.capture.model_reference import ModelReference
from epochcast.errors import BadInput
from epochcast.hardware.device import Device
from epochcast.hardware.instance import Instance
from epochcast.interval import COVERAGE, Interval
from epochcast.predict.forecast.assumed import host_of
from epochcast.predict.forecast.forecast import Forecast
from epochcast.predict.forecast.placement import Placement, placed
from epochcast.units import show_bytes

MOST_NAME = 53
"""Letters of a name: that of a pod has 63 with what Kubernetes adds."""
SHARE = 0.9
"""Of a machine: what a cluster keeps for itself is a few percent, and a request for all of it would wait forever."""
ALLOWED_OUTSIDE = (1 - COVERAGE) / 2
"""Of jobs take longer than the high end."""


@dataclass(frozen=True)
class Request:
    """One job for a scheduler. `seconds` is its 95th percentile; processors and memory are of one node.

    `memory_bytes` is None where nothing is known of the machine. `instance` is what `plan` chose, None where a
    forecast names only the device, and `is_spot` whether it is rented as spare capacity.
    """

    name: str
    device: Device
    gpus: int
    nodes: int
    seconds: int
    middle_seconds: float
    cpus: int
    memory_bytes: int | None
    command: str | None = None
    instance: Instance | None = None
    is_spot: bool = False
    notes: tuple[str, ...] = ()

    @property
    def gpus_per_node(self) -> int:
        """GPUs of each node."""
        return self.gpus // self.nodes

    @property
    def cpus_per_gpu(self) -> int:
        """Processors of the process of each GPU."""
        return max(1, self.cpus // self.gpus_per_node)

    def started(self) -> str:
        """The command that starts the training; refused where nobody said it."""
        if self.command is None:
            raise BadInput("what starts the training? Give its command, such as --run 'python train.py'")
        return self.command


def request_of(
    forecast: Forecast,
    *,
    command: str | None = None,
    name: str | None = None,
    instance: Instance | None = None,
    is_spot: bool = False,
    seconds: Interval | None = None,
) -> Request:
    """The request of a forecast; `seconds` are the job's where they are not the forecast's own (spot, boot)."""
    total = seconds or forecast.total_seconds
    if total is None:
        raise BadInput("a scheduler asks how long the job takes: give a dataset or samples, and epochs")
    if forecast.gpus % forecast.nodes:
        raise BadInput(f"{forecast.gpus} GPUs do not divide over {forecast.nodes} nodes")
    details = forecast.details
    job, placement = details.job, details.placement
    cpus, memory_bytes, notes = _machine(placement, instance)
    needed = forecast.host_bytes
    loader = loader_needs(forecast)
    startup = 0.0 if seconds is not None else IMAGE_BYTES / IMAGE_BYTES_PER_SECOND  # a plan's time has its own
    if loader is not None:
        cpus = loader.cpus if job.workers is not None else min(cpus, loader.cpus)
        advised = f"{loader.workers_per_gpu} loader workers per GPU, {show_bytes(loader.memory_bytes)} for the loader"
        notes = (*notes, advised) if loader.memory_bytes else notes
    if memory_bytes is not None and needed > memory_bytes:
        notes = (*notes, "more is offloaded to the host than its share of the machine's memory")
    return Request(
        name=safe_name(name or forecast.model),
        device=placement.device,
        gpus=forecast.gpus,
        nodes=forecast.nodes,
        seconds=ceil(total.high + startup),
        middle_seconds=total.mid + startup,
        cpus=max(placement.ranks_per_node, int(cpus)),
        memory_bytes=max(memory_bytes or 0, needed) or None,
        command=command or _command(job.model),
        instance=instance,
        is_spot=is_spot,
        notes=notes,
    )


def request_for(
    name: str,
    device: Device,
    gpus: int,
    seconds: Interval,
    *,
    command: str | None,
    instance: Instance | None = None,
    is_spot: bool = False,
    notes: tuple[str, ...] = (),
) -> Request:
    """The request of a job of which only its seconds are known, on GPUs of one machine: it gets their share of it.

    A machine that it fills is asked for by its name, otherwise so many GPUs of the device.
    """
    share = 1.0 if instance is None else gpus / instance.gpus
    cpus, memory_bytes, assumed = _machine(placed(device, gpus), instance)
    return Request(
        name=safe_name(name),
        device=device,
        gpus=gpus,
        nodes=1,
        seconds=ceil(seconds.high),
        middle_seconds=seconds.mid,
        cpus=max(gpus, int(cpus * share)),
        memory_bytes=None if memory_bytes is None else int(memory_bytes * share),
        command=command,
        instance=instance if instance is not None and instance.gpus == gpus else None,
        is_spot=is_spot,
        notes=(*notes, *assumed),
    )


def _machine(placement: Placement, instance: Instance | None) -> tuple[float, int | None, tuple[str, ...]]:
    """Processors and memory of a node, and where they are from."""
    if instance is not None:
        return SHARE * instance.cpus, int(SHARE * instance.host_memory_bytes), ()
    host, assumed = host_of(placement)
    # the loader's share of the processors, and the one that each training process keeps busy
    cpus = host.cpus + placement.ranks_per_node
    memory_bytes = None if host.memory_bytes == inf else int(SHARE * host.memory_bytes)
    return SHARE * cpus, memory_bytes, tuple(f"{note}, nine tenths of it" for note in assumed)


def _command(model: object) -> str | None:
    """Of a model in a script, that script."""
    script = ModelReference.of(model).script if isinstance(model, str) else ""
    return f"python {script}" if script else None


def safe_name(text: str) -> str:
    """As DNS has labels: small letters, digits and hyphens, beginning and ending with one of the former."""
    name = re.sub(r"[^a-z0-9]+", "-", text.casefold()).strip("-")[:MOST_NAME].strip("-")
    return name if name[:1].isalpha() else f"job-{name}".strip("-")


def percentile_note(request: Request) -> str:
    """How the time was chosen, for a comment."""
    from epochcast.units import show_seconds

    return (
        f"{show_seconds(request.seconds)} is the 95th percentile (the high end of the 90 % interval, which leaves "
        f"{100 * ALLOWED_OUTSIDE:.0f} % above it) with start-up; expected are {show_seconds(request.middle_seconds)}"
    )
