from typing import Any

import numpy as np
import polars as pl
import pytest

from epochcast.describe.graph.trace import CLASSES, PHASES, Columns
from training.training_ops import training_op_columns

_TEXTS = ("source", "dtype", "op", "phase", "backend")
_COUNTS = (
    *("batch", "tokens", "query_length", "key_length", "heads", "kv_heads", "head_dim", "head_dim_v", "window"),
    *("hidden", "ffn", "vocab", "m", "n", "k", "channels_in", "channels_out", "height", "width", "kernel", "stride"),
    "elements",
)
SCHEMA: dict[str, Any] = dict.fromkeys(_TEXTS, pl.String) | dict.fromkeys(_COUNTS, pl.Int64) | {"causal": pl.Boolean}


def table(*rows: dict[str, Any]) -> pl.DataFrame:
    default = {"source": "somebody", "dtype": "bf16", "phase": "forward", "backend": "torch"}
    return pl.DataFrame([dict.fromkeys(SCHEMA) | default | row for row in rows], schema=SCHEMA)


def classes(columns: Columns) -> list[str]:
    return [CLASSES[c].value for c in columns.op_class]


def test_the_backward_pass_of_a_layer_is_its_two_gradients() -> None:
    made = training_op_columns(table({"op": "linear", "phase": "backward", "m": 64, "n": 32, "k": 16}))
    assert made.owner.tolist() == [0, 0]
    np.testing.assert_array_equal(made.columns.flops, [2 * 64 * 32 * 16] * 2)
    assert [PHASES[p].value for p in made.columns.phase] == ["backward", "backward"]


def test_nobody_asks_for_the_gradient_of_a_picture() -> None:
    image = {"op": "conv2d", "dtype": "fp32", "phase": "backward", "batch": 2, "channels_out": 8}
    image |= {"height": 12, "width": 12, "kernel": 3, "stride": 1}
    made = training_op_columns(table(image | {"channels_in": 3}, image | {"channels_in": 16}))
    assert made.owner.tolist() == [0, 1, 1]


def test_both_phases_are_forward_and_backward_together() -> None:
    rows = [{"op": "softmax", "phase": phase, "tokens": 64, "hidden": 32} for phase in ("forward", "backward", "both")]
    made = training_op_columns(table(*rows))
    seconds = np.bincount(made.owner, made.columns.bytes)
    assert seconds[2] == seconds[0] + seconds[1]


def test_causal_attention_with_a_window_has_its_part_of_the_flops() -> None:
    row = {"op": "sdpa", "batch": 1, "query_length": 8, "key_length": 8, "heads": 2, "kv_heads": 1, "head_dim": 4}
    made = training_op_columns(table(row, row | {"causal": True}, row | {"causal": True, "window": 3}))
    np.testing.assert_allclose(made.columns.flops / made.columns.flops[0], [1, 36 / 64, 21 / 64])


def test_a_gated_layer_is_three_products_and_what_lies_between() -> None:
    made = training_op_columns(
        table({"op": "swiglu_mlp", "backend": "huggingface", "tokens": 64, "hidden": 16, "ffn": 40})
    )
    assert sorted(classes(made.columns)) == ["elementwise"] * 2 + ["linear"] * 3


def test_a_plain_product_may_be_in_any_format() -> None:
    made = training_op_columns(table({"op": "matmul", "dtype": "tf32", "batch": 1, "m": 4, "n": 4, "k": 4}))
    assert (made.columns.flops[0], made.columns.element_bytes[0]) == (128, 4)


@pytest.mark.parametrize(
    "row",
    [
        {"op": "rope", "tokens": 64, "hidden": 32},
        {"op": "layernorm", "backend": "torch_compile", "tokens": 64, "hidden": 32},
        {"op": "layernorm", "dtype": None, "tokens": 64, "hidden": 32},
        {"op": "sdpa", "dtype": "fp8", "batch": 1, "query_length": 8, "key_length": 8, "heads": 2, "head_dim": 4},
    ],
    ids=["no rule", "compiled", "no dtype", "eight bits"],
)
def test_rows_of_other_kernels_are_left_out(row: dict[str, Any]) -> None:
    made = training_op_columns(table(row, {"op": "softmax", "tokens": 8, "hidden": 8}))
    assert set(made.owner.tolist()) == {1}
