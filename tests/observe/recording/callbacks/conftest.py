"""Reading what a callback wrote."""

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest


class Recording:
    """The lines of a file, taken apart."""

    def __init__(self, path: Path) -> None:
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        self.heads: list[dict[str, Any]] = [line for line in lines if "epochcast_track" in line]
        self.rows: list[dict[str, Any]] = [line for line in lines if "ec" in line]

    @property
    def steps(self) -> int:
        return sum(row["steps"] for row in self.rows if row["ec"] == "train")

    def pauses(self, what: str) -> list[int]:
        """Steps after which there was one."""
        return [row["step"] for row in self.rows if row["ec"] == "done" and row["what"] == what]


@pytest.fixture
def standstill(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that hardly moves: after the first step no row is due any more."""
    ticks = count()
    monkeypatch.setattr("epochcast.observe.recording.recorded_run.perf_counter", lambda: 1e-6 * next(ticks))


@pytest.fixture
def recorded(tmp_path: Path) -> Callable[[], Recording]:
    return lambda: Recording(tmp_path / "run.jsonl")
