import numpy as np
import pytest

pytest.importorskip("polars")
pytest.importorskip("scipy")
pytest.importorskip("sklearn")

from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.trace import Columns
from epochcast.errors import BadInput
from training.peers import STEP_PEERS, LinearStep, RawStepMLP, four_totals, layer_lines, raw_totals


def columns(batch: int) -> Columns:
    return zoo_model("mnist_cnn").trace(Recipe(batch, optimizer="momentum")).columns


def test_coefficients_that_made_the_steps_are_found() -> None:
    features = np.array([[1.0, 0, 1], [0, 2.0, 1], [3.0, 1, 1], [5.0, 5, 1]])
    seconds = features @ [0.5, 0.25, 1.0]
    assert LinearStep().fit(features, seconds).seconds(features) == pytest.approx(seconds)


def test_no_coefficient_is_below_zero() -> None:
    features, seconds = np.array([[1.0, 1.0], [1.0, 2.0], [1.0, 3.0]]), np.array([3.0, 2.0, 1.0])
    fitted = LinearStep().fit(features, seconds)
    assert (fitted.seconds(np.eye(2)) >= 0).all()


def test_the_totals_that_grow_with_the_batch_are_flops_and_activations() -> None:
    one, two = four_totals(columns(8)), four_totals(columns(16))
    assert two[:2] == pytest.approx(2 * one[:2])
    assert two[2:] == pytest.approx(one[2:])


def test_the_number_of_layers_does_not_grow_with_the_batch() -> None:
    one, two = layer_lines(columns(8)), layer_lines(columns(16))
    half = len(one) // 2
    assert (one[:half] == two[:half]).all()
    assert two[half:].sum() > one[half:].sum()


def test_raw_totals_count_every_op_once() -> None:
    some = columns(8)
    assert raw_totals(some)[3:].sum() == len(some)


def test_the_network_on_raw_time_learns_a_line_and_repeats_itself() -> None:
    features = np.linspace(1, 2, 64)[:, None]
    seconds = 1e-3 * features[:, 0]
    first, again = (RawStepMLP(epochs=60).fit(features, seconds).seconds(features) for _ in range(2))
    assert np.abs(first / seconds - 1).mean() < 0.1
    assert (first == again).all()


@pytest.mark.parametrize("peer", [make for _, make in STEP_PEERS.values()])
def test_a_peer_must_be_fitted_first(peer: type[LinearStep]) -> None:
    with pytest.raises(BadInput, match="must be fitted first"):
        peer().seconds(np.ones((1, 1)))
