"""A whole training job: steps into epochs, epochs into hours.

    epoch = ⌈samples/global batch⌉ · step + validation + checkpoints
    total = first step's warm-up + epochs · epoch

Batch augmentation (Hoffer et al. 2019): each of the B samples of a step is seen as M augmented copies, so that a step
computes on M·B and an epoch has as many steps as before. Validation runs forward passes of the size a GPU takes, M·B.
All of it has the step's relative uncertainty: all rests on the same device.
"""

from math import ceil

from epochcast.interval import Interval
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.job_data import Data
from epochcast.predict.forecast.step import StepForecast

# First epoch minus the later ones, median over the source report's CIFAR-10 runs on a P100 (report_runs: 11 batch
# sizes, 1.8–2.2 s): loading libraries, building the graph, choosing algorithms.
WARMUP_SECONDS = 2.0
# An assumption, not a measurement: one local NVMe disk. Checkpoints are rarely a visible part of a job.
CHECKPOINT_BYTES_PER_SECOND = 1e9


def steps_per_epoch(data: Data, global_batch: int) -> int | None:
    """⌈samples/global batch⌉; None where nobody said how many samples there are."""
    return None if data.samples is None else ceil(data.samples / global_batch)


def epoch_seconds(
    job: Job, data: Data, step: StepForecast, *, global_batch: int, validation_batch: int, saved_bytes: int
) -> Interval | None:
    """Steps, validation and checkpoints of `saved_bytes` each."""
    steps = steps_per_epoch(data, global_batch)
    if steps is None:
        return None
    validation = ceil(data.validation_samples / validation_batch) * step.forward_seconds
    checkpoints = job.checkpoints_per_epoch * saved_bytes / CHECKPOINT_BYTES_PER_SECOND
    mid = steps * step.seconds.mid + validation + checkpoints
    return step.seconds.scaled(mid / step.seconds.mid)


def total_seconds(data: Data, one_epoch: Interval | None) -> Interval | None:
    """Warm-up and all epochs, the last of them a part where the training is counted in tokens."""
    if one_epoch is None:
        return None
    mid = WARMUP_SECONDS + data.epochs * one_epoch.mid
    return one_epoch.scaled(mid / one_epoch.mid)
