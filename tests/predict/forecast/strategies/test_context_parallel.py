import numpy as np
import pytest

from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.op_kinds import Attention
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.trace import Trace
from epochcast.errors import BadInput
from epochcast.hardware.cluster import Group, Link
from epochcast.predict.cost.cost_model import CostModel
from epochcast.predict.forecast.placement import place
from epochcast.predict.forecast.step import step_forecast
from epochcast.predict.forecast.strategies.context_parallel import cut_sequences, shift_messages
from epochcast.predict.forecast.strategies.degrees import Layout
from epochcast.predict.forecast.strategies.rank_steps import rank_for
from epochcast.predict.forecast.strategies.strategy_table import find_strategy
from epochcast.predict.memory.lifetimes import Role
from epochcast.predict.memory.peak import step_on

TOKENS, LAYERS, WIDTH = 128, 12, 768


def trace(batch: int = 4, precision: str = "fp32") -> Trace:
    return zoo_model("gpt2", (TOKENS,)).trace(Recipe(batch, optimizer="adam", precision=precision))


@pytest.mark.parametrize("precision", ["fp32", "amp_bf16", "bf16"])
@pytest.mark.parametrize("batch", [1, 8])
def test_a_rank_of_four_does_a_quarter_of_the_work(batch: int, precision: str) -> None:
    whole = trace(batch, precision)
    part, _ = cut_sequences(whole, 4)
    assert part.flops["matrix"] == pytest.approx(whole.flops["matrix"] / 4)
    assert part.parameters == whole.parameters


def test_queries_are_cut_and_keys_are_seen_whole() -> None:
    part, _ = cut_sequences(trace(), 4)
    op = next(op for op in part.ops if isinstance(op.kind, Attention))
    assert [t.shape[-2] for t in op.inputs[:3]] == [32, 128, 128]
    assert op.output.shape[-2] == 32


def test_a_rank_hands_on_its_keys_and_values_and_in_the_backward_pass_their_gradients() -> None:
    """Float32: a quarter of 128 tokens, 768 wide, two of them forward, four backward."""
    _, shifts = cut_sequences(trace(), 4)
    own = 4 * 32 * WIDTH
    assert [size for _, size in shifts] == [2 * own] * LAYERS + [4 * own] * LAYERS


def test_only_what_outlasts_the_attention_is_waited_for() -> None:
    """Three shifts of 10 s behind parts of the kernel of 4 s each; of 2 s nothing shows."""
    ring = Group(1, 4, Link(0.0, 1.0), Link(0.0, 1.0))
    found = shift_messages([(0, 5.0), (1, 1.0)], np.array([16.0, 16.0]), 2, 4, ring)
    assert [m.seconds for m in found] == [3 * (10 - 4), 0]


def test_contexts_and_replicas_sum_gradients_together(per_kernel: CostModel) -> None:
    """Eight ranks exchange the same gradients whether they share samples or sequences."""
    steps = [
        step_forecast(trace(), place("A100", gpus=8, strategy=s, link="pcie3"), per_kernel) for s in ("dp4,cp2", "cp8")
    ]
    assert all(step.parts.exposed_comm > 0 for step in steps)
    assert steps[0].parts.update == steps[1].parts.update


def most_bytes(strategy: str, trace: Trace, gpus: int) -> dict[Role, int]:
    """What the GPU that holds most has of each kind, at its most."""
    held = find_strategy(strategy, gpus).held(trace, gpus)
    live = step_on(held.trace, None, shares=held.shares).live_bytes(trace.batch)
    return {role: int(live[role].max()) for role in Role}


def test_a_context_parallel_rank_holds_all_parameters_and_its_part_of_the_activations() -> None:
    whole, part = most_bytes("single", trace(), 1), most_bytes("cp4", trace(), 4)
    assert part[Role.PARAMETERS] == whole[Role.PARAMETERS]
    assert 1 / 4 <= part[Role.ACTIVATIONS] / whole[Role.ACTIVATIONS] < 0.5
    sharded = find_strategy("dp2,cp4,zero1", 8).held(trace(), 8)
    assert sharded.shares.state_fraction == pytest.approx(1 / 8)


def test_what_travels_between_tensor_parallel_ranks_is_cut_too() -> None:
    alone, cut = (rank_for(trace(), Layout(tensor=2, context=c)) for c in (1, 2))
    assert sum(s for *_, s in cut.sums) == pytest.approx(sum(s for *_, s in alone.sums) / 2)


def test_what_has_no_sequence_is_refused() -> None:
    with pytest.raises(BadInput, match=r"context parallel is for sequences of tokens .* and resnet18 has none"):
        cut_sequences(zoo_model("resnet18").trace(Recipe(4)), 2)
    with pytest.raises(BadInput, match="over 3 GPUs cuts a sequence in 6 pieces, and gpt2 has 128 tokens"):
        cut_sequences(trace(), 3)
