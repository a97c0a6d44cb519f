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


def test_without_limits_the_best_balance_is_recommended() -> None:
    body = answer(LINE)
    assert body["objective"] == "knee" and body["chosen"]["deadline_probability"] is None
    assert body["sentence"].endswith("the best balance of time and cost.")


def test_the_table_has_the_frontier_and_marks_the_choice(command: Command) -> None:
    ran = command(f"{LINE} --budget 50")
    assert ran.code == 0
    for words in (
        "batch 512",
        "GPUs",
        "seller",
        "up to",
        "▸ ",
        "sure to stay in budget",
        "rent: ",
    ):
        assert words in ran.out
    assert " × " in ran.out.splitlines()[0]


def test_explain_says_why_others_lost(command: Command) -> None:
    ran = command(f"{LINE} --budget 50 --explain")
    assert "\nnot " in ran.out and "configurations: " in ran.out
    assert "\nnot " not in command(f"{LINE} --budget 50").out


def test_sure_asks_for_a_probability() -> None:
    body = answer(f"{LINE} --deadline 12m --sure 90%")
    assert body["sure"] == 0.9 and body["chosen"]["deadline_probability"] >= 0.9 - 1e-9


def test_a_deadline_nobody_meets_is_exit_code_3(command: Command) -> None:
    ran = command(f"{LINE} --deadline 1s --json")
    assert (ran.code, ran.json["chosen"], ran.err) == (3, None, "")
    assert "Nearest by time: " in ran.json["sentence"]
    assert ran.json["nearest_by_time"]["deadline_probability"] < 0.05 and ran.json["nearest_by_money"] is None


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
        ("--samples 100 --budget -5", "--budget: '-5' is not an amount of dollars; write it like $100 or 2.5k"),
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


NARROW = "plan mnist_cnn --samples 60000 --epochs 100 --batch 512 --clouds aws --gpus 1-8"


def test_everything_asked_is_in_the_answer() -> None:
    body = answer(
        f"{NARROW} --objective knee --regions us --spot 0.1 --checkpoint 10s --restart 3m --billing minute --boot 4m "
        "--storage 100GB --storage-price 0.08 --egress 1GB --egress-price 0.09 --what-if precision=amp "
        "--batch-policy scale --max-global-batch 2048 --critical-batch mnist"
    )
    assert (body["objective"], body["batch_policy"], body["max_global_batch"]) == ("knee", "scale", 2048)
    assert (body["critical_batch"], body["interruptions_per_hour"], body["restart_seconds"]) == (200, 0.1, 180)
    assert (body["boot_seconds"], body["billing"]) == (240, "minute")
    chosen = body["chosen"]
    assert chosen["is_spot"] and chosen["region"].startswith("us-") and chosen["total_seconds"]["low"] > 240
    assert chosen["price_age_days"] == 87
    assert {gain["option"] for gain in body["gains"]} == {"precision"}
    assert body["rivals"] and "to be sure" in body["certainty"]


def test_a_deadline_is_a_time_of_the_clock() -> None:
    body = answer(f"{NARROW} --deadline Friday18:00")
    assert body["deadline_seconds"] == 3 * 86400 + 9 * 3600


def test_old_prices_are_told_with_their_age(command: Command) -> None:
    ran = command("plan mnist_cnn --samples 60000 --epochs 100 --batch 512 --clouds lambda --gpus 1 --explain")
    assert "prices are older than 90 days: gpu_1x_" in ran.out and "(106 days)" in ran.out


def test_epochs_that_fit_are_counted(command: Command) -> None:
    ran = command(f"{NARROW} --most-epochs --budget 2 --json")
    assert ran.code == 0
    assert ran.json["most_epochs"] == ran.json["chosen"]["epochs"] > 10
    assert ran.json["chosen"]["dollars"]["high"] <= 2 * (1 + 1e-9)
    none = command(f"{NARROW} --most-epochs --budget 0.00001 --json")
    assert (none.code, none.json["most_epochs"]) == (3, None)
    assert "Nearest: " in none.json["sentence"]


def test_a_host_that_cannot_feed_is_told(command: Command) -> None:
    ran = command("plan resnet18 --samples 50000 --batch 256 --clouds aws --devices T4 --gpus 1 --loader-seconds 20ms")
    assert "CPUs cannot feed the GPU" in ran.out


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--deadline 2026-11-01", "the deadline '2026-11-01' is in the past: it is Tuesday 2026-11-17 09:00"),
        ("--deadline 0", "the deadline '0' is now: give a later one"),
        ("--budget 0", "--budget must be above 0, got 0"),
        ("--budget 0", "--budget must be above 0, got 0"),
        ("--sure 20%", "a limit is met with a probability of 50% to 99.9%"),
        ("--nodes none", "numbers of machines are written 1,2,4,8 or 1-64; got 'none'"),
        ("--nodes 3", "no offer with 3 machines"),
        ("--max-age 30", "--max-age 30: give a unit, for example 30d"),
        ("--boot 4", "--boot 4: give a unit, for example 4m"),
        ("--objective best", "no objective called 'best'; known: cheapest, fastest, knee"),
        ("--regions mars", "no region called 'mars'"),
        ("--gpus 8-1", "numbers of GPUs go from 1 to 4096, the smaller first"),
        ("--spot -1", "interruptions per hour must be between 0 and 60, got -1"),
        ("--restart 5m", "--checkpoint and --restart are about interruptions"),
        ("--augment-epochs 1:9,1:5", "epochs with 1 copies are given twice"),
        ("--egress-price 0.1", "a price of egress without its bytes"),
        ("--regions ,", "names are written a,b; got ','"),
        ("--what-if batch=3", "no option to try called 'batch'"),
        ("--what-if precision=fp3", "no precision called 'fp3'"),
        ("--batch-policy grow", "no batch policy called 'grow'"),
        ("--critical-batch imagenot", "no task with a critical batch called 'imagenot'"),
        ("--billing day", "no billing unit called 'day'"),
        ("--storage 100GB", "storage costs what its seller asks: give its price"),
        ("--most-epochs", "give a deadline or a budget"),
        ("--most-epochs --budget 5 --batch-policy scale --critical-batch 100", "batch policy 'scale' needs a batch"),
    ],
)
def test_bad_terms_are_one_line(command: Command, line: str, message: str) -> None:
    batch = "" if "needs a batch" in message else "--batch 64 "
    result = command(f"plan mnist_cnn --samples 100 --clouds aws --gpus 1 {batch}{line}")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert message in result.err


def test_at_most_eight_rows_are_shown_and_the_chosen_one_is_among_them(command: Command) -> None:
    line = "plan resnet50 --samples 1281167 --epochs 90 --precision amp --gpus 1-64 --deadline 100h"
    ran, every = command(line), command(f"{line} --all")
    rows = _rows(every.out)
    assert len(rows) > 8, "renew the question: it needs a longer frontier"
    assert 4 < len(_rows(ran.out)) <= 8
    assert sum("▸" in row for row in _rows(ran.out)) == 1
    assert f"--all shows {len(rows) - len(_rows(ran.out))} more offers" in ran.out
    assert "more offers" not in every.out


def _rows(printed: str) -> list[str]:
    """Rows of the table, each of which names its GPUs."""
    table = printed.partition("──\n")[2].partition("\n\n")[0]
    return [" ".join(text.split()) for text in table.splitlines() if " × " in text]


def test_at_most_three_notes_are_shown_and_all_with_explain(command: Command) -> None:
    line = "plan resnet50 --dataset imagenet-1k --epochs 90 --batch 1024 --precision amp --deadline 6h"
    ran, every = command(line), command(f"{line} --explain")
    assert sum(text.startswith("note: ") for text in ran.out.splitlines()) == 3
    shown = sum(text.startswith("note: ") for text in every.out.splitlines())
    assert f"{shown - 3} more notes: --explain" in ran.out and "more notes" not in every.out
    assert len(command(f"{line} --json").json["warnings"]) >= shown
