from pathlib import Path
from typing import Any

import pytest

from studies.coverage.run import append, page, read, sweep

GOOD: dict[str, Any] = {"model": "timm:a", "opaque": [], "seconds": 1.5}
UNCLEAR: dict[str, Any] = {"model": "timm:b", "opaque": ["aten.odd.default"], "seconds": 0.5}
BAD: dict[str, Any] = {"model": "timm:c", "problem": "asks for | values"}


def test_the_page_counts_shares_and_lists_every_failure_with_its_reason() -> None:
    text = page([GOOD, UNCLEAR, BAD], ["timm"])
    assert "| timm | 3 | 2 | 66.7% | 1 | 1.5 |" in text
    assert "| `timm:c` | asks for \\| values |" in text
    assert "| `aten.odd.default` | `timm:b` |" in text


def test_a_sweep_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = tmp_path / "results.jsonl"
    append(results, GOOD)
    asked: list[list[str]] = []

    class Dead:
        returncode = -9

    def die(command: list[str], **_: object) -> Dead:
        asked.append(command[command.index("--worker") + 1 :])
        return Dead()

    monkeypatch.setattr("studies.coverage.run.subprocess.run", die)
    sweep(["timm:a", "timm:b", "timm:c"], results)
    assert asked == [["timm:b", "timm:c"], ["timm:c"]]
    assert [row.get("problem") for row in read(results)] == [None, *["the process ended with -9"] * 2]
