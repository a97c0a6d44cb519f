"""Commands run inside the test process, with what they printed."""

import json
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cache
from io import StringIO
from typing import Any

import pytest

from epochcast.surfaces.cli.command_line import run


@dataclass(frozen=True)
class Ran:
    """One command: its exit code and both streams."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """Standard output as the one JSON object it must be."""
        answer = json.loads(self.out)
        assert isinstance(answer, dict)
        return answer


Command = Callable[[str], Ran]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """`command("forecast resnet50 --device V100 --batch 64")`, on a plain terminal of 120 columns."""
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")

    def ran(line: str) -> Ran:
        capsys.readouterr()
        code = run(line.split())
        printed = capsys.readouterr()
        return Ran(code, printed.out, printed.err)

    return ran


@cache
def answer(line: str) -> dict[str, Any]:
    """The JSON object a command answers with; each line is run once for all tests."""
    printed = StringIO()
    with redirect_stdout(printed):
        assert run([*line.split(), "--json"]) == 0
    return Ran(0, printed.getvalue(), "").json
