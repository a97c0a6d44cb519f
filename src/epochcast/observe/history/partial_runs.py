"""The whole of a job from a part of it that was run (the protocol of a-GPUBench): its first steps or epochs, or its
loader and its computation, each alone.

    step  = first_steps_seconds / first_steps                    total = step · steps
    epoch = first_epochs_seconds / first_epochs                  total = epoch · epochs
    step  = max(loader_step_seconds, compute_step_seconds)       a loader works while the GPU computes

History then learns what a part does not show: the first epoch is slower than the others, a loader and a GPU that share
the processors hinder each other. What was measured over more of the job is taken first.
"""

import numpy as np

from epochcast.observe.history.job_table import Array, Jobs
from epochcast.observe.history.roles import column_of

PARTIAL_COLUMNS = frozenset(
    {
        "first_epochs",
        "first_epochs_seconds",
        "first_epoch_seconds",
        "first_steps",
        "first_steps_seconds",
        "loader_step_seconds",
        "compute_step_seconds",
        "loader_epoch_seconds",
        "compute_epoch_seconds",
    }
)
"""What was run of a job before the whole of it."""


def partial_seconds(jobs: Jobs, target_name: str, steps: Array) -> tuple[Array, Array]:
    """Seconds of a step or an epoch of every row by the part that was run, NaN where there is none, and how many of
    them the target is; `steps` are those of the target.
    """
    epochs_column = column_of("epochs", jobs.numbers)
    epochs = np.ones(len(jobs)) if epochs_column is None else jobs.numbers[epochs_column]
    per_epoch, per_step = _epoch(jobs), _step(jobs)
    match target_name:
        case "step_seconds":
            return per_step, np.ones(len(jobs))
        case "epoch_seconds" | "total_seconds":
            times = epochs if target_name == "total_seconds" else np.ones(len(jobs))
            has_epoch = np.isfinite(per_epoch)
            return np.where(has_epoch, per_epoch, per_step), np.where(has_epoch, times, steps)
        case _:
            return np.full(len(jobs), np.nan), np.ones(len(jobs))


def _epoch(jobs: Jobs) -> Array:
    """Seconds of an epoch, by the first ones or by loader and computation."""
    first = jobs.number("first_epochs_seconds") / jobs.number("first_epochs")
    first = np.where(np.isfinite(first), first, jobs.number("first_epoch_seconds"))
    apart = np.maximum(jobs.number("loader_epoch_seconds"), jobs.number("compute_epoch_seconds"))
    return np.where(np.isfinite(first), first, apart)


def _step(jobs: Jobs) -> Array:
    """Seconds of a step, by the first ones or by loader and computation."""
    first = jobs.number("first_steps_seconds") / jobs.number("first_steps")
    apart = np.maximum(jobs.number("loader_step_seconds"), jobs.number("compute_step_seconds"))
    return np.where(np.isfinite(first), first, apart)
