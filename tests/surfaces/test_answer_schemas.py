"""Every kept answer (tests/golden) is as the schema of its command says."""

import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer

from benchmarks.answers.asking import MEASURED
from epochcast.surfaces.answer_schemas import ANSWERS, answer_schema
from epochcast.surfaces.cli import command_line
from epochcast.surfaces.cli.command_line import run as main

GOLDEN = Path(__file__).parents[1] / "golden"
NOT_KEPT = {
    *("doctor", "fit", "runs NAME", "instances import", "schedule cancel", "schedule run", "schedule submit"),
    *("bench collectives", "bench loader", "bench models", "bench ops", "store export", "store import", "store vacuum"),
    *("serve token add", "serve token end", "serve token list"),
}
"""Commands whose answers are measured, drawn or written: their own tests look at them."""
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


LOOSE = {"options", "splits", "predictions", "rows", "skipped"}
"""Keys with values of any kind: options of jobs and models, what history writes by hand, rows of tables."""


def commands_with_json() -> Iterator[str]:
    for name in command_line.COMMANDS:
        import_module(f"epochcast.surfaces.cli.{name}_command")
    yield from _with_json(typer.main.get_command(command_line.app), ())


def _with_json(command: Any, path: tuple[str, ...]) -> Iterator[str]:
    for name, inner in getattr(command, "commands", {}).items():
        yield from _with_json(inner, (*path, name))
    if any("--json" in parameter.opts for parameter in command.params):
        yield " ".join(path)


def test_every_command_with_json_has_a_schema() -> None:
    assert [name for name in commands_with_json() if name not in {*ANSWERS, "jobs schema"}] == []


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("serve token add", ("serve", "token", "add", "ci")),
        ("serve token list", ("serve", "token", "list")),
        ("store vacuum", ("store", "vacuum")),
        ("store export", ("store", "export", "more.jsonl")),
        ("store import", ("store", "import", "all.jsonl")),
        ("serve token end", ("serve", "token", "end", "ci")),
    ],
)
def test_a_written_answer_has_the_shape_of_its_schema(
    command: str,
    words: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EPOCHCAST_STORE", str(tmp_path / "store.db"))
    assert main(["serve", "token", "add", "ci" if command == "serve token end" else "first"]) == 0
    assert main(["store", "export", "all.jsonl"]) == 0
    capsys.readouterr()
    assert main([*words, "--json"]) == 0
    jsonschema.validate(json.loads(capsys.readouterr().out), answer_schema(command))


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
