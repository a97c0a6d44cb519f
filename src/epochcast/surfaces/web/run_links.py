"""What a run leads to: the question of its forecast, and the queue that started it."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import select

from epochcast.base.options import options_of
from epochcast.observe.store.database_tables import queue_starts, queues
from epochcast.observe.store.store import Store
from epochcast.observe.store.store_rows import RunPlace, RunRow
from epochcast.predict.forecast.job import JOB_OPTIONS, Job
from epochcast.surfaces.web.api_verbs import VERBS

_PLACE = ("device", "gpus", "nodes")


def job_in(description: Mapping[str, Any]) -> Job:
    """The job of a description that was forecast."""
    options = VERBS["forecast"].read(description)
    names = {option.name for option in JOB_OPTIONS}
    return Job(**{name: value for name, value in options.items() if name in names})


def asked_options(job: Mapping[str, Any], place: RunPlace) -> dict[str, Any]:
    """The job and place of a run as the options of a forecast, for a link to its page; what is usual is left out."""
    defaults = {option.name: option.default for option in options_of(Job)}
    offered = VERBS["forecast"].options
    options = {
        name: value
        for name, value in job.items()
        if name in offered and value not in (None, defaults.get(name), (), [], {})
    }
    placed = {name: getattr(place, name) for name in _PLACE}
    return {**options, **{name: value for name, value in placed.items() if value not in (None, 1)}}


def queue_of_run(store: Store, run: RunRow) -> str | None:
    """The queue that started a run: its runs are called QUEUE/JOB."""
    queue, slash, job = run.name.partition("/")
    if not slash:
        return None
    query = (
        select(queues.c.name)
        .join(queue_starts, queue_starts.c.queue_id == queues.c.id)
        .where(queues.c.name == queue, queue_starts.c.job == job)
        .limit(1)
    )
    with store.reading() as connection:
        return connection.execute(query).scalar()
