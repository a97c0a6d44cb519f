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
