"""`epochcast share`, and `epochcast fit --shared`."""

import json
from pathlib import Path

import pytest
from tests.measure.fit.machines import machine, step_rows

from epochcast.measure.bench.measurements import Appender
from epochcast.measure.shared.shared_run import read_shared
from epochcast.surfaces.cli.command_line import run

JOB = ("resnet18", "--device", "T4", "--batch", "32", "--precision", "amp")


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_it_is_shown_and_written_only_where_that_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["share", "9it/s", *JOB]) == 0
    shown = capsys.readouterr().out
    assert '"contributor": null' in shown and "not written; to write it: --yes" in shown
    assert not list(tmp_path.iterdir())
    assert run(["share", "9it/s", *JOB, "--yes", "--contributor", "Anna"]) == 0
    (path,) = tmp_path.iterdir()
    assert f"written: {path.name}" in capsys.readouterr().out
    assert read_shared(path).contributor == "Anna" and path.name == read_shared(path).file_name
    assert run(["share", "9it/s", *JOB, "--json", "--yes", "--out", "mine.json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["file"] == "mine.json" and answer["shared"]["device"] == "T4"


def test_a_step_of_bench_is_named_by_its_key(capsys: pytest.CaptureFixture[str]) -> None:
    with Appender(Path("m.jsonl")) as out:
        for row in step_rows(("mnist_cnn",)):
            out.append(row)
    assert run(["share", "m.jsonl"]) == 2
    assert "has 2 measured steps to share; name one with --key: mnist_cnn/8, mnist_cnn/32" in capsys.readouterr().err
    assert run(["share", "m.jsonl", "--key", "mnist_cnn/32", "--json"]) == 0
    shared = json.loads(capsys.readouterr().out)["shared"]
    assert (shared["job"]["batch"], shared["machine"]["cpu"]) == (32, machine().facts["cpu"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train.log"], "train.log is a log: say what it trained, too"),
        (["unknown"], "no run called 'unknown'"),
        (["9it/s", "file.onnx", "--device", "T4", "--batch", "8"], "file.onnx"),
        (["fast", *JOB], "'fast' has no number"),
    ],
)
def test_what_cannot_be_shared_is_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("train.log").write_text("step 1\n", encoding="utf-8")
    monkeypatch.setenv("EPOCHCAST_STORE", str(Path("none.db").absolute()))
    assert run(["share", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_a_folder_of_shared_runs_makes_profiles(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EPOCHCAST_PROFILES", str(tmp_path / "profiles"))
    (tmp_path / "shared").mkdir()
    for speed, model in (("9it/s", "resnet18"), ("4it/s", "resnet50")):
        assert run(["share", speed, model, *JOB[1:], "--yes", "--out", "shared"]) == 0
    capsys.readouterr()
    assert run(["fit", "--shared", "shared", "--no-save", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [each["device"] for each in answer["profiles"]] == ["T4"] and answer["written"] == []
    assert answer["profiles"][0]["rows"] == 2
    assert run(["fit"]) == 2
    assert "Missing argument 'MEASUREMENTS...' (or --shared FOLDER)" in capsys.readouterr().err
    assert run(["fit", "--shared", "nowhere"]) == 2
    assert "no folder 'nowhere'" in capsys.readouterr().err
