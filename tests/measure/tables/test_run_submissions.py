"""What submissions of transformers run, which their rows do not say."""

from typing import Any

import pytest

from epochcast.measure.tables.row_errors import FailedRow
from epochcast.measure.tables.run_options import SUBMISSION
from epochcast.measure.tables.run_placement import strategy_of
from epochcast.measure.tables.run_table import MeasuredRun, read_runs


def read(**cells: Any) -> tuple[list[MeasuredRun], list[FailedRow]]:
    row = {
        "source": "mlperf_training",
        "model": "bert-large-uncased",
        "task": "pretraining",
        "device": "H100-SXM5-80GB",
        "gpus": 8,
        "batch_per_gpu": 48,
        "step_seconds": 0.1,
        "precision": SUBMISSION,
        "framework": "PyTorch NVIDIA Release 23.04",
        "framework_version": "v3.0",
        "input_shape": "seq512 (packed/unpadded)",
    }
    return read_runs([{**row, **cells}])


def submitted(**cells: Any) -> MeasuredRun:
    (run,), failures = read(**cells)
    assert failures == []
    return run


@pytest.mark.parametrize(
    ("device", "precision"),
    [("H100-SXM5-80GB", "fp8"), ("B200", "fp8"), ("MI325X", "fp8"), ("A100-SXM4-80GB", "fp16_deepspeed")],
)
def test_linear_layers_multiply_in_eight_bits_where_the_gpu_can(device: str, precision: str) -> None:
    run = submitted(device=device)
    assert (run.job.precision, run.job.optimizer) == (precision, "lamb")


def test_the_optimizer_is_sharded_inside_a_node() -> None:
    assert strategy_of(submitted()) == "zero1"
    assert strategy_of(submitted(gpus=64, nodes=8)) == "zero1:8"
    assert submitted(gpus=1).strategy is None


def test_a_diffusion_network_is_in_half_and_its_optimizer_sharded() -> None:
    run = submitted(model="stable-diffusion-v2", task="diffusion", gpus=64, nodes=8, input_shape="3x512x512")
    assert (run.job.precision, run.job.optimizer, strategy_of(run)) == ("fp16_deepspeed", "adamw", "zero1:8")


def test_rounds_before_1_0_multiply_padding() -> None:
    assert submitted().input_shape == (256,)
    assert submitted(framework_version="v0.7").input_shape == (512,)


def test_other_chips_and_other_networks_are_as_before() -> None:
    assert submitted(device="TPU v4").job.precision == "amp_bf16"
    assert submitted(model="resnet50", input_shape="3x224x224").job.precision == "amp_fp16"


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"framework": "tinygrad, branch mlperf_training_v5.0"}, "kernels of its own"),
        ({"note": "median of 10 runs; division open"}, "open division may train another network"),
    ],
)
def test_what_no_forecast_is_meant_for_is_refused(cells: dict[str, str], reason: str) -> None:
    runs, (failure,) = read(**cells)
    assert runs == []
    assert reason in failure.reason
