"""Bodies of requests, no larger than they may be, and answers as JSON text."""

from http import HTTPStatus
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from epochcast.base.documents import parse_json
from epochcast.errors import BadInput
from epochcast.surfaces.web.problems import Problem
from epochcast.units import show_bytes


async def body(request: Request, most_bytes: int) -> bytes:
    """The whole body; refused as soon as it is known to be too large."""
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > most_bytes:
        raise _too_large(most_bytes)
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > most_bytes:
            raise _too_large(most_bytes)
        parts.append(part)
    return b"".join(parts)


def body_of(content: bytes, subject: str = "the request") -> Any:
    """The JSON value of a body."""
    if not content.strip():
        raise BadInput(f"{subject} has no content; JSON is needed")
    return parse_json(content, subject)


async def json_content(request: Request, most_bytes: int) -> bytes:
    """A body that is said to be JSON; other kinds are refused, as a form of another site would send them."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().casefold()
    if kind != "application/json":
        raise Problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"Content-Type must be application/json, got {kind[:100]!r}")
    return await body(request, most_bytes)


async def json_body(request: Request, most_bytes: int) -> Any:
    """The JSON value of a body."""
    return body_of(await json_content(request, most_bytes))


def json_text(content: bytes, status: int = 200) -> Response:
    """An answer that is JSON already."""
    return Response(content, status, media_type="application/json")


def _too_large(most_bytes: int) -> Problem:
    return Problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a request has at most {show_bytes(most_bytes)}")
