"""Tables of products, convolutions and flash attention in today's formats as columns of a trace.

Every row becomes the op that a graph of the same layer has: see `describe.graph.op_work`.
"""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from epochcast.describe.graph.op_work import OpClass
from epochcast.describe.graph.trace import CLASSES, Columns
from epochcast.measure.evaluate.op_table import Formats
from training.op_parts import Array, Direction, Indices, OwnedColumns, joined, numbers, ops_of


def gemm_columns(table: pl.DataFrame) -> Columns:
    """(m × k)·(k × n) by `dtype`, as linear layers; with a `batch` above one, as many products."""
    m, n, k, batch = numbers(table, "m", "n", "k", "batch")
    rows, formats = np.arange(len(table)), Formats.of(table["dtype"])
    many = batch > 1
    classes = np.where(many, CLASSES.index(OpClass.BATCHED_MATMUL), CLASSES.index(OpClass.LINEAR))
    return ops_of(
        rows,
        classes,
        Direction.FORWARD,
        formats,
        flops=2 * batch * m * n * k,
        read_bytes=formats.operand_bytes * batch * (m * k + k * n),
        written_bytes=formats.result_bytes * batch * m * n,
        m=m,
        n=n,
        k=k,
        count=batch,
    ).columns


_CONV_DIRECTIONS = {
    "forward": Direction.FORWARD,
    "backward_data": Direction.DATA,
    "backward_weights": Direction.WEIGHTS,
}


def conv_columns(table: pl.DataFrame) -> Columns:
    """Convolutions of images in three directions, by `phase`, with groups."""
    phase = table["phase"].to_numpy()
    parts = [
        convolutions(table, np.flatnonzero(phase == name), direction) for name, direction in _CONV_DIRECTIONS.items()
    ]
    return joined(parts).columns


def convolutions(table: pl.DataFrame, rows: Indices, direction: Direction) -> OwnedColumns:
    """One direction of some rows: x and w give y, or two of the three give the gradient of the third."""
    some = table[rows]
    batch, into, out, groups = numbers(some, "batch", "in_channels", "out_channels", "groups")
    inside, outside, taps, stride = (
        first * second
        for first, second in (
            numbers(some, f"{name}_height", f"{name}_width") for name in ("in", "out", "kernel", "stride")
        )
    )
    inside, outside = batch * inside, batch * outside
    formats = Formats.of(some["dtype"])
    x, y, w = inside * into, outside * out, out * into / groups * taps
    read, written, shape = {
        Direction.FORWARD: (x + w, y, (outside, out / groups, into / groups * taps)),
        Direction.DATA: (y + w, x, (inside, into / groups, out / groups * taps)),
        Direction.WEIGHTS: (x + y, w, (out / groups, into / groups * taps, outside)),
    }[direction]
    return ops_of(
        rows,
        _conv_classes(taps, groups, into),
        direction,
        formats,
        flops=2 * outside * out * into / groups * taps,
        read_bytes=formats.operand_bytes * read,
        written_bytes=formats.result_bytes * written,
        m=shape[0],
        n=shape[1],
        k=shape[2],
        count=groups,
        kernel=taps,
        stride=stride,
        groups=groups,
        channels_in=into,
        channels_out=out,
        samples=batch,
    )


def _conv_classes(taps: Array, groups: Array, into: Array) -> Indices:
    grouped, depthwise, pointwise, plain = (
        CLASSES.index(c) for c in (OpClass.CONV_GROUPED, OpClass.CONV_DEPTHWISE, OpClass.CONV_POINTWISE, OpClass.CONV)
    )
    classes: Indices = np.select(
        [groups == 1, groups == into], [np.where(taps == 1, pointwise, plain), depthwise], grouped
    )
    return classes


def attention_columns(table: pl.DataFrame) -> Columns:
    """Fused attention forward in bfloat16, as many keys as queries (`tokens`), `kv_heads` for keys and values."""
    (tokens,) = numbers(table, "tokens")
    full = table.with_columns(
        dtype=table["dtype"] if "dtype" in table.columns else pl.lit("bf16"),
        query_length=pl.Series(tokens),
        key_length=pl.Series(tokens),
    )
    return attentions(full, np.arange(len(table)), Direction.FORWARD).columns


def is_full_attention(table: pl.DataFrame) -> NDArray[np.bool_]:
    """Which rows of several stacks time attention to all tokens before.

    Some stacks ran a short sliding window under the same name, above all with heads of 64 and 192: there the median is
    several times faster than the slowest stack, up to ten times the device's peak.
    """
    seconds, least, most, width, stacks = numbers(table, "seconds", "least", "most", "head_dim", "stacks")
    is_wide = np.isin(width, (128, 256, 512)) & (most <= 2 * seconds)
    full: NDArray[np.bool_] = (stacks > 1) & (width != 192) & (is_wide | (most <= 2 * least))
    return full


def attentions(table: pl.DataFrame, rows: Indices, direction: Direction) -> OwnedColumns:
    """Fused attention of some rows, forward or backward; a causal mask leaves the work that is done."""
    some = table[rows]
    batch, length, keys, heads, width = numbers(some, "batch", "query_length", "key_length", "heads", "head_dim")
    (kv_heads,), (width_v,), (window,) = (
        numbers(some, name, default=0.0) for name in ("kv_heads", "head_dim_v", "window")
    )
    kv_heads, width_v = np.where(kv_heads > 0, kv_heads, heads), np.where(width_v > 0, width_v, width)
    seen = np.minimum(np.where(window > 0, window, keys), keys)
    causal = some["causal"].fill_null(False).to_numpy().astype(bool)
    pairs = batch * heads * length * np.where(causal, seen * (2 * keys - seen + 1) / (2 * keys), seen)
    formats = Formats.of(some["dtype"])
    q, k, v = batch * heads * length * width, batch * kv_heads * keys * width, batch * kv_heads * keys * width_v
    out = batch * heads * length * width_v
    back = direction is Direction.BOTH
    return ops_of(
        rows,
        OpClass.ATTENTION,
        direction,
        formats,
        flops=2 * pairs * (3 * width + 2 * width_v if back else width + width_v),
        read_bytes=formats.operand_bytes * (q + k + v + (2 * out if back else 0)),
        written_bytes=formats.result_bytes * (q + k + v if back else out),
        m=length,
        n=seen,
        k=width,
        count=batch * heads,
        launches=3 if back else 1,
        samples=batch,
    )
