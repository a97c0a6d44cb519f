"""Pages of runs: all of them, one, several compared, and the card of a run that is shared by its link."""

import time
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from epochcast.errors import BadInput
from epochcast.observe.store.row_values import RunFilter
from epochcast.observe.store.run_labels import find_card
from epochcast.observe.store.store_rows import RunRow
from epochcast.surfaces.web.dependencies import State
from epochcast.surfaces.web.pages import page, to_login, visitor
from epochcast.surfaces.web.problems import Problem
from epochcast.surfaces.web.request_guard import POLICY
from epochcast.surfaces.web.run_routes import find_run
from epochcast.units import show_seconds

router = APIRouter(include_in_schema=False)
LEAST_COMPARED, MOST_COMPARED = 2, 6
# A card stands inside pages of others.
_EMBEDDED = {
    "content-security-policy": POLICY.replace("frame-ancestors 'none'", "frame-ancestors *"),
    "cross-origin-resource-policy": "cross-origin",
}


@router.get("/runs")
async def runs_page(request: Request, running: State) -> Response:
    """All runs."""
    caller = await visitor(request, running)
    if caller is None:
        return to_login(request)
    some = await run_in_threadpool(running.store.runs, RunFilter(project=caller.project, most=1))
    address = str(request.base_url).rstrip("/")
    return page(request, running, "runs.html", caller, has_runs=bool(some), address=address)


@router.get("/runs/{name:path}")
async def run_page(name: str, request: Request, running: State) -> Response:
    """One run."""
    caller = await visitor(request, running)
    if caller is None:
        return to_login(request)
    run = await find_run(running, name, caller)
    return page(request, running, "run.html", caller, name=run.name, label=run.label)


@router.get("/compare")
async def compare_page(
    request: Request, running: State, run: Annotated[list[str] | None, Query(max_length=MOST_COMPARED)] = None
) -> Response:
    """Two to six runs."""
    caller = await visitor(request, running)
    if caller is None:
        return to_login(request)
    if not len(run or ()) >= LEAST_COMPARED:
        raise BadInput(f"name {LEAST_COMPARED} to {MOST_COMPARED} runs, like /compare?run=first&run=second")
    return page(request, running, "compare.html", caller)


@router.get("/cards/{card_key}")
async def card_page(card_key: str, request: Request, running: State) -> Response:
    """How a shared run stands, for whoever has the link; nothing else of it."""
    running.access.check_page(request)
    run = await run_in_threadpool(find_card, running.store, card_key)
    if run is None:
        raise Problem(HTTPStatus.NOT_FOUND, "there is no such card, or it is no longer shared")
    answer = page(request, running, "card.html", None, run=run, **_card(run, time.time()))
    answer.headers.update(_EMBEDDED)
    return answer


def _card(run: RunRow, now_seconds: float) -> dict[str, Any]:
    is_silent, left = run.is_silent(now_seconds), run.remaining_seconds
    fraction = 1.0 if run.state == "ended" else run.fraction or 0.0
    done = "100 %" if run.state == "ended" else f"{100 * fraction:.1f} %"
    shown_left = None if is_silent or left is None else left
    moment = run.ended_at if run.is_over else (None if is_silent else run.finish_at)
    return {
        "state": f"no report for {show_seconds(run.silent_seconds(now_seconds))}" if is_silent else run.state,
        "state_class": "silent" if is_silent else run.state,
        "done": fraction,
        "progress": f"stopped at {done}" if run.is_over and run.state != "ended" else done,
        "remaining": None if shown_left is None else f"{show_seconds(shown_left.mid)} left",
        "remaining_interval": (
            "" if shown_left is None else f"{show_seconds(shown_left.low)} … {show_seconds(shown_left.high)}"
        ),
        "ends": "" if moment is None else f"{'ended' if run.is_over else 'ends'} {moment:%a %d %b %H:%M} UTC",
    }
