"""The last step of an interval."""

from dataclasses import replace
from math import exp, log
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import epochcast as ec
from epochcast.interval import Interval
from epochcast.predict.cost.software_setting import TODAY
from epochcast.predict.forecast import step_margins
from epochcast.predict.forecast.step import SETUP
from epochcast.predict.forecast.step_margins import (
    ADAPTERS,
    CONVOLUTIONS,
    NO_MARGIN,
    OTHER_VENDORS,
    PRODUCTS,
    StepMargin,
    group_name,
    step_group,
    step_margin,
    widened,
    with_margin,
)

WIDE = StepMargin(0.4, 0.6)


def group_of(model: str, **options: Any) -> str | None:
    details = ec.forecast(model, batch=2, **options).details
    return step_group(details.trace, details.placement, TODAY)


def test_a_margin_adds_to_both_ends_as_squares() -> None:
    """By hand: 0.3² + 0.4² = 0.5² and 0.8² + 0.6² = 1."""
    interval = widened(Interval(exp(-0.3), 1.0, exp(0.8)), WIDE)
    assert (log(interval.low), interval.mid, log(interval.high)) == pytest.approx((-0.5, 1.0, 1.0))


@given(st.floats(0.1, 1.0), st.floats(1.0, 10.0), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_a_margin_never_narrows(low: float, high: float, below: float, above: float) -> None:
    wide = widened(Interval(low, 1.0, high), StepMargin(below, above))
    assert wide.low <= low * (1 + 1e-12) and wide.high >= high * (1 - 1e-12)


def test_steps_are_grouped_by_work_place_and_what_is_known_of_the_gpu() -> None:
    assert group_of("resnet18", device="V100") == f"{CONVOLUTIONS}, one GPU"
    assert group_of("gpt2", device="A100", gpus=8) == f"{PRODUCTS}, one node, GPU known"
    assert group_of("gpt2", device="A100", gpus=16, nodes=2) == f"{PRODUCTS}, several nodes, GPU known"
    assert group_of("gpt2", device="A100", lora=8) == f"{ADAPTERS}, one GPU"
    assert group_of("gpt2", device="RTX 5090", gpus=8) == f"{PRODUCTS}, one node"
    assert group_of("resnet18", device="MI250X") == OTHER_VENDORS
    assert group_name("NVIDIA", PRODUCTS, 1, 1, is_known=True) == f"{PRODUCTS}, one GPU"


def test_a_gpu_known_by_other_work_is_not_known() -> None:
    """Transformers were measured on an H100 in mixed precision, recurrent networks hardly."""
    known, other = (group_of(model, device="H100", precision="amp_fp16", gpus=8) for model in ("bert_base", "gnmt"))
    assert (known, other) == (f"{PRODUCTS}, one node, GPU known", f"{PRODUCTS}, one node")


def test_a_forward_pass_has_no_margin() -> None:
    assert group_of("resnet18", device="V100", mode="forward") is None
    assert step_margin(None) == NO_MARGIN


def test_a_margin_is_a_part_of_the_uncertainty(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(margin: StepMargin) -> ec.Forecast:
        monkeypatch.setattr(step_margins, "step_margin", lambda group: margin)
        return ec.forecast("resnet50", device="V100", batch=64)

    bare, wide = answer(NO_MARGIN), answer(WIDE)
    assert SETUP not in [part.part for part in bare.uncertainty]
    assert "--step-seconds" in [part.narrow_by for part in wide.uncertainty if part.part == SETUP]
    expected = widened(bare.step_seconds, WIDE)
    assert (wide.step_seconds.low, wide.step_seconds.high) == pytest.approx((expected.low, expected.high))


def test_a_measured_step_has_no_margin(monkeypatch: pytest.MonkeyPatch) -> None:
    def step(margin: StepMargin) -> Interval:
        monkeypatch.setattr(step_margins, "step_margin", lambda group: margin)
        return ec.forecast("resnet50", device="V100", batch=64, step_seconds="200ms@64").step_seconds

    assert step(WIDE) == step(NO_MARGIN)


def test_a_calibrated_step_has_no_margin(monkeypatch: pytest.MonkeyPatch) -> None:
    details = ec.forecast("resnet50", device="V100", batch=64).details
    monkeypatch.setattr(step_margins, "step_margin", lambda group: WIDE)
    calibrated = replace(details.step, costs=replace(details.step.costs, is_calibrated=True))
    assert with_margin(calibrated, details.trace, details.placement, TODAY) == calibrated
