from dataclasses import replace

import numpy as np
import pytest

from epochcast.capture.model import BuiltModel
from epochcast.capture.zoo import zoo_model
from epochcast.comm.allreduce import all_reduce_seconds
from epochcast.comm.waiting import ALIKE, Batch, Waiting, slowest_of, waiting
from epochcast.forecasting.exchange import (
    Exchange,
    Gradients,
    batch_of,
    buckets,
    exchange,
    exchange_ready,
    exposed_seconds,
    gradients,
)
from epochcast.forecasting.placement import STRATEGIES, Placement, Strategy, place
from epochcast.graph.recipe import Recipe
from epochcast.graph.trace import Trace
from epochcast.hardware.catalogue import find_device
from epochcast.hardware.cluster import Group
from epochcast.hardware.link import Link

MIB = 2**20


def trace(model: BuiltModel, precision: str = "fp32") -> Trace:
    return model.trace(Recipe(2, precision=precision, mode="forward_backward"))


def test_gradients_come_in_the_order_of_the_backward_pass(three_layers: BuiltModel) -> None:
    made = gradients(trace(three_layers))
    assert made.sizes_bytes == (16 * MIB, 4 * MIB, 1 * MIB)
    assert list(made.places) == sorted(made.places)


def test_half_gradients_are_half_as_large(three_layers: BuiltModel) -> None:
    assert gradients(trace(three_layers, precision="bf16")).total_bytes == 21 * MIB // 2
    assert gradients(trace(three_layers, precision="amp")).total_bytes == 21 * MIB


def test_frozen_parameters_are_not_exchanged(three_layers: BuiltModel) -> None:
    frozen = three_layers.trace(Recipe(2, freeze=("large*",)))
    assert gradients(frozen).sizes_bytes == (4 * MIB, 1 * MIB)


def test_every_gradient_of_resnet50_is_exchanged_once() -> None:
    assert gradients(trace(zoo_model("resnet50"))).total_bytes == 4 * 25_557_032


# DDP: the first bucket closes at 1 MiB, the others at 25 MiB, each with the gradient that fills it.
@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([1, 1], [(1, 0), (1, 1)]),
        ([16, 4, 1], [(16, 0), (5, 2)]),
        ([0.5, 0.25, 0.25, 20, 4, 2, 1], [(1, 2), (26, 5), (1, 6)]),
        ([100], [(100, 0)]),
        ([], []),
    ],
)
def test_ddp_buckets_by_hand(sizes: list[float], expected: list[tuple[float, int]]) -> None:
    made = Gradients(tuple(int(size * MIB) for size in sizes), tuple(range(len(sizes))))
    assert [(filled / MIB, place) for filled, place in buckets(made, STRATEGIES["ddp"])] == expected


def test_buckets_hold_all_gradients() -> None:
    made = gradients(trace(zoo_model("resnet50")))
    for name in ("ddp", "horovod"):
        assert sum(size for size, _ in buckets(made, STRATEGIES[name])) == made.total_bytes


KNOWN = Waiting(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1e-3, 10.0, "by hand")
# 1 GB/s beside a memory of 900 GB/s: a hidden second costs 10/900 s.
WIRE = Group(2, 1, Link(0.0, 1e9), Link(0.0, 1e9))
RING = Strategy("ring", bucket_bytes=1)


def ready(*pairs: tuple[float, float], strategy: Strategy = RING, known: Waiting = KNOWN) -> Exchange:
    return exchange_ready(pairs, 1.0, WIRE, find_device("V100"), strategy, known=known)


def test_two_buckets_on_one_wire_by_hand() -> None:
    """0.6 GB ready at 0.5 s and 0.2 GB at 0.9 s: the wire is free at 1.101 s, the second has arrived at 1.302 s."""
    found = ready((0.6e9, 0.5), (0.2e9, 0.9))
    assert found.wire_seconds == pytest.approx(0.8)
    assert found.exposed_seconds == pytest.approx(0.302)
    assert found.slowed_seconds == pytest.approx((0.8 - 0.302) * 10 / 900)


def test_a_slow_backward_pass_hides_all_but_the_last_bucket() -> None:
    assert ready((0.1e9, 0.2), (0.1e9, 1.0)).exposed_seconds == pytest.approx(0.101)


def test_horovod_looks_for_ready_gradients_every_cycle() -> None:
    assert ready((0.1e9, 1.0), strategy=replace(RING, cycle_seconds=5e-3)).exposed_seconds == pytest.approx(0.106)


def test_ranks_wait_for_the_slowest_of_them() -> None:
    found = ready((0.1e9, 1.0), known=replace(KNOWN, network_spread_fraction=0.1, step_seconds=2e-3))
    assert found.waiting_seconds == pytest.approx(0.1 * slowest_of(2) + 2e-3)
    assert found.seconds == pytest.approx(0.101 + found.waiting_seconds)


@pytest.mark.parametrize("strategy", ["mirrored", "multi_worker_mirrored"])
def test_one_packed_exchange_behind_the_backward_pass_is_all_exposed(three_layers: BuiltModel, strategy: str) -> None:
    step, placement = trace(three_layers), place("V100", gpus=4, nodes=2, strategy=strategy, link="ethernet_10g")
    seconds = all_reduce_seconds(21 * MIB, placement.group(), placement.rule.algorithm)
    found = exchange(step, np.ones(len(step.columns)), 1.0, placement)
    assert found.exposed_seconds == pytest.approx(seconds + waiting().bucket_seconds)
    assert found.slowed_seconds == 0


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("gnmt", Batch(2)),
        ("transformer_big", Batch(2)),
        ("deepspeech2", Batch(2, is_padded=True)),
        ("bert_base", ALIKE),
        ("gpt2", ALIKE),
        ("resnet18", ALIKE),
    ],
)
def test_recurrent_and_translating_networks_are_fed_ragged_samples(model: str, expected: Batch) -> None:
    assert batch_of(zoo_model(model).trace(Recipe(2))) == expected


def test_ranks_wait_for_the_largest_images_where_sides_are_drawn_anew() -> None:
    model, placement = zoo_model("resnet18"), place("V100", gpus=4)
    even, uneven = (exchange_of(model.trace(Recipe(8, uneven=uneven)), placement) for uneven in (0.0, 0.36))
    assert uneven.waiting_seconds > even.waiting_seconds + 0.3 * slowest_of(4)
    assert uneven.exposed_seconds == even.exposed_seconds


def exchange_of(step: Trace, placement: Placement) -> Exchange:
    """Kernels that all end after a second."""
    return exchange(step, np.ones(len(step.columns)), 1.0, placement)


def test_one_gpu_exchanges_nothing(three_layers: BuiltModel) -> None:
    step = trace(three_layers)
    assert exposed_seconds(step, np.ones(len(step.columns)), 1.0, place("V100")) == 0


def test_a_strategy_without_a_first_bucket_uses_the_others_size() -> None:
    made = Gradients((3, 3, 3), (0, 1, 2))
    assert buckets(made, Strategy("ring", bucket_bytes=6)) == ((6, 1), (3, 2))
