"""What people say about a run: its title, tags, whether it is archived, and whether it has a card to share.

The name under which a run reports stays as it is, so that a running client still finds it; people see the title. A card
is found by a random key alone: whoever has the link sees how the run stands, and nothing else.
"""

import secrets
import time
from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, func, select, update

from epochcast.errors import BadInput, UnknownName
from epochcast.observe.store.database_tables import runs
from epochcast.observe.store.row_values import run_of
from epochcast.observe.store.run_tags import checked_tags, tags_of, tags_text
from epochcast.observe.store.store import Store
from epochcast.observe.store.store_rows import RunRow, checked_name

LABELS = ("title", "tags", "is_archived", "is_shared")
_CARD_BYTES = 24
# Values of a filter that are offered.
MOST_CHOICES = 200


def label_run(store: Store, run: RunRow, labels: Mapping[str, Any]) -> RunRow:
    """Change labels of a run: those that are named. A title of null is the name again."""
    columns = _columns(run, labels)
    with store.writing() as connection:
        if columns:
            connection.execute(update(runs).where(runs.c.id == run.id).values(**columns))
        return run_of(connection.execute(select(runs).where(runs.c.id == run.id)).one())


def _columns(run: RunRow, labels: Mapping[str, Any]) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for name, value in labels.items():
        match name:
            case "title":
                columns["title"] = _title(value)
            case "tags":
                columns["tags"] = tags_text(checked_tags(value))
            case "is_archived":
                columns["archived_at_seconds"] = time.time() if _flag(name, value) else None
            case "is_shared":
                columns["card_key"] = (
                    (run.card_key or secrets.token_urlsafe(_CARD_BYTES)) if _flag(name, value) else None
                )
            case _:
                raise UnknownName("label of a run", name, LABELS)
    return columns


def _title(value: object) -> str | None:
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise BadInput(f"a title is a text, got {type(value).__name__}")
    return checked_name(value.strip())


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise BadInput(f"{name} is true or false, got {value!r}")
    return value


def find_card(store: Store, card_key: str) -> RunRow | None:
    """The run whose card this is."""
    with store.reading() as connection:
        row = connection.execute(select(runs).where(runs.c.card_key == card_key)).first()
    return None if row is None else run_of(row)


def choices(store: Store, project: str | None) -> dict[str, list[str]]:
    """Projects, devices and tags of the runs that a caller may see, for filters."""
    return {
        "projects": _distinct(store, runs.c.project, project),
        "devices": _distinct(store, runs.c.device, project),
        "tags": sorted(
            {tag for text in _distinct(store, runs.c.tags, project) for tag in tags_of(text)}, key=str.casefold
        ),
    }


def _distinct(store: Store, column: ColumnElement[str | None], project: str | None) -> list[str]:
    query = select(column).where(column.is_not(None)).group_by(column).order_by(func.count().desc()).limit(MOST_CHOICES)
    if project is not None:
        query = query.where(runs.c.project == project)
    with store.reading() as connection:
        return [str(value) for value in connection.execute(query).scalars()]
