"""Routes of queues: those that `epochcast schedule run` works off, as they would go on; and queues that are sent.

Queues belong to no project: only callers who see all projects see them.
"""

from datetime import datetime
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response

from epochcast.base.options import options_of
from epochcast.predict.forecast.job_file import schema_of
from epochcast.schedule.schedule_request import ScheduleRequest, SimulationRequest
from epochcast.surfaces.web.access import Caller
from epochcast.surfaces.web.dependencies import Reader, State
from epochcast.surfaces.web.openapi import json_request, problems
from epochcast.surfaces.web.problems import Problem
from epochcast.surfaces.web.request_bodies import json_body, json_text
from epochcast.surfaces.web.server_state import Running

router = APIRouter(prefix="/api/v1", tags=["queues"])

_QUEUE: dict[str, Any] = {
    "type": "object",
    "required": ["nodes", "node_types", "jobs"],
    "properties": {
        "nodes": {"type": "integer", "minimum": 1},
        "node_types": {"type": "array", "items": {"type": "object"}},
        "jobs": {"type": "array", "items": {"type": "object"}},
    },
}


def _body(request: type) -> dict[str, Any]:
    """The schema of a queue with the options of a request beside its own keys."""
    options = {
        option.name: {"type": "string", "description": option.help} if option.type is datetime else schema_of(option)
        for option in options_of(request)
    }
    return {**_QUEUE, "properties": {**_QUEUE["properties"], **options}}


_EXAMPLE = {
    "nodes": 2,
    "node_types": [{"name": "NC6", "device": "K80", "gpus": 1, "dollars_per_hour": 0.56}],
    "jobs": [
        {
            "id": "a",
            "submit_seconds": 0,
            "deadline_seconds": 4000,
            "tardiness_dollars_per_second": 0.01,
            "run_seconds": {"K80": {"1": 3600}},
        }
    ],
}


async def names_of(running: Running, caller: Caller) -> list[str]:
    """Queues of the store that a caller may see."""
    from epochcast.schedule.stored_queue import queue_names

    return [] if caller.project is not None else list(await run_in_threadpool(queue_names, running.store))


@router.get("/queues", summary="Queues that a scheduler works off.", responses=problems())
async def queues(running: State, caller: Reader) -> Response:
    """Their names."""
    return JSONResponse({"queues": await names_of(running, caller)})


@router.get("/queues/{name:path}", summary="A queue as it would go on from now.", responses=problems(404))
async def queue(name: str, running: State, caller: Reader) -> Response:
    """What `epochcast schedule plan --run NAME --json` prints."""
    if name not in await names_of(running, caller):
        raise Problem(HTTPStatus.NOT_FOUND, f"no queue called {name[:200]!r}")
    question = {"name": name, "database": running.store.url}
    return json_text(await running.workers.ask("queue", question, running.settings.limits.plan_seconds))


@router.post(
    "/schedule/plan",
    summary="A timetable for a queue that is sent, as of now.",
    responses=problems(),
    openapi_extra=json_request(_body(ScheduleRequest), {**_EXAMPLE, "policy": "atc_rollout"}),
)
async def plan(request: Request, running: State, caller: Reader) -> Response:
    """The body is a queue file as JSON, with options beside its keys; times count from now."""
    question = await json_body(request, running.settings.limits.request_bytes)
    return json_text(
        await running.answers.answer(
            "schedule", {"queue": question}, caller.project, running.settings.limits.plan_seconds
        )
    )


@router.post(
    "/schedule/simulate",
    summary="A queue that is sent, played under policies.",
    responses=problems(),
    openapi_extra=json_request(_body(SimulationRequest), {**_EXAMPLE, "policies": ["edf", "atc_rollout"]}),
)
async def simulate(request: Request, running: State, caller: Reader) -> Response:
    """The body is a workload as JSON, with options beside its keys."""
    question = await json_body(request, running.settings.limits.request_bytes)
    return json_text(
        await running.answers.answer(
            "simulate", {"queue": question}, caller.project, running.settings.limits.plan_seconds
        )
    )
