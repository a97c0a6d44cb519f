"""Schemas of answers say what every key holds. tests/test_golden_answers.py compares each with an answer."""

from collections.abc import Iterator
from typing import Any

from epochcast.surfaces.answer_schemas import ANSWERS, answer_schema

LOOSE = {"options", "tensors", "kinds", "ops"}
"""Keys with values of any kind: options of jobs, tables of a document of ops."""


def loose_keys(part: Any, name: str = "") -> Iterator[str]:
    if part == {} and name:
        yield name
    for key, inner in part.items() if isinstance(part, dict) else ():
        if key in ("properties", "$defs"):
            for inner_name, schema in inner.items():
                yield from loose_keys(schema, inner_name)
        elif key in ("items", "additionalProperties"):
            yield from loose_keys(inner, name)
        elif key in ("anyOf", "prefixItems"):
            for each in inner:
                yield from loose_keys(each, name)


def test_every_key_has_a_type() -> None:
    loose = {(command, key) for command in ANSWERS for key in loose_keys(answer_schema(command)) if key not in LOOSE}
    assert loose == {("share", "job")}  # options of a job, by their names
