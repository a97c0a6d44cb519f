"""What a team's own past says of a forecast: a fitted model as a `forecasting.correction.Correction`."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from epochcast.errors import BadInput
from epochcast.interval import Interval
from epochcast.measure.tables.table_chunks import polars
from epochcast.observe.history.job_table import NO_FORECAST, Physics
from epochcast.observe.history.job_table_reader import as_jobs, named
from epochcast.observe.history.model_file import HistoryModel, read_model
from epochcast.observe.history.physics import FORECAST, overheads_of
from epochcast.observe.history.roles import with_devices
from epochcast.predict.forecast.forecast import Forecast
from epochcast.predict.forecast.forecast_correction import Corrected, correct

# Options of a job that a row has under another name.
_OTHERWISE = frozenset({"batch", "device", "gpus", "nodes"})


def by_history(answer: Forecast, history: str | Path) -> Forecast:
    """A forecast corrected by a file of `epochcast history fit`."""
    return correct(answer, answer.details.job.as_dict(), Experience(read_model(history)))


class Experience:
    """A model of past jobs that corrects forecasts."""

    def __init__(self, model: HistoryModel) -> None:
        self.model = model

    @property
    def told_by(self) -> str:
        """In a word or two."""
        return "history"

    def corrected(self, forecast: Forecast, options: Mapping[str, Any]) -> Corrected:
        """The target of the model for the job of a forecast."""
        model, name = self.model, self.model.target_name
        seen = model.seen
        frame = named(polars().DataFrame([row_of(forecast, options)], strict=False))
        jobs = with_devices(as_jobs(frame, categories_of=seen.levels, numbers_of=seen.ranges))
        jobs = replace(jobs.only(model.features), physics=_physics(forecast, name))
        predictions = model.predict(jobs)
        new = ", ".join(name for name in predictions.news[0] if name != NO_FORECAST)
        notes = [f"your past jobs have no such {new}; the interval is wider for it"] if new else []
        if NO_FORECAST in predictions.news[0]:
            notes.append("none of your past jobs could be forecast; how far they correct this one is unsure")
        missing = [column for column in model.features if column not in jobs.columns]
        if missing:
            notes.append(f"a forecast lacks columns that history learned from: {', '.join(missing)}")
        low, mid, high = (float(column[0]) for column in (predictions.low, predictions.mid, predictions.high))
        value = Interval(low, mid, high, model.widths.coverage)
        return Corrected(name, value, tuple(notes))


def row_of(forecast: Forecast, options: Mapping[str, Any]) -> dict[str, Any]:
    """A job and its place as a row of a table of jobs."""
    plain = {
        name: value
        for name, value in options.items()
        if isinstance(value, str | int | float | bool) and name not in _OTHERWISE
    }
    columns = {
        "model": forecast.model,
        "device": forecast.device,
        "gpus": forecast.gpus,
        "nodes": forecast.nodes,
        "batch_per_gpu": forecast.batch_per_gpu // forecast.accumulate,
        "global_batch": forecast.global_batch,
        "grad_accum": forecast.accumulate,
        "precision": forecast.precision,
        "optimizer": forecast.optimizer,
        "strategy": forecast.strategy,
        "mode": forecast.mode,
        "framework": forecast.framework,
        "dataset": forecast.dataset,
        "samples": forecast.samples,
        "epochs": forecast.epochs,
        "parameters": forecast.parameters,
        "sequence_length": forecast.sequence_length,
    }
    return {**plain, **{name: value for name, value in columns.items() if value is not None}}


def _physics(forecast: Forecast, target_name: str) -> Physics:
    """The forecast itself, as `physics.physics_of` would have it."""
    if target_name == "peak_bytes":
        if forecast.peak_bytes is None:
            raise BadInput("the history is of peak_bytes, and the forecast has none")
        return Physics(np.array([forecast.peak_bytes.mid]), np.array([FORECAST]), np.ones(1))
    step = forecast.step_seconds.mid
    parts = forecast.step_parts
    exposed = 0.0 if parts is None or forecast.gpus == 1 else parts.exposed_comm
    overheads = overheads_of(np.array([step]), np.array([exposed]))
    steps = 1.0
    if target_name != "step_seconds":
        if forecast.samples is None:
            raise BadInput(f"the history is of {target_name}: give `samples` or `dataset`")
        steps = forecast.samples / forecast.global_batch
        steps *= forecast.epochs if target_name == "total_seconds" else 1
    return Physics(np.array([step * steps]), np.array([FORECAST]), overheads, np.array([steps]))
