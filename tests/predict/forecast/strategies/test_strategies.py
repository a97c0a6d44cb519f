"""What holds for every strategy, and the figures of some by hand."""

import time
from dataclasses import replace

import numpy as np
import pytest
from tests.every import every

from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.trace import Trace
from epochcast.errors import BadInput
from epochcast.hardware.cluster import Group, Level, Link
from epochcast.predict.cost.cost_model import CostModel
from epochcast.predict.forecast.placement import place
from epochcast.predict.forecast.step import StepForecast, step_forecast
from epochcast.predict.forecast.strategies.parameter_servers import servers_seconds
from epochcast.predict.forecast.strategies.rank_steps import repeated_layers
from epochcast.predict.forecast.strategies.strategy_table import find_strategy
from epochcast.predict.forecast.strategies.subgroups import subgroup
from epochcast.predict.memory.lifetimes import Role
from epochcast.predict.memory.peak import step_on
from epochcast.predict.memory.sharding import RankShares

DATA = ("ddp", "horovod", "mirrored", "multi_worker_mirrored:ring", "parameter_server", "parameter_server:2")
ANY = (*DATA, "data_parallel", "zero1", "zero2", "zero3", "fsdp")
SPLIT = (
    "tensor",
    "pipeline",
    "pipeline:gpipe",
    "model",
    "dp2,tp2",
    "dp2,pp2",
    "tp2,pp2",
    "dp2,tp2,zero1",
    "pp2,tp2,vp2",
    "cp4",
    "dp2,cp2",
    "tp2,cp2,zero1",
    "cp2,pp2",
)
GPT = zoo_model("gpt2", (128,))


def step(strategy: str, model: CostModel, name: str = "gpt2", accumulate: int = 4, gpus: int = 4) -> StepForecast:
    source = GPT if name == "gpt2" else zoo_model(name)
    trace = source.trace(Recipe(4, optimizer="adam", accumulate=accumulate))
    return step_forecast(trace, place("A100", gpus=gpus, strategy=strategy), model)


@every("strategy", [*ANY, *SPLIT])
def test_parts_sum_to_the_step_and_intervals_are_ordered(strategy: str, per_flop: CostModel) -> None:
    found = step(strategy, per_flop)
    parts = found.parts.as_dict()
    assert sum(parts.values()) == pytest.approx(found.seconds.mid, rel=1e-9)
    assert min(parts.values()) >= 0
    assert found.seconds.low <= found.seconds.mid <= found.seconds.high
    assert found.parts.bubble <= found.parts.exposed_comm


@every("strategy", ANY)
def test_no_data_parallel_step_is_shorter_than_that_of_one_gpu(strategy: str, per_flop: CostModel) -> None:
    alone = step_forecast(GPT.trace(Recipe(4, optimizer="adam", accumulate=4)), place("A100"), per_flop)
    many = step(strategy, per_flop)
    assert many.parts.forward + many.parts.backward >= (alone.parts.forward + alone.parts.backward) * (1 - 1e-9)
    assert many.seconds.mid - many.parts.update >= alone.seconds.mid - alone.parts.update - 1e-9


def test_models_in_half_travel_in_half(per_flop: CostModel) -> None:
    """VGG-11 by way of PCIe: 531 MB of parameters to the other and as many of gradients back, each at 9.45 GB/s; its 22
    tensors are walked in 4 ms meanwhile. Sharded, all is exposed where kernels take no time.
    """
    vgg, placement = zoo_model("vgg11"), place("RTX 3090", gpus=2, strategy="data_parallel", link="pcie3")
    wide, half = (
        step_forecast(vgg.trace(Recipe(1, precision=p)), placement, per_flop).parts.exposed_comm
        for p in ("fp32", "fp16")
    )
    assert wide == pytest.approx(2 * 531.5e6 / 9.45e9 - 22 * 2 * 96e-6, rel=0.1)
    assert half == pytest.approx(wide / 2, rel=0.1)
    shards = place("A100", gpus=16, nodes=2, strategy="fsdp", link="ethernet_10g")
    wide, half = (
        step_forecast(GPT.trace(Recipe(1, precision=p)), shards, per_flop).parts.exposed_comm for p in ("fp32", "bf16")
    )
    assert half == pytest.approx(wide / 2, rel=0.1)


def test_a_split_model_has_less_work_for_each(per_flop: CostModel) -> None:
    alone = step_forecast(GPT.trace(Recipe(4, optimizer="adam", accumulate=4)), place("A100"), per_flop)
    for strategy in ("tensor", "pipeline"):
        assert step(strategy, per_flop).parts.forward < 0.5 * alone.parts.forward


def test_more_micro_batches_shrink_the_bubble(per_flop: CostModel) -> None:
    few, many = (step("pipeline", per_flop, accumulate=n) for n in (4, 32))
    assert few.parts.bubble / few.seconds.mid > 2 * many.parts.bubble / many.seconds.mid


def test_stages_that_take_turns_are_slower_than_a_pipeline(per_flop: CostModel) -> None:
    assert step("model", per_flop).seconds.mid > 1.5 * step("pipeline", per_flop).seconds.mid


def test_zero2_scatters_in_every_pass_and_zero1_once(per_flop: CostModel) -> None:
    assert step("zero2", per_flop).parts.exposed_comm >= step("zero1", per_flop).parts.exposed_comm
    assert step("zero1", per_flop).parts.update == pytest.approx(step("ddp", per_flop).parts.update / 4)


def test_hybrid_exchanges_less_than_data_parallel_where_products_have_the_weights(per_flop: CostModel) -> None:
    """AlexNet: 58.6 of 61.1 million parameters are in products."""
    trace = zoo_model("alexnet").trace(Recipe(32))
    hybrid, data = (
        step_forecast(trace, place("V100", gpus=4, strategy=s, link="pcie3"), per_flop) for s in ("hybrid", "ddp")
    )
    assert hybrid.parts.exposed_comm < data.parts.exposed_comm
    assert hybrid.parts.update < data.parts.update


@pytest.mark.parametrize(
    ("strategy", "model", "gpus", "message"),
    [
        ("hybrid", "gpt2", 4, "hybrid parallel is for products behind convolutions, and gpt2 has none"),
        ("pipeline", "gpt2", 64, "a pipeline of 64 parts: gpt2 can be cut into 28 at most; take fewer stages"),
        ("tensor", "resnet18", 4, "resnet18 has no two products to split"),
    ],
)
def test_a_model_a_strategy_cannot_split_is_refused(
    strategy: str, model: str, gpus: int, message: str, per_flop: CostModel
) -> None:
    with pytest.raises(BadInput, match=message):
        step(strategy, per_flop, model, gpus=gpus)


def test_one_process_serves_the_gpus_of_one_box() -> None:
    with pytest.raises(BadInput, match="'data_parallel' is for the GPUs of one box, not 2; try ddp"):
        place("V100", gpus=4, nodes=2, strategy="data_parallel")


@pytest.mark.parametrize("strategy", ["ddp", "fsdp", "dp2500,tp2,pp2"])
def test_ten_thousand_gpus_take_no_longer_than_a_second(strategy: str, per_flop: CostModel) -> None:
    trace = GPT.trace(Recipe(4, optimizer="adam", accumulate=8))
    where = place("A100", gpus=10_000, nodes=1250, strategy=strategy, link="infiniband_hdr_x8")
    step_forecast(trace, where, per_flop)  # what is kept on the trace is made once, whatever the number
    start = time.perf_counter()
    step_forecast(trace, where, per_flop)
    assert time.perf_counter() - start < 1


# ---- wires --------------------------------------------------------------------------------------

NEAR, MIDDLE, FAR = Link(0.0, 100.0), Link(0.0, 16.0), Link(0.0, 8.0)


def test_neighbours_stay_in_their_box_and_others_share_what_leaves_it() -> None:
    boxes = Group(4, 8, NEAR, FAR)
    assert subgroup(boxes, 4, 1) == Group(1, 4, NEAR, FAR)
    assert subgroup(boxes, 8, 4) == Group(4, 2, NEAR, replace(FAR, bandwidth_bytes_per_second=2.0))
    assert subgroup(boxes, 4, 8) == Group(4, 1, NEAR, replace(FAR, bandwidth_bytes_per_second=1.0))


def test_a_subgroup_sees_its_share_of_every_level() -> None:
    """Boxes of two quads: four neighbours have a quad, every fourth one crosses quads, where four such groups meet."""
    quads = Group(2, 8, NEAR, FAR, (Level(2, MIDDLE),))
    assert subgroup(quads, 4, 1) == Group(1, 4, NEAR, FAR)
    assert subgroup(quads, 8, 1) == replace(quads, nodes=1)
    fourth = (Level(2, replace(MIDDLE, bandwidth_bytes_per_second=4.0)),)
    assert subgroup(quads, 2, 4) == Group(1, 2, NEAR, FAR, fourth)
    assert subgroup(quads, 4, 4) == Group(2, 2, NEAR, replace(FAR, bandwidth_bytes_per_second=2.0), fourth)


def test_servers_share_the_load_until_the_worker_is_the_limit() -> None:
    """16 ranks, 80 bytes at 8 bytes a second: 2·15·10 s by one server, a fourth by four, never below 2·10 s."""
    boxes = Group(16, 1, NEAR, FAR)
    assert servers_seconds(80, boxes, 1) == pytest.approx(300)
    assert servers_seconds(80, boxes, 4) == pytest.approx(75)
    assert servers_seconds(80, boxes, 16) == pytest.approx(20)
    assert servers_seconds(80, Group(1, 1, NEAR, FAR), 4) == 0


# ---- memory -------------------------------------------------------------------------------------


def memory_shares(trace: Trace, strategy: str, gpus: int = 8) -> RankShares:
    return find_strategy(strategy, gpus).memory_shares(trace, gpus)


def test_zero_shares_out_state_then_gradients_then_parameters() -> None:
    trace = GPT.trace(Recipe(4, optimizer="adam"))
    found = [memory_shares(trace, s) for s in ("ddp", "zero1", "zero2", "zero3")]
    assert [s.state_fraction for s in found] == [1, 1 / 8, 1 / 8, 1 / 8]
    assert [s.gradient_fraction for s in found] == [1, 1, 1 / 8, 1 / 8]
    assert [s.parameter_fraction for s in found] == [1, 1, 1, 1 / 8]


def most_bytes(strategy: str, trace: Trace, gpus: int) -> dict[Role, int]:
    """What the GPU that holds most has of each kind, at its most."""
    held = find_strategy(strategy, gpus).held(trace, gpus)
    live = step_on(held.trace, None, shares=held.shares).live_bytes(trace.batch)
    return {role: int(live[role].max()) for role in Role}


def test_gpipe_holds_every_micro_batch_and_1f1b_one_per_stage() -> None:
    """Of 32 micro-batches the first of eight stages has eight in flight, or all."""
    trace = GPT.trace(Recipe(4, optimizer="adam", accumulate=32))
    one, some, every = (most_bytes(s, trace, 8)[Role.ACTIVATIONS] for s in ("model", "pipeline", "pipeline:gpipe"))
    kept = (every - some) / (32 - 8)
    assert some - one == pytest.approx(7 * kept, rel=0.1)
    few = GPT.trace(Recipe(4, optimizer="adam", accumulate=2))
    assert most_bytes("pipeline", few, 8)[Role.ACTIVATIONS] < some


def test_a_tensor_parallel_rank_holds_its_part() -> None:
    trace = GPT.trace(Recipe(4, optimizer="adam"))
    whole, part = most_bytes("single", trace, 1), most_bytes("tensor", trace, 4)
    for role in (Role.PARAMETERS, Role.GRADIENTS, Role.OPTIMIZER_STATE):
        assert part[role] == pytest.approx(whole[role] / 4, rel=0.05)
    assert 1 / 4 <= part[Role.ACTIVATIONS] / whole[Role.ACTIVATIONS] < 0.8


def test_stages_share_out_the_parameters_and_tied_tables_lie_on_both_ends() -> None:
    trace = GPT.trace(Recipe(4, optimizer="adam", accumulate=8))
    count = trace.parameter_counts[0]
    table = max(p.elements for p in trace.parameters)
    stage = find_strategy("pp4", 4).held(trace, 4).trace
    mine = sum(p.elements for p in stage.parameters)
    assert mine < 0.7 * count
    assert max(p.elements for p in stage.parameters) == table


def test_forward_passes_exchange_no_gradients(per_kernel: CostModel) -> None:
    trace = GPT.trace(Recipe(4, mode="forward"))
    for strategy in ("zero2", "dp2,tp2"):
        parts = step_forecast(trace, place("A100", gpus=4, strategy=strategy), per_kernel).parts
        assert parts.backward == parts.update == 0
        assert np.isfinite(parts.exposed_comm)


def tensor_notes(model: str) -> list[str]:
    return list(find_strategy("tp4", 4).notes(zoo_model(model).trace(Recipe(4))))


def test_layers_that_tensor_parallel_ranks_repeat_are_named() -> None:
    (note,) = tensor_notes("vgg16")
    assert note.startswith(
        "Tensor parallelism cannot split 99% of the matrix products: all 4 GPUs repeat features.0, features.2"
    )
    assert "and 10 more" in note
    assert tensor_notes("gpt2") == []


def test_heads_are_split_where_queries_and_keys_have_norms() -> None:
    """Norms of heads work along the width of a head: ranks have whole heads, and repeat nothing but the routing."""
    fraction, layers = repeated_layers(zoo_model("qwen3_30b_a3b").trace(Recipe(1)), 4)
    assert fraction < 0.01
    assert not any("self_attn" in layer for layer in layers)
