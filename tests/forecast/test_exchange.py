import numpy as np
import pytest

from epochcast.capture.model import BuiltModel
from epochcast.capture.zoo import zoo_model
from epochcast.comm.allreduce import all_reduce_seconds
from epochcast.forecast.exchange import Gradients, buckets, exposed_seconds, gradients
from epochcast.forecast.placement import STRATEGIES, Strategy, place
from epochcast.graph.recipe import Recipe
from epochcast.graph.trace import Trace

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


def test_two_buckets_on_one_wire_by_hand(three_layers: BuiltModel) -> None:
    """16 MiB leave after the first gradient, 5 MiB after the last; the wire is busy 16/21 of the exchange till then."""
    step, placement = trace(three_layers), place("V100", gpus=2, nodes=2, link="ethernet_10g")
    made, group = gradients(step), placement.group()
    first, second = (all_reduce_seconds(size * MIB, group) for size in (16, 5))
    ends = np.arange(1.0, len(step.columns) + 1) * 1e-3
    wire_free = max(ends[made.places[0]] + first, ends[made.places[-1]]) + second
    assert exposed_seconds(step, ends, ends[-1], placement) == pytest.approx(wire_free - ends[-1])


def test_a_slow_backward_pass_hides_all_but_the_last_bucket(three_layers: BuiltModel) -> None:
    step, placement = trace(three_layers), place("V100", gpus=2)
    ends = np.arange(1.0, len(step.columns) + 1)  # a second per kernel
    last = ends[gradients(step).places[-1]] - ends[-1] + all_reduce_seconds(5 * MIB, placement.group())
    assert exposed_seconds(step, ends, ends[-1], placement) == pytest.approx(max(0.0, last))


@pytest.mark.parametrize("strategy", ["mirrored", "multi_worker_mirrored", "parameter_server"])
def test_one_packed_exchange_behind_the_backward_pass_is_all_exposed(three_layers: BuiltModel, strategy: str) -> None:
    step, placement = trace(three_layers), place("V100", gpus=4, nodes=2, strategy=strategy, link="ethernet_10g")
    seconds = all_reduce_seconds(21 * MIB, placement.group(), STRATEGIES[strategy].algorithm)
    assert exposed_seconds(step, np.ones(len(step.columns)), 1.0, placement) == seconds


def test_one_gpu_exchanges_nothing(three_layers: BuiltModel) -> None:
    step = trace(three_layers)
    assert exposed_seconds(step, np.ones(len(step.columns)), 1.0, place("V100")) == 0


def test_a_strategy_without_a_first_bucket_uses_the_others_size() -> None:
    made = Gradients((3, 3, 3), (0, 1, 2))
    assert buckets(made, Strategy("ring", bucket_bytes=6)) == [(6, 1), (3, 2)]
