from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcast.describe.graph.op import Op
from epochcast.describe.graph.trace import Trace
from epochcast.errors import BadInput
from epochcast.hardware.device import Device
from epochcast.predict.cost.cost_contract import check_op_cost
from epochcast.predict.cost.cost_model import fill_gaps
from epochcast.predict.cost.roofline import Analytic
from epochcast.predict.cost.software_setting import TODAY
from training.layer_linear import LayerLinear, Line, complexities, fit_line

Step = Callable[..., Trace]


def kernels(trace: Trace) -> list[Op]:
    return [trace.ops[i] for i in trace.places]


# By hand, conv_net at batch 2, per output position of Gianniti's table times positions:
@pytest.mark.parametrize(
    ("layer", "forward", "backward"),
    [
        ("conv2", 128 * 9 * 4 * 8, 128 * (2 * 9 * 4 + 1) * 8),  # 2·8·8 positions
        ("fc", 2 * 128 * 10, 2 * 2 * 128 * 10),  # 2 positions of 8·4·4 inputs
        ("relu2", 128 * 3 * 8, 128 * 4 * 8),
        ("pool", 32 * 4 * 8, 32 * (4 + 1) * 8),  # 2·4·4 positions
        ("loss", 2 * (4 * 10 - 1), 2 * (10 + 1)),
    ],
)
def test_complexities_are_those_of_the_table(layer: str, forward: int, backward: int, step: Step) -> None:
    trace = step("conv_net", 2)
    _, complexity = complexities(trace.columns)
    mine = np.array([name == layer for name in trace.layers])
    if layer == "loss":  # the softmax; the pick of the target is an op of its own
        mine &= trace.columns.n == 10
    assert complexity[mine & (trace.columns.phase == 0)].sum() == forward
    assert complexity[mine & (trace.columns.phase == 1)].sum() == backward


def test_normalisation_by_hand(step: Step) -> None:
    """16 channels, 4·32·32 positions: forward 5·16 + 1 - 2, backward 8·16 + 1 - 1."""
    trace = step("every_class", 4)
    _, complexity = complexities(trace.columns)
    assert list(complexity[[name == "bn" for name in trace.layers]]) == [4096 * 79, 4096 * 128]


@given(base=st.floats(0, 1e-3), slope=st.floats(1e-13, 1e-9))
def test_exact_times_give_back_the_line(base: float, slope: float) -> None:
    complexity = np.array([1e3, 1e5, 4e6, 2e7])
    line = fit_line(complexity, base + slope * complexity)
    assert line.base_seconds == pytest.approx(base, rel=1e-6, abs=slope)
    assert line.seconds_per_operation == pytest.approx(slope, rel=1e-6)
    assert line.factor == pytest.approx(1)


def fitted(step: Step, device: Device, network: str = "conv_net") -> LayerLinear:
    """Fitted on the analytic model's answers at two batch sizes, as if they had been measured."""
    ops: list[Op] = []
    seconds: list[float] = []
    for batch in (8, 256):
        trace = step(network, batch)
        ops += kernels(trace)
        seconds += list(Analytic().costs(trace.columns, device, TODAY).mid)
    return LayerLinear.fit(ops, seconds, device)


def test_a_fitted_model_foretells_a_batch_between(step: Step, device: Device) -> None:
    trace = step("conv_net", 64)
    model, truth = fitted(step, device), Analytic().costs(trace.columns, device, TODAY).mid
    costs = model.costs(trace.columns, device, TODAY)
    answered = costs.answered >= 0
    assert np.nansum(costs.mid) == pytest.approx(truth[answered].sum(), rel=0.1)


def test_a_fitted_model_keeps_the_contract(step: Step, device: Device) -> None:
    check_op_cost(fitted(step, device), step("every_class", 16), device)


def test_what_the_table_lacks_is_left_to_the_next_model(step: Step, device: Device) -> None:
    trace = step("every_class", 16)
    costs = [model.costs(trace.columns, device, TODAY) for model in (fitted(step, device), Analytic())]
    by = fill_gaps(*costs).answered_by
    forward = {name: by[trace.layers.index(name)] for name in ("conv", "fancy", "attention", "lstm", "optimizer")}
    assert forward.pop("conv") == "layer_linear"
    assert set(forward.values()) == {"analytic"}


def test_no_line_slopes_down_or_starts_below_zero(device: Device, step: Step) -> None:
    """Larger ops that were measured faster: the best allowed line is flat."""
    ops = [op for batch in (8, 256) for op in kernels(step("conv_net", batch)) if op.layer == "conv2"]
    times = [1.0 if i < len(ops) // 2 else 0.5 for i in range(len(ops))]
    model = LayerLinear.fit(ops, times, device)
    line = model.lines["conv forward"]
    assert (line.base_seconds, line.seconds_per_operation, line.rows) == (0.75, 0.0, 2)
    assert 4 / 3 < line.factor <= 3 / 2


@pytest.mark.parametrize("coefficients", [(-1.0, 1.0, 2, 1.0), (0.0, 0.0, 2, 1.0), (1.0, 1.0, 2, 0.5)])
def test_a_line_that_makes_no_sense_is_refused(coefficients: tuple[float, float, int, float]) -> None:
    with pytest.raises(BadInput):
        Line(*coefficients)


def test_another_device_is_refused(step: Step, device: Device) -> None:
    with pytest.raises(BadInput, match="fitted on round, not on square"):
        fitted(step, device).costs(step("conv_net").columns, replace(device, name="square"), TODAY)


def test_a_negative_time_is_refused(step: Step, device: Device) -> None:
    ops = kernels(step("conv_net"))
    with pytest.raises(BadInput, match="finite and above 0"):
        LayerLinear.fit(ops, [-1.0] * len(ops), device)


def test_a_view_has_no_time_to_fit(step: Step, device: Device) -> None:
    ops = step("conv_net").ops
    with pytest.raises(BadInput, match="do not match"):
        LayerLinear.fit(ops, [1.0] * len(ops), device)
