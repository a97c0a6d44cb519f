"""`fit`, `predict` and `compare`, from tables to answers.

>>> import polars as pl
>>> from epochcast.observe.history.history_verbs import fit, predict
>>> rows = [{"network": n, "gpus": g, "batch": b, "epoch_ms": 1e3 * w * (64 / g + 2)}
...         for n, w in (("small", 1.0), ("large", 4.0)) for g in (1, 2, 4, 8) for b in (16, 32, 64)]
>>> model = fit(pl.DataFrame(rows), "epoch_seconds", model="ridge")
>>> answer = predict(model, pl.DataFrame({"network": ["large"], "gpus": [2], "batch": [32]}))
>>> [sorted(row) for row in answer.as_dict()["predictions"]]
[['high', 'low', 'mid', 'new']]

"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from epochcast.base.record import Record, json_key, json_optional
from epochcast.errors import BadInput
from epochcast.measure.evaluate.predicted import Progress
from epochcast.observe.history.job_table import NO_FORECAST, Physics
from epochcast.observe.history.job_table_reader import read_frame
from epochcast.observe.history.learner import learn
from epochcast.observe.history.learning_set import LearningSet, learning_set
from epochcast.observe.history.model_file import HistoryModel, Predictions, read_model
from epochcast.observe.history.models.model_table import MODELS, find_kind
from epochcast.observe.history.physics import physics_of
from epochcast.observe.history.prediction_explain import Explanation, explained

if TYPE_CHECKING:
    from polars import DataFrame

Table = Any
"""A path, or a table of polars or pandas."""


@dataclass(frozen=True)
class PredictedRow:
    """One row of the answer: low ≤ mid ≤ high, and the columns in which it is unlike what was learned from."""

    low: float
    mid: float
    high: float
    new: tuple[str, ...]


@dataclass(frozen=True)
class HistoryPrediction(Record):
    """Predictions of new rows."""

    target_name: str = field(metadata=json_key("target"))
    model: str
    predictions: Predictions
    warnings: tuple[str, ...]
    explanations: Mapping[int, Explanation] | None = json_optional("explain", default=None)
    json_from: ClassVar[Mapping[str, str]] = {"predictions": "predicted_rows"}
    json_also: ClassVar[tuple[str, ...]] = ("rows",)

    @property
    def rows(self) -> int:
        """How many were predicted."""
        return len(self.predictions.mid)

    @property
    def predicted_rows(self) -> tuple[PredictedRow, ...]:
        """One by one."""
        p = self.predictions
        columns = (p.low.tolist(), p.mid.tolist(), p.high.tolist(), p.news)
        return tuple(PredictedRow(*row) for row in zip(*columns, strict=True))


@dataclass(frozen=True)
class HistorySettings:
    """How to learn: `columns` to learn from alone, or `ignored` ones; `workers` fits at the same time.
    `allow_code` lets rows name `file.py:factory`, which runs that code.
    """

    columns: Sequence[str] = ()
    ignored: Sequence[str] = ()
    seed: int = 0
    workers: int = 1
    allow_code: bool = False
    progress: Progress | None = None


def past_jobs(
    table: Table, target_name: str, *, with_physics: bool = True, settings: HistorySettings | None = None
) -> LearningSet:
    """The rows of a table to learn from, with their physics."""
    s = settings or HistorySettings()
    frame = read_frame(table)
    checked = learning_set(frame, target_name, columns=s.columns, ignored=s.ignored)  # before anything takes long
    if not with_physics:
        return checked
    physics: Physics = physics_of(frame, target_name, allow_code=s.allow_code, workers=s.workers, progress=s.progress)
    return learning_set(frame, target_name, columns=s.columns, ignored=s.ignored, physics=physics)


def fit(
    table: Table, target_name: str, *, model: str = "grey_box", settings: HistorySettings | None = None
) -> HistoryModel:
    """A model of past jobs; `model` is a name of the table of models."""
    s = settings or HistorySettings()
    past = past_jobs(table, target_name, with_physics=find_kind(model).needs_physics, settings=s)
    return learn(model, past, seed=s.seed, workers=s.workers, progress=s.progress)


def predict(
    model: HistoryModel | str | Path,
    table: Table,
    *,
    explain: Sequence[int] = (),
    allow_code: bool = False,
    progress: Progress | None = None,
) -> HistoryPrediction:
    """What a model says of new jobs; `explain` are rows to say which columns moved them."""
    fitted = model if isinstance(model, HistoryModel) else read_model(model)
    frame: DataFrame = read_frame(table)
    if not len(frame):
        raise BadInput("the table has no rows to predict")
    wrong = [row for row in explain if not 0 <= row < len(frame)]
    if wrong:
        raise BadInput(f"there is no row {wrong[0]} to explain; rows count from 0 to {len(frame) - 1}")
    jobs = fitted.inputs(frame, allow_code=allow_code, progress=progress)
    predictions = fitted.predict(jobs)
    why = {row: explained(fitted, jobs, row) for row in explain}
    return HistoryPrediction(
        fitted.target_name, fitted.fitted.name, predictions, (*jobs.notes, *_news(predictions)), why or None
    )


def _news(predictions: Predictions) -> list[str]:
    """What is new about rows, in words."""
    counts: dict[str, int] = {}
    for names in predictions.news:
        for name in names:
            counts[name] = counts.get(name, 0) + 1
    without = counts.pop(NO_FORECAST, 0)
    sentences = [
        f"{count:,} {'row has' if count == 1 else 'rows have'} a {name} unlike all that were learned from;"
        " intervals are wider there"
        for name, count in counts.items()
    ]
    if without:
        sentences.append(
            f"{without:,} {'row' if without == 1 else 'rows'} cannot be forecast as the past jobs were (a network that"
            " cannot be built, no device, no batch): a guess by the size of the batch"
        )
    return sentences


def comparable(
    table: Table, target_name: str, models: Sequence[str], settings: HistorySettings
) -> tuple[LearningSet, list[str]]:
    """The rows to compare models on, and the models: those named, or all."""
    wanted = list(models) or list(MODELS)
    needs_physics = any(find_kind(name).needs_physics for name in wanted)
    return past_jobs(table, target_name, with_physics=needs_physics, settings=settings), wanted
