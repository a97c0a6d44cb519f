from pathlib import Path

import pytest

from .conftest import Command, answer

LINE = "plan mnist_cnn --samples 60000 --epochs 100 --batch 512 --clouds aws,lambda --gpus 1,8"


def test_json_has_the_contract() -> None:
    body = answer(f"{LINE} --deadline 1d")
    assert body["considered"] > len(body["frontier"]) + body["infeasible"]
    keys = {"offer", "cloud", "device", "gpus", "nodes", "strategy", "batch_per_gpu", "total_seconds", "dollars"}
    for offer in [*body["frontier"], body["chosen"]]:
        assert keys <= offer.keys()
        assert offer["total_seconds"]["low"] <= offer["total_seconds"]["mid"] <= offer["total_seconds"]["high"]
        assert offer["batch_per_gpu"] * offer["gpus"] == 512
    assert body["chosen"]["dollars"]["mid"] == min(offer["dollars"]["mid"] for offer in body["frontier"])


def test_without_limits_nothing_is_chosen() -> None:
    body = answer(LINE)
    assert body["chosen"] is None
    assert "give a deadline" in body["sentence"]


def test_the_table_has_the_frontier_and_marks_the_choice(command: Command) -> None:
    ran = command(f"{LINE} --budget 50")
    assert ran.code == 0
    for words in (
        "batch 512",
        "offer",
        "cloud",
        "up to",
        "▸ ",
        "the fastest whose high end (90 % interval) is within $50",
    ):
        assert words in ran.out


def test_a_deadline_nobody_meets_is_exit_code_3(command: Command) -> None:
    ran = command(f"{LINE} --deadline 1s --json")
    assert (ran.code, ran.json["chosen"], ran.err) == (3, None, "")
    assert "; the nearest: " in ran.json["sentence"]


def test_a_job_too_large_for_every_offer_is_exit_code_4(command: Command) -> None:
    ran = command("plan vgg16 --samples 100000 --batch 4096 --gpus 1 --devices T4 --json")
    assert ran.code == 4
    assert ran.json["infeasible"] == ran.json["considered"] == ran.json["reasons"]["does not fit in memory"]
    assert ran.json["frontier"] == []


def test_a_chart_is_drawn(command: Command, tmp_path: Path) -> None:
    command(f"{LINE} --deadline 1d --budget 50 --plot {tmp_path / 'plan.svg'}")
    text = (tmp_path / "plan.svg").read_text(encoding="utf-8")
    for words in ("job, hours", "cost, dollars", "cheapest to fastest", "diamond: chosen", "1. "):
        assert words in text


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--samples 100 --budget -5", "budget_dollars must be above 0, got -5"),
        ("--samples 100 --deadline soon", "'soon' is not a time; write it like '6h'"),
        ("--samples 100 --clouds asw", "no cloud called 'asw'; near: aws"),
        ("--samples 100 --devices V10", "no device called 'V10'; near: V100"),
        ("--samples 100 --gpus two", "numbers of GPUs are written 1,2,4,8 or 1-64; got 'two'"),
        ("--samples 100 --strategy ddpp", "no strategy called 'ddpp'; near: ddp"),
        ("--samples 100 --plot out.gif", "cannot draw out.gif"),
        ("--epochs 3", "a plan is for a whole job: give a dataset or its samples"),
    ],
)
def test_bad_input_is_one_line(command: Command, line: str, message: str) -> None:
    result = command(f"plan mnist_cnn {line}")
    assert result.code == 2
    assert message in result.err
    assert result.err.count("\n") == 1
