"""Routes of tokens: who may use the server. For callers who may write and see all projects."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response

from epochcast.errors import BadInput
from epochcast.observe.store.access_tokens import SCOPES, Token, all_tokens, end_token, make_token
from epochcast.observe.store.row_values import RunFilter
from epochcast.observe.store.run_labels import choices
from epochcast.surfaces.web.access import Caller
from epochcast.surfaces.web.dependencies import State, Writer
from epochcast.surfaces.web.openapi import json_request, problems
from epochcast.surfaces.web.problems import Problem
from epochcast.surfaces.web.request_bodies import json_body
from epochcast.surfaces.web.server_state import Running

router = APIRouter(prefix="/api/v1", tags=["tokens"])
_KEYS = ("name", "scopes", "project")
_TOKEN: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 200},
        "scopes": {"type": "array", "minItems": 1, "items": {"enum": list(SCOPES)}},
        "project": {"anyOf": [{"type": "string", "minLength": 1, "maxLength": 200}, {"type": "null"}]},
    },
}


def check_may_manage(caller: Caller) -> None:
    """Refuse a caller of one project: a token of it must not make one of all."""
    if caller.project is not None:
        raise Problem(HTTPStatus.FORBIDDEN, "tokens are managed with a token of all projects")


@router.get("/tokens", summary="Tokens and projects, without the tokens' text.", responses=problems())
async def tokens(running: State, caller: Writer) -> Response:
    """Each with its scopes, its project and when it was last used."""
    check_may_manage(caller)
    return JSONResponse(await run_in_threadpool(_listed, running))


def _listed(running: Running) -> dict[str, Any]:
    kept = all_tokens(running.store)
    names = {*choices(running.store, None)["projects"], *(token.project for token in kept if token.project)}
    counts = {name: running.store.count_runs(RunFilter(project=name)) for name in names}
    projects = [{"project": name, "runs": counts[name]} for name in sorted(names, key=str.casefold)]
    return {"tokens": [_shown(token) for token in kept], "projects": projects}


def _shown(token: Token) -> dict[str, Any]:
    names = ("name", "project", "added_at_seconds", "used_at_seconds", "ended_at_seconds")
    return {"scopes": list(token.scopes), **{name: getattr(token, name) for name in names}}


@router.post(
    "/tokens",
    summary="Make a token; its text is in the answer, and nowhere else.",
    status_code=HTTPStatus.CREATED,
    responses=problems(),
    openapi_extra=json_request(_TOKEN, {"name": "nightly", "scopes": ["write"], "project": "vision"}),
)
async def add(request: Request, running: State, caller: Writer) -> Response:
    """With a project, the token sees and adds the runs of that project only."""
    check_may_manage(caller)
    asked = await json_body(request, running.settings.limits.request_bytes)
    if not isinstance(asked, Mapping) or set(asked) - set(_KEYS) or not isinstance(asked.get("name"), str):
        raise BadInput("a token is made with an object of `name`, `scopes` and `project`")
    scopes, project = asked.get("scopes", list(SCOPES)), asked.get("project")
    if not isinstance(scopes, list) or not all(isinstance(scope, str) for scope in scopes):
        raise BadInput('scopes are a list of words, like ["read", "write"]')
    if project is not None and not isinstance(project, str):
        raise BadInput("the name of a project is a text")
    secret = await run_in_threadpool(make_token, running.store, asked["name"], tuple(scopes), project or None)
    return JSONResponse({"name": asked["name"], "token": secret}, HTTPStatus.CREATED)


@router.delete(
    "/tokens/{name:path}",
    summary="Revoke a token.",
    status_code=HTTPStatus.NO_CONTENT,
    response_class=Response,
    responses=problems(404),
)
async def revoke(name: str, running: State, caller: Writer) -> Response:
    """It lets nobody in after five seconds, and streams that it opened end."""
    check_may_manage(caller)
    kept = await run_in_threadpool(all_tokens, running.store)
    if not any(token.name == name and token.ended_at_seconds is None for token in kept):
        raise Problem(HTTPStatus.NOT_FOUND, f"no token called {name[:200]!r}")
    await run_in_threadpool(end_token, running.store, name)
    return Response(status_code=HTTPStatus.NO_CONTENT)
