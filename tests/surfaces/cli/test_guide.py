"""The first minutes: the guide, its three commands, and the tour with its questions."""

import os
import pty
import sys
from pathlib import Path

import pytest
from tests.every import every

from epochcast.surfaces.cli import tour_command
from epochcast.surfaces.cli.guide import TRY, guide, program

from .conftest import Command

NOT_A_TERMINAL = "needs a terminal; without one: epochcast forecast MODEL --device GPU --batch auto --dataset DATASET"


def test_without_arguments_a_guide_is_printed(command: Command) -> None:
    said = command("")
    assert (said.code, said.err) == (0, "")
    assert all(f"    epochcast {arguments}\n" in said.out for _, arguments in TRY)
    assert all(f"  epochcast {next_one} " in said.out for next_one in ("tour", "demo", "--help"))
    assert len(said.out.splitlines()) < 20 and max(map(len, said.out.splitlines())) < 120


@every("arguments", [arguments for _, arguments in TRY])
def test_a_command_to_try_works_as_printed(arguments: str, command: Command) -> None:
    ran = command(arguments)
    assert (ran.code, ran.err) == (0, "")
    assert "resnet50" in ran.out


def test_a_program_off_the_path_is_named_by_its_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    installed = tmp_path / ".venv" / "bin" / "epochcast"
    installed.parent.mkdir(parents=True)
    installed.write_text("#!/bin/sh\n")
    installed.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(installed)])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "")
    assert program() == ".venv/bin/epochcast"
    assert "    .venv/bin/epochcast forecast resnet50" in guide()
    monkeypatch.setenv("PATH", str(installed.parent))
    assert program() == "epochcast"


def test_a_tour_without_a_terminal_says_what_to_type(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    with open(os.devnull) as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        ran = command("tour")
    assert (ran.code, ran.out) == (2, "")
    assert NOT_A_TERMINAL in ran.err


def test_a_tour_asks_three_questions_and_forecasts(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Typed into a terminal: a GPU that does not exist is asked for again."""
    keyboard, terminal = pty.openpty()
    os.write(keyboard, b"resnet18\nB9000\nV100\n50000\n")
    with os.fdopen(terminal, encoding="utf-8") as typed:
        monkeypatch.setattr(sys, "stdin", typed)
        ran = command("tour")
    os.close(keyboard)
    assert ran.code == 0
    assert ran.out.count("2. GPU") == 2 and "B9000" in ran.out
    assert "\nepochcast forecast resnet18 --device V100 --samples 50000 --batch auto\n" in ran.out
    assert "resnet18 on V100" in ran.out and "cost" in ran.out


def test_a_tour_s_defaults_are_valid_answers() -> None:
    assert [question.arguments(question.default) for question in tour_command.QUESTIONS] == [
        ["resnet50"],
        ["--device", "A100"],
        ["--dataset", "imagenet-1k"],
    ]
    assert tour_command.QUESTIONS[2].arguments("none") == []
