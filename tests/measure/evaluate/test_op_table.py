import polars as pl
import pytest

from epochcast.describe.graph.trace import CLASSES
from epochcast.errors import BadInput
from epochcast.measure.evaluate.op_table import op_columns


def row(**given: object) -> pl.DataFrame:
    return pl.DataFrame([{"dtype": "float32", "phase": "forward", **given}])


def test_a_batched_product_by_hand() -> None:
    columns = op_columns(row(family="matmul", op="bmm", batch=6, m=27, n=21, k=390))
    assert columns.flops[0] == 2 * 6 * 27 * 21 * 390
    assert columns.bytes[0] == 4 * 6 * (27 * 390 + 390 * 21 + 27 * 21)
    assert CLASSES[columns.op_class[0]].value == "batched_matmul"


def test_a_linear_layer_reads_its_weight_once() -> None:
    columns = op_columns(row(family="matmul", op="linear", batch=8, m=16, n=32, k=64))
    assert columns.flops[0] == 2 * 8 * 16 * 32 * 64
    assert columns.bytes[0] == 4 * (8 * 16 * 64 + 64 * 32 + 8 * 16 * 32)


def test_a_convolution_by_hand_in_three_directions() -> None:
    """38 images of 893 x 5 x 5 by 326 filters of 3 x 3 with padding 1: output 5 x 5."""
    shape = {"batch": 38, "in_channels": 893, "out_channels": 326, "in_height": 5, "in_width": 5}
    shape |= {
        "kernel_height": 3,
        "kernel_width": 3,
        "stride_height": 1,
        "stride_width": 1,
        "pad_height": 1,
        "pad_width": 1,
    }
    x, y, w = 38 * 893 * 25, 38 * 326 * 25, 326 * 893 * 9
    for phase in ("forward", "backward_data", "backward_weights"):
        columns = op_columns(row(family="conv", op="conv", **shape).with_columns(phase=pl.lit(phase)))
        assert columns.flops[0] == 2 * y * 893 * 9
        assert columns.bytes[0] == 4 * (x + y + w)


def test_a_row_softmax_has_rows_and_columns() -> None:
    columns = op_columns(row(family="softmax", op="softmax", batch=127, hidden=168))
    assert (columns.m[0], columns.n[0]) == (127, 168)
    assert columns.bytes[0] == 2 * 4 * 127 * 168


def test_an_unknown_family_is_named() -> None:
    with pytest.raises(BadInput, match="no rule for op families \\['sort'\\]"):
        op_columns(row(family="sort", op="sort", batch=1, hidden=2))


def test_causal_attention_by_hand() -> None:
    """Two heads of 8 over 4 tokens: 10 of 16 pairs, two products each; backward has five products."""
    sizes = {"op": "sdpa", "batch": 3, "heads": 2, "kv_heads": 1, "head_dim": 8, "query_length": 4, "key_length": 4}
    columns = op_columns(row(family="attention", causal=True, **sizes).with_columns(dtype=pl.lit("bf16")))
    assert columns.flops[0] == 2 * 3 * 2 * 10 * (8 + 8)
    assert columns.bytes[0] == 2 * 3 * 4 * 8 * (2 + 1 + 1 + 2)
    back = op_columns(row(family="attention", causal=True, **sizes).with_columns(phase=pl.lit("backward_both")))
    assert back.flops[0] == 2 * 3 * 2 * 10 * 5 * 8


def test_groups_and_dilation_of_a_convolution_by_hand() -> None:
    """One image of 8 x 9 x 9 by 8 filters of 3 x 3, two apart, each of its own channel: output 5 x 5."""
    sides = {f"{name}_{side}": size for side in ("height", "width") for name, size in (
        ("in", 9), ("kernel", 3), ("stride", 1), ("dilation", 2),
    )}  # fmt: skip
    columns = op_columns(row(family="conv", op="conv", batch=1, in_channels=8, out_channels=8, groups=8, **sides))
    assert columns.flops[0] == 2 * 25 * 8 * 9
    assert CLASSES[columns.op_class[0]].value == "conv_depthwise"


def test_a_product_in_eight_bits_reads_bytes_and_writes_bfloat16() -> None:
    columns = op_columns(row(family="matmul", op="linear", m=16, n=32, k=64).with_columns(dtype=pl.lit("fp8")))
    assert (columns.read_bytes[0], columns.written_bytes[0]) == (16 * 64 + 64 * 32, 2 * 16 * 32)
