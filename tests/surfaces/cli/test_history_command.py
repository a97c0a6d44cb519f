import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import epochcast as ec
from epochcast.observe.store.store_opening import open_store
from epochcast.observe.store.store_rows import RunPlace
from epochcast.predict.forecast.job import Job
from epochcast.surfaces.cli.command_line import run as main

SLOWER = 1.7


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


DAMAGED = {"name": "x", "log": True, "physics": False, "least": 1, "shares": None}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 99}, "is a model of version 99; this epochcast reads version 4"),
        ({"format": "something"}, "is no model of `epochcast history fit`"),
        ({"widths": {}}, "is damaged"),
        ({"model": {**DAMAGED, "sums": [[{}]]}}, "is damaged: design must be given"),
        ({"model": {**DAMAGED, "sums": [[]]}}, "is damaged: a model needs a stage"),
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
        (
            ",".join(f"x{i}" for i in range(15))
            + ",step_seconds\n"
            + "".join(",".join(str((i + 1) * j % 17) for i in range(15)) + f",{j}\n" for j in range(1, 13)),
            "12 rows are too few for 15 columns",
        ),
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


def test_least_squares_with_more_categories_than_rows_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "jobs.csv"
    table.write_text("network,gpu,step_seconds\n" + "".join(f"n{i % 11},d{i % 9},{i + 1}\n" for i in range(16)))
    arguments = ["history", "fit", str(table), "--target", "step_seconds", "--with", "linear"]
    assert main([*arguments, "--out", str(tmp_path / "m.json")]) == 2
    complaint = capsys.readouterr().err
    assert "least squares needs more rows than features" in complaint and complaint.count("\n") == 1


@pytest.fixture
def slow_team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the store of a team whose runs take 1.7 times what the forecast says, and a job."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EPOCHCAST_STORE", str(tmp_path / "store.db"))
    (tmp_path / "epochcast.toml").write_text(
        '[[job]]\nname = "mine"\nmodel = "resnet18"\ndevice = "V100"\nbatch = 32\nsamples = 64000\n'
    )
    with open_store() as store:
        for model in ("resnet18", "alexnet"):
            for device in ("V100", "T4"):
                for batch in (8, 16, 32, 64):
                    told = ec.forecast(model, device=device, batch=batch)
                    run = store.open_run(
                        f"{model} {device} {batch}", job=Job(model, batch=batch), place=RunPlace(device)
                    )
                    store.note(run.id, state="ended", step_seconds=SLOWER * told.step_seconds.mid, elapsed_seconds=9.0)
    return tmp_path


def test_runs_of_the_store_are_learned_from(slow_team: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fitted = answer(capsys, *["history", "fit", "store", "--target", "step_seconds", "--out", "model.json"])
    assert fitted["rows"] == 16 and fitted["error"] < 0.1
    (slow_team / "new.csv").write_text("model,device,batch\nresnet18,V100,32\n")
    (found,) = answer(capsys, *["history", "predict", "new.csv", "--model", "model.json"])["predictions"]
    alone = ec.forecast("resnet18", device="V100", batch=32).step_seconds.mid
    assert found["mid"] / alone == pytest.approx(SLOWER, rel=0.1)


def test_a_store_that_is_not_there_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EPOCHCAST_STORE", str(tmp_path / "none.db"))
    assert main(["history", "fit", "store", "--target", "step_seconds", "--out", "model.json"]) == 2
    complaint = capsys.readouterr().err
    assert "there is no store yet" in complaint and complaint.count("\n") == 1


def test_a_run_is_tracked_from_what_the_past_says(slow_team: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", "fit", "store", "--target", "step_seconds", "--out", "model.json"]) == 0
    (slow_team / "a.log").write_text("".join(f"step {step}/2000 loss 0.3\n" for step in range(10, 50, 10)))
    alone = answer(capsys, *["track", "a.log", "--job", "mine"])
    told = answer(capsys, *["track", "a.log", "--job", "mine", "--history", "model.json"])
    # The log has no times, so that the forecast is all there is.
    for body in (alone, told):
        assert body["total_steps"] == 2000 and body["job"] == "mine"
    assert told["remaining_seconds"]["mid"] / alone["remaining_seconds"]["mid"] == pytest.approx(SLOWER, rel=0.1)


def test_a_past_without_a_job_to_ask_about_is_told_in_one_line(
    slow_team: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (slow_team / "a.log").write_text("step 10/2000 loss 0.3\n")
    assert main(["track", "a.log", "--history", "model.json"]) == 2
    assert "--history needs --job" in capsys.readouterr().err


def test_a_report_has_a_chart_of_everything_it_promises(
    jobs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "report.html"
    arguments = ["history", "compare", str(jobs), "--target", "step_seconds", "--quick", "--report", str(report)]
    assert main([*arguments, "--with", "grey_box,forecast,ridge", "--split", "random,batch>16"]) == 0
    drawn = report.read_text()
    for words in (
        "step_seconds, split random: grey_box",
        "step_seconds, split batch\\u003e16: grey_box",
        "Error of every model on every split",
        "Error against the number of past jobs",
        "What moves the predictions of grey_box",
    ):
        assert words in drawn or words.replace("\\u003e", ">") in drawn


@pytest.mark.parametrize(("batch", "peak_bytes", "code", "word"), [(8, 3e10, 4, "DOES NOT FIT"), (512, 8e9, 0, "fits")])
def test_past_peaks_decide_the_exit_code_and_the_table_alike(
    batch: int, peak_bytes: float, code: int, word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, model = tmp_path / "jobs.csv", tmp_path / "model.json"
    batches = [batch + more for more in range(12)]
    rows = [f"resnet50,V100,{each},{peak_bytes * (1 + 0.001 * each / batch)}" for each in batches]
    table.write_text("\n".join(["model,device,batch_per_gpu,peak_bytes", *rows]))
    answer(capsys, "history", "fit", str(table), "--target", "peak_bytes", "--out", str(model))
    asked = ["forecast", "resnet50", "--device", "V100", "--batch", str(batch)]
    assert main(asked) == (0 if code else 4)
    capsys.readouterr()
    assert main([*asked, "--history", str(model)]) == code
    text = capsys.readouterr().out
    assert f"of 16 GiB: {word}" in text and "memory corrected by history" in text
