"""Forecasts of measured runs: their time, and their memory where the row has it. Every network is captured once and
resized for each of its rows.

With the measured steps of one GPU only what several add is forecast, not the speed of one (`given_single.py`).
"""

import os
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from typing import Any

import numpy as np

from epochcast.base.caching import Cache
from epochcast.base.child_processes import end_with_parent
from epochcast.errors import EpochcastError
from epochcast.hardware.catalogue import find_device
from epochcast.interval import Interval
from epochcast.measure.evaluate.given_single import MeasuredSingle, SingleSteps, given_bare_step, given_step
from epochcast.measure.evaluate.predicted import Predicted, PredictedMemory, Progress
from epochcast.measure.evaluate.scoring_profile import ScoringProfile
from epochcast.measure.tables.cells import count, number, text
from epochcast.measure.tables.row_errors import CaptureFailed, FailedRow, NoSingleGpuRow
from epochcast.measure.tables.run_placement import run_placement
from epochcast.measure.tables.run_table import MeasuredRun, family_of, read_runs
from epochcast.predict.cost.cost_model import CostModel
from epochcast.predict.forecast.forecaster import forecast_job
from epochcast.predict.forecast.session import Session
from epochcast.predict.forecast.step_parts import StepParts
from epochcast.predict.memory.peak import PeakMemory

# With fewer networks than this, starting processes takes longer than it saves.
LEAST_NETWORKS = 40
# Different questions of one network whose answers are kept.
SAME_ROWS = 4096


@dataclass(frozen=True, slots=True)
class RunForecast:
    """The forecast of one run; `memory` where its row says something of it."""

    row_index: int
    seconds: Interval
    parts: StepParts | None = None
    memory: PeakMemory | None = None


def forecast_runs(
    rows: list[dict[str, Any]],
    cost_model: CostModel,
    *,
    singles: SingleSteps | None = None,
    with_doubtful: bool = False,
    profile: ScoringProfile | None = None,
    allow_code: bool = False,
    workers: int = 1,
    progress: Progress | None = None,
) -> Predicted:
    """The step of every row, or the reason why there is none. With `singles` only what several GPUs add is forecast."""
    given_single = singles is not None
    runs, failures = read_runs(
        rows,
        with_bare=given_single,
        with_doubtful=with_doubtful,
        with_memory=not given_single,
        allow_code=allow_code,
    )
    if profile is not None:
        runs, not_of_it = profile.applied(runs)
        failures += not_of_it
    measured_singles = {} if singles is None else singles.of(runs)
    to_forecast = [run for run in runs if run.gpus > 1] if given_single else runs
    if given_single:
        unmatched = [run for run in to_forecast if run.row_index not in measured_singles]
        failures += [FailedRow.because(run.row_index, run.model, NoSingleGpuRow()) for run in unmatched]
        to_forecast = [run for run in to_forecast if run.row_index in measured_singles]
        failures = [f for f in failures if _is_on_several(rows[f.row_index])]
    forecasts, forecast_failures = _forecasts(to_forecast, cost_model, measured_singles, allow_code, workers, progress)
    failures += forecast_failures
    low, mid, high, exchange, host = (np.full(len(rows), np.nan) for _ in range(5))
    by_row = {run.row_index: run for run in runs}
    for forecast in forecasts:
        row_index = forecast.row_index
        if not by_row[row_index].is_timed:
            continue
        low[row_index], mid[row_index], high[row_index] = (
            forecast.seconds.low,
            forecast.seconds.mid,
            forecast.seconds.high,
        )
        if forecast.parts is not None:
            exchange[row_index], host[row_index] = forecast.parts.exposed_comm, forecast.parts.host
    measured = np.array([by_row[i].step_seconds if i in by_row else np.nan for i in range(len(rows))])
    labels = {
        "device": [by_row[i].device.name if i in by_row else _device(row) for i, row in enumerate(rows)],
        "family": [family_of(str(row.get("model"))) for row in rows],
    }
    is_forecast = ~np.isnan(mid)
    answered = {forecast.row_index for forecast in forecasts}
    notes = Counter(note for run in runs if run.row_index in answered for note in run.notes)
    in_order = tuple(sorted(failures, key=lambda failure: failure.row_index))
    parts = {"exposed_comm": exchange, "host": host}
    memory = _memory(len(rows), by_row, forecasts)
    return Predicted(measured, low, mid, high, in_order, labels, is_forecast, dict(notes.most_common()), parts, memory)


def _memory(count: int, runs: Mapping[int, MeasuredRun], forecasts: Iterable[RunForecast]) -> PredictedMemory | None:
    """The memory of rows that say something of it; None if none does."""
    measured, low, mid, high, probabilities = (np.full(count, np.nan) for _ in range(5))
    kinds: list[str | None] = [None] * count
    verdicts: list[str | None] = [None] * count
    ran_out = np.zeros(count, dtype=bool)
    for forecast in forecasts:
        row_index, stated, memory = forecast.row_index, runs[forecast.row_index].memory, forecast.memory
        if stated is None or memory is None:
            continue
        kinds[row_index], verdicts[row_index] = stated.kind, memory.verdict
        probabilities[row_index] = np.nan if memory.fits_probability is None else memory.fits_probability
        ran_out[row_index] = stated.ran_out
        if stated.peak_bytes is not None:
            peak = memory.interval_of(stated.compared_kind)
            measured[row_index] = stated.peak_bytes
            low[row_index], mid[row_index], high[row_index] = peak.low, peak.mid, peak.high
    if not any(kinds):
        return None
    return PredictedMemory(measured, low, mid, high, kinds, verdicts, probabilities, ran_out)


def _is_on_several(row: dict[str, Any]) -> bool:
    """Whether a row is one of several GPUs; a cell that says nothing usable may be."""
    try:
        return (count(row, "gpus") or 1) > 1
    except EpochcastError:
        return True


def _device(row: dict[str, Any]) -> str:
    """The catalogue's name of a row's device where it has one."""
    name = row.get("device")
    try:
        return find_device(str(name), number(row, "device_memory_bytes"), text(row, "source") or None).name
    except EpochcastError:
        return str(name)


def _forecasts(
    runs: list[MeasuredRun],
    cost_model: CostModel,
    singles: Mapping[int, MeasuredSingle],
    allow_code: bool,
    workers: int,
    progress: Progress | None,
) -> tuple[list[RunForecast], list[FailedRow]]:
    """Forecasts of all runs, network by network, in this process or in several."""
    groups: dict[tuple[Any, ...], list[MeasuredRun]] = {}
    for run in runs:
        groups.setdefault((run.reference, run.input_shape), []).append(run)
    forecasts: list[RunForecast] = []
    failures: list[FailedRow] = []
    report = progress or (lambda done, total: None)

    def collect(result: tuple[list[RunForecast], list[FailedRow]]) -> None:
        forecasts.extend(result[0])
        failures.extend(result[1])
        report(len(forecasts) + len(failures), len(runs))

    report(0, len(runs))
    if workers <= 1 or len(groups) < LEAST_NETWORKS:
        for group in groups.values():
            collect(forecast_group(group, cost_model, allow_code, singles))
        return forecasts, failures
    start = get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=start, initializer=end_with_parent, initargs=(os.getpid(),)) as pool:
        futures = [pool.submit(forecast_group, group, cost_model, allow_code, singles) for group in groups.values()]
        for future in as_completed(futures):
            collect(future.result())
    return forecasts, failures


def forecast_group(
    runs: list[MeasuredRun],
    cost_model: CostModel,
    allow_code: bool = False,
    singles: Mapping[int, MeasuredSingle] | None = None,
) -> tuple[list[RunForecast], list[FailedRow]]:
    """Forecasts of runs of one network at one input size; `singles` are measured single-GPU steps by row."""
    if not runs[0].reference:
        return _bare_group(runs, singles or {})
    session = Session(cost_model, with_own_profiles=False, allow_code=allow_code)
    try:
        session.model(runs[0].job)
    except EpochcastError as error:
        bare = [run for run in runs if singles and run.parameters]
        is_bare = {run.row_index for run in bare}
        forecasts, failures = _bare_group(bare, singles or {})
        return forecasts, [
            *failures,
            *(FailedRow.because(run.row_index, run.model, error) for run in runs if run.row_index not in is_bare),
        ]
    forecasts, failures = [], []
    steps: Cache[Hashable, RunForecast] = Cache(SAME_ROWS)
    for run in runs:
        try:
            forecast = steps.get(_step_key(run, singles or {}), partial(_step, run, session, singles or {}))
            forecasts.append(replace(forecast, row_index=run.row_index))
        except EpochcastError as error:
            failures.append(FailedRow.because(run.row_index, run.model, error))
        except Exception as error:  # front ends run other people's code: any error is the reason of a failure
            failures.append(FailedRow.because(run.row_index, run.model, CaptureFailed(run.reference, error)))
    return forecasts, failures


def _step_key(run: MeasuredRun, singles: Mapping[int, MeasuredSingle]) -> Hashable:
    """What a forecast depends on: rows that repeat a measurement repeat no forecast."""
    asked = replace(run, row_index=0, step_seconds=1.0, memory=None, notes=())
    return asked, run.memory is not None, singles.get(run.row_index)


def _step(run: MeasuredRun, session: Session, singles: Mapping[int, MeasuredSingle]) -> RunForecast:
    """The step, what it is made of where all of it is forecast, and its memory where the row has it."""
    single = singles.get(run.row_index)
    if single is not None:
        return RunForecast(run.row_index, given_step(run, session, single))
    placement = run_placement(run)
    forecast = forecast_job(run.job, placement, session, step_only=True)
    memory = None if run.memory is None else forecast_job(run.largest_job, placement, session).details.memory
    return RunForecast(run.row_index, forecast.step_seconds, forecast.step_parts, memory)


def _bare_group(
    runs: list[MeasuredRun], singles: Mapping[int, MeasuredSingle]
) -> tuple[list[RunForecast], list[FailedRow]]:
    forecasts, failures = [], []
    for run in runs:
        try:
            forecasts.append(RunForecast(run.row_index, given_bare_step(run, singles[run.row_index])))
        except EpochcastError as error:
            failures.append(FailedRow.because(run.row_index, run.model, error))
    return forecasts, failures
