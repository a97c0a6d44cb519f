"""Every script in examples/ runs and prints what stands in the .out beside it."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_prints_what_stands_beside_it(example: Path, matches: Callable[[Path, str], None]) -> None:
    plain = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", "PYTHONIOENCODING": "utf-8"}
    run = subprocess.run(
        [sys.executable, str(example)],
        cwd=ROOT,
        env=os.environ | plain,
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    matches(example.with_suffix(".out"), run.stdout)


def test_no_output_has_lost_its_example() -> None:
    outputs = (ROOT / "examples").glob("*.out")
    assert [output.name for output in outputs if not output.with_suffix(".py").exists()] == []
