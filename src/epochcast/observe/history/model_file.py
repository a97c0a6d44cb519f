"""A fitted model with everything that it needs to predict, and the file it is written to: JSON that can be read.

The file has the columns and how they become features, the weights or trees, and the widths of the intervals. Reading it
runs nothing; a file of another version, or one that is damaged, is refused.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from epochcast.base.atomic_files import write_text
from epochcast.base.documents import parse_json, read_text
from epochcast.base.record import Record, json_hidden, json_key
from epochcast.errors import BadInput, EpochcastError
from epochcast.measure.evaluate.predicted import Progress
from epochcast.observe.history.conformal import Widths
from epochcast.observe.history.fitted_model import FittedModel
from epochcast.observe.history.job_table import NO_FORECAST, Array, Flags, Jobs, Physics
from epochcast.observe.history.job_table_reader import as_jobs
from epochcast.observe.history.models.model_table import Options
from epochcast.observe.history.physics import physics_of
from epochcast.observe.history.physics_scales import Scales
from epochcast.observe.history.roles import with_devices
from epochcast.observe.history.seen_columns import SeenColumns

if TYPE_CHECKING:
    from polars import DataFrame

MOST_BYTES = 400_000_000


@dataclass(frozen=True)
class Predictions:
    """low ≤ mid ≤ high of every row, and the columns in which it is unlike what was learned from."""

    low: Array
    mid: Array
    high: Array
    news: list[tuple[str, ...]]


@dataclass(frozen=True)
class HistoryModel(Record):
    """A fitted model with its intervals: what `epochcast history fit` writes.

    `error` is the mean relative error in cross-validation, `unseen` what that predicted for each row.
    """

    json_version: ClassVar[int | None] = 4
    json_also: ClassVar[tuple[str, ...]] = ("format", "made_by")
    format: ClassVar[str] = "epochcast history"

    target_name: str = field(metadata=json_key("target"))
    features: tuple[str, ...]
    rows: int
    error: float
    options: Options
    seen: SeenColumns
    widths: Widths
    scales: Scales
    fitted: FittedModel = field(metadata=json_key("model"))
    unseen: Array = json_hidden(repr=False, compare=False, default_factory=lambda: np.zeros(0))

    @property
    def made_by(self) -> str:
        """The version of epochcast that writes the file."""
        from importlib.metadata import version

        return f"epochcast {version('epochcast')}"

    def inputs(self, frame: "DataFrame", *, allow_code: bool = False, progress: Progress | None = None) -> Jobs:
        """New rows as the model takes them; where it corrects physics, with their physics."""
        jobs = with_devices(as_jobs(frame, categories_of=self.seen.levels, numbers_of=self.seen.ranges))
        if self.fitted.has_physics:
            physics = physics_of(frame, self.target_name, allow_code=allow_code, progress=progress)
            jobs = replace(jobs, physics=physics)
        missing = [name for name in self.features if name not in jobs.columns]
        notes = (f"the table has no {', '.join(missing)}; every row is taken as the usual one",) if missing else ()
        return replace(jobs.only(self.features), notes=notes)

    def scaled(self, jobs: Jobs) -> tuple[Jobs, Flags]:
        """Rows with their physics on the scale that was learned, and which are of a kind of physics that was not."""
        if jobs.physics is None or not self.fitted.has_physics:
            return jobs, np.zeros(len(jobs), dtype=np.bool_)
        physics, is_new = self.scales.applied(jobs.physics)
        return replace(jobs, physics=physics), is_new

    def predict(self, jobs: Jobs) -> Predictions:
        """Of rows as `inputs` gives them."""
        jobs, is_new = self.scaled(jobs)
        mid = self.fitted.predict(jobs)
        news = [
            (*names, NO_FORECAST) if is_so else names for names, is_so in zip(self.seen.news(jobs), is_new, strict=True)
        ]
        groups = jobs.category(self.widths.group_column) if self.widths.group_column else [""] * len(jobs)
        factor = np.exp(np.minimum(self.widths.of(groups, news), 50.0))
        return Predictions(mid / factor, mid, mid * factor, news)

    def save(self, path: str | Path) -> None:
        """Write the file; it is never half written."""
        import json

        file = Path(path)
        if not file.parent.is_dir():
            raise BadInput(f"no folder {str(file.parent)!r} to write {file.name} to")
        write_text(file, json.dumps(self.as_dict(), allow_nan=False, indent=None) + "\n")


def read_model(path: str | Path) -> HistoryModel:
    """The model in a file."""
    file = Path(path)
    return model_in(parse_json(read_text(file, MOST_BYTES), file.name), file.name)


def model_in(document: object, file: str) -> HistoryModel:
    """The model of a file's content."""
    if not isinstance(document, Mapping) or document.get("format") != HistoryModel.format:
        raise BadInput(f"{file} is no model of `epochcast history fit`")
    version = document.get("version")
    if version != HistoryModel.json_version:
        raise BadInput(
            f"{file} is a model of version {version}; this epochcast reads version {HistoryModel.json_version}:"
            " fit it again"
        )
    try:
        model = HistoryModel.from_dict(document)
        _check(model)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        reason = str(error) if isinstance(error, EpochcastError) else f"{type(error).__name__} in its content"
        raise BadInput(f"{file} is damaged: {reason}") from None
    return model


def _check(model: HistoryModel) -> None:
    """Raise where the parts do not fit together: one row is predicted."""
    numbers = {name: np.array([low]) for name, (low, _) in model.seen.ranges.items()}
    words = {name: np.array([min(levels, default="")]) for name, levels in model.seen.levels.items()}
    model.predict(Jobs(numbers, words, Physics(np.ones(1), np.array(["forecast"]))))
