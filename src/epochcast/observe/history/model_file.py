"""A fitted model with everything that it needs to predict, and the file it is written to: JSON that can be read.

The file has the columns and how they become features, the weights or trees, and the widths of the intervals. Reading it
runs nothing; a file of another version, or one that is damaged, is refused.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from epochcast.base.atomic_files import write_text
from epochcast.base.documents import parse_json, read_text
from epochcast.errors import BadInput, EpochcastError
from epochcast.measure.evaluate.predicted import Progress
from epochcast.observe.history.conformal import Widths
from epochcast.observe.history.fitted_model import FittedModel
from epochcast.observe.history.job_table import Jobs
from epochcast.observe.history.job_table_reader import as_jobs
from epochcast.observe.history.learner import LearnedModel, Predictions
from epochcast.observe.history.physics import physics_of
from epochcast.observe.history.physics_scales import Scales
from epochcast.observe.history.roles import with_devices
from epochcast.observe.history.seen_columns import SeenColumns

if TYPE_CHECKING:
    from polars import DataFrame

FORMAT, VERSION = "epochcast history", 4
MOST_BYTES = 400_000_000


@dataclass(frozen=True)
class HistoryModel:
    """What `epochcast history fit` writes."""

    target_name: str
    features: tuple[str, ...]
    learned: LearnedModel

    def inputs(self, frame: "DataFrame", *, allow_code: bool = False, progress: Progress | None = None) -> Jobs:
        """New rows as the model takes them; where it corrects physics, with their physics."""
        seen = self.learned.seen
        jobs = with_devices(as_jobs(frame, categories_of=seen.levels, numbers_of=seen.ranges))
        if self.learned.fitted.has_physics:
            found = physics_of(frame, self.target_name, allow_code=allow_code, progress=progress)
            jobs = replace(jobs, physics=found)
        return replace(jobs.only(self.features), notes=self._notes(jobs))

    def _notes(self, jobs: Jobs) -> tuple[str, ...]:
        missing = [name for name in self.features if name not in jobs.columns]
        if not missing:
            return ()
        return (f"the table has no {', '.join(missing)}; every row is taken as the usual one",)

    def predict(self, jobs: Jobs) -> Predictions:
        """Of rows as `inputs` gives them."""
        return self.learned.predict(jobs)

    def as_dict(self) -> dict[str, Any]:
        """The content of the file."""
        from importlib.metadata import version

        learned = self.learned
        return {
            "format": FORMAT,
            "version": VERSION,
            "made_by": f"epochcast {version('epochcast')}",
            "target": self.target_name,
            "features": list(self.features),
            "rows": learned.rows,
            "error": learned.error,
            "options": dict(learned.options),
            "seen": learned.seen.as_dict(),
            "widths": learned.widths.as_dict(),
            "scales": learned.scales.as_dict(),
            "model": learned.fitted.as_dict(),
        }

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
    if not isinstance(document, Mapping) or document.get("format") != FORMAT:
        raise BadInput(f"{file} is no model of `epochcast history fit`")
    if document.get("version") != VERSION:
        raise BadInput(
            f"{file} is a model of version {document.get('version')}; this epochcast reads version {VERSION}:"
            " fit it again"
        )
    try:
        return _model(document)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        reason = str(error) if isinstance(error, EpochcastError) else f"{type(error).__name__} in its content"
        raise BadInput(f"{file} is damaged: {reason}") from None


def _model(document: Mapping[str, Any]) -> HistoryModel:
    fitted = FittedModel.from_dict(document["model"])
    learned = LearnedModel(
        fitted,
        Widths.from_dict(document["widths"]),
        SeenColumns.from_dict(document["seen"]),
        dict(document["options"]),
        float(document["error"]),
        int(document["rows"]),
        Scales.from_dict(document["scales"]),
    )
    model = HistoryModel(str(document["target"]), tuple(map(str, document["features"])), learned)
    _check(model)
    return model


def _check(model: HistoryModel) -> None:
    """Raise where the parts do not fit together: one row is predicted."""
    seen = model.learned.seen
    numbers = {name: np.array([low]) for name, (low, _) in seen.ranges.items()}
    words = {name: np.array([min(levels, default="")]) for name, levels in seen.levels.items()}
    from epochcast.observe.history.job_table import Physics

    model.learned.predict(Jobs(numbers, words, Physics(np.ones(1), np.array(["forecast"]))))
