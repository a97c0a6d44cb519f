"""Routes of the catalogues, and of the server itself: health, readiness, counts."""

import time
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query
from sqlalchemy import false, func, select
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response

from epochcast.base.record import plain
from epochcast.errors import EpochcastError
from epochcast.observe.store.database_tables import notices, runs
from epochcast.observe.store.leases import hold
from epochcast.observe.store.row_values import RunFilter
from epochcast.surfaces.web.api_verbs import VERBS
from epochcast.surfaces.web.dependencies import Reader, State
from epochcast.surfaces.web.openapi import problems
from epochcast.surfaces.web.problems import error_text, problem
from epochcast.surfaces.web.run_list_query import SILENT

# A lease that is written to see whether the disk takes anything again.
ROOM = "room on the disk"

router = APIRouter(prefix="/api/v1", tags=["names"])
itself = APIRouter(tags=["server"])


@router.get("/models", summary="Models that can be named.", responses=problems())
async def models(caller: Reader, search: Annotated[str, Query(max_length=100)] = "") -> Response:
    """The zoo and the ids of the Hugging Face Hub that are known, those with `search` in their name."""
    from epochcast.describe.capture.hub import HUB
    from epochcast.describe.capture.zoo import ZOO

    wanted = search.casefold()
    rows = [{"name": name, "title": ZOO[name].title} for name in sorted(ZOO)]
    rows += [{"name": name, "title": f"{hub_model.parameters:,} parameters"} for name, hub_model in HUB.items()]
    return JSONResponse({"models": [row for row in rows if wanted in f"{row['name']} {row['title']}".casefold()]})


@router.get("/devices", summary="Devices and what their data sheets say.", responses=problems())
async def devices(caller: Reader) -> Response:
    """All of the catalogue."""
    from epochcast.hardware.catalogue import devices as all_devices

    return JSONResponse({"devices": [plain(row) for row in all_devices()]})


@router.get("/datasets", summary="Data sets and their numbers of samples.", responses=problems())
async def datasets(caller: Reader) -> Response:
    """All of the catalogue."""
    from epochcast.describe.datasets import datasets as all_datasets

    return JSONResponse({"datasets": [plain(row) for row in all_datasets()]})


@router.get("/instances", summary="Machines that can be rented, with prices.", responses=problems())
async def instances(
    caller: Reader,
    after: Annotated[int, Query(ge=0, le=10**9)] = 0,
    most: Annotated[int, Query(ge=1, le=1_000)] = 200,
) -> Response:
    """A page of the price list; `next` begins the next one."""
    from epochcast.hardware.machines import instances as all_instances

    listed = all_instances()
    page = [{**plain(row), "price_cells": row.price_cells} for row in listed[after : after + most]]
    return JSONResponse({"instances": page, "next": after + most if after + most < len(listed) else None})


@router.get("/options/{verb}", summary="The options of a verb, as a form shows them.", responses=problems(404))
async def options(caller: Reader, verb: str) -> Response:
    """Name, type, default, help and group of each."""
    if verb not in VERBS:
        return problem(HTTPStatus.NOT_FOUND, f"no verb called {verb[:50]!r}; known: {', '.join(VERBS)}")
    schema = VERBS[verb].schema()["properties"]
    listed = [{"name": name, "group": option.group, **schema[name]} for name, option in VERBS[verb].options.items()]
    return JSONResponse({"verb": verb, "options": listed})


@itself.get("/healthz", summary="Whether the process answers.")
async def healthy() -> Response:
    """Always, as long as it runs."""
    return JSONResponse({"status": "alive"})


@itself.get("/readyz", summary="Whether it can do its work: database and disk take rows.", responses=problems())
async def ready(running: State) -> Response:
    """503 where the database is away, or its disk was full and still is."""

    def look() -> None:
        with running.store.reading() as connection:
            connection.execute(select(func.count()).select_from(runs).where(runs.c.id < 0))
        if not running.has_room:
            hold(running.store, ROOM, running.beside.holder, 1.0)

    try:
        await run_in_threadpool(look)
    except EpochcastError as error:
        return problem(HTTPStatus.SERVICE_UNAVAILABLE, error_text(error))
    running.has_room = True
    return JSONResponse({"status": "ready"})


@itself.get("/metrics", summary="Counts, as Prometheus reads them.", responses={200: {"content": {"text/plain": {}}}})
async def metrics(running: State, caller: Reader) -> Response:
    """Of this process, and runs by state."""

    def count() -> list[dict[str, int]]:
        of_runs = select(runs.c.state, func.count()).group_by(runs.c.state)
        of_messages = select(notices.c.state, func.count()).group_by(notices.c.state)
        if caller.project is not None:
            of_runs = of_runs.where(runs.c.project == caller.project)
            of_messages = of_messages.where(false())  # they belong to no project
        silent = running.store.count_runs(RunFilter(project=caller.project, silent_at_seconds=time.time()))
        with running.store.reading() as connection:
            by_state, by_message = (
                {str(state): int(number) for state, number in connection.execute(query)}
                for query in (of_runs, of_messages)
            )
        return [{**by_state, SILENT: silent}, by_message]

    counted = await run_in_threadpool(count)
    for gauge, numbers in zip((running.metrics.runs, running.metrics.webhooks), counted, strict=True):
        gauge.clear()
        for state, number in numbers.items():
            gauge.labels(state).set(number)
    running.metrics.waiting.set(running.workers.waiting)
    running.metrics.streams.set(running.live.count)
    return Response(running.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")
