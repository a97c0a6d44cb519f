import numpy as np
import pytest

from epochcast.capture.zoo import zoo_model
from epochcast.cost.stacks import find_stack
from epochcast.errors import BadInput
from epochcast.forecasting.layered_step import ARTEFACT_OPS, LAYER_OPS, layered_step, network_layers
from epochcast.graph.recipe import Recipe
from epochcast.graph.trace import Trace
from epochcast.hardware.catalogue import find_device

STACK, P100 = find_stack("tensorflow2_p100_report"), find_device("P100-PCIe")


def step(name: str, batch: int = 32, optimizer: str = "adam") -> Trace:
    return zoo_model(name).trace(Recipe(batch, optimizer=optimizer))


def test_layers_of_the_mnist_network_by_hand() -> None:
    rows, pools = network_layers(step("mnist_cnn"))
    assert pools == 3
    assert rows.size.tolist() == [28, 13, 5, 1, 1]
    assert rows.channels_out.tolist() == [32, 32, 32, 128, 10]
    assert not rows.is_same.any()


def test_layers_that_take_no_longer_than_their_host_leave_the_host() -> None:
    trace = step("mnist_cnn", batch=1)
    host = STACK.run_seconds + STACK.op_seconds * (LAYER_OPS + ARTEFACT_OPS)
    made = layered_step(trace, P100, STACK, benchmark_seconds=np.full(5, host))
    assert made.kernel_seconds.tolist() == [0] * 5
    assert made.host_seconds == pytest.approx(STACK.step_seconds + STACK.op_seconds * (5 * 9 + 3 * 2))


def test_parts_sum_to_the_step() -> None:
    made = layered_step(step("cifar10_cnn"), P100, STACK)
    assert made.seconds == pytest.approx(made.kernel_seconds.sum() + made.pool_seconds + made.host_seconds)
    assert made.ratio == pytest.approx(made.benchmark_seconds.sum() / made.seconds)


def test_the_factor_is_no_constant() -> None:
    """Near 1.1 for four small layers, near 1.6 for seven, near 1.5 for the large network of the report."""
    few, many, large = (
        layered_step(step(name, batch), P100, STACK).ratio
        for name, batch in (("mnist_cnn_2conv", 16), ("cifar10_cnn", 64), ("patch_camelyon_cnn", 64))
    )
    assert few == pytest.approx(1.10, abs=0.1)
    assert many == pytest.approx(1.65, abs=0.1)
    assert large == pytest.approx(1.5, abs=0.12)


def test_a_larger_batch_never_takes_less_artefact() -> None:
    small, large = (layered_step(step("cifar10_cnn", batch), P100, STACK) for batch in (8, 64))
    assert (large.artefact_seconds > small.artefact_seconds).all()


def test_a_gpu_without_a_setup_is_answered() -> None:
    assert layered_step(step("cifar10_cnn"), find_device("T4"), STACK).seconds > 0


def test_a_network_of_other_ops_is_refused_by_their_names() -> None:
    with pytest.raises(
        BadInput, match="resnet18 is not made of convolutions, dense layers and pools alone: it has norm"
    ):
        layered_step(step("resnet18"), P100, STACK)


def test_as_many_times_as_layers_are_asked_for() -> None:
    with pytest.raises(BadInput, match="mnist_cnn has 5 layers with weights, got 2 times"):
        layered_step(step("mnist_cnn"), P100, STACK, benchmark_seconds=np.ones(2))
