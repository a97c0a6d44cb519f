from collections.abc import Callable

import numpy as np
import pytest

from epochcast.describe.graph.op_work import OpClass
from epochcast.describe.graph.trace import CLASSES, Trace
from epochcast.errors import BadInput, UnknownName
from epochcast.hardware.catalogue import find_device
from epochcast.hardware.device import Device
from epochcast.predict.cost.efficiency import OTHER, load, priors
from epochcast.predict.cost.roofline import Analytic, Roofline, bounds
from epochcast.predict.cost.software_setting import TODAY

Step = Callable[..., Trace]


def layer(trace: Trace, name: str) -> int:
    """The first op of a layer: its forward op."""
    return trace.layers.index(name)


# By hand, conv2 of conv_net at batch 1: 8·8 positions · 8 out · 4 in · 9 taps · 2 = 36,864 flops at 1e12 per second;
# 4·64 + 8·64 activations and 8·4·9 weights of 4 bytes = 4,224 bytes at 1e11 per second.
def test_a_convolution_by_hand(step: Step, device: Device) -> None:
    trace = step("conv_net", 1)
    bound, index = bounds(trace.columns, device), layer(trace, "conv2")
    assert bound.compute[index] == pytest.approx(36_864e-12)
    assert bound.memory[index] == pytest.approx(4_224e-11)
    assert Roofline().costs(trace.columns, device, TODAY).mid[index] == pytest.approx(4_224e-11)


def test_products_run_on_tensor_cores_and_element_ops_do_not(step: Step, device: Device) -> None:
    """fp16: 4 Tflop/s for the convolution; the device lists no fp16 vector rate, so ReLU has the fp32 one."""
    trace = step("conv_net", 1, precision="fp16")
    bound = bounds(trace.columns, device)
    assert bound.compute[layer(trace, "conv2")] == pytest.approx(36_864e-12 / 4)
    assert bound.compute[layer(trace, "relu2")] == pytest.approx(8 * 64 * 1e-12)


def test_a_device_is_only_asked_for_the_maths_that_occur(step: Step, device: Device) -> None:
    Roofline().costs(step("conv_net", 1).columns, device, TODAY)
    with pytest.raises(UnknownName, match="no math of round called 'fp64'"):
        Roofline().costs(step("conv_net", 1, precision="fp64").columns, device, TODAY)


def test_double_precision_uses_tensor_cores_in_products_only(step: Step) -> None:
    """An A100 multiplies doubles at 19.5 Tflop/s by cuBLAS; cuDNN's convolutions and element ops have 9.7."""
    a100 = find_device("A100-SXM4-40GB")
    trace = step("conv_net", 1, precision="fp64")
    bound, c = bounds(trace.columns, a100).compute, trace.columns
    assert bound[layer(trace, "conv2")] == pytest.approx(36_864 / 9.7e12)
    assert bound[layer(trace, "relu2")] == pytest.approx(8 * 64 / 9.7e12)
    is_product = c.op_class == CLASSES.index(OpClass.LINEAR)
    np.testing.assert_allclose(bound[is_product], c.flops[is_product] / 19.5e12)
    volta = find_device("V100-SXM2-16GB")  # no tensor cores for doubles: one rate for all
    np.testing.assert_allclose(bounds(c, volta).compute, c.flops / 7.8e12)


def test_the_analytic_model_divides_by_the_efficiency_of_what_binds(step: Step, device: Device) -> None:
    trace = step("conv_net", 4096)
    index, table = layer(trace, "relu1"), priors()
    row, volta = table.classes[OpClass.ELEMENTWISE], table.generation("volta")
    bound = Roofline().costs(trace.columns, device, TODAY).mid[index]
    expected = bound / (row.memory_ratio * volta.memory_fraction) + table.kernel_seconds["gpu"]
    costs = Analytic().costs(trace.columns, device, TODAY)
    assert costs.mid[index] == pytest.approx(expected)
    assert costs.high[index] / costs.mid[index] == pytest.approx(row.factor)


def test_the_smallest_op_lasts_as_long_as_a_kernel(step: Step, device: Device) -> None:
    assert np.all(Analytic().costs(step("conv_net", 1).columns, device, TODAY).mid >= priors().kernel_seconds["gpu"])


def test_no_answer_beats_the_roofline(step: Step, device: Device) -> None:
    trace = step("every_class", 64)
    assert np.all(
        Analytic().costs(trace.columns, device, TODAY).mid > Roofline().costs(trace.columns, device, TODAY).mid
    )


def test_an_unknown_generation_has_wider_intervals(step: Step, make_device: Callable[..., Device]) -> None:
    trace = step("every_class", 4)
    known, unknown = (Analytic().costs(trace.columns, make_device(name), TODAY) for name in ("volta", "unheard_of"))
    assert np.all(unknown.high / unknown.mid > known.high / known.mid)


def test_the_priors_cover_every_class_and_name_their_source() -> None:
    table = priors()
    assert set(table.classes) == set(OpClass) - {OpClass.VIEW}
    assert all(row.source for row in table.classes.values())
    assert all(row.source for row in table.generations.values())
    assert table.generation("unheard_of").name == OTHER


def test_a_broken_row_is_named_with_its_file() -> None:
    text = '[[class]]\nname = "linear"\ncompute = 3.0\nmemory = 0.5\nfactor = 1.5\nsource = "x"\n'
    with pytest.raises(
        BadInput, match=r"efficiency.toml, \[\[class\]\] row 1 \(linear\): compute must be above 0 and at"
    ):
        load(text)


def test_a_table_without_a_class_is_refused() -> None:
    with pytest.raises(BadInput, match=r"no \[\[class\]\] row for linear, batched_matmul"):
        load("")
