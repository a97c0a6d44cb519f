"""fp32 is what the framework makes of it: TF32 convolutions on Ampere and newer, plain fp32 everywhere else."""

from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from tests.every import every

import epochcast as ec
from epochcast.hardware.catalogue import find_device
from epochcast.predict.forecast.forecast import Forecast
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.single_precision import has_tf32, run_precision

WITH, WITHOUT = ("A100", "H100", "RTX 3090", "RTX 4090", "L4"), ("V100", "T4", "GTX 1080", "MI300X", "MI250X", "TPU v3")
CONVNETS, TRANSFORMERS = ("resnet50", "mobilenet_v2", "unet"), ("gpt2", "bert_base_classification")


def both(model: str, device: str, **options: Any) -> tuple[Forecast, Forecast]:
    """In fp32, and in fp32_strict under the name of fp32."""
    single, strict = (
        ec.forecast(model, device=device, batch=8, precision=precision, **options)
        for precision in ("fp32", "fp32_strict")
    )
    assert (single.precision, strict.precision) == ("fp32", "fp32_strict")
    return single, replace(strict, precision="fp32")


@every(("model", "device"), product([*CONVNETS, *TRANSFORMERS, "lstm"], WITHOUT))
def test_devices_without_tf32_answer_fp32_as_before(model: str, device: str) -> None:
    single, strict = both(model, device)
    assert single == strict


@every(("model", "device"), product(TRANSFORMERS, WITH))
def test_transformers_answer_fp32_as_before(model: str, device: str) -> None:
    single, strict = both(model, device)
    assert single == strict


@every(("model", "device"), product(CONVNETS, WITH))
def test_convolutions_are_never_slower_and_need_the_same_memory(model: str, device: str) -> None:
    single, strict = both(model, device)
    assert single.step_seconds.mid <= (1 + 1e-12) * strict.step_seconds.mid
    for name in ("peak_bytes", "peak_breakdown", "memory_verdict", "reserved_bytes", "flops_per_sample"):
        assert getattr(single, name) == getattr(strict, name)
    assert single.mfu is not None and 0 < single.mfu < 1


@pytest.mark.parametrize("options", [{}, {"channels_last": True}, {"compile": "inductor"}, {"gpus": 4}])
def test_fp32_is_between_strict_and_tf32(options: dict[str, Any]) -> None:
    seconds = [
        ec.forecast("resnet50", device="A100", batch=64, precision=precision, **options).step_seconds.mid
        for precision in ("tf32", "fp32", "fp32_strict")
    ]
    assert seconds == sorted(seconds)
    assert seconds[1] == pytest.approx(seconds[0], rel=0.01)  # all but one of its products are convolutions
    assert seconds[2] > 1.5 * seconds[1]


def test_resnet50_on_an_h100_agrees_with_what_was_measured() -> None:
    """1,381 images/s at batch 64 with the defaults of PyTorch 2.1.1 (xhmy_torch_benchmark); 810 in strict fp32."""
    step = ec.forecast("resnet50", device="H100", batch=64).step_seconds
    assert 64 / step.high < 1381 < 64 / step.low
    assert 64 / step.mid == pytest.approx(1381, rel=0.15)


@pytest.mark.parametrize(
    ("framework", "version", "found"),
    [
        ("pytorch", None, "fp32"),
        ("pytorch", "2.9", "fp32"),
        ("pytorch", "1.12", "fp32"),
        ("pytorch", "1.11", "tf32"),
        ("pytorch", "1.7", "tf32"),
        ("pytorch", "1.6", "fp32_strict"),
        ("tensorflow", None, "tf32"),
        ("tensorflow", "2.4", "tf32"),
        ("tensorflow", "2.3", "fp32_strict"),
    ],
)
def test_every_framework_has_its_own_default(framework: str, version: str | None, found: str) -> None:
    job = Job("resnet18", batch=8, framework=framework, framework_version=version)
    assert run_precision("fp32", job, find_device("A100")) == found
    assert run_precision("fp32", job, find_device("V100")) == "fp32_strict"
    assert run_precision("fp32", job, None) == "fp32"
    for other in ("fp32_strict", "tf32", "amp_fp16"):
        assert run_precision(other, job, find_device("A100")) == other


def test_only_nvidia_rounds_by_default() -> None:
    assert [has_tf32(find_device(name)) for name in WITH] == [True] * len(WITH)
    assert [has_tf32(find_device(name)) for name in WITHOUT] == [False] * len(WITHOUT)


def test_the_answer_keeps_the_name_that_was_asked_for() -> None:
    answer = ec.forecast("resnet18", device="A100", batch=8, framework="tensorflow")
    assert answer.precision == "fp32" and not any("fp32_strict" in warning for warning in answer.warnings)
