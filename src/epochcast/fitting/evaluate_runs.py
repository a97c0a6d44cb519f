"""Forecasts of measured runs. Every network is captured once and resized for each of its rows.

`given_single` asks what several GPUs change, not how fast one is (`given_single.py`).
"""

from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import numpy as np

from epochcast.cost.model import CostModel
from epochcast.errors import EpochcastError
from epochcast.fitting.given_single import Single, given_bare_step, given_step, single_steps
from epochcast.fitting.predicted import Predicted, Progress
from epochcast.fitting.run_placement import run_placement
from epochcast.fitting.run_table import Failure, Run, family_of, read_runs
from epochcast.forecasting.forecaster import forecast_job
from epochcast.forecasting.session import Session
from epochcast.hardware.catalogue import find_device
from epochcast.interval import Interval

# Below this many networks a second process costs more to start than it saves.
WORTH_A_PROCESS = 40


@dataclass(frozen=True, slots=True)
class Answer:
    """The forecast of one run."""

    place: int
    seconds: Interval


def forecast_runs(
    rows: list[dict[str, Any]],
    cost_model: CostModel,
    *,
    given_single: bool = False,
    allow_code: bool = False,
    workers: int = 1,
    progress: Progress | None = None,
) -> Predicted:
    """The step of every row, or the reason why there is none."""
    runs, unread = read_runs(rows, with_bare=given_single)
    failures = list(unread)
    known = single_steps(runs) if given_single else {}
    asked = [run for run in runs if run.gpus > 1] if given_single else runs
    if given_single:
        without = [run for run in asked if run.place not in known]
        reason = "no single-GPU row of the same system, model, batch per GPU and precision"
        failures += [Failure(run.place, run.model, reason) for run in without]
        asked = [run for run in asked if run.place in known]
        failures = [f for f in failures if int(rows[f.place].get("gpus") or 1) > 1]
    answers, more = _answers(asked, cost_model, known, allow_code, workers, progress)
    failures += more
    low, mid, high = (np.full(len(rows), np.nan) for _ in range(3))
    by_place = {run.place: run for run in runs}
    for answer in answers:
        place = answer.place
        low[place], mid[place], high[place] = answer.seconds.low, answer.seconds.mid, answer.seconds.high
    measured = np.array([by_place[i].step_seconds if i in by_place else np.nan for i in range(len(rows))])
    labels = {
        "device": [by_place[i].device.name if i in by_place else _device(row) for i, row in enumerate(rows)],
        "family": [family_of(str(row.get("model"))) for row in rows],
    }
    return Predicted(measured, low, mid, high, tuple(sorted(failures, key=_place)), labels, ~np.isnan(mid))


def _place(failure: Failure) -> int:
    return failure.place


def _device(row: dict[str, Any]) -> str:
    """The catalogue's name of a row's device where it has one."""
    name = row.get("device")
    try:
        return find_device(str(name), row.get("device_memory_bytes"), row.get("source")).name
    except EpochcastError:
        return str(name)


def _answers(
    runs: list[Run],
    cost_model: CostModel,
    singles: Mapping[int, Single],
    allow_code: bool,
    workers: int,
    progress: Progress | None,
) -> tuple[list[Answer], list[Failure]]:
    """Runs grouped by network and forecast, in this process or in several."""
    groups: dict[tuple[Any, ...], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.reference, run.input_shape), []).append(run)
    answers: list[Answer] = []
    failures: list[Failure] = []
    report = progress or (lambda done, total: None)

    def take(result: tuple[list[Answer], list[Failure]]) -> None:
        answers.extend(result[0])
        failures.extend(result[1])
        report(len(answers) + len(failures), len(runs))

    report(0, len(runs))
    if workers <= 1 or len(groups) < WORTH_A_PROCESS:
        for group in groups.values():
            take(forecast_group(group, cost_model, allow_code, singles))
        return answers, failures
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        waiting = [pool.submit(forecast_group, group, cost_model, allow_code, singles) for group in groups.values()]
        for future in as_completed(waiting):
            take(future.result())
    return answers, failures


def forecast_group(
    runs: list[Run], cost_model: CostModel, allow_code: bool = False, singles: Mapping[int, Single] | None = None
) -> tuple[list[Answer], list[Failure]]:
    """Forecasts of runs of one network at one input size; `singles` are known single-GPU steps by place."""
    if not runs[0].reference:
        return _bare_group(runs, singles or {})
    session = Session(cost_model, with_own_profiles=False, allow_code=allow_code)
    try:
        session.model(runs[0].job)
    except EpochcastError as error:
        bare = [run for run in runs if singles and run.parameters]
        answers, failures = _bare_group(bare, singles or {})
        return answers, [*failures, *(Failure(run.place, run.model, str(error)) for run in runs if run not in bare)]
    answers, failures = [], []
    for run in runs:
        try:
            seconds = _step_seconds(run, session, singles or {})
            answers.append(Answer(run.place, seconds))
        except EpochcastError as error:
            failures.append(Failure(run.place, run.model, str(error)))
        except Exception as error:  # front ends run foreign code: whatever they raise is a reason, not an end
            reason = f"capturing {run.reference} ended in {type(error).__name__}: {str(error)[:200]}"
            failures.append(Failure(run.place, run.model, reason))
    return answers, failures


def _step_seconds(run: Run, session: Session, singles: Mapping[int, Single]) -> Interval:
    single = singles.get(run.place)
    if single is not None:
        return given_step(run, session, single)
    return forecast_job(run.job, run_placement(run), session, step_only=True).step_seconds


def _bare_group(runs: list[Run], singles: Mapping[int, Single]) -> tuple[list[Answer], list[Failure]]:
    answers, failures = [], []
    for run in runs:
        try:
            answers.append(Answer(run.place, given_bare_step(run, singles[run.place])))
        except EpochcastError as error:
            failures.append(Failure(run.place, run.model, str(error)))
    return answers, failures
