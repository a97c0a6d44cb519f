"""Inside a worker: a table of past jobs that was sent, and which model predicts it best."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from epochcast.errors import BadInput
from epochcast.surfaces.web.api_verbs import check_plain

MOST_ROWS = 5_000
# Rows that are forecast one by one.
MOST_FORECAST_ROWS = 300


def compared(file: Path, question: Mapping[str, Any]) -> dict[str, Any]:
    """Error and coverage of every model on every split, with its usual settings."""
    from epochcast.observe.history.history_compare import compare
    from epochcast.observe.history.history_verbs import HistorySettings, comparable
    from epochcast.observe.history.job_table_reader import read_frame
    from epochcast.observe.history.models.model_table import MODELS

    frame = read_frame(file)
    is_forecast = bool(question.get("physics"))
    most = MOST_FORECAST_ROWS if is_forecast else MOST_ROWS
    if len(frame) > most:
        raise BadInput(f"at most {most:,} rows are compared here, got {len(frame):,}; use `epochcast history compare`")
    _check_rows(frame)
    models = [name for name, kind in MODELS.items() if is_forecast or not kind.needs_physics]
    past, names = comparable(frame, str(question["target"]), models, HistorySettings())
    answer = compare(past, models=names, is_tuned=False)
    return {**answer.as_dict(), "titles": {name: MODELS[name].title for name in names}}


def _check_rows(frame: Any) -> None:
    """Refuse rows that name files of the server or code."""
    names = [name for name in ("model", "device", "lengths") if name in frame.columns]
    for row in frame.select(names).unique().iter_rows(named=True) if names else ():
        texts = {name: value for name, value in row.items() if isinstance(value, str)}
        check_plain({"model": "resnet50", **texts})
