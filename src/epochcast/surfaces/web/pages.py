"""The pages: forecast and queue; logging in and out; how every page is made. Their scripts ask the API."""

from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote

from fastapi import APIRouter, Request
from jinja2 import Environment, FileSystemLoader, select_autoescape
from starlette.responses import HTMLResponse, RedirectResponse, Response

from epochcast import __version__
from epochcast.surfaces.web.access import COOKIE, Caller
from epochcast.surfaces.web.dependencies import State
from epochcast.surfaces.web.form_fields import devices, flags, main_fields, more_groups
from epochcast.surfaces.web.problems import Problem
from epochcast.surfaces.web.queue_routes import names_of
from epochcast.surfaces.web.request_bodies import body
from epochcast.surfaces.web.server_state import Running

router = APIRouter(include_in_schema=False)
HOME = Path(__file__).parent
PAGES = (
    ("/", "Forecast"),
    ("/plan", "Plan"),
    ("/diff", "Diff"),
    ("/check", "Check"),
    ("/runs", "Runs"),
    ("/queue", "Queue"),
    ("/history", "History"),
    ("/accuracy", "Accuracy"),
    ("/tokens", "Tokens"),
)
# Pages that belong to others.
_SECTIONS = {"/compare": "/runs"}
LOGIN_BYTES = 4096
# Thirty days.
COOKIE_SECONDS = 30 * 86_400
# What people read instead of the phrase of a status.
TITLES: Mapping[HTTPStatus, str] = {
    HTTPStatus.FORBIDDEN: "Not allowed",
    HTTPStatus.NOT_FOUND: "Not found",
    HTTPStatus.UNPROCESSABLE_ENTITY: "Cannot show this page",
    HTTPStatus.TOO_MANY_REQUESTS: "Too many requests",
    HTTPStatus.INTERNAL_SERVER_ERROR: "The server made a mistake",
    HTTPStatus.SERVICE_UNAVAILABLE: "Not available now",
    HTTPStatus.INSUFFICIENT_STORAGE: "The server's disk is full",
}
RUN_PAGES = ("/runs", "/compare", "/cards")

_environment = Environment(
    loader=FileSystemLoader(HOME / "templates"), autoescape=select_autoescape(["html"]), trim_blocks=True
)


def page(request: Request, running: Running, template: str, caller: Caller | None, **values: Any) -> Response:
    """A page from its template."""
    place = _SECTIONS.get(request.url.path, request.url.path)
    section = next((path for path, _ in reversed(PAGES) if place.startswith(path) and path != "/"), "/")
    text = _environment.get_template(template).render(
        pages=PAGES,
        here=section if caller else None,
        version=__version__,
        is_demo=running.settings.is_demo,
        can_log_out=caller is not None and COOKIE in request.cookies,
        caller_name=caller.name if caller else "",
        **values,
    )
    return HTMLResponse(text, headers={"Cache-Control": "no-store"})


async def visitor(request: Request, running: Running) -> Caller | None:
    """Who looks; None for somebody who has to log in first."""
    try:
        return await running.access.caller(request, "read")
    except Problem as problem:
        if problem.status == HTTPStatus.UNAUTHORIZED:
            return None
        raise


def to_login(request: Request) -> Response:
    """Send somebody to log in, and back to the page afterwards."""
    wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return RedirectResponse(f"/login?then={quote(wanted)}", HTTPStatus.SEE_OTHER)


def error_page(request: Request, problem: Problem) -> Response:
    """What is wrong with a request, for people."""
    status = HTTPStatus(problem.status)
    is_unknown = status == HTTPStatus.NOT_FOUND and problem.detail == status.phrase
    detail = f"There is no page at {request.url.path[:200]}." if is_unknown else problem.detail
    running: Running = request.app.state.running
    is_of_runs = request.url.path.startswith(RUN_PAGES)
    texts = {"title": TITLES.get(status, status.phrase), "detail": _sentence(detail), "is_of_runs": is_of_runs}
    answer = page(request, running, "fault.html", None, **texts)
    answer.status_code = status
    answer.headers.update(problem.headers)
    return answer


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '?')) else '.'}"


@router.get("/")
async def forecast_page(request: Request, running: State) -> Response:
    """The forecast."""
    caller = await visitor(request, running)
    if caller is None:
        return to_login(request)
    form = {"main_fields": main_fields(), "more_groups": more_groups(), "flags": flags(), "devices": devices()}
    return page(request, running, "forecast.html", caller, **form)


@router.get("/queue")
async def queue_page(request: Request, running: State, queue: str = "") -> Response:
    """Queues that a scheduler works off."""
    caller = await visitor(request, running)
    if caller is None:
        return to_login(request)
    names = await names_of(running, caller)
    chosen = queue if queue in names else (names[0] if names else "")
    return page(request, running, "queue.html", caller, queues=names, chosen=chosen)


@router.get("/login")
async def login_page(request: Request, running: State, then: str = "/") -> Response:
    """Where a token is typed."""
    return page(request, running, "login.html", None, then=inside(then), fault="")


@router.post("/login")
async def log_in(request: Request, running: State) -> Response:
    """Take a token; the browser gets it as a cookie that no script can read."""
    running.access.check_page(request)
    form = parse_qs((await body(request, LOGIN_BYTES)).decode("utf-8", "replace"))
    secret, then = form.get("token", [""])[0].strip(), inside(form.get("then", ["/"])[0])
    token = await running.access.token(secret) if secret else None
    if token is None:
        answer = page(request, running, "login.html", None, then=then, fault="This token is unknown, or was ended.")
        answer.status_code = HTTPStatus.UNAUTHORIZED
        return answer
    answer = RedirectResponse(then, HTTPStatus.SEE_OTHER)
    answer.set_cookie(
        COOKIE, secret, COOKIE_SECONDS, httponly=True, samesite="strict", secure=request.url.scheme == "https"
    )
    return answer


@router.post("/logout")
async def log_out(request: Request, running: State) -> Response:
    """Forget the token."""
    running.access.check_page(request)
    answer = RedirectResponse("/login", HTTPStatus.SEE_OTHER)
    answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return answer


@router.get("/static/{name}")
async def static(name: str, request: Request, running: State) -> Response:
    """Scripts, styles and pictures of the pages; names of files that are there, nothing else."""
    file = await running.statics.find(name)
    if file is None:
        raise Problem(HTTPStatus.NOT_FOUND, f"no file called {name[:100]!r}")
    return file.answer(request)


def inside(path: str) -> str:
    """A path of this server; anything that could lead elsewhere is the first page."""
    is_own = path.startswith("/") and not path.startswith(("//", "/\\")) and "\\" not in path and path.isprintable()
    return path if is_own else "/"
