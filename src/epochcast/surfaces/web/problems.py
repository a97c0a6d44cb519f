"""What is wrong with a request, as RFC 9457 writes it (`application/problem+json`): title, status, detail.

An `EpochcastError` is the caller's mistake, said in one sentence. A fault of ours is written to the log under a number,
which is all that the caller sees. Nobody sees where the server keeps its files. A browser that asks for a page gets the
same sentence as a page.
"""

import errno
import logging
from collections.abc import Callable, Mapping
from http import HTTPStatus
from uuid import uuid4

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from epochcast.errors import EpochcastError, MissingExtra
from epochcast.observe.store.store_errors import DiskFull, StoreError, Unavailable

MEDIA_TYPE = "application/problem+json"
RETRY_SECONDS = 2
# The API answers programs, whatever they say that they accept.
API = "/api/"
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)

log = logging.getLogger("epochcast.surfaces.web")


class Problem(Exception):
    """A request that cannot be answered; raised anywhere, told by `install`."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = int(status), detail, dict(headers or {})


def problem(status: int, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    """The answer to a request that cannot be answered."""
    content = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": int(status), "detail": detail}
    return JSONResponse(content, status, dict(headers or {}), media_type=MEDIA_TYPE)


def status_of(error: EpochcastError) -> int:
    """The status of an error of the library."""
    if isinstance(error, DiskFull):
        return HTTPStatus.INSUFFICIENT_STORAGE
    if isinstance(error, Unavailable):
        return HTTPStatus.SERVICE_UNAVAILABLE
    if isinstance(error, StoreError):
        return HTTPStatus.CONFLICT
    return HTTPStatus.NOT_IMPLEMENTED if isinstance(error, MissingExtra) else HTTPStatus.UNPROCESSABLE_ENTITY


def error_text(error: EpochcastError) -> str:
    """The error and its notes in one text; of a database without where it is."""
    text = error.public_text if isinstance(error, StoreError) else str(error)
    notes = (" ".join(str(note).split()) for note in getattr(error, "__notes__", ()))
    return "; ".join([" ".join(text.split()), *notes])


def problem_of(error: Exception) -> Problem:
    """What is wrong with a request that ended in an error; a fault of ours is written to the log."""
    match error:
        case Problem():
            return error
        case EpochcastError():
            status = status_of(error)
            retry = {"Retry-After": str(RETRY_SECONDS)} if status == HTTPStatus.SERVICE_UNAVAILABLE else None
            return Problem(status, error_text(error), retry)
        case RequestValidationError():
            return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, _validation(error))
        case HTTPException():
            return Problem(error.status_code, str(error.detail), error.headers)
        case ClientDisconnect():  # nobody reads the answer
            return Problem(HTTPStatus.BAD_REQUEST, "the request ended before all of it was sent")
        case OSError() if error.errno in _NO_ROOM:
            return Problem(HTTPStatus.INSUFFICIENT_STORAGE, "the disk of the server is full")
        case _:
            number = uuid4().hex[:12]
            log.error("request failed, number %s", number, exc_info=error)
            return Problem(HTTPStatus.INTERNAL_SERVER_ERROR, f"a fault of the server, number {number} in its log")


ErrorPage = Callable[[Request, Problem], Response]


def answer_to(request: Request, error: Exception) -> Response:
    """The answer to a request that ended in an error: a page where a browser asked for one."""
    described = problem_of(error)
    state = request.app.state
    if described.status == HTTPStatus.INSUFFICIENT_STORAGE:
        state.running.has_room = False
    if "text/html" in request.headers.get("accept", "") and not request.url.path.startswith(API):
        page: Response = state.error_page(request, described)
        return page
    return problem(described.status, described.detail, described.headers)


def _validation(error: RequestValidationError) -> str:
    """Which parameters of the address are wrong, and how."""
    faults = []
    for fault in error.errors():
        place = ".".join(str(part) for part in fault["loc"][1:]) or "the request"
        faults.append(f"{place}: {fault['msg']}")
    return "; ".join(faults)


def install(app: FastAPI, error_page: ErrorPage) -> None:
    """Have every error of the application answered as a problem, or as a page."""
    app.state.error_page = error_page

    async def handle(request: Request, error: Exception) -> Response:
        return answer_to(request, error)

    for kind in (Problem, EpochcastError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, handle)
