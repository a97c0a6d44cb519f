"""Timed operators with their backward passes (the columns of `ops_training`) as ops of a trace.

Each row is the layer it names, alone in a network, and its ops are those of that network's step. Rows whose kernels no
graph has are left out: fused by a compiler or a vendor (`torch_compile`, bias-dropout-add), of several unknown kernels
(rope, vocabulary-parallel losses), products of attention in eight bits, and rows without a dtype.
"""

from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from epochcast.describe.capture.zoo.attention_layers import gated
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Op, Phase
from epochcast.describe.graph.op_kinds import Attention
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.tensor import DType, Tensor
from epochcast.describe.graph.trace import Columns, columns_of
from epochcast.describe.graph.training import step_ops
from training.modern_ops import gemm_columns
from training.op_parts import OwnedColumns, joined

Row = Mapping[str, Any]

_PRECISIONS = {"fp32": "fp32", "fp16": "fp16", "bf16": "bf16"}
_PHASES = {
    "forward": (Phase.FORWARD,),
    "backward": (Phase.BACKWARD,),
    "both": (Phase.FORWARD, Phase.BACKWARD),
}
# Pictures have so many channels at most: nobody asks for their gradient.
_PICTURE_CHANNELS = 4


def read_training_ops(path: Path) -> pl.DataFrame:
    """The table with sizes as whole numbers and flags as such, whatever types its columns are stored in."""
    table = pl.read_parquet(path)
    sizes = [pl.col(name).cast(pl.Int64) for name in _SIZES if name in table.columns]
    return table.with_columns(*sizes, pl.col("causal").cast(pl.String).str.to_lowercase() == "true")


def training_op_columns(table: pl.DataFrame) -> OwnedColumns:
    """The ops of every row that has some; `owner` tells which rows these are."""
    rows = table.with_row_index("row")
    plain = rows.filter((pl.col("op") == "matmul") & (pl.col("phase") == "forward"))
    parts = [OwnedColumns(gemm_columns(plain), plain["row"].to_numpy().astype(np.int64))]
    known: dict[Hashable, Columns] = {}
    for row in rows.filter(is_layer(rows)).iter_rows(named=True):
        key = tuple(row[name] for name in _KEYS)
        if key not in known:
            known[key] = columns_of(layer_ops(row))
        columns = known[key]
        parts.append(OwnedColumns(columns, np.full(len(columns), row["row"], dtype=np.int64)))
    return joined(parts)


def is_layer(table: pl.DataFrame) -> pl.Series:
    """Which rows are a layer with a rule here, run by kernels that a graph has."""
    source, op, backend = pl.col("source"), pl.col("op"), pl.col("backend")
    runs_alike = (
        pl.when(op.is_in(["embedding", "cross_entropy", "swiglu_mlp", "geglu_mlp"]))
        .then(backend == "huggingface")
        .when(op == "rms_norm")  # Hugging Face's is six kernels, Megatron's dtype is unknown
        .then(source == "cudnn_frontend")
        .when(op == "layernorm")  # Apex' kernel of 2021 is up to thirty times slower backward
        .then(source != "superscaler_aceso")
        .otherwise(op.is_in(list(_LAYERS)))
    )
    usable = pl.col("dtype").is_in(list(_PRECISIONS)) & (backend != "torch_compile")
    return table.select((runs_alike & usable).fill_null(False)).to_series()


def layer_ops(row: Row) -> list[Op]:
    """What the phase of a row runs."""
    b = Builder("layer", 1)
    output = _LAYERS[row["op"]](b, row)
    loss = "cross_entropy" if row["op"] == "cross_entropy" else "none"
    graph = b.finish(output, loss=loss)
    recipe = Recipe(1, precision=_PRECISIONS[row["dtype"]], mode="forward_backward")
    return [op for op in step_ops(graph, recipe) if op.phase in _PHASES[row["phase"]]]


def _trained(b: Builder, *shape: int) -> Tensor:
    """An operand whose gradient is asked for, as of any tensor inside a network."""
    return b.parameter(f"x{len(b.parameters)}", shape)


def _image(b: Builder, row: Row) -> Tensor:
    shape = (row["channels_in"], row["height"] or 1, row["width"])
    if row["channels_in"] <= _PICTURE_CHANNELS:
        return b.constant("picture", (row["batch"], *shape))
    return _trained(b, row["batch"], *shape)


def _tokens(b: Builder, row: Row) -> Tensor:
    return _trained(b, row["tokens"], row["hidden"])


def _conv(b: Builder, row: Row) -> Tensor:
    kernel = row["kernel"]
    return b.conv(_image(b, row), row["channels_out"], kernel, stride=row["stride"], padding=kernel // 2, bias=False)


def _attention(b: Builder, row: Row) -> Tensor:
    heads, kv_heads, width = row["heads"], row["kv_heads"] or row["heads"], row["head_dim"]
    q = _trained(b, row["batch"], heads, row["query_length"], width)
    k = _trained(b, row["batch"], kv_heads, row["key_length"], width)
    v = _trained(b, row["batch"], kv_heads, row["key_length"], row["head_dim_v"] or width)
    kind = Attention(bool(row["causal"]), row["window"] or 0)
    return b.op(kind, [q, k, v], [(*q.shape[:-1], v.shape[-1])])[0]


def _product(b: Builder, row: Row) -> Tensor:
    return b.matmul(_trained(b, row["batch"], row["m"], row["k"]), _trained(b, row["batch"], row["k"], row["n"]))


def _softmax(b: Builder, row: Row) -> Tensor:
    return b.softmax(_trained(b, row["m"] or row["tokens"], row["n"] or row["hidden"]))


def _embedding(b: Builder, row: Row) -> Tensor:
    ids = b.constant("ids", (row["tokens"],), DType.INT64)
    return b.embedding(ids, row["vocab"], row["hidden"])


def _mlp(activation: str) -> Callable[[Builder, Row], Tensor]:
    return lambda b, row: gated(b, _tokens(b, row), row["ffn"], activation=activation)


_LAYERS: Mapping[str, Callable[[Builder, Row], Tensor]] = {
    "conv2d": _conv,
    "maxpool": lambda b, row: b.max_pool(_image(b, row), row["kernel"], row["stride"], row["kernel"] // 2),
    "batchnorm": lambda b, row: b.batch_norm(_image(b, row)),
    "group_norm": lambda b, row: b.norm(_image(b, row), "group", row["channels_in"]),
    "relu": lambda b, row: b.relu(_image(b, row)),
    "sdpa": _attention,
    "linear": lambda b, row: b.linear(_trained(b, row["m"], row["k"]), row["n"], bias=False),
    "batched_matmul": _product,
    "layernorm": lambda b, row: b.layer_norm(_tokens(b, row)),
    "rms_norm": lambda b, row: b.rms_norm(_tokens(b, row)),
    "softmax": _softmax,
    "dropout": lambda b, row: b.dropout(_trained(b, row["elements"])),
    "embedding": _embedding,
    "cross_entropy": lambda b, row: _trained(b, row["tokens"], row["vocab"]),
    "swiglu_mlp": _mlp("silu"),
    "geglu_mlp": _mlp("gelu"),
}
_SIZES = (
    *("batch", "tokens", "query_length", "key_length", "heads", "kv_heads", "head_dim", "head_dim_v", "window"),
    *("hidden", "ffn", "vocab", "m", "n", "k", "channels_in", "channels_out", "height", "width", "kernel", "stride"),
    "elements",
)
# What the ops of a row depend on.
_KEYS = ("op", "dtype", "phase", *_SIZES, "causal")
