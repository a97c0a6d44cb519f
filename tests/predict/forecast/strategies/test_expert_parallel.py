from functools import partial

import pytest

from epochcast.describe.capture.model import BuiltModel
from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.capture.zoo.decoder import decoder
from epochcast.describe.capture.zoo.moe import Mixture
from epochcast.describe.graph.op_kinds import Matmul
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.trace import Trace
from epochcast.errors import BadInput
from epochcast.predict.cost.cost_model import CostModel
from epochcast.predict.forecast.placement import place
from epochcast.predict.forecast.step import step_forecast
from epochcast.predict.forecast.strategies.degrees import Layout
from epochcast.predict.forecast.strategies.rank_steps import rank_for
from epochcast.predict.forecast.strategies.strategy_table import find_strategy
from epochcast.predict.forecast.strategies.tensor_parallel import parameter_fraction

TOKENS, WIDTH, LAYERS, EXPERTS, CHOSEN, FFN = 64, 32, 2, 8, 2, 16
EXPERT_PARAMETERS = LAYERS * EXPERTS * 3 * WIDTH * FFN


def mixture_of(layers: int) -> BuiltModel:
    build = partial(
        decoder,
        input_shape=(TOKENS,),
        name="mixture",
        layers=layers,
        width=WIDTH,
        heads=4,
        ffn=FFN,
        vocabulary=128,
        mixture=Mixture(EXPERTS, CHOSEN, FFN),
    )
    return BuiltModel("mixture", build)


MODEL = mixture_of(LAYERS)


def trace(batch: int = 4, precision: str = "fp32", accumulate: int = 1) -> Trace:
    return MODEL.trace(Recipe(batch, optimizer="adam", precision=precision, accumulate=accumulate))


def test_a_rank_runs_only_its_own_experts_again() -> None:
    step = mixture_of(6).trace(Recipe(4, precision="amp_bf16", checkpointing=True))
    part = rank_for(step, Layout(4, expert=4)).trace
    weights = [op.weights[0].shape for op in part.ops if isinstance(op.kind, Matmul) and op.weights]
    assert {shape[0] for shape in weights if len(shape) == 3} == {EXPERTS // 4}


@pytest.mark.parametrize("precision", ["fp32", "amp_bf16", "bf16"])
def test_a_rank_does_as_much_work_in_fewer_and_longer_products(precision: str) -> None:
    whole, part = trace(precision=precision), rank_for(trace(precision=precision), Layout(4, expert=4)).trace
    assert part.flops["matrix"] == pytest.approx(whole.flops["matrix"])
    weights = [op.weights[0].shape for op in part.ops if isinstance(op.kind, Matmul) and op.weights]
    assert {shape[0] for shape in weights if len(shape) == 3} == {EXPERTS // 4}


@pytest.mark.parametrize("precision", ["fp32", "amp_bf16"])
def test_a_rank_holds_its_part_of_the_experts_and_all_of_the_rest(precision: str) -> None:
    whole, rank = trace(precision=precision), rank_for(trace(precision=precision), Layout(4, expert=4))
    count = sum(p.elements for p in whole.parameters)
    assert sum(p.elements for p in rank.trace.parameters) == count - EXPERT_PARAMETERS * 3 // 4
    assert parameter_fraction(whole, rank.trace) == pytest.approx(1 - 0.75 * EXPERT_PARAMETERS / count)


def test_tokens_travel_twice_per_mixture_and_pass() -> None:
    """Each of 64 tokens to two experts, 32 floats wide, and back; the same for their gradients."""
    dispatches = rank_for(trace(), Layout(4, expert=4)).dispatches
    assert [size for *_, size in dispatches] == [TOKENS * CHOSEN * WIDTH * 4] * 4 * LAYERS


def test_the_busiest_rank_has_more_tokens_and_all_wait_for_it() -> None:
    """1.5 times the mean: rows of its experts, what it receives, and nothing on ranks that have all experts."""
    uneven = MODEL.trace(Recipe(4, optimizer="adam", expert_imbalance=1.5))
    even, busiest = (rank_for(step, Layout(4, expert=4)) for step in (trace(), uneven))

    def rows(step: Trace) -> set[int]:
        products = [op for op in step.ops if isinstance(op.kind, Matmul) and op.weights]
        return {op.inputs[0].shape[1] for op in products if len(op.weights[0].shape) == 3}

    assert (rows(even.trace), rows(busiest.trace)) == ({4 * 4 * 16}, {4 * 4 * 24})
    assert [size for *_, size in busiest.dispatches] == [1.5 * size for *_, size in even.dispatches]
    alone = rank_for(uneven, Layout(4)).trace
    assert alone.flops["matrix"] == trace().flops["matrix"]


def test_tensor_parallel_ranks_share_out_the_tokens_of_experts() -> None:
    whole = trace()
    part = rank_for(whole, Layout(tensor=2)).trace
    assert part.flops["matrix"] == pytest.approx(whole.flops["matrix"] / 2, rel=0.05)


def test_experts_are_sharded_over_the_ranks_that_have_the_same() -> None:
    """Eight ranks, experts over four: two have the same; by zero1 each keeps the state of half of its quarter."""
    whole = trace()
    count = sum(p.elements for p in whole.parameters)
    held = find_strategy("dp8,ep4,zero1", 8).held(whole, 8)
    mine = sum(p.elements for p in held.trace.parameters)
    assert mine * held.shares.state_fraction == pytest.approx(count / 8)
    assert mine / count == pytest.approx(1 - 0.75 * EXPERT_PARAMETERS / count)


@pytest.mark.parametrize("strategy", ["dp4,ep4", "dp4,ep2,zero1", "dp2,tp2,ep4", "dp2,pp2,ep2", "dp2,cp2,ep4,zero1"])
def test_parts_sum_to_the_step(strategy: str, per_flop: CostModel) -> None:
    found = step_forecast(trace(accumulate=2), place("A100", gpus=4, strategy=strategy), per_flop)
    parts = found.parts.as_dict()
    assert sum(parts.values()) == pytest.approx(found.seconds.mid, rel=1e-9)
    assert min(parts.values()) >= 0


def test_a_slower_wire_between_experts_takes_longer(per_flop: CostModel) -> None:
    fast, slow = (
        step_forecast(trace(), place("A100", gpus=4, strategy="dp4,ep4", link=link), per_flop)
        for link in ("nvlink3", "ethernet_10g")
    )
    assert slow.parts.exposed_comm > 1.2 * fast.parts.exposed_comm


@pytest.mark.parametrize(
    ("name", "expert", "message"),
    [
        ("gpt2", 2, "expert parallel: gpt2 has no mixture of experts"),
        ("mixture", 3, "expert parallel over 3 GPUs does not divide the 8 experts"),
    ],
)
def test_experts_that_cannot_be_spread_are_refused(name: str, expert: int, message: str) -> None:
    whole = trace() if name == "mixture" else zoo_model(name, (64,)).trace(Recipe(4))
    with pytest.raises(BadInput, match=message):
        rank_for(whole, Layout(expert, expert=expert))
