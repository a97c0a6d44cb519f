"""Routes of runs: reports come in, how the runs stand goes out, as pages, as one, or as a stream."""

import json
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from itertools import islice
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response, StreamingResponse

from epochcast.base.options import checked
from epochcast.errors import BadInput
from epochcast.observe.recording.opened_runs import names_of_run
from epochcast.observe.recording.recorded_rows import KINDS
from epochcast.observe.store.row_values import RunFilter
from epochcast.observe.store.run_bill import optional_bill
from epochcast.observe.store.run_labels import choices, label_run
from epochcast.observe.store.run_order import RUN_ORDERS
from epochcast.observe.store.store_rows import STATES, RunPlace, RunRow
from epochcast.predict.forecast.forecast import Forecast
from epochcast.surfaces.web.access import Caller
from epochcast.surfaces.web.api_verbs import VERBS
from epochcast.surfaces.web.dependencies import Reader, State, Writer
from epochcast.surfaces.web.event_stream import shown
from epochcast.surfaces.web.log_tail import log_tail
from epochcast.surfaces.web.openapi import json_request, problems
from epochcast.surfaces.web.problems import Problem
from epochcast.surfaces.web.report_batches import ReportRequest, arrival_in
from epochcast.surfaces.web.request_bodies import body_of, json_body, json_content
from epochcast.surfaces.web.run_links import asked_options, job_in, queue_of_run
from epochcast.surfaces.web.run_list_query import SILENT, RunListQuery
from epochcast.surfaces.web.server_state import Running

router = APIRouter(prefix="/api/v1", tags=["runs"])
MOST_JOBS = 1_000
"""Newest runs whose jobs are listed."""
READ_AT_ONCE_BYTES = 65_536
"""Longer requests are read in a thread: reading them would hold everybody else up."""

MOST_ATTEMPTS = 100
"""The last ones of a run that are shown."""
_ATTEMPT_KEYS = ("attempt", "state", "host", "engine", "started_at_seconds", "ended_at_seconds", "exit_code")

_OBSERVATIONS = {
    "type": "object",
    "required": ["start", "observations"],
    "properties": {
        "start": {
            "type": "object",
            "required": ["job", "attempt", "at"],
            "properties": {
                "job": {"type": "string", "minLength": 1, "maxLength": 150},
                "attempt": {"type": "integer", "minimum": 0},
                "at": {"type": "number", "description": "Seconds since 1970 when the attempt began."},
                "total_steps": {"type": "number", "exclusiveMinimum": 0},
            },
        },
        "observations": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["ec", "step", "at"],
                "properties": {
                    "ec": {"enum": list(KINDS)},
                    "step": {"type": "integer", "minimum": 0},
                    "at": {"type": "number"},
                    "steps": {"type": "integer", "minimum": 0},
                    "step_seconds": {"type": "number", "minimum": 0},
                    "loss": {"anyOf": [{"type": "number"}, {"type": "string"}]},
                },
            },
        },
    },
}
_EXAMPLE = {
    "start": {"job": "mine", "attempt": 1, "at": 1763370000.0, "total_steps": 1000},
    "observations": [{"ec": "train", "step": 10, "at": 1763370001.0, "steps": 10, "step_seconds": 0.1, "loss": 2.3}],
}


@router.post(
    "/observations",
    summary="Reports of a running job, as ec.track and the callbacks send them; sent twice, they count once.",
    responses=problems(409),
    openapi_extra=json_request(_OBSERVATIONS, _EXAMPLE),
)
async def observe(request: Request, running: State, caller: Writer) -> Response:
    """Answered when all of them are on the disk."""
    limits = running.settings.limits
    content = await json_content(request, limits.request_bytes)

    def read() -> ReportRequest:
        return arrival_in(body_of(content), caller.project, limits.observations)

    arrival = read() if len(content) <= READ_AT_ONCE_BYTES else await run_in_threadpool(read)
    stored = await running.ingest.keep(arrival)
    running.metrics.observations.inc(stored.rows)
    return JSONResponse({"run": stored.run, "kept": stored.rows})


@router.get("/runs", summary="Runs, the newest first or in another order.", responses=problems())
async def list_runs(running: State, caller: Reader, asked: Annotated[RunListQuery, Query()]) -> Response:
    """A page of runs. `count` has those of all pages; `next` begins the next one, null on the last."""
    wanted = asked.filter(caller.project, time.time())
    rows = await run_in_threadpool(running.store.runs, wanted)
    page = rows[: asked.most]
    count = await run_in_threadpool(running.store.count_runs, replace(wanted, before_id=None))
    following = page[-1].id if len(rows) > asked.most else None
    return JSONResponse({"runs": [shown(run) for run in page], "next": following, "count": count})


@router.get("/run-choices", summary="Projects, devices and tags that runs have.", responses=problems())
async def run_choices(running: State, caller: Reader) -> Response:
    """What lists can be filtered by."""
    offered = await run_in_threadpool(choices, running.store, caller.project)
    return JSONResponse({**offered, "states": [*STATES, SILENT], "orders": list(RUN_ORDERS)})


@router.get("/jobs", summary="What the runs train: jobs that the caller may see.", responses=problems())
async def jobs(running: State, caller: Reader) -> Response:
    """Each with the names of its newest runs."""

    def read() -> list[dict[str, Any]]:
        by_job: dict[int, list[str]] = {}
        for run in running.store.runs(RunFilter(project=caller.project, most=MOST_JOBS)):
            if run.job_id is not None:
                by_job.setdefault(run.job_id, []).append(run.name)
        return [{"job": dict(running.store.job(job_id).job), "runs": names} for job_id, names in by_job.items()]

    return JSONResponse({"jobs": await run_in_threadpool(read)})


@router.get("/runs/{name:path}/observations", summary="Reports of a run.", responses=problems(404))
async def observations(
    name: str,
    running: State,
    caller: Reader,
    most: Annotated[int, Query(ge=1, le=10_000)] = 1_000,
    attempt: Annotated[int | None, Query(ge=0, le=2**62)] = None,
    after_step: Annotated[float, Query(ge=-1, le=2.0**62)] = -1.0,
    points: Annotated[
        int | None,
        Query(
            ge=2, le=10_000, description="Training steps of the whole run, thinned to this many, the newest among them."
        ),
    ] = None,
    of: Annotated[
        Literal["step_seconds", "loss"], Query(description="With `points`: steps that report this.")
    ] = "step_seconds",
) -> Response:
    """At most so many, in order of attempts and steps."""
    run = await find_run(running, name, caller)

    def read() -> list[dict[str, Any]]:
        if points is not None:
            return [row.as_dict() for row in running.store.thinned(run.id, points, of)]
        rows = running.store.observations(run.id, attempt=attempt, after_step=after_step)
        return [row.as_dict() for row in islice(rows, most)]

    return JSONResponse({"run": run.name, "observations": await run_in_threadpool(read)})


@router.get("/runs/{name:path}/log", summary="The last lines of a run's log.", responses=problems(404))
async def log(
    name: str, running: State, caller: Reader, lines: Annotated[int, Query(ge=1, le=1_000)] = 100
) -> Response:
    """Of runs that follow a log file which the server's machine has."""
    run = await find_run(running, name, caller)
    tail = await run_in_threadpool(log_tail, run, lines)
    if tail is None:
        raise Problem(HTTPStatus.NOT_FOUND, "this run follows no log that the server can read")
    return JSONResponse({"run": run.name, "lines": tail})


@router.get("/runs/{name:path}", summary="One run: progress, remaining time, forecast.", responses=problems(404))
async def one_run(name: str, running: State, caller: Reader) -> Response:
    """What `epochcast runs NAME --json` prints."""
    return JSONResponse(await detailed(running, await find_run(running, name, caller)))


_LABELS: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "title": {"anyOf": [{"type": "string", "maxLength": 200}, {"type": "null"}]},
        "tags": {"type": "array", "maxItems": 15, "items": {"type": "string", "minLength": 1, "maxLength": 60}},
        "is_archived": {"type": "boolean"},
        "is_shared": {"type": "boolean", "description": "Whether people without a token may see the run's card."},
    },
}
_KNOWN: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "job": {**VERBS["forecast"].schema(), "description": "The job and its place, to forecast it and compare."},
        "budget_dollars": {
            "type": "number",
            "exclusiveMinimum": 0,
            "description": "Webhooks are called above this amount.",
        },
    },
}


@router.put(
    "/runs/{name:path}",
    summary="Say what a run trains and where: its forecast is kept with it, and what it may cost.",
    responses=problems(404, 409),
    openapi_extra=json_request(_KNOWN, {"job": {"model": "resnet50", "device": "A100", "batch": 64, "epochs": 3}}),
)
async def describe(name: str, request: Request, running: State, caller: Writer) -> Response:
    """A run that is not there yet is made, as one that has not begun."""
    description = await json_body(request, running.settings.limits.request_bytes)
    if not isinstance(description, Mapping) or set(description) - set(_KNOWN["properties"]):
        raise BadInput("a run is described with an object of `job` and `budget_dollars`")
    budget = checked("budget_dollars", float, description.get("budget_dollars"), above=0)
    forecast: Forecast | None = None
    if description.get("job") is not None:
        answer = json.loads(await running.answers.answer("forecast", description["job"], caller.project))
        forecast = Forecast.from_dict(answer)

    job = None if forecast is None else job_in(description["job"])

    def write() -> RunRow:
        stored_run = _visible_run(running, name, caller)
        place = RunPlace() if forecast is None else RunPlace(forecast.device, forecast.gpus, forecast.nodes)
        run = stored_run or running.store.open_run(
            names_of_run(name, caller.project)[0], job_name=name, place=place, state="queued", project=caller.project
        )
        if not caller.may_see(run.project):
            raise Problem(HTTPStatus.NOT_FOUND, f"no run called {name[:200]!r}")
        details = dict(run.place.details) if budget is None else {**run.place.details, "budget_dollars": budget}
        columns: dict[str, Any] = (
            {} if forecast is None else {"device": place.device, "gpus": place.gpus, "nodes": place.nodes}
        )
        if job is not None and run.job_id is None:
            columns["job_id"] = running.store.add_job(job)
        running.store.note(run.id, place=details, **columns)
        if forecast is not None:
            running.store.add_forecast(forecast, run_id=run.id)
        return running.store.run(run.key)

    return JSONResponse(shown(await run_in_threadpool(write)))


@router.patch(
    "/runs/{name:path}",
    summary="Give a run a title and tags, archive it, or share its card.",
    responses=problems(404),
    openapi_extra=json_request(_LABELS, {"title": "baseline, third try", "tags": ["nlp"]}),
)
async def label(name: str, request: Request, running: State, caller: Writer) -> Response:
    """What is not named stays. The name under which the run reports stays as it is; `title` null removes the title."""
    labels = await json_body(request, running.settings.limits.request_bytes)
    if not isinstance(labels, Mapping):
        raise BadInput('a run is labelled with an object, like {"title": "baseline"}')
    run = await find_run(running, name, caller)
    return JSONResponse(shown(await run_in_threadpool(label_run, running.store, run, labels)))


@router.delete(
    "/runs/{name:path}",
    summary="Delete a run with all that was reported of it.",
    status_code=HTTPStatus.NO_CONTENT,
    response_class=Response,
    responses=problems(404),
)
async def delete(name: str, running: State, caller: Writer) -> Response:
    """For good. A client that still reports to it begins it anew."""
    run = await find_run(running, name, caller)
    await run_in_threadpool(running.store.delete_run, run.id)
    return Response(status_code=HTTPStatus.NO_CONTENT)


async def find_run(running: Running, name: str, caller: Caller) -> RunRow:
    """A run that the caller may see; others are not there."""
    run = await run_in_threadpool(_visible_run, running, name, caller)
    if run is None:
        raise Problem(HTTPStatus.NOT_FOUND, f"no run called {name[:200]!r}")
    return run


def _visible_run(running: Running, name: str, caller: Caller) -> RunRow | None:
    """The caller's own run of this name, with or without the project before it."""
    looked_up = (running.store.find_run(each) for each in names_of_run(name, caller.project))
    return next((run for run in looked_up if run is not None and caller.may_see(run.project)), None)


async def detailed(running: Running, run: RunRow) -> dict[str, Any]:
    """A run with its attempts and what was expected of it."""

    def read() -> dict[str, Any]:
        forecasts = running.store.forecasts(run_id=run.id)
        attempts = running.store.attempts(run.id)
        job = None if run.job_id is None else dict(running.store.job(run.job_id).job)
        bill = optional_bill(running.store, run)
        return {
            **shown(run),
            "bill": None if bill is None else bill.as_dict(),
            "options": None if job is None else asked_options(job, run.place),
            "budget_dollars": run.place.details.get("budget_dollars"),
            "card": None if run.card_key is None else f"/cards/{run.card_key}",
            "queue": queue_of_run(running.store, run),
            "has_log": log_tail(run, 1) is not None,
            "progress": None if run.standing is None else run.standing.as_dict(),
            "forecast": dict(forecasts[0].forecast) if forecasts else None,
            "attempts": [
                {name: getattr(attempt, name) for name in _ATTEMPT_KEYS} for attempt in attempts[-MOST_ATTEMPTS:]
            ],
        }

    return await run_in_threadpool(read)


@router.get(
    "/events",
    summary="Server-sent events: how runs stand, whenever that changes.",
    responses={200: {"content": {"text/event-stream": {}}}, **problems()},
)
async def events(request: Request, running: State, caller: Reader, run: str | None = None) -> Response:
    """`event: run` with the run as JSON; of one run or of all that the caller may see. Ends with its token."""
    stream = running.live.events(caller, run, partial(running.access.is_let_in, request))
    return StreamingResponse(stream, media_type="text/event-stream", headers={"Cache-Control": "no-store"})
