"""Every kept answer (tests/golden) is as the schema of its command says."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.answers.asking import MEASURED
from epochcast.surfaces.answer_schemas import ANSWERS, answer_schema

GOLDEN = Path(__file__).parents[1] / "golden"
NOT_KEPT = {"doctor", "fit", "runs NAME"}
LEFT_OUT = {"key", *MEASURED}
"""Keys that the kept answers leave out: their values are drawn or measured anew."""


def problems(command: str) -> Iterator[str]:
    jsonschema = pytest.importorskip("jsonschema")
    schema = answer_schema(command)
    jsonschema.Draft202012Validator.check_schema(schema)
    answer = json.loads((GOLDEN / f"{command.replace(' ', '_')}.json").read_text(encoding="utf-8"))["answer"]
    for error in jsonschema.Draft202012Validator(schema).iter_errors(answer):
        if not any(error.message == f"{key!r} is a required property" for key in LEFT_OUT):
            yield f"{command}: {'.'.join(map(str, error.absolute_path))}: {error.message[:200]}"
    for key in answer.keys() - schema["properties"].keys():
        yield f"{command}: {key} is not in the schema"


def test_every_kept_answer_has_the_shape_of_its_schema() -> None:
    kept = {path.stem.replace("_", " ") for path in GOLDEN.glob("*.json")} - {"jobs schema"}  # is a schema itself
    assert kept | NOT_KEPT == set(ANSWERS)
    assert not [problem for command in sorted(kept) for problem in problems(command)]


LOOSE = {"options", "splits", "predictions"}
"""Keys with values of any kind: options of jobs and models, and what history writes by hand."""


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
    assert not loose
