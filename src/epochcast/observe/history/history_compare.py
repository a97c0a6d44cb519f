"""Models against each other, on the same rows: what each predicts for rows that it has not seen, split by split."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from epochcast.base.record import Record, json_key, json_name, paths
from epochcast.errors import BadInput, EpochcastError
from epochcast.measure.evaluate.predicted import Progress
from epochcast.measure.evaluate.scores import Scores, scores
from epochcast.observe.history.job_table import Array, Integers
from epochcast.observe.history.learner import learn
from epochcast.observe.history.learning_set import LearningSet
from epochcast.observe.history.models.model_table import MODELS, find_kind
from epochcast.observe.history.seen_columns import SeenColumns
from epochcast.observe.history.splits import Split, default_splits, split_of
from epochcast.observe.history.tuning import Tick, counted, fits_of

LEAST_TRAIN = 5


@dataclass(frozen=True)
class Tested(Record):
    """What one model predicted for the rows of a split that were tested; `reason` where it could not be fitted."""

    rows: Integers
    measured: Array
    low: Array
    mid: Array
    high: Array
    reason: str | None = None
    json_paths: ClassVar[Mapping[str, str]] = paths(
        "reason",
        n="scores.n",
        mape="scores.mape",
        median_ape="scores.median_ape",
        p90_ape="scores.p90_ape",
        coverage="scores.coverage",
        rmse="scores.rmse_seconds",  # in the unit of the target
    )
    json_omitted: ClassVar[tuple[str, ...]] = ("reason",)

    @property
    def scores(self) -> Scores:
        """Errors and coverage."""
        return scores(self.measured, self.low, self.mid, self.high)


@dataclass(frozen=True)
class SplitResult(Record):
    """All models on one split."""

    name: str = field(metadata=json_key(None))
    is_outside: bool = field(metadata=json_key("extrapolates"))
    models: Mapping[str, Tested]
    json_also: ClassVar[tuple[str, ...]] = ("best", "why")

    @property
    def best(self) -> str | None:
        """The model with the smallest mean relative error; None where none could be fitted."""
        errors = {name: tested.scores.mape for name, tested in self.models.items()}
        fitted = {name: error for name, error in errors.items() if error is not None}
        return min(fitted, key=lambda name: fitted[name]) if fitted else None

    @property
    def why(self) -> str:
        """In words."""
        if self.best is None:
            return "no model could be fitted"
        errors = {n: t.scores.mape for n, t in self.models.items() if t.scores.mape is not None}
        best = errors.pop(self.best)
        reason = f"{self.best} ({MODELS[self.best].title}) has the smallest mean error, {_percent(best)}"
        if errors:
            second = min(errors, key=lambda name: errors[name])
            reason += f"; next is {second} with {_percent(errors[second])}"
        return reason


@dataclass(frozen=True)
class HistoryComparison(Record):
    """All splits."""

    target_name: str = field(metadata=json_key("target"))
    rows: int
    splits: Mapping[str, SplitResult]
    notes: tuple[str, ...] = json_name("warnings", default=())


def compare(
    past: LearningSet,
    *,
    splits: Sequence[str] = (),
    models: Sequence[str] = (),
    is_tuned: bool = True,
    seed: int = 0,
    workers: int = 1,
    progress: Progress | None = None,
) -> HistoryComparison:
    """Every model on every split; `is_tuned` chooses hyper-parameters anew in every part."""
    names = list(dict.fromkeys(models or MODELS))
    kinds = {name: find_kind(name) for name in names}
    if past.jobs.physics is None:
        kinds = {name: kind for name, kind in kinds.items() if not kind.needs_physics}
    cuts = [split_of(name, past.jobs, seed) for name in (splits or default_splits(past.jobs))]
    if not cuts:
        raise BadInput("no split suits this table; name one, like random or batch>64")
    fits = sum(fits_of(kind, () if is_tuned else kind.grid[:1]) for kind in kinds.values())
    total = fits * sum(len(cut.parts) for cut in cuts)
    tick = (lambda: None) if progress is None else counted(progress, total)
    results = {}
    for cut in cuts:
        tested = {name: _tested(name, past, cut, is_tuned, seed, workers, tick) for name in kinds}
        results[cut.name] = SplitResult(cut.name, cut.is_outside, tested)
    return HistoryComparison(past.target_name, len(past), results, past.jobs.notes)


def _tested(name: str, past: LearningSet, cut: Split, is_tuned: bool, seed: int, workers: int, tick: Tick) -> Tested:
    kind = find_kind(name)
    columns: list[list[Array]] = [[], [], []]
    rows = []
    try:
        for train, test in cut.parts:
            if len(train) < LEAST_TRAIN:
                continue
            learned_from, inputs = past.take(train), past.take(test).inputs
            new = {column for names in SeenColumns.of(learned_from.inputs).news(inputs) for column in names}
            candidates = () if is_tuned else kind.grid[:1]
            learned = learn(
                name, learned_from, candidates=candidates, seed=seed, workers=workers, new_columns=new, tick=tick
            )
            predicted = learned.predict(inputs)
            for column, values in zip(columns, (predicted.low, predicted.mid, predicted.high), strict=True):
                column.append(values)
            rows.append(test)
    except EpochcastError as error:
        nothing = np.zeros(0)
        return Tested(np.zeros(0, dtype=np.int64), nothing, nothing, nothing, nothing, str(error))
    places = np.concatenate(rows) if rows else np.zeros(0, dtype=np.int64)
    low, mid, high = (np.concatenate(column) if column else np.zeros(0) for column in columns)
    return Tested(places, past.target[places], low, mid, high)


def _percent(share: float) -> str:
    return f"{share:.1%}".replace("%", " %")
