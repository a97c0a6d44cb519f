import pytest

from epochcast.describe.capture.model import BuiltModel
from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.trace import Trace
from epochcast.predict.comm.stragglers import ALIKE, Batch
from epochcast.predict.forecast.exchange import DDP_BUCKETS, HOROVOD_BUCKETS, Gradients, batch_of, gradients

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
    assert [(filled / MIB, place) for filled, place in DDP_BUCKETS.filled(made)] == expected


def test_buckets_hold_all_gradients() -> None:
    made = gradients(trace(zoo_model("resnet50")))
    for buckets in (DDP_BUCKETS, HOROVOD_BUCKETS):
        assert sum(size for size, _ in buckets.filled(made)) == made.total_bytes


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
