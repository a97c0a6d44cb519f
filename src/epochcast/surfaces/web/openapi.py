"""How routes are described in the OpenAPI document: bodies by their schemas, and the problems each may end in."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from epochcast.surfaces.web.problems import MEDIA_TYPE

_PROBLEM = {
    "type": "object",
    "required": ["title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
    },
}
_ALWAYS = (400, 401, 403, 405, 413, 415, 421, 422, 429, 501, 503)


def problems(*more: int) -> dict[int | str, dict[str, Any]]:
    """The problems that a route may end in."""
    return {
        status: {"description": HTTPStatus(status).phrase, "content": {MEDIA_TYPE: {"schema": _PROBLEM}}}
        for status in sorted({*_ALWAYS, *more})
    }


def json_request(schema: Mapping[str, Any], example: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A body of JSON."""
    content: dict[str, Any] = {"schema": dict(schema)}
    if example is not None:
        content["example"] = dict(example)
    return {"requestBody": {"required": True, "content": {"application/json": content}}}


def file_request() -> dict[str, Any]:
    """A body that is a file."""
    content = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
    return {"requestBody": {"required": True, "content": content}}
