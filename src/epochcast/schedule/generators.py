"""Workloads made up by rule: Poisson arrivals, and the talk's random instances.

*talk*: ten jobs per node on the six rented machine types of the Politecnico talk, deadlines at submission + U(1, 3) ·
shortest run, lateness at 2·U(.0015, .0075) dollars per second. Runs are drawn so: one K80 takes 6 to 240 hours,
log-uniform; an M60 U(.6, 1.1) of that; g GPUs speed it up by g^U(.35, 1).
"""

from collections.abc import Callable, Mapping, Sequence
from math import exp, log
from random import Random

from epochcast.errors import BadInput
from epochcast.interval import Interval
from epochcast.schedule.workload_jobs import Fleet, GpuChoice, NodeType, QueuedJob, QueueWorkload

# Prices of the talk (Jahani et al. 2019), dollars per hour.
TALK_TYPES = (
    NodeType("NC6", "K80", 1, 0.56),
    NodeType("NC12", "K80", 2, 1.13),
    NodeType("NC24", "K80", 4, 2.25),
    NodeType("NV6", "M60", 1, 0.62),
    NodeType("NV12", "M60", 2, 1.24),
    NodeType("NV24", "M60", 4, 2.48),
)
# Seconds between arrivals for ten nodes; more nodes get as much more. Those of "mixed" change at random.
LOADS: Mapping[str, tuple[float, ...]] = {
    "low": (53_000.0,),
    "high": (13_000.0,),
    "overload": (3_400.0,),
    "mixed": (13_000.0, 30_000.0),
}
SHORTEST_SECONDS, LONGEST_SECONDS = 6 * 3600.0, 240 * 3600.0

Runs = Callable[[Random], dict[GpuChoice, float]]
"""Draws the whole run of a job by choice."""


def poisson(
    fleet: Fleet, jobs: int, gap_seconds: Sequence[float], seed: int, runs: Runs | None = None
) -> QueueWorkload:
    """So many jobs with exponential gaps, the mean drawn among those given; deadlines and lateness as in `talk`."""
    if not gap_seconds or min(gap_seconds) <= 0:
        raise BadInput(f"the mean time between arrivals is {list(gap_seconds)}; seconds above 0 are needed")
    if jobs < 1:
        raise BadInput(f"at least one job is needed, got {jobs}")
    random = Random(f"poisson {fleet.nodes} {tuple(gap_seconds)} {seed}")
    drawn, now = [], 0.0
    for number in range(jobs):
        drawn.append(drawn_job(f"j{number}", now, (runs or talk_runs)(random), random))
        now += random.expovariate(1 / random.choice(gap_seconds))
    return QueueWorkload(fleet, tuple(drawn))


def talk(nodes: int, load: str, seed: int, jobs: int | None = None) -> QueueWorkload:
    """One of the talk's random instances."""
    if load not in LOADS:
        raise BadInput(f"no load called {load!r}; known: {', '.join(LOADS)}")
    gaps = [seconds * 10 / nodes for seconds in LOADS[load]]
    return poisson(Fleet(nodes, TALK_TYPES), 10 * nodes if jobs is None else jobs, gaps, seed)


def talk_runs(random: Random) -> dict[GpuChoice, float]:
    """The whole run of one of the talk's jobs on one, two and four GPUs of its two devices."""
    single_seconds = exp(random.uniform(log(SHORTEST_SECONDS), log(LONGEST_SECONDS)))
    relative = random.uniform(0.6, 1.1)
    power = random.uniform(0.35, 1.0)
    return {
        GpuChoice(device, gpus): single_seconds * factor / gpus**power
        for device, factor in (("K80", 1.0), ("M60", relative))
        for gpus in (1, 2, 4)
    }


def drawn_job(name: str, submit_seconds: float, seconds: Mapping[GpuChoice, float], random: Random) -> QueuedJob:
    """A job with a deadline and a price of lateness drawn for it."""
    return QueuedJob(
        id=name,
        submit_seconds=submit_seconds,
        deadline_seconds=submit_seconds + random.uniform(1, 3) * min(seconds.values()),
        tardiness_dollars_per_second=2 * random.uniform(0.0015, 0.0075),
        seconds={choice: Interval.exact(value) for choice, value in seconds.items()},
    )
