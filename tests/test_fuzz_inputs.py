"""Inputs that fuzzing keeps are whole: what was found once can be read again."""

import subprocess
import sys
from pathlib import Path

import pytest
from fuzz.kept import keep, read

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    "made",
    [
        bytes(range(256)) * 100,
        ("csv", b"a,b\n"),
        {"batch": 10**400, "uneven": float("inf"), "": [None, (1,)]},
        "\udc80",
    ],
)
def test_an_input_comes_back_as_it_was(made: object, tmp_path: Path) -> None:
    keep(tmp_path / "found.json", "options", made)
    assert read(tmp_path / "found.json") == ("options", made)


def test_a_kept_input_is_replayed(tmp_path: Path) -> None:
    file = tmp_path / "found.json"
    keep(file, "options", {"model": "mnist_cnn", "device": "A100", "batch": 0})
    ran = subprocess.run(
        [sys.executable, "-m", "fuzz", "--replay", str(file)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, f"{file}: batch must be at least 1, got 0\n"), ran.stderr
