"""What past runs say of a new one: by how much runs on the same device took longer than their forecasts.

With r = log(observed / forecast seconds of a step) of a past run, runs of one job at one place share a mean; what is
left between them is the spread s of one run. Jobs that are only similar (same model and device, other options) differ
from the new one by an error τ of their own:

    v_g = τ² + s²/n_g        for the n_g runs of job g
    r̄   = Σ r̄_g/v_g / Σ 1/v_g,    error² = s² + 1 / Σ 1/v_g

s² is that of these runs, begun as if one more run had shown the usual spread; so one run alone leaves what is usual
open, and some that agree by chance never leave nothing open. `past.toml` has the usual spread and τ, measured. Runs of
other models are not asked: on the rows that τ was measured on, their ratios say nothing of a job's own.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from math import exp, fsum, log, sqrt
from statistics import median
from typing import Any

from sqlalchemy import select

from epochcast.base.caching import remembered
from epochcast.base.documents import parse_toml
from epochcast.interval import Interval
from epochcast.observe.runs.run_prior import Past
from epochcast.observe.runs.standing import ShownPace
from epochcast.observe.store.database_tables import jobs, runs
from epochcast.observe.store.job_fingerprint import fingerprint
from epochcast.observe.store.row_values import run_of
from epochcast.observe.store.store import Store
from epochcast.observe.store.store_rows import RunPlace, RunRow, bounded

# Quantile of a normal distribution at which 90 % lie within ±.
NORMAL_90 = 1.6449
MOST_RUNS = 200
"""The newest that are looked at."""
LEAST_STEPS = 20
"""A run that executed fewer has not shown its pace."""
# Options that change how many steps there are, and nothing about one.
_NOT_OF_A_STEP = {"epochs", "samples", "tokens", "checkpoints_per_epoch", "validation_samples"}


@dataclass(frozen=True, slots=True)
class PastGroup:
    """Runs of one job at one place."""

    is_same: bool
    ratios: tuple[float, ...]

    @property
    def mean(self) -> float:
        return fsum(self.ratios) / len(self.ratios)


def past_of(store: Store, job: Mapping[str, Any], place: RunPlace, *, but: int | None = None) -> Past | None:
    """Of a job as `Job.as_dict` gives it, at a place; None where no run on its device has shown its pace."""
    if place.device is None:
        return None
    candidates = _runs_of(store, str(job["model"]), place.device, but)
    groups = _grouped(candidates, job, place)
    if not groups:
        return None
    of_this_job = [run for run, theirs in candidates if _is_same(run, theirs, job, place)]
    return Past(
        ratio=expected_ratio(groups),
        same=len(of_this_job),
        similar=sum(len(group.ratios) for group in groups) - len(of_this_job),
        pause_fraction=_median(_pause_fraction(run) for run in of_this_job),
        start_seconds=_median(None if (shown := _shown(run)) is None else shown.start_seconds for run in of_this_job),
    )


def expected_ratio(groups: Iterable[PastGroup]) -> Interval:
    """The formulas above."""
    listed, usual = list(groups), usual_errors()
    spread = _spread(listed, usual["run"])
    errors = [0.0 if group.is_same else usual["similar"] for group in listed]
    weights = [1 / (error**2 + spread**2 / len(group.ratios)) for error, group in zip(errors, listed, strict=True)]
    mean = fsum(weight * group.mean for weight, group in zip(weights, listed, strict=True)) / fsum(weights)
    error = sqrt(spread**2 + 1 / fsum(weights))
    return Interval.around(exp(mean), exp(NORMAL_90 * error))


def _spread(groups: Iterable[PastGroup], usual: float) -> float:
    squares, freedom = usual**2, 1
    for group in groups:
        squares += fsum((ratio - group.mean) ** 2 for ratio in group.ratios)
        freedom += len(group.ratios) - 1
    return sqrt(squares / freedom)


@remembered(1)
def usual_errors() -> Mapping[str, float]:
    """The measured errors (log): of one `run`, and of what a `similar` job says of this one."""
    document = parse_toml(
        files("epochcast.observe.store").joinpath("past.toml").read_text(encoding="utf-8"), "past.toml"
    )
    return {name: float(row["log_error"]) for name, row in document.items()}


def _runs_of(store: Store, model: str, device: str, but: int | None) -> list[tuple[RunRow, Mapping[str, Any]]]:
    """The newest runs of a model on a device that were forecast and have shown their pace, each with its job."""
    query = (
        select(runs, jobs.c.job.label("its_job"))
        .join(jobs, jobs.c.id == runs.c.job_id)
        .where(runs.c.device == device, runs.c.step_seconds > 0, runs.c.forecast_step_seconds > 0)
        .where(jobs.c.model == bounded(model), runs.c.id != (but or 0))
        .order_by(runs.c.id.desc())
        .limit(MOST_RUNS)
    )
    candidates = []
    with store.reading() as connection:
        for row in connection.execute(query):
            values = dict(row._mapping)
            theirs = values.pop("its_job")
            run = run_of(values)
            shown = _shown(run)
            if shown is not None and shown.executed_steps >= LEAST_STEPS:
                candidates.append((run, theirs))
    return candidates


def _grouped(
    candidates: Iterable[tuple[RunRow, Mapping[str, Any]]], job: Mapping[str, Any], place: RunPlace
) -> list[PastGroup]:
    groups: dict[tuple[bool, str, int, int], list[float]] = {}
    for run, theirs in candidates:
        ratio = run.against_forecast
        assert ratio is not None  # the query asks for both
        key = _is_same(run, theirs, job, place), step_fingerprint(theirs), run.place.gpus, run.place.nodes
        groups.setdefault(key, []).append(log(ratio))
    return [PastGroup(key[0], tuple(ratios)) for key, ratios in groups.items()]


def _is_same(run: RunRow, theirs: Mapping[str, Any], job: Mapping[str, Any], place: RunPlace) -> bool:
    is_here = (run.place.gpus, run.place.nodes) == (place.gpus, place.nodes)
    return is_here and step_fingerprint(theirs) == step_fingerprint(job)


def step_fingerprint(job: Mapping[str, Any]) -> str:
    """The same for jobs whose steps are the same, however many they make."""
    return fingerprint({name: value for name, value in job.items() if name not in _NOT_OF_A_STEP})


def _shown(run: RunRow) -> ShownPace | None:
    return None if run.standing is None else run.standing.shown


def _pause_fraction(run: RunRow) -> float | None:
    """Seconds beside steps over seconds of steps, start and down time left out."""
    shown = _shown(run)
    if shown is None or run.elapsed_seconds is None or not run.step_seconds or not shown.executed_steps:
        return None
    steps_seconds = run.step_seconds * shown.executed_steps
    beside = run.elapsed_seconds - (run.down_seconds or 0.0) - shown.start_seconds - steps_seconds
    return float(max(0.0, beside / steps_seconds))


def _median(values: Iterable[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return median(numbers) if numbers else None
