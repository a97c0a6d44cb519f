from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.trace import Trace, trace_from
from epochcast.errors import UnknownName
from epochcast.hardware.device import Device
from epochcast.predict.cost.paleo import Paleo
from epochcast.predict.cost.software_setting import TODAY

Step = Callable[..., Trace]

FULL = Paleo(compute_fraction=1.0)


def one_conv(size: int, window: int, padding: int, stride: int = 1) -> Trace:
    """A pointwise layer of 4 channels, then the convolution of 8 in question, at batch 2."""

    def build(batch: int) -> Graph:
        b = Builder("one_conv", batch)
        x = b.conv(b.input("image", (4, size, size)), 4, 1, bias=False, name="before")
        x = b.conv(x, 8, window, padding=padding, stride=stride, bias=False, name="conv")
        return b.finish(x, loss="none")

    return trace_from(build, Recipe(2)).rebatch(2)


def places(trace: Trace, layer: str) -> list[int]:
    """Forward, data gradient, weight gradient."""
    return [i for i, name in enumerate(trace.layers) if name == layer]


# By hand: 3x3 over 6x6, batch 2: 2·36 positions · 8·4·9 · 2 = 41,472 flops;
# 2·36·(4 + 8) activations and 8·4·9 weights = 1,152 words = 4,608 bytes.
def test_reading_computing_and_writing_add_up(device: Device) -> None:
    trace = one_conv(6, 3, 1)
    costs, index = FULL.costs(trace.columns, device, TODAY), places(trace, "conv")[0]
    assert costs.mid[index] == pytest.approx(41_472e-12 + 4_608e-11)
    assert costs.low[index] == pytest.approx(4_608e-11)


def test_percent_of_peak_divides_every_op_but_the_update(device: Device) -> None:
    trace = one_conv(6, 3, 1)
    full, half = (Paleo(compute_fraction=p).costs(trace.columns, device, TODAY).mid for p in (1.0, 0.5))
    assert np.allclose(half[:-1], 2 * full[:-1])
    assert half[-1] == full[-1]


def test_the_update_is_three_passes_over_the_weights(device: Device) -> None:
    """304 weights: 2 flops each; 3 · 4 bytes each."""
    trace = one_conv(6, 3, 1)
    assert FULL.costs(trace.columns, device, TODAY).mid[-1] == pytest.approx(2 * 304e-12 + 12 * 304e-11)


def test_a_padded_convolution_costs_the_same_in_every_direction(device: Device) -> None:
    trace = one_conv(6, 3, 1)
    forward, data, weights = FULL.costs(trace.columns, device, TODAY).mid[places(trace, "conv")]
    assert data == pytest.approx(forward) == weights


def test_the_data_gradient_of_a_layer_as_large_as_its_image_is_dense(device: Device) -> None:
    """5x5 over 5x5 without padding makes one position of 25: PALEO's data gradient makes all 25, each from 25 taps."""
    trace = one_conv(5, 5, 0)
    forward, data, _ = places(trace, "conv")
    dense, exact = (
        Paleo(compute_fraction=1.0, dense_data_gradient=d).costs(trace.columns, device, TODAY).mid
        for d in (True, False)
    )
    flops = 2 * 2 * 8 * 4 * 25
    assert dense[data] - exact[data] == pytest.approx(24 * flops * 1e-12)
    assert exact[data] == pytest.approx(exact[forward])


def test_strides_leave_holes_that_are_not_counted(device: Device) -> None:
    trace = one_conv(8, 2, 0, stride=2)
    forward, data, _ = FULL.costs(trace.columns, device, TODAY).mid[places(trace, "conv")]
    assert data == pytest.approx(forward)


def test_other_algorithms_are_used_only_where_they_are_cheaper(step: Step, device: Device) -> None:
    trace = step("every_class", 64)
    gemm, fft, best = (
        replace(FULL, algorithm=name).costs(trace.columns, device, TODAY).mid for name in ("gemm", "fft", "best")
    )
    assert np.all(fft <= gemm)
    assert np.all(best <= fft)


# 3x3 over 32x32 with 256 channels each way: 16 products for 4 outputs where the sum has 36; transforms are small.
def test_winograd_saves_up_to_nine_quarters_of_the_flops(make_device: Callable[..., Device]) -> None:
    def build(batch: int) -> Graph:
        b = Builder("wide", batch)
        return b.finish(b.conv(b.input("image", (256, 32, 32)), 256, 3, padding=1, name="conv"), loss="none")

    trace = trace_from(build, Recipe(8, mode="forward")).rebatch(8)
    compute_bound = make_device(bytes_per_second=1e14)
    gemm, best = (
        replace(FULL, algorithm=name).costs(trace.columns, compute_bound, TODAY).mid[0] for name in ("gemm", "best")
    )
    assert 2.0 < gemm / best < 2.25


def test_an_unknown_algorithm_names_the_known_ones() -> None:
    with pytest.raises(UnknownName, match="no convolution algorithm called 'direct'; known: best, fft, gemm"):
        Paleo(algorithm="direct")


def test_percent_of_peak_is_a_fraction() -> None:
    with pytest.raises(ValueError, match=r"compute_fraction must be in \(0, 1\], got 62"):
        Paleo(compute_fraction=62)
