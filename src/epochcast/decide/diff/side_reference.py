"""What a side of a comparison is asked for by: a model reference, or `job:NAME` of the nearest `epochcast.toml`.

Options that were given beside it hold for both sides and count before those of the job file, of the model's own script
and of config files.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from epochcast.base.record import Record
from epochcast.decide.diff.diff_side import Side, side_of
from epochcast.errors import BadInput, EpochcastError
from epochcast.predict.forecast.forecaster import forecast_job
from epochcast.predict.forecast.job import JOB_OPTIONS, Job
from epochcast.predict.forecast.job_alternatives import without_replaced
from epochcast.predict.forecast.job_defaults import placement_of
from epochcast.predict.forecast.job_file import find_job_file, read_job, read_jobs
from epochcast.predict.forecast.job_settings import filled
from epochcast.predict.forecast.session import Session
from epochcast.predict.forecast.where import PLACE_OPTIONS, Where

JOB = "job:"
_JOB_NAMES = frozenset(option.name for option in JOB_OPTIONS)
_PLACE_NAMES = frozenset(option.name for option in PLACE_OPTIONS)


@dataclass(frozen=True)
class DiffQuestion(Record):
    """What both sides have in common: options by name, and config files."""

    options: Mapping[str, Any]
    config: tuple[str, ...] = ()


def job_names() -> tuple[str, ...]:
    """The jobs of the nearest job file, as sides are written: job:NAME."""
    return tuple(f"{JOB}{job.name}" for job in read_jobs(find_job_file()))


def side_for(reference: str, question: DiffQuestion, session: Session, name: str = "") -> Side:
    """The side that a reference comes to here, in the working directory."""
    job, where, notes = job_for(reference, question)
    if where.device is None:
        raise BadInput(f"{reference}: a comparison needs a device; give `device`")
    forecast = forecast_job(job, placement_of(where, job, session), session)
    return side_of(name or reference, forecast, notes)


def job_for(reference: str, question: DiffQuestion) -> tuple[Job, Where, tuple[str, ...]]:
    """The job of a reference, where it runs, and what was read elsewhere."""
    typed = dict(question.options)
    before: dict[str, Any] = {}
    model = reference
    if reference.startswith(JOB):
        before = without_replaced(read_job(reference.removeprefix(JOB)).given, typed)
        model = before.pop("model")
    options = {**before, **typed}
    read = filled(model, typed if question.config else options, question.config, {*_JOB_NAMES, *_PLACE_NAMES})
    options = {**without_replaced(options, read.options), **read.options}
    of_place = {name: value for name, value in options.items() if name in _PLACE_NAMES}
    of_job = {name: value for name, value in options.items() if name in _JOB_NAMES}
    try:
        return Job(model, **of_job), Where(**of_place), read.notes
    except EpochcastError as error:
        error.add_note(f"while reading {reference}")
        raise
