"""Attention with a mask on GPUs that are newer than its kernel."""

import numpy as np
import pytest

from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.trace import Trace
from epochcast.hardware.catalogue import find_device
from epochcast.predict.cost.cost_model import Costs
from epochcast.predict.cost.masked_attention import at_masked_rate, masked_entries


def step(*, masked: bool) -> Trace:
    return zoo_model("llama3_8b").trace(Recipe(1, "adamw", "bf16", padding_mask=masked))


def nanoseconds(trace: Trace) -> Costs:
    """Every op in a nanosecond, between half and twice as much."""
    mid = np.full(len(trace.columns), 1e-9)
    return Costs.by("tested", mid / 2, mid, mid * 2)


def test_on_an_h100_it_reaches_35_percent_of_the_peak() -> None:
    """989 TFLOP/s · 0.35."""
    trace, device = step(masked=True), find_device("H100-SXM5-80GB")
    masked = masked_entries(trace)
    bounded = at_masked_rate(nanoseconds(trace), trace, device)
    seconds = trace.columns.flops[masked] / (0.35 * device.peak("fp16"))
    assert masked.sum() == 64  # forward and backward of 32 layers
    assert bounded.mid[masked] == pytest.approx(seconds)
    assert bounded.high[masked] == pytest.approx(2 * seconds)
    assert bounded.mid[~masked] == pytest.approx(1e-9)


@pytest.mark.parametrize(("device", "masked"), [("A100-SXM4-80GB", True), ("H100-SXM5-80GB", False)])
def test_nothing_changes_on_ampere_or_without_a_mask(device: str, masked: bool) -> None:
    trace = step(masked=masked)
    costs = nanoseconds(trace)
    assert at_masked_rate(costs, trace, find_device(device)) is costs


def test_a_gpu_with_more_multiprocessors_is_faster() -> None:
    trace = step(masked=True)
    h100, b200 = (at_masked_rate(nanoseconds(trace), trace, find_device(name)).mid.sum() for name in ("H100", "B200"))
    assert b200 < h100
