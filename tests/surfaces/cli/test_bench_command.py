import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from epochcast.measure.bench import ops_bench as ops
from epochcast.measure.bench.measurements import read

Command = Callable[[str], Any]


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few draws, so that a campaign begins at once."""
    monkeypatch.setattr(ops.questions, "__defaults__", (0, 6, ()))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "m.jsonl"


def test_ops_are_measured_into_a_file_within_the_budget(command: Command, file: Path) -> None:
    ran = command(f"bench ops --device cpu --out {file} --budget 3s --json")
    assert ran.code == 0
    assert ran.json["measured"] == len(ran.json["rows"]) == len(read(file).rows) > 0
    assert ran.json["machine"]["id"] == read(file).rows[0].machine.id
    assert {"kind", "key", "question", "seconds", "low_seconds", "spread", "repeats"} <= set(ran.json["rows"][0])


def test_a_campaign_resumes_where_it_stopped(command: Command, file: Path) -> None:
    first = command(f"bench ops --device cpu --out {file} --budget 1s --json").json
    refused = command(f"bench ops --device cpu --out {file} --budget 30s")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "resume to make only the others" in refused.err
    second = command(f"bench ops --device cpu --out {file} --budget 30s --resume --json").json
    assert second["known"] == first["measured"]
    keys = [row.key for row in read(file).rows]
    assert len(keys) == len(set(keys)) == first["measured"] + second["measured"]


def test_a_file_cut_mid_row_is_recovered_with_a_warning(command: Command, file: Path) -> None:
    command(f"bench ops --device cpu --out {file} --budget 1s")
    file.write_bytes(file.read_bytes()[:-10])
    ran = command(f"bench ops --device cpu --out {file} --budget 1s --resume")
    assert ran.code == 0
    assert "has an incomplete last row" in ran.err
    assert read(file).warnings == ()


@pytest.mark.parametrize("way", ["--layers", "--as-in-report"])
def test_single_layers_are_measured_in_both_ways(command: Command, file: Path, way: str) -> None:
    ran = command(f"bench ops --device cpu {way} --out {file} --budget 2s --json")
    assert {row["question"]["way"] for row in ran.json["rows"]} == {"network" if way == "--layers" else "report"}


def test_models_of_a_campaign_file_are_trained(command: Command, file: Path, tmp_path: Path) -> None:
    campaign = tmp_path / "campaign.toml"
    campaign.write_text(
        'models = ["mnist_cnn", "no_such_net"]\nbatches = [4]\nmodes = ["training", "forward"]\nseconds = "0.3s"\n'
    )
    ran = command(f"bench models {campaign} --device cpu --out {file}")
    assert ran.code == 0
    for words in ("4 measured", "2 failed", "model/torch/mnist_cnn/b4/sgd/fp32/training", "peak memory"):
        assert words in ran.out
    assert "no network to train called 'no_such_net'" in ran.out
    assert [row.failed is None for row in read(file).rows] == [True, True, False, False]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("bench ops --budget 0", "--budget must be more than zero, got 0"),
        ("bench ops --budget soon", "'soon' is not a time"),
        ("bench ops --device tpu", "no device 'tpu' to measure here; torch has: "),
        ("bench ops --dtypes int4", "no dtype to measure called 'int4'"),
        ("bench ops --threads 0", "threads must be at least 1"),
        ("bench ops --engine slurm", "no engine called 'slurm'; known: local, ray"),
        ("bench models none.toml", "no campaign file 'none.toml'"),
        ("bench collectives --ranks 1", "a collective needs at least 2 ranks, got 1"),
        ("bench loader nothere.py:make", "there is no file 'nothere.py'"),
        ("bench loader make_loader", "write it like file.py:make_loader"),
        ("bench loader --batch 0", "batch must be at least 1, got 0"),
    ],
)
def test_bad_input_is_one_line(command: Command, file: Path, line: str, words: str) -> None:
    ran = command(f"{line} --out {file}")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert words in ran.err


def test_an_unknown_key_of_a_campaign_is_one_line(command: Command, file: Path, tmp_path: Path) -> None:
    campaign = tmp_path / "campaign.toml"
    campaign.write_text('models = ["mnist_cnn"]\nbatch = [4]\n')
    ran = command(f"bench models {campaign} --out {file}")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "campaign.toml: no key called 'batch'" in ran.err and "batches" in ran.err


def test_without_torch_it_says_what_to_install(command: Command, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    ran = command(f"bench ops --out {file}")
    assert (ran.code, ran.err) == (
        2,
        "epochcast: this needs torch; in the checkout of epochcast type: pip install '.[torch]'\n",
    )


def test_the_loader_of_generated_pictures_is_measured(command: Command, file: Path) -> None:
    ran = command(f"bench loader --batch 4 --budget 2s --out {file} --json")
    (row,) = ran.json["rows"]
    assert (row["kind"], row["failed"]) == ("loader", None)
    assert row["seconds"] == row["details"]["worker_seconds"] > 0


@pytest.mark.parametrize("name", ["ops", "models", "loader", "collectives"])
def test_every_command_has_an_example(command: Command, name: str) -> None:
    assert "Example: epochcast bench" in command(f"bench {name} --help").out
