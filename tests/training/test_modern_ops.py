"""Rows of tables must be the very ops that a graph of the same layer has."""

import numpy as np
import polars as pl
import pytest

from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph, Op
from epochcast.describe.graph.op_kinds import Attention, Conv, Matmul
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.trace import COLUMN_NAMES, Columns, columns_of
from epochcast.describe.graph.training import step_ops
from epochcast.errors import BadInput
from training.modern_ops import (
    attention_columns,
    conv_columns,
    gemm_columns,
    is_full_attention,
)


def steps(graph: Graph, precision: str = "bf16") -> list[Op]:
    recipe = Recipe(graph.batch, precision=precision, mode="forward_backward", with_loss=False)
    return list(step_ops(graph, recipe))


def assert_same(columns: Columns, ops: list[Op]) -> None:
    expected = columns_of(ops)
    for name in COLUMN_NAMES:
        if name != "samples":
            np.testing.assert_array_equal(getattr(columns, name), getattr(expected, name), name)


@pytest.mark.parametrize(("dtype", "precision"), [("bfloat16", "bf16"), ("fp8", "fp8"), ("nvfp4", "nvfp4")])
def test_a_product_is_a_linear_layer(dtype: str, precision: str) -> None:
    b = Builder("two layers", 48)
    x = b.linear(b.input("x", (64,)), 96, bias=False)
    graph = b.finish(b.linear(x, 8, bias=False), loss="none")
    first = next(op for op in steps(graph, precision) if isinstance(op.kind, Matmul))
    assert_same(gemm_columns(pl.DataFrame({"dtype": [dtype], "m": [48], "n": [96], "k": [64]})), [first])


@pytest.mark.parametrize(
    ("groups", "kernel", "stride"),
    [(1, 3, 1), (1, 1, 1), (4, 3, 2), (16, 5, 1)],
    ids=["plain", "1x1", "groups", "depth"],
)
def test_a_convolution_in_three_directions(groups: int, kernel: int, stride: int) -> None:
    b = Builder("one convolution", 6)
    x = b.conv(b.input("x", (3, 14, 14)), 16, 1, bias=False)  # so that there is a data gradient
    y = b.conv(x, 32, kernel, stride=stride, padding=kernel // 2, groups=groups, bias=False)
    ops = [op for op in steps(b.finish(y, loss="none"), "fp16") if isinstance(op.kind, Conv)]
    of_second = [ops[1], *ops[2:4]]
    row = {"batch": 6, "in_channels": 16, "out_channels": 32, "groups": groups, "dtype": "float16"}
    row |= {"in_height": 14, "in_width": 14, "out_height": y.shape[2], "out_width": y.shape[3]}
    row |= {
        f"{name}_{side}": size
        for name, size in (("kernel", kernel), ("stride", stride))
        for side in ("height", "width")
    }
    table = pl.DataFrame([row | {"phase": phase} for phase in ("forward", "backward_data", "backward_weights")])
    assert_same(conv_columns(table), of_second)


@pytest.mark.parametrize("causal", [True, False])
def test_attention_with_grouped_heads(causal: bool) -> None:
    b = Builder("one attention", 3)
    q, kv = b.input("q", (8, 32, 16)), b.input("kv", (2, 32, 16))
    graph = b.finish(b.attention(q, kv, kv, causal=causal), loss="none")
    forward = next(op for op in steps(graph) if isinstance(op.kind, Attention))
    row = {"batch": 3, "tokens": 32, "heads": 8, "kv_heads": 2, "head_dim": 16, "causal": causal}
    assert_same(attention_columns(pl.DataFrame([row])), [forward])


def test_a_window_behind_the_name_of_full_attention_is_found() -> None:
    row = {"head_dim": 128, "stacks": 3, "least": 1.0, "seconds": 1.5, "most": 2.0}
    rows = [row, row | {"most": 9.0}, row | {"head_dim": 192}, row | {"stacks": 1}]
    assert is_full_attention(pl.DataFrame(rows)).tolist() == [True, False, False, False]


def test_an_unknown_dtype_is_named() -> None:
    with pytest.raises(BadInput, match="no rule for dtypes \\['int3'\\]"):
        gemm_columns(pl.DataFrame({"dtype": ["int3"], "m": [1], "n": [1], "k": [1]}))
