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
    ran = command("calibrate --device V100 --gemm-seconds 0.012 --json")
    assert (ran.code, ran.json["chosen"]) == (0, "arithmetic")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--device V100", "epochcast: nothing to calibrate with: give a table of runs, or --gemm-seconds\n"),
        ("{table} --device A100", "epochcast: no row of A100-SXM4-40GB can be used: the table has V100-SXM2-16GB\n"),
        ("--device V100 --gemm-seconds 12", "epochcast: a product of 4096 in 12 s is "),
        ("{table} --device abacus", "epochcast: no device called 'abacus'; "),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(command: Command, table: Path, options: str, message: str) -> None:
    ran = command(f"calibrate {options.format(table=table)}")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(message)
    assert ran.err.count("\n") == 1
