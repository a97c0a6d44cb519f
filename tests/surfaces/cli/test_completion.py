"""What the shell offers."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from epochcast.hardware.catalogue import find_device
from epochcast.surfaces.cli.completion import COMPLETERS, configs, jobs, models
from epochcast.surfaces.cli.job_flags import JOB_FLAGS, PLACE_FLAGS

from .conftest import Command


def test_names_are_completed_whatever_their_case() -> None:
    assert "resnet50" in models("resn")
    assert "meta-llama/Llama-3.1-8B" in models("meta-llama/")
    assert "a100-SXM4-80GB" in COMPLETERS["device"]("a100")  # as typed: shells drop what begins otherwise
    assert find_device("a100-SXM4-80GB").name == "A100-SXM4-80GB"
    assert COMPLETERS["optimizer"]("adamw")[0] == "adamw"
    assert COMPLETERS["device"]("no such device") == []


def test_every_completed_option_exists_and_offers_something() -> None:
    assert set(COMPLETERS) <= {*JOB_FLAGS, *PLACE_FLAGS}
    assert all(complete("") for complete in COMPLETERS.values())


def test_files_are_completed_by_what_they_may_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    for name in ("ds.json", "train.py", "notes.txt", "sub/a.yaml", ".hidden.json"):
        (tmp_path / name).write_text("")
    assert configs("") == ["ds.json", "sub/", "train.py"]
    assert configs("sub/") == ["sub/a.yaml"]
    assert configs("no/where/") == []
    assert models("trai") == ["train.py"]


def test_jobs_are_those_of_the_nearest_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert jobs("") == []
    (tmp_path / "epochcast.toml").write_text('[[job]]\nname = "big"\nmodel = "resnet18"\nbatch = 8\n')
    assert jobs("b") == ["big"]
    (tmp_path / "epochcast.toml").write_text("[[job")
    assert jobs("b") == []


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("epochcast forecast resnet1", "resnet18"),
        ("epochcast sca", "scaling"),
        ("epochcast forecast resnet18 --device a100-", "a100-SXM4-40GB"),
    ],
)
def test_bash_gets_them(words: str, offered: str) -> None:
    asked = {"_EPOCHCAST_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    ran = subprocess.run(
        [sys.executable, "-m", "epochcast"],
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, **asked},
        timeout=120,
        check=False,
    )
    assert offered in ran.stdout.splitlines()


def test_the_help_says_how_to_install_it(command: Command) -> None:
    assert "--install-completion" in command("--help").out


def test_help_is_in_groups(command: Command) -> None:
    printed = command("forecast --help").out
    groups = ["Arguments:", "Job and settings files:", "Training:", "Data and duration:", "Hardware:", "Options:"]
    places = [printed.index(f"\n{group}\n") for group in groups]
    assert places == sorted(places)
    assert places[4] < printed.index("--device") < places[5]
    commands = command("--help").out
    assert commands.index("\nForecasts:\n") < commands.index("\nMeasurements:\n") < commands.index("\nCatalogues:\n")
