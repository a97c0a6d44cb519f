"""Sharding over neighbours, by hand: what travels, what is held, and what is refused."""

import pytest

from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.recipe import Recipe
from epochcast.errors import BadInput
from epochcast.hardware.catalogue import find_device, find_link
from epochcast.hardware.cluster import Group
from epochcast.predict.comm.collectives import all_gather_seconds, all_reduce_seconds, reduce_scatter_seconds
from epochcast.predict.forecast.forecaster import forecast_job
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.placement import placed
from epochcast.predict.forecast.strategies.sharded import shard_wires
from epochcast.predict.forecast.strategies.strategy_table import find_strategy

GROUP = Group(16, 8, find_link("nvlink3"), find_link("infiniband_ndr"))


def test_gathers_stay_among_neighbours_and_sums_go_round_their_copies() -> None:
    wires = shard_wires(GROUP, 8)
    assert (wires.sharing.nodes, wires.sharing.ranks) == (1, 8)
    assert wires.copies is not None and (wires.copies.nodes, wires.copies.ranks) == (16, 16)
    assert wires.gather_seconds(1e9) == all_gather_seconds(1e9, wires.sharing)
    expected = reduce_scatter_seconds(1e9, wires.sharing) + all_reduce_seconds(1e9 / 8, wires.copies)
    assert wires.scatter_seconds(1e9) == expected


def test_all_ranks_share_where_nobody_says_how_many() -> None:
    wires = shard_wires(GROUP, GROUP.ranks)
    assert wires.copies is None and wires.scatter_seconds(1e9) == reduce_scatter_seconds(1e9, GROUP)


@pytest.mark.parametrize(("name", "parameters"), [("fsdp", 1 / 64), ("fsdp:8", 1 / 8), ("zero1:8", 1.0)])
def test_neighbours_hold_a_share_of_their_own(name: str, parameters: float) -> None:
    trace = zoo_model("gpt2").trace(Recipe(1, precision="bf16", optimizer="adamw"))
    shares = find_strategy(name, 64).memory_shares(trace, 64)
    assert shares.parameter_fraction == parameters
    assert shares.state_fraction == (1 / 8 if ":" in name else 1 / 64)


def test_a_slow_network_is_used_less_by_shards_inside_nodes() -> None:
    job = Job("gpt2_large", batch=1, input_shape=(512,), precision="bf16", optimizer="adamw")
    device = find_device("A100-SXM4-80GB")
    seconds = {
        name: forecast_job(job, placed(device, 32, 4, find_strategy(name, 32), link="ethernet_25g"), step_only=True)
        for name in ("fsdp", "fsdp:8")
    }
    assert seconds["fsdp:8"].step_seconds.mid < 0.8 * seconds["fsdp"].step_seconds.mid
    assert seconds["fsdp:8"].strategy == "fsdp:8"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("fsdp:1", "the number of GPUs that share must be at least 2, such as fsdp:8"),
        ("zero1:node", "the number of GPUs that share must be at least 2"),
    ],
)
def test_a_number_that_is_none_is_refused(name: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        find_strategy(name, 16)


def test_neighbours_must_divide_the_gpus() -> None:
    with pytest.raises(BadInput, match="strategy 'fsdp:8': 12 GPUs are not a multiple of 8"):
        find_strategy("fsdp:8", 12).check(12, 1)
