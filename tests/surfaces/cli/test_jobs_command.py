import json
from pathlib import Path

import pytest

from epochcast.surfaces.cli import command_line as app

from .conftest import Command


def run(line: str) -> int:
    return app.run(line.split())


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_job_is_written_listed_and_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("jobs init mnist_cnn --name first --device V100 --batch 8 --dataset mnist --epochs 2") == 0
    assert "epochcast forecast --job first" in capsys.readouterr().out
    assert run("jobs --json") == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed["jobs"] == [
        {
            "name": "first",
            "options": {"model": "mnist_cnn", "batch": 8, "dataset": "mnist", "epochs": 2, "device": "V100"},
            "problem": None,
        }
    ]
    assert run("forecast --job first --json") == 0
    by_job = json.loads(capsys.readouterr().out)
    assert run("forecast mnist_cnn --device V100 --batch 8 --dataset mnist --epochs 2 --json") == 0
    assert json.loads(capsys.readouterr().out) == by_job


def test_options_override_the_job(capsys: pytest.CaptureFixture[str]) -> None:
    run("jobs init mnist_cnn --name first --device V100 --batch 8 --checkpointing")
    capsys.readouterr()
    asked = "forecast --job first --device A100 --global-batch 64 --gpus 2 --no-checkpointing --json"
    assert run(asked) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["device"], answer["gpus"], answer["batch_per_gpu"]) == ("A100-SXM4-40GB", 2, 32)


@pytest.mark.parametrize(
    "command",
    [
        "forecast --job first",
        "advise --job first",
        "scaling --job first --gpus 1,2",
        "plan --job first --devices V100 --gpus 1",
        "inspect --job first",
    ],
)
def test_every_command_about_a_job_takes_one_by_name(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    run("jobs init mnist_cnn --name first --device V100 --batch 8 --dataset mnist --gpus 1")
    capsys.readouterr()
    assert run(f"{command} --json") == 0
    assert json.loads(capsys.readouterr().out)["model"] == "mnist_cnn"


def test_a_plan_takes_the_batch_of_the_job_file_as_it_is_meant(capsys: pytest.CaptureFixture[str]) -> None:
    run("jobs init mnist_cnn --name first --batch 8 --dataset mnist")
    capsys.readouterr()
    for more, batch in (("", 16), (" --batch 8", 8)):
        assert run(f"plan --job first --devices V100 --clouds azure --gpus 2{more} --json") == 0
        assert {row["global_batch"] for row in json.loads(capsys.readouterr().out)["frontier"]} == {batch}


def test_a_job_with_a_wrong_name_is_listed_with_its_problem(capsys: pytest.CaptureFixture[str]) -> None:
    Path("epochcast.toml").write_text(
        "[[job]]\nname = 'a'\nmodel = 'resnet5'\n[[job]]\nname = 'b'\nmodel = 'resnet50'\n"
    )
    assert run("jobs --json") == 2
    problems = [job["problem"] for job in json.loads(capsys.readouterr().out)["jobs"]]
    assert problems[0].startswith("no model called 'resnet5'")
    assert problems[1] is None
    assert run("jobs") == 2
    assert "no model called 'resnet5'" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("forecast --job first", "epochcast: no epochcast.toml in "),
        ("jobs", "epochcast: no epochcast.toml in "),
        ("jobs init resnet50 --name a/b", "epochcast: a job's name has letters"),
        ("jobs init", "epochcast: Missing argument 'MODEL'"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(line: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(line) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(message)
    assert printed.err.count("\n") == 1


def test_the_schema_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("jobs schema") == 0
    assert json.loads(capsys.readouterr().out)["title"] == "epochcast.toml"


def test_another_file_is_named_behind_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("jobs init mnist_cnn --name a --file own.toml") == 0
    capsys.readouterr()
    assert run("jobs --file own.toml --json") == 0
    assert [job["name"] for job in json.loads(capsys.readouterr().out)["jobs"]] == ["a"]
    assert run("jobs --file own.toml init mnist_cnn --name b") == 2
    assert "--file goes behind the command" in capsys.readouterr().err


def test_a_data_sheet_is_written_as_the_job_file_sees_it(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "mine.toml").write_text('like = "T4"\n')
    monkeypatch.chdir(tmp_path / "deep")
    file = tmp_path / "epochcast.toml"
    file.write_text("")
    assert command("jobs init resnet18 --name a --batch 4 --device ../mine.toml --gemm-seconds fp32:400ms").code == 0
    assert 'device = "mine.toml"' in file.read_text()
    assert command("forecast --job a --json").json["device"] == "mine"
    ran = command("forecast --job a --gemm-seconds soon")
    assert (ran.code, ran.err) == (
        2,
        "epochcast: --gemm-seconds: 'soon' is not a time; write it like '6h', '1h30m' or '250 ms'\n",
    )
