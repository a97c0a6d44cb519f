import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from epochcast.cli.app import run as main


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    rows = [
        {"network": n, "gpu": d, "batch": b, "num_gpus": g, "step_ms": w / s * (b + 4.0) * (1 + 0.1 * (g > 1))}
        for n, w in (("resnet18", 1.0), ("resnet50", 2.2))
        for d, s in (("V100", 1.0), ("T4", 0.4))
        for b in (8, 16, 32, 64)
        for g in (1, 2)
    ]
    path = tmp_path / "jobs.csv"
    pl.DataFrame(rows).write_csv(path)
    return path


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    capsys.readouterr()
    assert main([*arguments, "--json"]) == 0
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


def test_a_model_is_fitted_written_and_asked(jobs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "model.json"
    fitted = answer(capsys, "history", "fit", str(jobs), "--target", "step_seconds", "--out", str(model))
    assert fitted["rows"] == 32 and fitted["model"] == "grey_box" and fitted["error"] < 0.15
    new = tmp_path / "new.csv"
    new.write_text("network,gpu,batch,num_gpus\nresnet50,V100,32,1\nresnet50,P100,32,1\n")
    found = answer(capsys, "history", "predict", str(new), "--model", str(model))
    known, unseen = found["predictions"]
    assert known["low"] < 2.2 * 36e-3 < known["high"] and known["new"] == []
    assert "device" in unseen["new"]
    assert unseen["high"] / unseen["low"] > known["high"] / known["low"]
    assert any("device unlike all" in warning for warning in found["warnings"])


def test_compare_has_the_keys_of_the_contract(jobs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(
        capsys,
        *("history", "compare", str(jobs), "--target", "step_seconds", "--quick"),
        *("--with", "grey_box,linear,decision_tree", "--split", "random,batch>16"),
    )
    assert found["target"] == "step_seconds" and found["rows"] == 32
    assert set(found["splits"]) == {"random", "batch>16"}
    for split in found["splits"].values():
        assert set(split["models"]) == {"grey_box", "linear", "decision_tree"}
        assert split["best"] in split["models"]
        for scores in split["models"].values():
            assert set(scores) == {"n", "mape", "median_ape", "p90_ape", "rmse", "coverage"}


def test_a_comparison_is_drawn_with_the_best_and_why(jobs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["history", "compare", str(jobs), "--target", "step_seconds", "--quick"]
    assert main([*arguments, "--with", "ridge,linear", "--split", "holdout"]) == 0
    shown = capsys.readouterr().out
    assert "split holdout" in shown and "has the smallest mean error" in shown


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 99}, "is a model of version 99; this epochcast reads version 2"),
        ({"format": "something"}, "is no model of `epochcast history fit`"),
        ({"widths": {}}, "is damaged"),
        ({"model": {"name": "x", "stages": [{}], "log": True, "physics": False, "least": 1}}, "is damaged"),
    ],
)
def test_a_model_file_of_another_kind_is_refused_in_one_line(
    jobs: Path, tmp_path: Path, change: dict[str, Any], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "model.json"
    arguments = ["history", "fit", str(jobs), "--target", "step_seconds", "--with", "ridge", "--out", str(model)]
    assert main(arguments) == 0
    model.write_text(json.dumps({**json.loads(model.read_text()), **change}))
    capsys.readouterr()
    assert main(["history", "predict", str(jobs), "--model", str(model)]) == 2
    complaint = capsys.readouterr().err
    assert message in complaint and complaint.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("batch,batch,step_seconds\n" + "1,2,3\n" * 12, "more than one column called 'batch'"),
        ("batch,step_seconds\n" + "".join(f"{i},0\n" for i in range(12)), "must be above 0"),
        ("batch,step_seconds\n" + "".join(f"{i},5\n" for i in range(12)), "nothing to learn"),
        ("batch,step_seconds\n1,1\n2,2\n", "at least 10 rows"),
        ("batch,other\n1,1\n2,2\n", "no target column called 'step_seconds'"),
    ],
)
def test_bad_tables_are_refused_in_one_line(
    content: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "bad.csv"
    table.write_text(content)
    assert main(["history", "fit", str(table), "--target", "step_seconds", "--out", str(tmp_path / "m.json")]) == 2
    complaint = capsys.readouterr().err
    assert message in complaint and complaint.count("\n") == 1
    assert not (tmp_path / "m.json").exists()
