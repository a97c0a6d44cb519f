from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
import pytest
from tests.every import every

from epochcast.describe.graph.trace import Columns, Trace
from epochcast.errors import UnknownName
from epochcast.hardware.device import Device
from epochcast.predict.cost.cost_contract import BrokenCostContract, check_op_cost
from epochcast.predict.cost.cost_model import Costs, fill_gaps
from epochcast.predict.cost.cost_models import COST_MODELS, find_cost_model
from epochcast.predict.cost.software_setting import TODAY, SoftwareSetting

Step = Callable[..., Trace]


@dataclass(frozen=True)
class Every:
    """A constant for every n-th op, no answer for the rest."""

    name: str
    seconds: float
    nth: int = 1
    is_monotone: bool = True

    def costs(self, columns: Columns, device: Device, setting: SoftwareSetting) -> Costs:
        mid = np.full(len(columns), np.nan)
        mid[:: self.nth] = self.seconds
        return Costs.by(self.name, mid, mid, mid)


def filled(columns: Columns, device: Device, *models: Every) -> Costs:
    return reduce(fill_gaps, (model.costs(columns, device, TODAY) for model in models))


def test_the_first_model_that_knows_an_op_answers_it(step: Step, device: Device) -> None:
    models = Every("measured", 1.0, nth=3), Every("learned", 2.0, nth=2), Every("formula", 3.0)
    costs = filled(step().columns, device, *models)
    assert costs.answered_by[:7] == ("measured", "formula", "learned", "measured", "learned", "formula", "measured")
    assert list(costs.mid[:7]) == [1, 3, 2, 1, 2, 3, 1]


def test_time_fractions_say_who_answered_for_how_much(step: Step, device: Device) -> None:
    columns = step().columns
    costs = filled(columns, device, Every("measured", 3.0, nth=2), Every("formula", 1.0), Every("never asked", 9.0))
    few, many = len(columns) // 2, -(-len(columns) // 2)
    assert costs.time_fractions() == pytest.approx(
        {"measured": 3 * many / (3 * many + few), "formula": few / (3 * many + few)}
    )


def test_an_op_nobody_knows_has_no_answer_rather_than_zero(step: Step, device: Device) -> None:
    costs = filled(step().columns, device, Every("measured", 1.0, nth=2), Every("learned", 1.0, nth=4))
    assert costs.answered_by[:3] == ("measured", "", "measured")
    assert np.isnan(costs.mid[1])


def test_costs_refuse_a_low_above_its_mid() -> None:
    one = np.ones(2)
    with pytest.raises(ValueError, match="low <= mid <= high"):
        Costs.by("model", 2 * one, one, one)


def test_costs_refuse_half_an_answer() -> None:
    one = np.ones(2)
    with pytest.raises(ValueError, match="all three"):
        Costs.by("model", np.array([np.nan, 1]), one, one)


@every("name", COST_MODELS)
@every("precision", ["fp32", "tf32", "amp_fp16", "bf16"])
def test_every_registered_model_keeps_the_contract(name: str, precision: str, step: Step, device: Device) -> None:
    for network in ("every_class", "conv_net"):
        for batch in (1, 7, 512):
            check_op_cost(find_cost_model(name), step(network, batch, precision=precision), device)


@pytest.mark.parametrize("name", COST_MODELS)
def test_a_faster_device_is_never_slower(name: str, step: Step, make_device: Callable[..., Device]) -> None:
    trace, model = step("every_class", 64), find_cost_model(name)
    slow = model.costs(trace.columns, make_device(), TODAY)
    for faster in (make_device(flops_per_second=2e12), make_device(bytes_per_second=2e11)):
        quick = model.costs(trace.columns, faster, TODAY)
        assert quick.mid.sum() <= slow.mid.sum()
        if model.is_monotone:
            assert np.all(quick.mid <= slow.mid)


@dataclass(frozen=True)
class Flawed:
    """A model with one flaw."""

    flaw: str
    name: str = "flawed"
    is_monotone: bool = True

    def costs(self, columns: Columns, device: Device, setting: SoftwareSetting) -> Costs:
        mid = 1e-6 + columns.flops / 1e12
        match self.flaw:
            case "changes the trace":
                columns.read_bytes[0] += 1
            case "not finite":
                mid = np.full_like(mid, np.inf)
            case "not positive":
                mid = mid - 1e-3
            case "cheaper with more work":
                mid = 1 / (1 + mid)
            case "answers for":
                mid = mid[1:]
        return Costs.by(self.name, mid, mid, mid)


@pytest.mark.parametrize(
    "flaw", ["changes the trace", "not finite", "not positive", "cheaper with more work", "answers for"]
)
def test_the_contract_finds_a_flaw_and_names_it(flaw: str, step: Step, device: Device) -> None:
    with pytest.raises(BrokenCostContract, match=f"flawed .*{flaw}"):
        check_op_cost(Flawed(flaw), step("conv_net"), device)


def test_the_contract_finds_a_dice_thrower(step: Step, device: Device) -> None:
    generator = np.random.default_rng(0)

    @dataclass(frozen=True)
    class Dice:
        name: str = "dice"
        is_monotone: bool = False

        def costs(self, columns: Columns, device: Device, setting: SoftwareSetting) -> Costs:
            mid = generator.random(len(columns))
            return Costs.by(self.name, mid, mid, mid)

    with pytest.raises(BrokenCostContract, match="dice gives different results for the same trace"):
        check_op_cost(Dice(), step("conv_net"), device)


def test_a_model_that_claims_nothing_may_get_cheaper(step: Step, device: Device) -> None:
    check_op_cost(replace(Flawed("cheaper with more work"), is_monotone=False), step("conv_net"), device)


def test_an_unknown_model_names_the_known_ones() -> None:
    with pytest.raises(UnknownName, match="no cost model called 'oracle'; known: analytic, learned, paleo, "):
        find_cost_model("oracle")
