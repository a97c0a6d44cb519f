from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[[str], Any]

TABLE = """model,device,batch_per_gpu,step_seconds
resnet18,V100,32,0.05
vgg11,V100,32,0.2
nonet,V100,32,0.2
"""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "runs.csv"
    path.write_text(TABLE)
    return path


def test_json_is_the_contract(command: Command, table: Path) -> None:
    ran = command(f"evaluate {table} --by device,family --json")
    assert ran.code == 0
    assert list(ran.json) == [
        "n",
        "failed",
        "mape",
        "median_ape",
        "p90_ape",
        "rmse_seconds",
        "coverage",
        "width",
        "interval_score",
        "refusals",
        "notes",
        "groups",
        "memory",
    ]
    assert (ran.json["n"], ran.json["failed"][0]["model"]) == (2, "nonet")
    assert list(ran.json["groups"]) == ["V100-SXM2-16GB / resnet", "V100-SXM2-16GB / vgg", "V100-SXM2-16GB / nonet"]


def test_the_table_says_what_failed(command: Command, table: Path) -> None:
    ran = command(f"evaluate {table} --by family")
    assert ran.code == 0
    assert "by family" in ran.out
    assert "no model called 'nonet'" in ran.out


def test_warnings_count_rows_and_refusals_say_what_helps(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(
        "model,device,batch_per_gpu,step_seconds,optimizer,quality\n"
        "resnet18,V100,32,0.05,lionw,ok\nresnet18,V100,64,0.09,lionw,\nresnet18,V100,64,0.09,adam,suspect\n"
    )
    ran = command(f"evaluate {path}")
    assert "note: 2 rows: the optimizer lionw is not known and answered as momentum" in ran.out
    assert "--with-doubtful" in ran.out
    assert command(f"evaluate {path} --with-doubtful --json").json["n"] == 3


def test_a_line_that_cannot_be_read_costs_itself(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(TABLE + "resnet18,V100,32,0.05,one,two,three\n")
    found = command(f"evaluate {path} --json").json
    assert (found["n"], [f["row"] for f in found["failed"]]) == (2, [2, 3])


def test_rows_and_picture_are_written(command: Command, table: Path, tmp_path: Path) -> None:
    out, plot = tmp_path / "rows.jsonl", tmp_path / "errors.svg"
    assert command(f"evaluate {table} --out {out} --plot {plot} --json").code == 0
    assert len(out.read_text().splitlines()) == 3
    assert plot.read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("nowhere.csv", "epochcast: no file 'nowhere.csv'\n"),
        ("{table} --by colour", "epochcast: no column to group by called 'colour'; "),
        ("{table} --out rows.xls", "epochcast: cannot write rows.xls; known endings: "),
        ("{table} --plot a.gif", "epochcast: cannot draw a.gif; known endings: .png, .svg, .html\n"),
        ("{table} --profile nowhere.toml", "epochcast: no file 'nowhere.toml'\n"),
        ("{table} --profile {table}", "epochcast: runs.csv is not a profile of `epochcast fit`: "),
        ("{table} --cost-model oracle", "epochcast: no cost model called 'oracle'; "),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(command: Command, table: Path, options: str, message: str) -> None:
    ran = command(f"evaluate {options.format(table=table)}")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(message)
    assert ran.err.count("\n") == 1


def test_missing_columns_are_named(command: Command, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("model,device\na,b\n")
    ran = command(f"evaluate {tmp_path / 't.csv'}")
    assert (ran.code, ran.err) == (
        2,
        "epochcast: a table of runs needs the columns batch_per_gpu, step_seconds or samples_per_second or "
        "peak_memory_bytes or peak_memory_gib, which are not there\n",
    )
