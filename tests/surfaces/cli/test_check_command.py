"""`epochcast check` and `epochcast oom` on the command line: exit codes, one screen, one line of error."""

from io import StringIO

import pytest
from tests.observe.oom.messages import backward_of

from .conftest import Command

CHECK = "check resnet50 --device V100 --batch 64"


@pytest.mark.parametrize(
    ("observed", "more", "code"),
    [
        ("340img/s", "", 0),
        ("340img/s", " --tolerance 1.5x", 0),
        ("100img/s", "", 0),
        ("100img/s", " --tolerance 1.5x", 3),
    ],
)
def test_the_exit_code_is_that_of_the_tolerance(observed: str, more: str, code: int, command: Command) -> None:
    assert command(f"{CHECK} --observed {observed}{more} --json").code == code


def test_the_answer_is_one_screen(command: Command) -> None:
    ran = command(f"{CHECK} --observed 100img/s")
    assert ran.code == 0
    assert len(ran.out.splitlines()) <= 40
    assert ran.out.startswith("verdict: slower than expected")
    assert 1 <= ran.out.count("to test ") <= 5


def test_pasted_lines_are_read_from_standard_input(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", StringIO(" 5%|▌         | 50/1000 [00:09<10:17, 5.40it/s]\r\n"))
    ran = command(f"{CHECK} --observed - --json")
    assert (ran.code, ran.json["verdict"], ran.json["observed"]["source"]) == (0, "normal", "log")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (CHECK, "Missing option '--observed' (or --pid)"),
        (f"{CHECK} --observed fast", "'fast' has no number"),
        (f"{CHECK} --observed 39s/epoch", "say how much data there is"),
        (f"{CHECK} --observed 200tokens/s", "resnet50 takes images"),
        (f"{CHECK} --observed 1it/s --tolerance high", "--tolerance: 'high' is no factor"),
        (f"{CHECK} --pid 999999999", "no process 999999999 runs here"),
        ("check --device V100 --pid 999999999", "no process 999999999 runs here"),
        ("oom nothing", "no out-of-memory message"),
        ("oom nothing --batch 3", "options of a job need a MODEL"),
    ],
)
def test_bad_input_is_one_line(line: str, reason: str, command: Command) -> None:
    ran = command(line)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert reason in ran.err


def test_a_message_on_standard_input_is_diagnosed(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", StringIO(backward_of(1.5, 1.1, 21.7)))
    ran = command("oom -")
    assert ran.code == 0
    assert "filled by: activations (memory ran out in the backward pass)" in ran.out


def test_with_a_job_the_remedies_are_listed(command: Command, tmp_path: object) -> None:
    path = f"{tmp_path}/train.log"
    with open(path, "w", encoding="utf-8") as log:
        log.write(backward_of(1.5, 1.1, 21.7))
    ran = command(f"oom {path} gpt2 --device RTX3090 --batch 32")
    assert ran.code == 0
    assert "what would fit" in ran.out and "same job" in ran.out


@pytest.mark.parametrize("line", ["forecast resnet50 --device V100 --batch 64", f"{CHECK} --observed 340img/s"])
def test_neighbours_are_shown_with_their_sources(line: str, command: Command) -> None:
    assert "neighbours" not in command(f"{line} --json").json
    nearest = command(f"{line} --neighbours --json").json["neighbours"]
    assert len(nearest) == 5
    assert all(each["source"].startswith("github.com/") for each in nearest)
    assert "measured public runs nearest to this job" in command(f"{line} --neighbours").out
