from dataclasses import replace

import numpy as np
import pytest

from epochcast.describe.capture.model import BuiltModel
from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.trace import Trace
from epochcast.hardware.catalogue import find_device
from epochcast.hardware.cluster import Group
from epochcast.hardware.link import Link
from epochcast.predict.comm.allreduce import all_reduce_seconds
from epochcast.predict.comm.stragglers import Waiting, slowest_of, waiting
from epochcast.predict.forecast.exchange import Buckets
from epochcast.predict.forecast.placement import Placement, place
from epochcast.predict.forecast.strategies.data_parallel import DataParallel, Exchange

KNOWN = Waiting(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1e-3, 10.0, "by hand")
# 1 GB/s beside a memory of 900 GB/s: a hidden second costs 10/900 s.
WIRE = Group(2, 1, Link(0.0, 1e9), Link(0.0, 1e9))
RING = DataParallel("by hand", "ring", buckets=Buckets(1, 1))


def ready(*pairs: tuple[float, float], strategy: DataParallel = RING, known: Waiting = KNOWN) -> Exchange:
    return strategy.exchange_ready(pairs, 1.0, WIRE, find_device("V100"), constants=known)


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
    placement = place("V100", gpus=4, nodes=2, strategy=strategy, link="ethernet_10g")
    seconds = all_reduce_seconds(21 * 2**20, placement.group, placement.strategy.algorithm)
    found = exchange_of(three_layers.trace(Recipe(2, mode="forward_backward")), placement)
    assert found.exposed_seconds == pytest.approx(seconds + waiting().bucket_seconds)
    assert found.slowed_seconds == 0


def test_ranks_wait_for_the_largest_images_where_sides_are_drawn_anew() -> None:
    model, placement = zoo_model("resnet18"), place("V100", gpus=4)
    even, uneven = (exchange_of(model.trace(Recipe(8, uneven=uneven)), placement) for uneven in (0.0, 0.36))
    assert uneven.waiting_seconds > even.waiting_seconds + 0.3 * slowest_of(4)
    assert uneven.exposed_seconds == even.exposed_seconds


def exchange_of(step: Trace, placement: Placement) -> Exchange:
    """Kernels that all end after a second."""
    assert isinstance(placement.strategy, DataParallel)
    return placement.strategy.exchange(step, np.ones(len(step.columns)), placement.group, placement.device)
