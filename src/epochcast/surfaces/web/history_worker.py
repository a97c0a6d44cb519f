"""Inside a worker: what past jobs say of new ones. Rows may name models, as long as these are no files and no code."""

from collections.abc import Mapping
from typing import Any

from epochcast.errors import BadInput
from epochcast.surfaces.web.api_verbs import check_model

MOST_ROWS = 10_000


def predicted(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Predictions of rows by a model that was sent."""
    told = asked.get("asked")
    if not isinstance(told, Mapping) or set(told) != {"model", "rows"}:
        raise BadInput("past jobs are asked with an object of `model`, the content of a model file, and `rows`")
    rows = told["rows"]
    if not isinstance(rows, list) or not rows or not all(isinstance(row, Mapping) for row in rows):
        raise BadInput("`rows` must be a list of objects, one for each job")
    if len(rows) > MOST_ROWS:
        raise BadInput(f"at most {MOST_ROWS:,} rows are predicted at once, got {len(rows):,}")
    for row in rows:
        if isinstance(row.get("model"), str):
            check_model(row["model"])
    from epochcast.observe.history.history_verbs import predict
    from epochcast.observe.history.model_file import model_in

    model = model_in(told["model"], "the model")
    return predict(model, _columns(rows)).as_dict()


def _columns(rows: list[Mapping[str, Any]]) -> dict[str, list[Any]]:
    names = dict.fromkeys(name for row in rows for name in row)
    for name in names:
        kinds = {type(row.get(name)) for row in rows if row.get(name) is not None}
        if kinds - {int, float, str, bool} or (str in kinds and len(kinds) > 1):
            raise BadInput(f"the column {name!r} must be numbers or texts")
    return {name: [row.get(name) for row in rows] for name in names}
