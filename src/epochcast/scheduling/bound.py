"""A lower bound of what any policy pays: the queue as a fluid, solved as a linear program over time buckets.

    minimise   Σ rate_c · x_jcb  +  Σ w_j · late_jb · f_jb
    subject to Σ_cb x_jcb / T_jc = 1                    every job is done
               Σ_c x_jcb ≤ length of bucket b           no job runs twice at once
               Σ_jc x_jcb · g_c / G_d(c) ≤ nodes · length of bucket b      (and quotas per device)

x_jcb are the seconds of job j with choice c in bucket b, f_jb = Σ_c x_jcb/T_jc the fraction of it done there, late_jb how
long after its deadline the bucket begins. It is a bound because every schedule gives such x, a GPU costs at least its
share of a full machine, and a job ends no earlier than the mean moment of its work: Σ_b f_jb·(begin_b − deadline)⁺ ≤ its
tardiness. Buckets begin at arrivals and deadlines, thinned out to at most `buckets`. Restarts and boots are left out.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from epochcast.errors import EpochcastError, MissingExtra
from epochcast.scheduling.workload import Choice, Fleet, QueuedJob, Workload


class NoBound(EpochcastError):
    """The solver did not finish."""


@dataclass(frozen=True, slots=True)
class _Column:
    job: int
    choice: Choice
    bucket: int
    dollars_per_second: float
    fraction_per_second: float


def lower_bound_dollars(workload: Workload, buckets: int = 200) -> float:
    """No policy pays less, on average over nothing: for this very workload."""
    try:
        from scipy.optimize import linprog
        from scipy.sparse import coo_array
    except ImportError:
        raise MissingExtra("schedule", "scipy") from None

    if not workload.jobs:
        return 0.0
    edges = _edges(workload, buckets)
    columns = _columns(workload, edges)
    lengths = np.diff(edges)
    rows, cols, values, limits = _limits(workload, columns, lengths)
    done = coo_array(
        ([c.fraction_per_second for c in columns], ([c.job for c in columns], range(len(columns)))),
        shape=(len(workload.jobs), len(columns)),
    )
    at_most = coo_array((values, (rows, cols)), shape=(len(limits), len(columns)))
    # Seconds are scaled to the mean bucket, so that the solver sees numbers around one.
    unit = float(lengths.mean())
    found = linprog(
        np.array([c.dollars_per_second for c in columns]) * unit,
        A_ub=at_most.tocsr(),
        b_ub=np.array(limits) / unit,
        A_eq=done.tocsr() * unit,
        b_eq=np.ones(len(workload.jobs)),
        method="highs",
    )
    if found.status != 0:
        raise NoBound(f"the linear program of the lower bound was not solved: {found.message}")
    return float(found.fun)


def _edges(workload: Workload, buckets: int) -> npt.NDArray[np.float64]:
    """Where buckets begin, and the end: arrivals and deadlines, thinned evenly, then doubling to a time by which all are done."""
    jobs = workload.jobs
    marks = np.unique([*(job.submit_seconds for job in jobs), *(job.deadline_seconds for job in jobs)])
    if len(marks) > buckets:
        marks = np.unique(np.quantile(marks, np.linspace(0, 1, buckets), method="lower"))
    work = sum(max(workload.run_seconds(job, c) for c in job.seconds) for job in jobs)
    end, step = marks[-1] + work, max(float(np.median(np.diff(marks))) if len(marks) > 1 else work, work / 2**12)
    after = [float(marks[-1])]
    while after[-1] < end:
        after.append(after[-1] + step)
        step *= 1.5
    return np.concatenate([marks[:-1], after])


def _columns(workload: Workload, edges: npt.NDArray[np.float64]) -> list[_Column]:
    found = []
    for number, job in enumerate(workload.jobs):
        for choice in sorted(job.seconds):
            if not workload.fleet.holds(choice):
                continue
            whole = workload.run_seconds(job, choice)
            rate = choice.gpus * workload.fleet.gpu_dollars_per_second(choice.device)
            # A bucket in which the job arrives may be used in full: a relaxation.
            for bucket in range(max(0, int(np.searchsorted(edges, job.submit_seconds, "right")) - 1), len(edges) - 1):
                late = max(0.0, max(edges[bucket], job.submit_seconds) - job.deadline_seconds)
                dollars = rate + job.tardiness_dollars_per_second * late / whole
                found.append(_Column(number, choice, bucket, dollars, 1 / whole))
    return found


def _limits(
    workload: Workload, columns: list[_Column], lengths: npt.NDArray[np.float64]
) -> tuple[list[int], list[int], list[float], list[float]]:
    """Rows of ≤: machines per bucket, machines of a device with a quota per bucket, and one job at a time."""
    fleet = workload.fleet
    rows: list[int] = []
    cols: list[int] = []
    values: list[float] = []
    limits: list[float] = [fleet.nodes * length for length in lengths]
    largest = {device: max(kind.gpus for kind in kinds) for device, kinds in fleet.by_device.items()}
    quota_rows: dict[tuple[str, int], int] = {}
    alone_rows: dict[tuple[int, int], int] = {}
    for index, column in enumerate(columns):
        choice, bucket = column.choice, column.bucket
        _put(rows, cols, values, bucket, index, choice.gpus / largest[choice.device])
        gpus = _gpus_in_all(fleet, choice.device)
        if gpus is not None:
            row = _row(quota_rows, (choice.device, bucket), limits, gpus * lengths[bucket])
            _put(rows, cols, values, row, index, float(choice.gpus))
        job = workload.jobs[column.job]
        row = _row(alone_rows, (column.job, bucket), limits, _time_for(job, lengths, bucket))
        _put(rows, cols, values, row, index, 1.0)
    return rows, cols, values, limits


def _time_for(job: QueuedJob, lengths: npt.NDArray[np.float64], bucket: int) -> float:
    return float(lengths[bucket])


def _row(known: dict[tuple[str, int], int] | dict[tuple[int, int], int], key: tuple[object, int], limits: list[float], limit: float) -> int:
    table: dict[tuple[object, int], int] = known  # type: ignore[assignment]
    if key not in table:
        table[key] = len(limits)
        limits.append(float(limit))
    return table[key]


def _put(rows: list[int], cols: list[int], values: list[float], row: int, col: int, value: float) -> None:
    rows.append(row)
    cols.append(col)
    values.append(value)


def _gpus_in_all(fleet: Fleet, device: str) -> int | None:
    """GPUs of a device with quotas on every type; None where there is no limit but the nodes'."""
    kinds = fleet.by_device[device]
    if any(kind.quota is None for kind in kinds):
        return None
    return sum(kind.gpus * (kind.quota or 0) for kind in kinds)
