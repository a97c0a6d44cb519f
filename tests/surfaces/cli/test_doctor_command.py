import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Command


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EPOCHCAST_PROFILES", str(tmp_path))
    monkeypatch.setenv("EPOCHCAST_CACHE", "off")
    monkeypatch.setenv("EPOCHCAST_STORE", str(tmp_path / "store.db"))


def test_the_doctor_says_what_there_is(command: Command, tmp_path: Path) -> None:
    ran = command("doctor")
    assert (ran.code, ran.err) == (0, "")
    assert all(word in ran.out for word in ("torch", "turned off", "learned.json", "prices", "problems"))


def test_a_damaged_profile_is_listed_and_no_failure(command: Command, tmp_path: Path) -> None:
    (tmp_path / "v100.toml").write_text("[[profile]]\n")
    ran = command("doctor --json")
    assert ran.code == 0
    assert any(problem.startswith("damaged: v100.toml") for problem in ran.json["problems"])
    assert "damaged: v100.toml" in command("doctor").out


def test_the_exit_code_is_in_the_help(command: Command) -> None:
    assert "do not change the exit code" in " ".join(command("doctor --help").out.split())


def test_no_framework_is_imported() -> None:
    program = (
        "import sys; from epochcast.surfaces.cli.command_line import run; "
        "run(['doctor', '--json']); print(*sys.modules, file=sys.stderr)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, encoding="utf-8", timeout=120, check=True
    )
    assert not set(ran.stderr.split()) & {"torch", "keras", "tensorflow", "onnx", "transformers", "polars", "rich"}
