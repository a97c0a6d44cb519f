from pathlib import Path

import pytest

from .conftest import Command, answer

# DESIGN: what `advise --json` has at least.
KEYS = {
    "max_batch",
    "batch",
    "workers",
    "prefetch",
    "stall_fraction",
    "host_bytes",
    "peak_bytes",
    "binding",
    "step_seconds",
    "alternatives",
}
LINE = "advise mnist_cnn --device T4 --cpus 8 --host-memory 32GiB --loader-seconds 1ms --max-batch 512"

LOADER = """
import torch
from torch.utils.data import DataLoader, TensorDataset

def make():
    return DataLoader(TensorDataset(torch.zeros(64, 1, 28, 28), torch.zeros(64)), batch_size=8)

def broken():
    raise RuntimeError("the disk is gone")

def late():
    class Broken(TensorDataset):
        def __getitem__(self, place):
            raise KeyError("label")
    return DataLoader(Broken(torch.zeros(64, 2)), batch_size=8)

def net():
    layers = torch.nn.Conv2d(1, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(5408, 10)
    return torch.nn.Sequential(*layers)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(LOADER)
    return path


def test_json_has_the_keys_of_the_contract(command: Command) -> None:
    ran = command(f"{LINE} --json")
    assert (ran.code, ran.err, ran.out.count("\n")) == (0, "", 1)
    assert set(ran.json) >= KEYS
    assert set(ran.json["max_batch"]) == {"safe", "expected", "limit"}
    for interval in ("peak_bytes", "step_seconds"):
        assert set(ran.json[interval]) == {"low", "mid", "high", "coverage"}


def test_the_advice_is_within_what_there_is() -> None:
    found = answer(LINE)
    most = found["max_batch"]
    assert most["safe"] <= most["expected"] <= most["limit"]
    assert 1 <= found["batch"] <= min(512, most["safe"])
    assert found["peak_bytes"]["mid"] <= found["memory_bytes"]
    assert found["host_bytes"] <= 32 * 2**30
    assert 0 <= found["stall_fraction"] < 1


def test_the_table_names_the_bottleneck(command: Command) -> None:
    ran = command(LINE)
    assert ran.code == 0
    assert "largest batch" in ran.out
    assert "bottleneck:" in ran.out


def test_slow_loading_binds_the_processors_and_more_of_them_are_offered() -> None:
    found = answer("advise mnist_cnn --device V100 --cpus 3 --loader-seconds 50ms --max-batch 256")
    assert found["binding"] == "cpus"
    assert found["stall_fraction"] > 0.5
    assert any("processors" in other["change"] for other in found["alternatives"])


def test_several_gpus_are_counted_per_rank_and_in_all() -> None:
    found = answer(f"{LINE} --gpus 4")
    assert found["global_batch"] == 4 * found["batch"]
    assert found["workers_per_box"] == 4 * found["workers"]


@pytest.mark.parametrize("strategy", ["ddp", "zero2", "zero3"])
def test_a_rank_holds_what_a_forecast_says(strategy: str) -> None:
    where = f"resnet18 --device T4 --gpus 4 --strategy {strategy} --optimizer adam"
    found = answer(f"advise {where} --cpus 8 --host-memory 32GiB --loader-seconds 1ms --max-batch 32")
    same = answer(f"forecast {where} --batch {found['batch']}")
    assert (found["strategy"], found["global_batch"]) == (same["strategy"], same["global_batch"])
    assert found["peak_bytes"] == same["peak_bytes"]


def test_a_smaller_share_leaves_room_for_a_larger_batch() -> None:
    line = "advise vgg16 --device T4 --gpus 4 --optimizer adam --cpus 8 --host-memory 32GiB --loader-seconds 1ms"
    copied, sharded = (
        answer(f"{line} --max-batch 8 --strategy {s}")["max_batch"]["expected"] for s in ("ddp", "zero2")
    )
    assert copied < sharded


def test_gpus_that_share_a_batch_count_it_once() -> None:
    found = answer(f"{LINE} --gpus 4 --strategy pipeline")
    assert found["global_batch"] == found["batch"]


def test_the_rule_of_the_thesis_stands_beside_it(command: Command) -> None:
    found = answer(f"{LINE} --rule thesis")["thesis"]
    assert set(found["coefficients"]) >= {"I", "O", "X", "Y"}
    assert found["max_batch"] > 0 and found["workers"] >= 1
    assert "by the rule of the thesis" in command(f"{LINE} --rule thesis").out


def test_what_was_assumed_is_said() -> None:
    told = " ".join(answer("advise mnist_cnn --device V100 --max-batch 64")["warnings"])
    assert "No `loader_seconds` given" in told
    assert "No CPUs or host memory given: assuming" in told


def test_a_model_that_does_not_fit_ends_with_four(command: Command) -> None:
    ran = command("advise llama2_7b --device T4 --loader-seconds 1ms --cpus 8 --host-memory 64GiB --json")
    assert ran.code == 4
    assert ran.json["max_batch"]["limit"] == 0
    assert ran.json["batch"] is None


def test_a_real_loader_is_measured(file: Path) -> None:
    found = answer(f"advise mnist_cnn --device V100 --max-batch 64 --cpus 8 --host-memory 32GiB --loader {file}:make")
    assert found["loader"]["batch"] == 8
    assert found["loader"]["decode_seconds"] > 0


def test_two_real_steps_solve_the_equations(file: Path) -> None:
    found = answer(
        f"advise {file}:net --input 1x28x28 --device V100 --max-batch 64 --cpus 8 --host-memory 32GiB "
        "--loader-seconds 1ms --probe --probe-batches 64,128"
    )["probe"]
    assert found["I"] == 4 * 28 * 28 and found["O"] == 40
    assert found["Y"] > 8 * 26 * 26 * 4 / 2
    assert found["max_batch"] > 1000


BAD = {
    "--loader {file}:broken": "the loader {file}:broken fails: RuntimeError: the disk is gone",
    "--loader {file}:late": "the loader {file}:late fails: KeyError: 'label'",
    "--loader {file}:none": "mine.py has no 'none'",
    "--loader-seconds fast": "'fast' is not a time",
    "--loader-seconds 1s/0": "'1s/0' is no time per sample",
    "--loader-seconds 1ms --probe-loader": "give the loader's time (--loader-seconds) or have it measured",
    "--loader-seconds 1ms --host-memory 1MB": "host memory of 977 KiB holds no batch",
    "--loader-seconds 1ms --cpus 0": "cpus must be above 0, got 0",
    "--loader-seconds 1ms --rule guess": "no rule called 'guess'; known: exact, thesis",
    "--loader-seconds 1ms --probe --probe-batches 10": "'10' is not two batches",
    "--loader-seconds 1ms --max-batch 0": "--max-batch must be at least 1",
}


@pytest.mark.parametrize(("options", "message"), BAD.items(), ids=BAD)
def test_bad_input_is_one_line(options: str, message: str, command: Command, file: Path) -> None:
    ran = command(f"advise mnist_cnn --device V100 {options}".replace("{file}", str(file)))
    assert ran.code == 2
    first, *tail = ran.err.splitlines()
    assert message.replace("{file}", str(file)) in first
    assert not tail or "broken" in options or "late" in options


def test_a_probe_needs_a_torch_module(command: Command) -> None:
    ran = command("advise nin --device V100 --loader-seconds 1ms --cpus 8 --host-memory 32GiB --max-batch 8 --probe")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "a probe runs real steps of a torch module: no network to train called 'nin'" in ran.err


def test_a_forecast_waits_for_its_loader() -> None:
    line = "forecast mnist_cnn --device V100 --batch 64"
    alone = answer(line)
    fed = answer(f"{line} --loader-seconds 10ms --workers 2 --cpus 16")
    assert fed["step_parts"]["exposed_input"] > 0
    assert fed["step_seconds"]["mid"] == pytest.approx(0.32, rel=0.05)
    assert sum(fed["step_parts"].values()) == pytest.approx(fed["step_seconds"]["mid"])
    assert alone["step_parts"]["exposed_input"] == 0


def test_processors_without_a_loader_are_refused(command: Command) -> None:
    ran = command("forecast mnist_cnn --device V100 --batch 64 --cpus 2")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
