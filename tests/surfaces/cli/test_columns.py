"""Every command in a terminal of 80 columns."""

from pathlib import Path

import pytest

from .conftest import Command

COMMANDS = (
    "forecast resnet18 --device V100 --batch 64 --dataset imagenet-1k --epochs 90 --explain",
    "forecast gpt2 --device A100 --batch 8 --gpus 16 --nodes 2 --tokens 10B",
    "advise resnet18 --device V100 --precision amp --cpus 8",
    "scaling resnet18 --device V100 --gpus 1,2,16 --batch 64 --dataset imagenet-1k --epochs 90 --regime both",
    "plan resnet18 --dataset imagenet-1k --epochs 90 --batch 1024 --deadline 6h --clouds aws,lambda --gpus 8,16",
    "plan resnet18 --dataset imagenet-1k --epochs 90",
    "inspect inception_naive --versus inception_reduced",
    "inspect resnet18 --device V100 --batch 8 --brief",
    *("models", "devices", "instances", "datasets", "links", "topologies"),
    "forecast --help",
)


@pytest.mark.parametrize("line", COMMANDS)
def test_no_line_is_wider_than_the_terminal(line: str, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    printed = command(line).out
    assert printed
    assert [text for text in printed.splitlines() if len(text) > 80] == []


def test_scaling_shows_intervals_and_says_what_it_left_out(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    printed = command("scaling resnet18 --device V100 --gpus 1,2 --batch 64 --dataset imagenet-1k").out
    assert "90 % interval" in printed.splitlines()[2]
    assert "hidden to fit the terminal: job, 90 % interval; per GPU" in printed
    monkeypatch.setenv("COLUMNS", "200")
    assert (
        "hidden to fit the terminal"
        not in command("scaling resnet18 --device V100 --gpus 1,2 --batch 64 --dataset imagenet-1k").out
    )


def test_a_chart_says_where_it_is(tmp_path: Path, command: Command) -> None:
    pytest.importorskip("altair", reason="altair is not installed")
    ran = command(f"scaling mnist_cnn --device V100 --gpus 1,2 --batch 8 --plot {tmp_path}/s.svg --json")
    assert ran.err == f"epochcast: written to {tmp_path}/s.svg\n"
    assert ran.json["rows"]
    assert (tmp_path / "s.svg").is_file()
