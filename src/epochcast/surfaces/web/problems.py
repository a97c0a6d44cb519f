"""What is wrong with a request, as RFC 9457 writes it (`application/problem+json`): title, status, detail.

An `EpochcastError` is the caller's mistake, said in one sentence. A fault of ours is written to the log under a number,
which is all that the caller sees.
"""

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from uuid import uuid4

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.responses import Response

from epochcast.errors import EpochcastError, MissingExtra
from epochcast.observe.store.store_errors import StoreError, Unavailable

MEDIA_TYPE = "application/problem+json"
RETRY_SECONDS = 2

log = logging.getLogger("epochcast.surfaces.web")


class Problem(Exception):
    """A request that cannot be answered; raised anywhere, told by `install`."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = int(status), detail, dict(headers or {})


def problem(status: int, detail: str, headers: Mapping[str, str] | None = None, **more: Any) -> Response:
    """The answer to a request that cannot be answered."""
    content = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": int(status), "detail": detail}
    return JSONResponse({**content, **more}, status, dict(headers or {}), media_type=MEDIA_TYPE)


def status_of(error: EpochcastError) -> int:
    """The status of an error of the library."""
    if isinstance(error, Unavailable):
        return HTTPStatus.SERVICE_UNAVAILABLE
    if isinstance(error, StoreError):
        return HTTPStatus.CONFLICT
    return HTTPStatus.NOT_IMPLEMENTED if isinstance(error, MissingExtra) else HTTPStatus.UNPROCESSABLE_ENTITY


def error_text(error: EpochcastError) -> str:
    """The error and its notes in one text."""
    notes = (" ".join(str(note).split()) for note in getattr(error, "__notes__", ()))
    return "; ".join([" ".join(str(error).split()), *notes])


def answer_to(error: Exception) -> Response:
    """The answer to a request that ended in an error."""
    match error:
        case Problem():
            return problem(error.status, error.detail, error.headers)
        case EpochcastError():
            status = status_of(error)
            retry = {"Retry-After": str(RETRY_SECONDS)} if status == HTTPStatus.SERVICE_UNAVAILABLE else None
            return problem(status, error_text(error), retry)
        case RequestValidationError():
            return problem(HTTPStatus.UNPROCESSABLE_ENTITY, _validation(error))
        case HTTPException():
            return problem(error.status_code, str(error.detail), error.headers)
        case _:
            number = uuid4().hex[:12]
            log.error("request failed, number %s", number, exc_info=error)
            return problem(
                HTTPStatus.INTERNAL_SERVER_ERROR, f"a fault of the server, number {number} in its log", number=number
            )


def _validation(error: RequestValidationError) -> str:
    """Which parameters of the address are wrong, and how."""
    faults = []
    for fault in error.errors():
        place = ".".join(str(part) for part in fault["loc"][1:]) or "the request"
        faults.append(f"{place}: {fault['msg']}")
    return "; ".join(faults)


def install(app: FastAPI) -> None:
    """Have every error of the application answered as a problem."""

    async def handle(request: Request, error: Exception) -> Response:
        return answer_to(error)

    for kind in (Problem, EpochcastError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, handle)
