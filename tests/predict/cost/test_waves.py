"""Tiles and waves by hand, on a device with ten multiprocessors."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epochcast.describe.graph.op_work import OpClass
from epochcast.describe.graph.trace import CLASSES, Columns
from epochcast.hardware.catalogue import find_device
from epochcast.hardware.device import Device
from epochcast.predict.cost.learned import load_learned
from epochcast.predict.cost.product import product_columns
from epochcast.predict.cost.waves import CHOICES, TILES, Array, is_tiled, log_padding, log_paddings

TEN = replace(find_device("V100"), compute_units=10)
SQUARE, SMALL = TILES.index((128, 128)), TILES.index((64, 32))


def product(m: float, n: float, count: float = 1.0, op_class: OpClass = OpClass.LINEAR) -> Columns:
    return replace(
        product_columns((1, 1, 512), "fp16"),
        op_class=np.array([CLASSES.index(op_class)]),
        flops=np.array([2 * m * n * count * 512]),
        m=np.array([m]),
        n=np.array([n]),
        count=np.array([count]),
    )


def paddings(columns: Columns, device: Device = TEN) -> Array:
    found: Array = np.exp(log_paddings(columns, float(device.compute_units))[0])
    return found


def test_tiles_that_fill_every_wave_cost_nothing() -> None:
    """5 · 4 tiles of 128 × 128 are two full waves of ten."""
    assert paddings(product(640, 512))[SQUARE] == pytest.approx(1)


@pytest.mark.parametrize(
    ("m", "n", "count", "expected"),
    [
        (128, 128, 1, 10.0),  # one tile, ten places
        (128, 128, 11, 20 / 11),  # one more than a wave
        (129, 128, 5, 10 * 128 / (5 * 129)),  # one more row is one more tile for each of five
        (640, 513, 1, 30 * 128 * 128 / (640 * 513)),  # 5 · 5 = 25 tiles in three waves
    ],
)
def test_what_does_not_fill_a_wave_or_a_tile_is_paid_for(m: float, n: float, count: float, expected: float) -> None:
    assert paddings(product(m, n, count))[SQUARE] == pytest.approx(expected)


def test_smaller_tiles_fill_more_multiprocessors() -> None:
    """128 × 128 is one large tile, or eight of 64 × 32."""
    found = paddings(product(128, 128))
    assert (found[SQUARE], found[SMALL]) == pytest.approx((10, 10 / 8))


def test_dividing_the_inner_size_needs_no_waves() -> None:
    found = paddings(product(1, 1))
    assert len(found) == CHOICES == len(TILES) + 1
    assert found[-1] == 1 < found[:-1].min()


def test_attention_has_tiles_of_rows_only() -> None:
    """A width of 80 is not filled up to a tile: 1,280 rows by 128 are ten tiles."""
    rows = [paddings(product(1280, 80, op_class=each))[SQUARE] for each in (OpClass.ATTENTION, OpClass.LINEAR)]
    assert rows == pytest.approx([1.0, 128 / 80])


@pytest.mark.parametrize("op_class", [OpClass.CONV_DEPTHWISE, OpClass.RECURRENT])
def test_what_has_no_tiles_has_no_padding(op_class: OpClass) -> None:
    columns = product(1, 1, op_class=op_class)
    assert not is_tiled(columns).any()
    assert log_padding(log_paddings(columns, 10.0), is_tiled(columns), np.zeros(CHOICES)).tolist() == [0.0]


def test_the_cheapest_choice_counts() -> None:
    """Padding times cost: a tenth-full wave of large tiles against eight small ones that cost twice as much."""
    columns, costs = product(128, 128), np.full(CHOICES, 50.0)
    costs[SQUARE], costs[SMALL] = 0.0, np.log(2.0)
    found = log_padding(log_paddings(columns, 10.0), is_tiled(columns), costs)
    assert np.exp(found) == pytest.approx(2 * 10 / 8, rel=1e-3)


sizes = st.integers(1, 5000)


@settings(max_examples=200, deadline=None)
@given(
    m=sizes, n=sizes, count=st.integers(1, 300), more=st.tuples(*[st.integers(0, 700)] * 3), units=st.integers(1, 160)
)
@pytest.mark.parametrize("op_class", [OpClass.LINEAR, OpClass.BATCHED_MATMUL, OpClass.ATTENTION, OpClass.CONV])
def test_more_rows_columns_or_products_never_need_less_arithmetic(
    op_class: OpClass, m: int, n: int, count: int, more: tuple[int, int, int], units: int
) -> None:
    device = replace(TEN, compute_units=units)
    costs = load_learned().laws.tile_costs
    small = product(m, n, count, op_class)
    large = product(m + more[0], n + more[1], count + more[2], op_class)

    def log_work(columns: Columns) -> float:
        padding = log_padding(log_paddings(columns, float(device.compute_units)), is_tiled(columns), costs)
        return float(np.log(columns.flops[0]) + padding[0])

    assert log_work(large) >= log_work(small) - 1e-9
