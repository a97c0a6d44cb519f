from dataclasses import replace

import numpy as np
import pytest

from epochcast.capture.model import BuiltModel
from epochcast.cost.contract import check_op_cost
from epochcast.cost.eight_bit import FP4_GAIN, FP8_GAIN, EightBit
from epochcast.cost.learned import load_learned
from epochcast.cost.registry import find_cost_model
from epochcast.cost.setting import TODAY
from epochcast.graph.build import Builder
from epochcast.graph.maths import op_math_index
from epochcast.graph.op import Graph
from epochcast.graph.recipe import Recipe
from epochcast.graph.trace import Trace
from epochcast.hardware.catalogue import find_device


def net(batch: int) -> Graph:
    """Products that arithmetic binds, then one that memory does."""
    b = Builder("net", batch)
    x = b.linear(b.input("x", (2048, 4096)), 8192, bias=False, name="wide")
    x = b.linear(b.relu(x), 4096, bias=False, name="back")
    return b.finish(b.linear(x, 16, bias=False, name="head"))


def trace(precision: str) -> Trace:
    return BuiltModel("net", net).trace(Recipe(4, precision=precision, mode="forward"))


def seconds(precision: str, device: str) -> np.ndarray:
    """Of the two large products, forward."""
    made = trace(precision)
    costs = find_cost_model().costs(made.columns, find_device(device), TODAY)
    return costs.mid[[layer in ("wide", "back") for layer in made.layers] & made.columns.is_matrix]


@pytest.mark.parametrize(
    ("device", "precision", "gain"),
    [
        ("H100-SXM5-80GB", "fp8", FP8_GAIN),
        ("B200", "mxfp8", FP8_GAIN),
        ("B200", "nvfp4", FP4_GAIN),
        ("H100-SXM5-80GB", "nvfp4", FP8_GAIN),  # no such format: cast up to eight bits
        ("A100-SXM4-80GB", "fp8", 1.0),
    ],
)
def test_large_products_gain_what_was_published_or_what_the_device_has(
    device: str, precision: str, gain: float
) -> None:
    assert seconds("bf16", device) / seconds(precision, device) == pytest.approx(gain, rel=0.02)


def test_a_product_bound_by_memory_gains_its_bytes() -> None:
    """One row: the weight is all there is to read, and it is half as large."""
    made = trace("fp8")
    few = replace(made.columns, flops=np.ones(len(made.columns)))
    model = EightBit(load_learned())
    narrow = model.costs(few, find_device("B200"), TODAY)
    wide = replace(few, math=np.full(len(few), op_math_index("bf16")), read_bytes=2 * few.read_bytes)
    wide = replace(wide, element_bytes=np.full(len(few), 2.0))
    before = load_learned().costs(wide, find_device("B200"), TODAY)
    asked = ~np.isnan(narrow.mid)
    assert asked.sum() == 2
    assert narrow.mid[asked] / before.mid[asked] == pytest.approx(few.bytes[asked] / wide.bytes[asked])


def test_it_says_nothing_of_anything_else() -> None:
    made = trace("bf16")
    costs = EightBit(load_learned()).costs(made.columns, find_device("B200"), TODAY)
    assert np.isnan(costs.mid).all()


def test_the_answer_names_who_gave_it() -> None:
    costs = find_cost_model().costs(trace("fp8").columns, find_device("H100-SXM5-80GB"), TODAY)
    assert set(costs.time_fractions()) == {"learned", "eight_bit"}


def test_narrow_products_are_less_certain() -> None:
    def width(precision: str) -> float:
        costs = find_cost_model().costs(trace(precision).columns, find_device("H100-SXM5-80GB"), TODAY)
        return float((costs.high / costs.low).max())

    assert width("fp8") > 1.5 * width("bf16")


@pytest.mark.parametrize("precision", ["fp8", "nvfp4"])
def test_the_default_model_keeps_its_contract(precision: str) -> None:
    check_op_cost(find_cost_model(), trace(precision), find_device("B300"))


def test_what_no_gpu_is_gets_the_formula() -> None:
    costs = find_cost_model().costs(trace("fp8").columns, find_device("TPU v3"), TODAY)
    assert set(costs.time_fractions()) == {"analytic"}
