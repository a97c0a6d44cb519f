"""Tables of single operators that have other columns than `ops`, as tables that have those.

    m, n, k, dtype                                          products, forward (`gemm_modern`)
    tokens, heads, head_dim                                 fused attention, forward, in bfloat16 (`attention_modern`)
    in_channels, kernel_height, phase, dtype                convolutions (`conv_amd`)
    op, phase, dtype, with sizes of layers                  operators of training (`ops_training`)

Of the last, products, convolutions, softmax and layer norms are known forward, attention in both directions. Its
`backward` is `backward_both`: the gradients of all operands.
"""

import polars as pl

_FAMILIES = {
    "matmul": "matmul",
    "batched_matmul": "matmul",
    "conv2d": "conv",
    "softmax": "softmax",
    "layernorm": "layernorm",
    "sdpa": "attention",
}
"""Families by the op of a table of training."""
_PHASES = {"backward": "backward_both"}


def with_op_columns(frame: pl.DataFrame) -> pl.DataFrame:
    """The table with the columns of `ops`, where it is one of single operators by its sizes."""
    columns = set(frame.columns)
    if "family" in columns or not {"device", "seconds"} <= columns:
        return frame
    if {"op", "phase", "dtype"} <= columns:
        return _training(frame)
    if {"m", "n", "k", "dtype"} <= columns:
        return _named(frame, "matmul", "linear")
    if {"tokens", "heads", "head_dim"} <= columns:
        lengths = {"query_length": pl.col("tokens"), "key_length": pl.col("tokens")}
        return _named(frame.with_columns(**lengths), "attention", "sdpa")
    if {"in_channels", "out_channels", "kernel_height", "dtype"} <= columns:
        return _named(frame, "conv", "conv")
    return frame


def _named(frame: pl.DataFrame, family: str, op: str) -> pl.DataFrame:
    usual = {"phase": "forward", "dtype": "bfloat16"}
    missing = [pl.lit(value).alias(name) for name, value in usual.items() if name not in frame.columns]
    return frame.with_columns(pl.lit(family).alias("family"), pl.lit(op).alias("op"), *missing)


def _training(frame: pl.DataFrame) -> pl.DataFrame:
    """Layers by their sizes: images are square windows with the usual padding, rows of a norm are tokens."""
    absent = [pl.lit(None, pl.Float64).alias(name) for name in _SIZES if name not in frame.columns]
    table = frame.with_columns(absent)
    op, is_rows = pl.col("op"), pl.col("op").is_in(["softmax", "layernorm"])
    sides = [
        pl.coalesce(value, pl.lit(1.0)).alias(f"{name}_{side}")
        for side in ("height", "width")
        for name, value in (
            ("in", pl.col(side)),
            ("kernel", pl.col("kernel")),
            ("stride", pl.col("stride")),
            ("pad", pl.col("kernel") // 2),
        )
    ]
    return table.with_columns(
        *sides,
        op.replace_strict(_FAMILIES, default=op, return_dtype=pl.String).alias("family"),
        pl.col("phase").replace(_PHASES),
        pl.col("channels_in").alias("in_channels"),
        pl.col("channels_out").alias("out_channels"),
        pl.when(is_rows).then(pl.coalesce("m", "tokens")).otherwise("batch").alias("batch"),
        pl.when(is_rows).then(pl.coalesce("n", "hidden")).otherwise("hidden").alias("hidden"),
    )


_SIZES = (
    "m",
    "n",
    "k",
    "batch",
    "tokens",
    "hidden",
    "height",
    "width",
    "kernel",
    "stride",
    "channels_in",
    "channels_out",
)
