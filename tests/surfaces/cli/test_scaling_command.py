from pathlib import Path

import pytest

from .conftest import Command, answer

LINE = "scaling resnet18 --device V100 --gpus 1,2,4,8 --batch 32 --samples 10000 --regime both"


def test_json_has_a_row_per_regime_and_number() -> None:
    body = answer(LINE)
    assert [(row["regime"], row["gpus"]) for row in body["rows"]] == [
        *(("strong", n) for n in (1, 2, 4, 8)),
        *(("weak", n) for n in (1, 2, 4, 8)),
    ]
    assert [row["global_batch"] for row in body["rows"]] == [32] * 4 + [32, 64, 128, 256]
    for row in body["rows"]:
        assert row["step_seconds"]["low"] <= row["step_seconds"]["mid"] <= row["step_seconds"]["high"]
        assert sum(row["step_parts"].values()) == pytest.approx(row["step_seconds"]["mid"])
    assert body["knee_gpus"] in (1, 2, 4, None)


def test_the_table_has_both_regimes_and_the_knees(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    out = command(LINE).out
    for words in ("strong and weak scaling", "per GPU", "efficiency", "strong scaling: beyond", "weak scaling: "):
        assert words in out


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_a_narrow_terminal_cuts_no_number(command: Command, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    line = "scaling resnet18 --device V100 --gpus 1,4,16 --batch 256 --samples 10000"
    monkeypatch.setenv("COLUMNS", "200")
    wide = _number_rows(command(line).out)
    assert wide[-1][:3] == ["16", "2", "4,096"]
    monkeypatch.setenv("COLUMNS", str(columns))
    narrow = _number_rows(command(line).out)
    for cells, all_cells in zip(narrow, wide, strict=True):
        left = iter(all_cells)
        assert all(cell in left for cell in cells)  # whole columns are left out, in their order


def _number_rows(printed: str) -> list[list[str]]:
    return [row.split() for row in printed.splitlines() if row.strip()[:1].isdigit()]


def test_options_of_a_step_are_passed_on() -> None:
    line = "scaling gpt2 --device A100 --gpus 2 --batch 8"
    plain, again = answer(line), answer(f"{line} --checkpointing --attention eager --update-style fused")
    assert again["rows"][0]["step_seconds"]["mid"] > plain["rows"][0]["step_seconds"]["mid"]


def test_collectives_stand_side_by_side(command: Command) -> None:
    out = command(f"{LINE} --allreduce nccl,reduce_to_one_device").out
    assert "weak scaling, reduce_to_one_device: " in out
    assert out.count("reduce_to_one_device") >= 2 * 3


def test_a_chart_is_drawn(command: Command, tmp_path: Path) -> None:
    command(f"{LINE} --plot {tmp_path / 'scaling.svg'}")
    text = (tmp_path / "scaling.svg").read_text(encoding="utf-8")
    for words in ("throughput, samples/s", "speed-up", "efficiency", "cost, dollars", "job, hours", "strong", "weak"):
        assert words in text


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--gpus 1,3 --batch 32 --regime strong", "a batch of 32 does not divide over 3 GPUs"),
        ("--gpus two --batch 32", "numbers of GPUs are written 1,2,4,8 or 1-64; got 'two'"),
        ("--gpus 2 --batch 32 --strategy tp2", "resnet18 has no two products to split"),
        ("--gpus 2 --batch 32 --strategy horovd", "no strategy called 'horovd'; near: horovod"),
        ("--gpus 2 --batch 32 --allreduce butter", "no all-reduce algorithm called 'butter'"),
        ("--gpus 2 --batch 32 --plot out.gif", "cannot draw out.gif"),
    ],
)
def test_bad_input_is_one_line(command: Command, line: str, message: str) -> None:
    result = command(f"scaling resnet18 --device V100 {line}")
    assert result.code == 2
    assert message in result.err
    assert result.err.count("\n") == 1
