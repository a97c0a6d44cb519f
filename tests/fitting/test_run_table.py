from pathlib import Path
from typing import Any

import polars as pl
import pytest

from epochcast.fitting.run_table import family_of, read_runs

ROW = {"model": "resnet50", "device": "V100", "batch_per_gpu": 32, "step_seconds": 0.1}


def reason(**cells: Any) -> str:
    runs, failures = read_runs([{**ROW, **cells}])
    assert runs == []
    return failures[0].reason


def run(**cells: Any) -> Any:
    runs, failures = read_runs([{**ROW, **cells}])
    assert failures == []
    return runs[0]


def test_four_columns_are_a_question() -> None:
    asked = run()
    assert (asked.reference, asked.device.name, asked.recipe.batch, asked.recipe.precision) == (
        "resnet50",
        "V100-SXM2-16GB",
        32,
        "fp32",
    )


def test_a_rate_becomes_a_step_of_the_global_batch() -> None:
    assert run(step_seconds=None, samples_per_second=640, gpus=4).step_seconds == pytest.approx(128 / 640)


def test_step_seconds_count_before_a_rate() -> None:
    assert run(samples_per_second=1).step_seconds == 0.1


def test_a_rate_of_tokens_counts_the_tokens_of_a_sample() -> None:
    """GNMT: 26 tokens on each side of a sentence."""
    asked = run(
        source="nvidia_dle",
        model="gnmt_v2",
        step_seconds=None,
        samples_per_second=66560,
        unit="tokens",
        global_batch=128,
    )
    assert asked.step_seconds == pytest.approx(128 * 52 / 66560)
    assert asked.input_shape == (26,)


def test_a_batch_of_tokens_becomes_sentences() -> None:
    cells = {"source": "nvidia_dle", "model": "transformer_big_wmt", "batch_per_gpu": 5120, "global_batch": 5120}
    asked = run(**cells, step_seconds=None, samples_per_second=51200, unit="tokens")
    assert (asked.recipe.batch, asked.step_seconds) == (160, pytest.approx(0.1))


def test_fine_tuning_rows_without_a_length_are_question_answering() -> None:
    names = {"source": "nvidia_dle", "model": "bert-large-uncased"}
    assert run(**names).reference == "bert_large_squad"
    assert run(**names, input_shape="seq128").reference == "bert_large_pretraining"


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ({"step_seconds": None}, "neither step_seconds nor samples_per_second"),
        ({"step_seconds": -1.0}, "step_seconds must be above 0, got -1.0"),
        ({"batch_per_gpu": None}, "no batch_per_gpu"),
        ({"batch_per_gpu": 0.25}, "less than one sample per GPU: batch_per_gpu is 0.25"),
        ({"device": "abacus"}, "no device called 'abacus'; nothing near"),
        ({"source": "litgpt"}, "resnet50: the row does not say how many tokens a sample has"),
        ({"precision": "bf16-true quant=bnb.nf4"}, "weights in 4 bits are not modelled: bf16-true quant=bnb.nf4"),
        ({"source": "detectron2"}, "resnet50: cannot read image sizes from ''"),
        (
            {"unit": "tokens", "step_seconds": None, "samples_per_second": 9.0},
            "the throughput counts tokens and the row",
        ),
    ],
)
def test_a_row_that_cannot_be_asked_says_why(cells: dict[str, Any], message: str) -> None:
    assert reason(**cells).startswith(message)


def test_relatives_share_a_family() -> None:
    assert {family_of(name) for name in ("resnet50", "resnext101_32x4d", "seresnet50", "legacy_resnet18")} == {"resnet"}


@pytest.mark.needs_data
def test_most_measured_runs_with_a_time_can_be_asked(data: Path) -> None:
    rows = pl.read_parquet(data / "runs.parquet").to_dicts()
    runs, failures = read_runs(rows)
    assert len(runs) + len(failures) == len(rows)
    assert len(runs) > 0.8 * len(rows)


def test_a_split_row_is_asked_as_the_product_its_note_describes() -> None:
    cells = {"device": "H100-SXM5-80GB", "gpus": 32, "batch_per_gpu": 1, "global_batch": 32, "precision": "bf16"}
    asked = run(**cells, model="LLAMA3_70B", input_shape="seq4096", note="TP=4; PP=4; CP=1; VP=5; EP=n/a")
    assert (asked.reference, asked.recipe.batch, asked.recipe.accumulate) == ("llama3_70b", 1, 16)
    assert asked.strategy == "dp2,tp4,pp4,vp5,zero1"


@pytest.mark.parametrize(
    ("device", "precision"), [("A100", "amp_fp16"), ("TPU v3", "amp_bf16"), ("Ascend 910", "amp_fp16")]
)
def test_what_a_submission_calls_mixed_is_what_its_device_does_best(device: str, precision: str) -> None:
    assert run(device=device, precision="mixed (submission-specific)").recipe.precision == precision


def test_a_mixture_in_eight_bits_is_asked_by_its_name_here() -> None:
    asked = run(device="GB200", model="Qwen3_30B_a3B", precision="mxfp8", input_shape="seq4096", batch_per_gpu=4)
    assert (asked.reference, asked.recipe.precision, asked.input_shape) == ("qwen3_30b_a3b", "mxfp8", (4096,))


def test_a_hybrid_without_a_builder_says_so() -> None:
    assert reason(model="Nemotron_3_Nano").startswith("Nemotron_3_Nano: a hybrid of Mamba-2 and attention layers")


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ({"framework": "tensorflow", "precision": "amp_fp16"}, True),
        ({"framework": "tensorflow", "precision": "amp_fp16", "channels_last": False}, False),
        ({"framework": "tensorflow", "precision": "amp_fp16", "device": "P100"}, False),
        ({"framework": "tensorflow", "precision": "fp32"}, False),
        ({"framework": "pytorch", "precision": "amp_fp16"}, False),
        ({"source": "mlperf_training", "precision": "mixed (submission-specific)"}, True),
        ({"source": "mlperf_training", "precision": "mixed (submission-specific)", "device": "TPU v4"}, False),
    ],
)
def test_a_layout_that_is_not_said_is_the_frameworks(cells: dict[str, Any], expected: bool) -> None:
    asked = run(**cells)
    assert asked.recipe.channels_last is asked.setting.channels_last is expected


def test_sides_drawn_anew_make_batches_uneven() -> None:
    assert run(input_shape="3x(320..608), VOC").recipe.uneven == pytest.approx(0.348, abs=1e-3)
    assert run(input_shape="3x224x224").recipe.uneven == 0
