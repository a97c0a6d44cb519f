"""Workloads made up by rule: the talk's random instances, and jobs of a cluster's trace with deadlines drawn for them.

*talk*: ten jobs per node on the six rented machine types of the Politecnico talk, Poisson arrivals, deadlines at
submission + U(1, 3) · shortest run, lateness at 2·U(.0015, .0075) dollars per second. Runs are drawn so: one K80
log-normal around 160,000 s, an M60 takes U(.6, 1.1) of that, and g GPUs speed it up by g^U(.35, .95).
"""

from collections.abc import Sequence
from math import exp
from random import Random

from epochcast.errors import BadInput
from epochcast.interval import Interval
from epochcast.scheduling.workload import Choice, Fleet, NodeType, QueuedJob, Workload

# Prices of the talk (Jahani et al. 2019), dollars per hour.
TALK_TYPES = (
    NodeType("NC6", "K80", 1, 0.56),
    NodeType("NC12", "K80", 2, 1.13),
    NodeType("NC24", "K80", 4, 2.25),
    NodeType("NV6", "M60", 1, 0.62),
    NodeType("NV12", "M60", 2, 1.24),
    NodeType("NV24", "M60", 4, 2.48),
)
# Seconds between arrivals for ten nodes; more nodes get as much more.
LOADS = {"low": 53_000.0, "high": 13_000.0, "overload": 3_400.0}


def talk(nodes: int, load: str, seed: int, jobs: int | None = None) -> Workload:
    """One of the talk's random instances."""
    if load not in LOADS:
        raise BadInput(f"no load called {load!r}; known: {', '.join(LOADS)}")
    random = Random(f"talk {nodes} {load} {seed}")
    gap_seconds = LOADS[load] * 10 / nodes
    fleet = Fleet(nodes, TALK_TYPES)
    made, now = [], 0.0
    for number in range(jobs if jobs is not None else 10 * nodes):
        made.append(_drawn(f"j{number}", now, _runs(random), random))
        now += random.expovariate(1 / gap_seconds)
    return Workload(fleet, tuple(made))


def from_trace(rows: Sequence[tuple[float, float, float]], fleet: Fleet, seed: int) -> Workload:
    """Jobs of a trace, (submit seconds, duration seconds, GPUs), with deadlines and lateness drawn as in `talk`.

    A fraction of a GPU is a whole one here. The duration is that on the first device with the traced number of GPUs;
    with g times as many it is divided by g^U(.35, .95).
    """
    random = Random(f"trace {seed}")
    device = fleet.types[0].device
    sizes = sorted({kind.gpus for kind in fleet.by_device[device]})
    made = []
    for number, (submit, duration, gpus) in enumerate(rows):
        needs = next((size for size in sizes if size >= gpus), None)
        if needs is None:
            raise BadInput(f"row {number + 1} of the trace needs {gpus:g} GPUs; the largest machine has {sizes[-1]}")
        if duration <= 0:
            raise BadInput(f"row {number + 1} of the trace lasts {duration:g} seconds")
        power = random.uniform(0.35, 0.95)
        seconds = {Choice(device, size): duration / (size / needs) ** power for size in sizes if size >= needs}
        made.append(_drawn(f"t{number}", submit, seconds, random))
    return Workload(fleet, tuple(made))


def _runs(random: Random) -> dict[Choice, float]:
    one = exp(random.gauss(12.0, 1.1))
    relative = random.uniform(0.6, 1.1)
    power = random.uniform(0.35, 0.95)
    return {
        Choice(device, gpus): one * factor / gpus**power
        for device, factor in (("K80", 1.0), ("M60", relative))
        for gpus in (1, 2, 4)
    }


def _drawn(name: str, submit_seconds: float, seconds: dict[Choice, float], random: Random) -> QueuedJob:
    return QueuedJob(
        id=name,
        submit_seconds=submit_seconds,
        deadline_seconds=submit_seconds + random.uniform(1, 3) * min(seconds.values()),
        tardiness_dollars_per_second=2 * random.uniform(0.0015, 0.0075),
        seconds={choice: Interval.exact(value) for choice, value in seconds.items()},
    )
