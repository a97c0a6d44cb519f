"""Rows of tables as values, and back."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from sqlalchemy import ColumnElement, Row, Select, func, or_, select

from epochcast.observe.runs.report import LONGEST_NAME
from epochcast.observe.store.database_tables import jobs, runs
from epochcast.observe.store.run_order import NEWEST_FIRST, ordered, silent_condition
from epochcast.observe.store.run_tags import tags_of, tags_text
from epochcast.observe.store.store_rows import RunPlace, RunRow, bounded, checked_name

_PLACE = {"device", "gpus", "nodes", "host", "place"}
_SEARCHED = ("name", "title", "tags", "job_name", "device", "host", "project")
NOWHERE = RunPlace()
"""Nobody said where a run trains."""


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs: those that match all of these, the newest first. None of them: every run."""

    states: Sequence[str] = ()
    ids: Sequence[int] = ()
    job_name: str | None = None
    job_id: int | None = None
    model: str | None = None
    device: str | None = None
    project: str | None = None
    seen_after_seconds: float | None = None
    before_id: int | None = None
    most: int | None = None
    search: str | None = None
    tag: str | None = None
    is_archived: bool | None = None
    silent_at_seconds: float | None = None
    """Runs that are silent at this time."""
    order: str = NEWEST_FIRST
    is_ascending: bool = False
    first: int = 0
    """How many runs of this order are passed over."""

    def select(self) -> Select[Any]:
        """The query."""
        query = (
            self._matching(select(runs))
            .order_by(*ordered(self.order, self.is_ascending, time.time()))
            .offset(self.first or None)
        )
        return query if self.most is None else query.limit(self.most)

    def count(self) -> Select[Any]:
        """The query of how many match, on whatever page."""
        return self._matching(select(func.count()).select_from(runs))

    def _matching(self, query: Select[Any]) -> Select[Any]:
        if self.model is not None:
            query = query.join(jobs, jobs.c.id == runs.c.job_id).where(jobs.c.model == self.model)
        return query.where(*self._conditions(), *self._labels())

    def _labels(self) -> list[ColumnElement[bool]]:
        """What a person asks for: words, a tag, the archive, silence."""
        wanted: list[ColumnElement[bool]] = []
        for word in (self.search or "").split():
            columns = (runs.c[name] for name in _SEARCHED)
            wanted.append(or_(*(column.icontains(word, autoescape=True) for column in columns)))
        if self.tag is not None:
            wanted.append(runs.c.tags.contains(tags_text((self.tag,)), autoescape=True))
        if self.is_archived is not None:
            is_set = runs.c.archived_at_seconds.is_not(None)
            wanted.append(is_set if self.is_archived else ~is_set)
        if self.silent_at_seconds is not None:
            wanted += [runs.c.state == "running", silent_condition(self.silent_at_seconds)]
        return wanted

    def _conditions(self) -> list[ColumnElement[bool]]:
        equal = {name: getattr(self, name) for name in ("job_name", "job_id", "device", "project")}
        wanted = [runs.c[name] == value for name, value in equal.items() if value is not None]
        if self.ids:
            wanted.append(runs.c.id.in_(self.ids))
        if self.states:
            wanted.append(runs.c.state.in_(self.states))
        if self.seen_after_seconds is not None:
            wanted.append(runs.c.seen_at_seconds >= self.seen_after_seconds)
        if self.before_id is not None:
            wanted.append(runs.c.id < self.before_id)
        return wanted


def run_of(row: Row[Any] | Mapping[str, Any]) -> RunRow:
    """A run."""
    values = dict(row if isinstance(row, Mapping) else row._mapping)
    columns = {name: value for name, value in values.items() if name not in _PLACE}
    columns["tags"] = tags_of(columns.get("tags"))
    place = RunPlace(values["device"], values["gpus"], values["nodes"], values["host"], values["place"])
    return RunRow(place=place, **columns)


def new_run(
    name: str | None,
    now_seconds: float,
    *,
    job_id: int | None = None,
    job_name: str | None = None,
    place: RunPlace = NOWHERE,
    source: str | None = None,
    state: str = "running",
    started_at_seconds: float | None = None,
    project: str | None = None,
) -> dict[str, Any]:
    """The columns of a run that begins now; without a name it gets one of its own."""
    key = uuid4().hex
    return {
        "key": key,
        "name": checked_name(name) if name is not None else f"run-{key[:12]}",
        "job_id": job_id,
        "job_name": bounded(job_name, LONGEST_NAME),
        **place_columns(place),
        "source": bounded(source),
        "state": state,
        "added_at_seconds": now_seconds,
        "seen_at_seconds": now_seconds,
        "started_at_seconds": started_at_seconds,
        "project": None if project is None else checked_name(project),
        "progress": {},
    }


def place_columns(place: RunPlace) -> dict[str, Any]:
    """A place as columns of a run."""
    return {
        "device": bounded(place.device, 200),
        "gpus": place.gpus,
        "nodes": place.nodes,
        "host": bounded(place.host, 200),
        "place": dict(place.details),
    }
