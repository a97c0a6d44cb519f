from typing import Any

import pytest

from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.recipe import Recipe
from epochcast.hardware.catalogue import find_device
from epochcast.predict.cost.cost_model import CostModel
from epochcast.predict.forecast.forecaster import forecast_job
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.placement import place
from epochcast.predict.forecast.session import Session
from epochcast.predict.forecast.utilisation import model_flops, utilisation

# 6 per weight of a product and token, and 12·layers·width·length of attention (Chowdhery et al. 2022, appendix B).
GPT2_FLOPS = 1024 * (6 * (12 * 12 * 768**2 + 768 * 50257) + 12 * 12 * 768 * 1024)


@pytest.mark.parametrize("attention", ["flash", "eager"])
def test_flops_of_gpt2_by_hand(attention: str) -> None:
    trace = zoo_model("gpt2").trace(Recipe(3, attention=attention))
    assert model_flops(trace) == pytest.approx(3 * GPT2_FLOPS)


def test_by_hand() -> None:
    a100 = find_device("A100")
    assert utilisation(78e12, 8, 0.5, 8, a100.peak("bf16")) == pytest.approx(0.5)
    assert utilisation(78e12, 8, 0.5, 8, a100.peak("fp32")) == pytest.approx(8.0)


@pytest.mark.parametrize("options", [{}, {"accumulate": 4}, {"precision": "amp_bf16"}])
def test_a_forecasts_mfu_is_its_flops_over_the_peak(per_kernel: CostModel, options: dict[str, Any]) -> None:
    answer = forecast_job(Job("gpt2", batch=2, **options), place("A100", gpus=4), Session(per_kernel))
    peak = {"fp32": 19.5e12, "amp_bf16": 312e12}[answer.precision]
    assert answer.mfu == pytest.approx(GPT2_FLOPS * answer.global_batch / (answer.step_seconds.mid * 4 * peak))


def test_what_is_computed_again_is_no_work_of_the_model(per_kernel: CostModel) -> None:
    plain, again = (
        forecast_job(Job("gpt2", batch=2, checkpointing=checkpointing), place("A100"), Session(per_kernel))
        for checkpointing in (False, True)
    )
    assert plain.mfu is not None and again.mfu is not None
    assert again.mfu * again.step_seconds.mid == pytest.approx(plain.mfu * plain.step_seconds.mid)
    assert again.mfu < plain.mfu


# A V100 has no bfloat16: products run in float32, whose peak counts.
def test_the_peak_is_that_of_the_format_really_used(per_kernel: CostModel) -> None:
    answer = forecast_job(Job("gpt2", batch=2, precision="amp_bf16"), place("V100"), Session(per_kernel))
    v100 = find_device("V100")
    assert answer.mfu == pytest.approx(2 * GPT2_FLOPS / (answer.step_seconds.mid * v100.peak("fp32")))
