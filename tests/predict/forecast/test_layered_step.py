from dataclasses import replace

import numpy as np
import pytest

from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.trace import Trace
from epochcast.errors import BadInput
from epochcast.hardware.catalogue import find_device
from epochcast.predict.cost.layers_model import layers_model
from epochcast.predict.cost.single_layer import LayerRows
from epochcast.predict.cost.stacks import find_stack
from epochcast.predict.cost.winograd import winograd_seconds
from epochcast.predict.forecast.layered_step import (
    ARTEFACT_OPS,
    LAYER_OPS,
    WINOGRAD_RATE,
    layered_step,
    least_seconds,
    network_layers,
)

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
    """Near 1.1 for four small layers, near 1.6 for seven, about 1.5 for the large network of the report."""
    few, many, large = (
        layered_step(step(name, batch), P100, STACK).ratio
        for name, batch in (("mnist_cnn_2conv", 16), ("cifar10_cnn", 64), ("patch_camelyon_cnn", 64))
    )
    assert few == pytest.approx(1.10, abs=0.1)
    assert many == pytest.approx(1.65, abs=0.1)
    assert large == pytest.approx(1.5, abs=0.15)


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


def test_no_layer_with_odd_channels_is_faster_than_any_that_was_measured() -> None:
    """The second layer of a network like Patch Camelyon, 250 channels to 250 at 48²: three products of
    2·N·48²·9·250² flops.
    """
    rows, _ = network_layers(step("patch_camelyon_cnn", 64))
    into, out = (np.where(each == 256, 250, each) for each in (rows.channels_in, rows.channels_out))
    odd = replace(rows, channels_in=into, channels_out=out)
    flops = 3 * 2 * 64 * 48**2 * 9 * 250**2
    assert least_seconds(odd, P100)[1] == pytest.approx(flops / (WINOGRAD_RATE * P100.peak("fp32")))
    assert np.isinf(winograd_seconds(odd, P100)[1])


def test_wide_layers_take_no_longer_than_winograds_method() -> None:
    trace = step("patch_camelyon_cnn", 64)
    rows, _ = network_layers(trace)
    kernels = layered_step(trace, P100, STACK).kernel_seconds
    rate = 3 * rows.product_flops / kernels / P100.peak("fp32")
    assert np.all((rate[1:4] > 1.8) & (rate[1:4] < 2.25)), "256 to 512 channels: about twice the peak"
    assert kernels[1] <= winograd_seconds(rows, P100)[1] * 1.02


# Abadi et al., tf_benchmarks 2017, P100, synthetic data: 144 and 154 images/s.
@pytest.mark.parametrize(("batch", "images_per_second"), [(32, 144), (64, 154)])
def test_the_convolutions_of_vgg_take_what_its_measured_steps_leave_them(batch: int, images_per_second: float) -> None:
    """The dense layers as memory has it: weights of 0.49 GB read three times, updated in three passes."""
    device = find_device("P100-SXM2-16GB")
    trace = step("vgg16", batch)
    rows, _ = network_layers(trace)
    made = layered_step(trace, device, STACK)
    dense = 6 * 4 * rows.weight_elements[rows.size == 1].sum() / (0.75 * device.memory_bytes_per_second)
    seconds = made.kernel_seconds[rows.size > 1].sum() + dense + made.pool_seconds + made.host_seconds
    assert seconds == pytest.approx(batch / images_per_second, rel=0.06)


def test_winograds_method_by_hand() -> None:
    """One image of 4x4 with 32 channels to 32: one tile; and channels of 31, which it does not take."""
    ones = np.ones(2)
    into, yes, names = np.array([32.0, 31.0]), ones > 0, np.full(2, "relu")
    rows = LayerRows(
        "conv2d", ones, 4 * ones, 3 * ones, ones, yes, into, 32 * ones, yes, names, np.full(2, "adam"), yes
    )
    device = replace(P100, memory_bytes_per_second=1e12)
    products = 3 * 72 * 32 * 32 / (0.8 * 9.3e12)
    moved = 3 * (2 * 4 * 16 * 32 + 2 * 4 * 36 * 64) + 8 * 4 * 16 * 32
    assert winograd_seconds(rows, device) == pytest.approx([products + moved / 0.75e12, np.inf])
    assert np.isinf(winograd_seconds(rows, find_device("K80"))).all()


def test_measured_layers_are_believed() -> None:
    trace = step("patch_camelyon_cnn", 64)
    times = layered_step(trace, P100, STACK).benchmark_seconds / 2
    made = layered_step(trace, P100, STACK, benchmark_seconds=times)
    np.testing.assert_array_equal(made.benchmark_seconds, times)


def test_the_first_layer_needs_no_gradient_of_the_picture() -> None:
    """With the same benchmark times as the second of two equal layers, the first has less left."""
    trace = step("patch_camelyon_cnn", 64)
    rows, _ = network_layers(trace)
    setup = layers_model().setup("conv2d", P100, STACK.layers)
    assert setup is not None
    fraction = setup.data_gradient_fraction(rows, P100)
    assert np.all((fraction > 0.05) & (fraction < 0.6))
    times = np.full(len(rows), 1.0)
    made = layered_step(trace, P100, STACK, benchmark_seconds=times)
    host = STACK.run_seconds + STACK.op_seconds * (LAYER_OPS + ARTEFACT_OPS)
    left = times - made.artefact_seconds - host
    np.testing.assert_allclose(made.kernel_seconds, left * np.where(np.arange(len(rows)) == 0, 1 - fraction, 1.0))


def test_pools_keep_no_places_of_maxima() -> None:
    """Each pool moves x and y forward, x, y, dy and dx backward; its inputs are four times its results."""
    trace = step("patch_camelyon_cnn", 64)
    values = 64 * sum(side**2 * width for side, width in ((96, 256), (48, 256), (24, 512), (12, 512), (6, 1024)))
    least = 3 * 1.25 * 4 * values / P100.memory_bytes_per_second
    assert least < layered_step(trace, P100, STACK).pool_seconds < 3 * least
