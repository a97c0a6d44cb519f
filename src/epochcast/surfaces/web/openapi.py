"""How routes are described in the OpenAPI document: requests and answers by their schemas, and problems."""

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
_ALWAYS = (400, 401, 403, 405, 408, 413, 415, 421, 422, 429, 501, 503, 507)


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


def with_answers(document: dict[str, Any]) -> dict[str, Any]:
    """The OpenAPI document with the schema of what each verb answers; made when somebody asks for the document."""
    from epochcast.surfaces.answer_schemas import answer_schema

    for verb in ("forecast", "advise", "scaling", "plan", "inspect", "check", "oom", "diff"):
        content = document["paths"][f"/api/v1/{verb}"]["post"]["responses"]["200"]["content"]
        content["application/json"]["schema"] = _inlined(answer_schema(verb))
    return document


def _inlined(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema with its definitions in place of references to them."""
    definitions = schema.get("$defs", {})

    def inlined(part: Any) -> Any:
        if isinstance(part, list):
            return [inlined(each) for each in part]
        if not isinstance(part, dict):
            return part
        if "$ref" in part:
            return inlined(definitions[part["$ref"].removeprefix("#/$defs/")])
        return {key: inlined(value) for key, value in part.items() if key != "$defs"}

    answer: dict[str, Any] = inlined(schema)
    return answer
