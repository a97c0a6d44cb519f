from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[[str], Any]


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EPOCHCAST_PROFILES", str(tmp_path / "profiles"))
    path = tmp_path / "runs.csv"
    path.write_text("model,device,batch_per_gpu,step_seconds\nresnet18,V100,32,0.09\nresnet18,V100,64,0.17\n")
    return path


def test_a_profile_is_saved_only_when_told(command: Command, table: Path, tmp_path: Path) -> None:
    ran = command(f"calibrate {table} --device V100 --json")
    assert (ran.code, ran.json["saved"], ran.json["rows"]) == (0, None, 2)
    assert not (tmp_path / "profiles").exists()
    ran = command(f"calibrate {table} --device V100 --save --json")
    assert Path(ran.json["saved"]).read_text().startswith('[[profile]]\nname = "V100-SXM2-16GB"\n')


def test_columns_by_other_names_are_known(command: Command, table: Path) -> None:
    table.write_text(table.read_text().replace("batch_per_gpu", "batch").replace("device", "GPU"))
    assert command(f"calibrate {table} --device V100 --json").json["rows"] == 2


def test_the_table_says_what_changed_and_how_sure_it_is(command: Command, table: Path) -> None:
    ran = command(f"calibrate {table} --device V100")
    assert ran.code == 0
    for words in (
        "(chosen)",
        "kernels bound by arithmetic",
        "90 % interval before",
        "90 % interval after",
        "not saved",
    ):
        assert words in ran.out


def test_one_product_is_enough(command: Command, table: Path) -> None:
    ran = command("calibrate --device V100 --gemm-seconds 4096=12ms --json")
    assert (ran.code, ran.json["chosen"]) == (0, "arithmetic")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--device V100", "epochcast: nothing to calibrate with: give a table of runs, or --gemm-seconds\n"),
        ("{table} --device A100", "epochcast: no row of A100-SXM4-40GB can be used: the table has V100-SXM2-16GB\n"),
        (
            "--device V100 --gemm-seconds 12s",
            "epochcast: a product of 8192x8192x8192 in 12 s is 91.6 GFLOPS, less than 1% of the peak ",
        ),
        ("{table} --device abacus", "epochcast: no device called 'abacus'; "),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(command: Command, table: Path, options: str, message: str) -> None:
    ran = command(f"calibrate {options.format(table=table)}")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(message)
    assert ran.err.count("\n") == 1


SHEET_RUNS = (
    "model,device,batch_per_gpu,step_seconds,precision\nresnet18,mine,32,0.02,amp\nresnet18,mine.toml,64,0.04,amp\n"
)


def test_runs_on_a_data_sheet_calibrate_it_and_forecasts_use_them(
    command: Command, table: Path, tmp_path: Path
) -> None:
    sheet = tmp_path / "mine.toml"
    sheet.write_text('like = "V100"\n')
    table.write_text(SHEET_RUNS)
    ran = command(f"calibrate {table} --device {sheet} --save --json")
    assert (ran.code, ran.json["rows"], ran.json["precisions"]) == (0, 2, ["amp_fp16"])
    line = f"forecast resnet18 --batch 32 --device {sheet} --json --precision"
    assert any("corrected by your measurements" in note for note in command(f"{line} amp").json["warnings"])
    assert any("no measurements" in note for note in command(f"{line} fp32").json["warnings"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("{table} --device V100 --precision bf16", "no run of V100-SXM2-16GB is in bf16: the table has fp32\n"),
        ("--device V100 --gemm-seconds fp32:1ms", "a product of 8192x8192x8192 in 1 ms is 1.1 PFLOPS, above the peak "),
        ("--device V100 --gemm-seconds soon", "'soon' is not a time; "),
        ("{table} --device no.toml", "no file 'no.toml': a device that ends in .toml is a data sheet\n"),
    ],
)
def test_runs_of_another_format_and_rates_above_the_peak_are_one_line(
    command: Command, table: Path, options: str, message: str
) -> None:
    ran = command(f"calibrate {options.format(table=table)}")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert ran.err.startswith(f"epochcast: {message}")
