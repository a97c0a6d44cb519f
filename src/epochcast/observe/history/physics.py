"""What each row of a table should take by physics, before its history is asked.

0. `partial`: the row says how long a part of the job took (`partial.py`): its first steps or epochs, or its loader and
   its computation apart. The whole is that part, multiplied.
1. `forecast`: the row names a model that can be built, a device and a batch. Its step is forecast as `epochcast
   evaluate` forecasts it; equal jobs are forecast once.
2. `roofline`: it does not, but says how much work a sample is. Time is work over the peak of the data sheet:
   max(flops/peak, bytes/bandwidth), with flops 3·forward (forward and twice that backward) or 6·parameters per token.
3. `sizes`: nothing is known of the work. What is left is proportional to batch and 1/peak.

Every kind is right up to a factor of its own, which history learns. Epochs and jobs are steps times their number:

    epoch = step · samples/(batch·gpus)        total = epoch · epochs, or step · steps
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from epochcast.errors import EpochcastError
from epochcast.measure.evaluate.predicted import Progress
from epochcast.observe.history.job_table import Array, Jobs, Physics
from epochcast.observe.history.job_table_reader import OUTCOMES, as_jobs
from epochcast.observe.history.partial_runs import PARTIAL_COLUMNS, partial_seconds
from epochcast.observe.history.roles import DEVICE_COLUMNS, column_of, with_devices
from epochcast.predict.cost.cost_models import find_cost_model

if TYPE_CHECKING:
    from polars import DataFrame

PARTIAL, FORECAST, ROOFLINE, SIZES = "partial", "forecast", "roofline", "sizes"
# Bytes of a parameter in training with Adam and mixed precision: weights, gradients, two moments, a copy.
STATE_BYTES = 16.0
# Of a device that nobody knows; only rows among each other matter, and the factor is learned.
USUAL_PEAK, USUAL_BANDWIDTH = 1e13, 1e12
# Of a step at least this share is computed.
LEAST_COMPUTED = 1e-3
# Columns that tell nothing of how long a step takes.
_BESIDE = OUTCOMES | PARTIAL_COLUMNS | {"note", "memory_kind", "epochs", "started_at_seconds"}


def physics_of(
    frame: "DataFrame",
    target_name: str,
    *,
    allow_code: bool = False,
    workers: int = 1,
    progress: Progress | None = None,
) -> Physics:
    """Of every row of a table (`reading.read_frame`)."""
    jobs = with_devices(as_jobs(frame))
    counts = None
    if target_name == "peak_bytes":
        values, kinds = _bytes(jobs)
        stand_ins = {ROOFLINE: np.where(kinds == ROOFLINE, values, np.nan), SIZES: _filled(jobs, "batch")}
        forecasts = forecast_bytes(frame, allow_code=allow_code, progress=progress)
        overheads = np.ones(len(jobs))
    else:
        values, kinds = by_columns(jobs)
        steps = steps_of(jobs, target_name)
        stand_ins = {kind: steps * each for kind, each in stand_ins_of(jobs).items()}
        forecasts, overheads = forecast_steps(frame, allow_code=allow_code, workers=workers, progress=progress)
    is_forecast = np.isfinite(forecasts) & (forecasts > 0)
    values = np.where(is_forecast, forecasts, values)
    kinds = np.where(is_forecast, FORECAST, kinds)
    if target_name != "peak_bytes":
        counts = steps_of(jobs, target_name)
        measured, times = partial_seconds(jobs, target_name, counts)
        is_partial = np.isfinite(measured) & (measured > 0) & np.isfinite(times) & (times > 0)
        values, kinds = np.where(is_partial, measured, values), np.where(is_partial, PARTIAL, kinds)
        counts = np.where(is_partial, times, counts)
        values = values * counts
    return Physics(np.clip(values, 1e-30, 1e30), kinds.astype(np.str_), overheads, counts, stand_ins)


# ---- forecasts ----------------------------------------------------------------------------------


def forecast_steps(
    frame: "DataFrame", *, allow_code: bool = False, workers: int = 1, progress: Progress | None = None
) -> tuple[Array, Array]:
    """The forecast step of every row, NaN where there is none, and by how much the exchange between GPUs makes it
    longer. Equal jobs are forecast once.
    """
    from epochcast.measure.evaluate.evaluate_runs import forecast_runs

    distinct, places = _distinct(frame)
    predicted = forecast_runs(
        distinct,
        find_cost_model(),
        with_doubtful=True,
        allow_code=allow_code,
        workers=workers,
        progress=progress,
    )
    steps = np.asarray(predicted.mid_seconds, dtype=np.float64)
    return steps[places], overheads_of(steps, predicted.parts["exposed_comm"])[places]


def overheads_of(steps: Array, exposed: Array) -> Array:
    """Steps over what is left of them without their exposed communication; 1 where nobody knows."""
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = steps / np.maximum(steps - exposed, LEAST_COMPUTED * steps)
    return np.where(np.isfinite(ratios), np.maximum(ratios, 1.0), 1.0)


def forecast_bytes(frame: "DataFrame", *, allow_code: bool = False, progress: Progress | None = None) -> Array:
    """The forecast peak of memory of every row; NaN where there is none."""
    from epochcast.measure.tables.run_placement import run_placement
    from epochcast.measure.tables.run_table import read_runs
    from epochcast.predict.forecast.forecaster import forecast_job
    from epochcast.predict.forecast.session import Session

    distinct, places = _distinct(frame)
    runs, _ = read_runs(distinct, with_doubtful=True, allow_code=allow_code)
    session = Session(find_cost_model(), with_own_profiles=False, allow_code=allow_code)
    peaks = np.full(len(distinct), np.nan)
    for done, run in enumerate(runs):
        if progress is not None:
            progress(done, len(runs))
        try:
            peak = forecast_job(run.job, run_placement(run), session).peak_bytes
        except EpochcastError:
            continue
        peaks[run.row_index] = np.nan if peak is None else peak.mid
    return peaks[places]


def _distinct(frame: "DataFrame") -> tuple[list[dict[str, Any]], Sequence[int]]:
    """The different jobs of a table as rows for `read_runs`, and which of them each row of the table is."""
    columns = [name for name in frame.columns if name not in _BESIDE]
    rows: list[dict[str, Any]] = []
    place_of: dict[tuple[Any, ...], int] = {}
    places = []
    for values in frame.select(columns).iter_rows():
        if values not in place_of:
            place_of[values] = len(rows)
            # A step that nobody measured yet: rows of measured runs have one.
            rows.append({**dict(zip(columns, values, strict=True)), "step_seconds": 1.0})
        places.append(place_of[values])
    return rows, places


# ---- of the columns -----------------------------------------------------------------------------


def by_columns(jobs: Jobs) -> tuple[Array, Any]:
    """The step of every row by its columns alone, and by which kind of them."""
    stand_ins = stand_ins_of(jobs)
    has_roofline = np.isfinite(stand_ins[ROOFLINE])
    return np.where(has_roofline, stand_ins[ROOFLINE], stand_ins[SIZES]), np.where(has_roofline, ROOFLINE, SIZES)


def stand_ins_of(jobs: Jobs) -> dict[str, Array]:
    """The step of every row by the work of a sample, NaN where nobody knows it, and by the size of the batch alone."""
    batch = _filled(jobs, "batch")
    peak, bandwidth = (
        _or(jobs.number(name), usual) for name, usual in zip(DEVICE_COLUMNS, (USUAL_PEAK, USUAL_BANDWIDTH), strict=True)
    )
    work = _flops_per_sample(jobs)
    parameters = jobs.number("parameters")
    traffic = STATE_BYTES * np.where(np.isnan(parameters), 0.0, parameters) / bandwidth
    is_known = np.isfinite(work) & (work > 0)
    by_work = np.maximum(batch * np.where(is_known, work, 1.0) / peak, traffic)
    return {ROOFLINE: np.where(is_known, by_work, np.nan), SIZES: batch / peak}


def _flops_per_sample(jobs: Jobs) -> Array:
    """Forward and backward, of one sample; NaN where no column says it."""
    stated = jobs.number("flops_per_sample")
    macs = jobs.number("forward_macs_per_sample")
    tokens = jobs.number("sequence_length")
    by_parameters = 6.0 * jobs.number("parameters") * tokens
    return np.where(np.isfinite(stated), stated, np.where(np.isfinite(macs), 6.0 * macs, by_parameters))


def _bytes(jobs: Jobs) -> tuple[Array, Any]:
    """State of the parameters and activations of the batch, in four bytes each."""
    batch, parameters = _filled(jobs, "batch"), jobs.number("parameters")
    activations = jobs.number("activations_per_sample")
    size = np.where(np.isnan(parameters), 0.0, STATE_BYTES * parameters) + np.where(
        np.isnan(activations), 0.0, 4.0 * activations * batch
    )
    return np.where(size > 0, size, batch), np.where(size > 0, ROOFLINE, SIZES)


def steps_of(jobs: Jobs, target_name: str) -> Array:
    """Steps of an epoch or of the whole job, up to a factor where the table does not say."""
    if target_name not in ("epoch_seconds", "total_seconds"):
        return np.ones(len(jobs))
    steps_column = column_of("steps", jobs.numbers)
    if target_name == "total_seconds" and steps_column is not None:
        return _or(jobs.numbers[steps_column], 1.0)
    samples = _filled(jobs, "samples")
    each = _filled(jobs, "batch") * _filled(jobs, "gpus")
    if "global_batch" in jobs.numbers:
        each = np.where(np.isnan(jobs.numbers["global_batch"]), each, jobs.numbers["global_batch"])
    steps = samples / np.maximum(each, 1e-12)
    return np.asarray(steps * _filled(jobs, "epochs") if target_name == "total_seconds" else steps)


def _filled(jobs: Jobs, role: str) -> Array:
    """The column of a part in the formula; 1 where the table has none."""
    name = column_of(role, jobs.numbers)
    return np.ones(len(jobs)) if name is None else _or(jobs.numbers[name], 1.0)


def _or(values: Array, otherwise: float) -> Array:
    return np.where(np.isfinite(values) & (values > 0), values, otherwise)
