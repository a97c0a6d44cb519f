"""A lower bound of what any policy pays: every job by itself, and the queue as a fluid over time buckets.

*By itself*: a job that may run with one choice and go on with another pays for a duration D the lower convex hull of
the points (T_c, rate_c·T_c) at D; the cheapest end, early or late, bounds its bill.

*By itself, kept*: where no job is stopped or resized, it pays rate_c·T_c for one choice c from its start to its end,
and ends no earlier than T_c after it was submitted; the cheapest c bounds its bill. This holds as long as no machine
fails, because a job that lost its machine may go on with another choice.

*As a fluid*:

    minimise   Σ rate_c · x_jcb  +  Σ w_j · late_jb · f_jb
    subject to Σ_cb x_jcb / T_jc = 1                    every job is done
               Σ_c x_jcb ≤ length of bucket b           no job runs twice at once
               Σ_jc x_jcb · g_c / G_d(c) ≤ nodes · length of bucket b      (and quotas per device)

x_jcb are the seconds of job j with choice c in bucket b, f_jb = Σ_c x_jcb/T_jc the fraction of it done there, late_jb
how long after its deadline the bucket begins. It is a bound because every schedule gives such x, a GPU costs at least
its share of a full machine, and a job ends no earlier than the mean moment of its work: Σ_b f_jb·(begin_b − deadline)⁺
≤ its tardiness. Buckets begin at arrivals and deadlines, thinned out to at most `buckets`. Restarts and boots are left
out.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from epochcast.errors import EpochcastError, MissingExtra
from epochcast.schedule.workload_jobs import Fleet, GpuChoice, QueuedJob, QueueWorkload

MOST_COLUMNS = 300_000
"""A larger linear program is not tried: the bound is then that of the jobs by themselves."""


class NoBound(EpochcastError):
    """The solver did not finish."""


def lower_bound_dollars(workload: QueueWorkload, buckets: int = 200) -> float:
    """No policy pays less for this workload: the larger of the bounds."""
    alone = sum(alone_dollars(workload, job) for job in workload.jobs)
    fluid = _fluid_dollars(workload, buckets) if workload.jobs else None
    return alone if fluid is None else max(alone, fluid)


def keeping_bound_dollars(workload: QueueWorkload) -> float | None:
    """No policy that stops and resizes nobody pays less, besides the bound for all; None where machines may fail."""
    if workload.failures or any(kind.interruptions_per_hour > 0 for kind in workload.fleet.types):
        return None
    return sum(keeping_dollars(workload, job) for job in workload.jobs)


def keeping_dollars(workload: QueueWorkload, job: QueuedJob) -> float:
    """The least a job pays that keeps one choice, if every machine is free for it."""
    in_time = job.deadline_seconds - job.submit_seconds
    run_seconds = {c: workload.run_seconds(job, c) for c in job.seconds if workload.fleet.holds(c)}
    return min(
        _rate(workload.fleet, choice) * seconds + job.tardiness_dollars_per_second * max(0.0, seconds - in_time)
        for choice, seconds in run_seconds.items()
    )


def alone_dollars(workload: QueueWorkload, job: QueuedJob) -> float:
    """The least a job pays if every machine is free for it."""
    points = sorted(
        (workload.run_seconds(job, choice), _rate(workload.fleet, choice) * workload.run_seconds(job, choice))
        for choice in job.seconds
        if workload.fleet.holds(choice)
    )
    in_time = job.deadline_seconds - job.submit_seconds
    ends = [seconds for seconds, _ in points] + ([in_time] if in_time >= points[0][0] else [])
    late = job.tardiness_dollars_per_second
    return min(_hull_dollars(points, seconds) + late * max(0.0, seconds - in_time) for seconds in ends)


def _hull_dollars(points: list[tuple[float, float]], seconds: float) -> float:
    """The cheapest mix of choices that takes no longer."""
    best = min((dollars for duration, dollars in points if duration <= seconds), default=np.inf)
    for fast, dear in points:
        for slow, cheap in points:
            if fast <= seconds < slow:
                share = (slow - seconds) / (slow - fast)
                best = min(best, share * dear + (1 - share) * cheap)
    return best


def _rate(fleet: Fleet, choice: GpuChoice) -> float:
    return choice.gpus * fleet.gpu_dollars_per_second(choice.device)


@dataclass(frozen=True, slots=True)
class _Column:
    job: int
    choice: GpuChoice
    bucket: int
    dollars_per_second: float
    fraction_per_second: float


@dataclass(slots=True)
class _AtMost:
    """Rows of Σ value·x ≤ limit, made as they are needed."""

    limits: list[float]
    rows: list[int] = field(default_factory=list)
    columns: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    row_numbers: dict[tuple[str, int, int], int] = field(default_factory=dict)

    def put(self, row: int, column: int, value: float) -> None:
        self.rows.append(row)
        self.columns.append(column)
        self.values.append(value)

    def row(self, key: tuple[str, int, int], limit: float) -> int:
        if key not in self.row_numbers:
            self.row_numbers[key] = len(self.limits)
            self.limits.append(limit)
        return self.row_numbers[key]


def _fluid_dollars(workload: QueueWorkload, buckets: int) -> float | None:
    try:
        from scipy.optimize import linprog
        from scipy.sparse import coo_array
    except ImportError:
        raise MissingExtra("schedule", "scipy") from None

    edges = _edges(workload, buckets)
    columns = list(_columns(workload, edges))
    if len(columns) > MOST_COLUMNS:
        return None
    lengths = np.diff(edges)
    at_most = _limits(workload, columns, lengths)
    done = coo_array(
        ([c.fraction_per_second for c in columns], ([c.job for c in columns], range(len(columns)))),
        shape=(len(workload.jobs), len(columns)),
    )
    limited = coo_array((at_most.values, (at_most.rows, at_most.columns)), shape=(len(at_most.limits), len(columns)))
    # Seconds are scaled to the mean bucket, so that the solver sees numbers around one.
    unit = float(lengths.mean())
    solution = linprog(
        np.array([c.dollars_per_second for c in columns]) * unit,
        A_ub=limited.tocsr(),
        b_ub=np.array(at_most.limits) / unit,
        A_eq=done.tocsr() * unit,
        b_eq=np.ones(len(workload.jobs)),
        method="highs",
    )
    if solution.status != 0:
        raise NoBound(f"the linear program of the lower bound was not solved: {solution.message}")
    return float(solution.fun)


def _edges(workload: QueueWorkload, buckets: int) -> npt.NDArray[np.float64]:
    """Arrivals and deadlines, thinned evenly, then ever longer buckets to a time by which all can be done."""
    jobs = workload.jobs
    marks = np.unique([*(job.submit_seconds for job in jobs), *(job.deadline_seconds for job in jobs)])
    if len(marks) > buckets:
        marks = np.unique(np.quantile(marks, np.linspace(0, 1, buckets), method="lower"))
    work = sum(max(workload.run_seconds(job, c) for c in job.seconds) for job in jobs)
    step = max(float(np.median(np.diff(marks))) if len(marks) > 1 else work, work / 2**12)
    after = [float(marks[-1])]
    while after[-1] < marks[-1] + work:
        after.append(after[-1] + step)
        step *= 1.5
    return np.concatenate([marks[:-1], after])


def _columns(workload: QueueWorkload, edges: npt.NDArray[np.float64]) -> Iterator[_Column]:
    for number, job in enumerate(workload.jobs):
        # A bucket in which the job arrives may be used in full: a relaxation.
        arrives = max(0, int(np.searchsorted(edges, job.submit_seconds, "right")) - 1)
        for choice in sorted(job.seconds):
            if not workload.fleet.holds(choice):
                continue
            seconds = workload.run_seconds(job, choice)
            rate = _rate(workload.fleet, choice)
            for bucket in range(arrives, len(edges) - 1):
                late = max(0.0, max(edges[bucket], job.submit_seconds) - job.deadline_seconds)
                dollars = rate + job.tardiness_dollars_per_second * late / seconds
                yield _Column(number, choice, bucket, dollars, 1 / seconds)


def _limits(workload: QueueWorkload, columns: list[_Column], lengths: npt.NDArray[np.float64]) -> _AtMost:
    """Machines per bucket, GPUs of a device with quotas per bucket, and every job once at a time."""
    fleet = workload.fleet
    limits = _AtMost([fleet.nodes * float(length) for length in lengths])
    largest = {device: max(kind.gpus for kind in kinds) for device, kinds in fleet.by_device.items()}
    for index, column in enumerate(columns):
        choice, bucket = column.choice, column.bucket
        length = float(lengths[bucket])
        limits.put(bucket, index, choice.gpus / largest[choice.device])
        gpus = _gpus_in_all(fleet, choice.device)
        if gpus is not None:
            limits.put(limits.row((choice.device, 0, bucket), gpus * length), index, float(choice.gpus))
        limits.put(limits.row(("", column.job, bucket), length), index, 1.0)
    return limits


def _gpus_in_all(fleet: Fleet, device: str) -> int | None:
    """GPUs of a device with quotas on every type; None where there is no limit but the nodes'."""
    kinds = fleet.by_device[device]
    if any(kind.quota is None for kind in kinds):
        return None
    return sum(kind.gpus * (kind.quota or 0) for kind in kinds)
