"""Tables of single measured operators (the columns of `ops`) as columns of a trace, so that the cost model of steps can
forecast them, too.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from epochcast.describe.graph.math_modes import op_math_index
from epochcast.describe.graph.op import Phase
from epochcast.describe.graph.op_work import MATRIX_CLASSES, OpClass
from epochcast.describe.graph.trace import CLASSES, PHASES, Columns
from epochcast.errors import BadInput
from epochcast.predict.cost.software_setting import SoftwareSetting

FAMILIES = {
    "matmul": OpClass.LINEAR,
    "conv": OpClass.CONV,
    "elementwise": OpClass.ELEMENTWISE,
    "softmax": OpClass.SOFTMAX,
    "layernorm": OpClass.LAYER_NORM,
    "rnn": OpClass.RECURRENT,
    "attention": OpClass.ATTENTION,
}
# dtype: math, bytes of an element as features see it, bytes of an operand in memory, bytes of a result.
# Narrow products give bfloat16; four bits count as a byte with their scales, as in `describe.graph.tensor`.
FORMATS: Mapping[str, tuple[str, float, float, float]] = {
    "fp32": ("fp32", 4, 4, 4),
    "tf32": ("tf32", 4, 4, 4),
    "fp16": ("fp16", 2, 2, 2),
    "bf16": ("bf16", 2, 2, 2),
    "fp8": ("fp8", 1, 1, 2),
    "nvfp4": ("fp4", 0.5, 1, 2),
}
ALIASES: Mapping[str, str] = {
    "float32": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "fp8_e4m3": "fp8",
    "mxfp8": "fp8",
}
DTYPES = (*FORMATS, *ALIASES)
"""Every name of a format that a table may use."""
_ROW_FAMILIES = ("elementwise", "softmax", "layernorm")
_GATES = {"lstm": 4, "gru": 3}
ATTENTION_BACKWARD_LAUNCHES = 3.0

Array = NDArray[np.float64]


def op_setting(source: str | None) -> SoftwareSetting:
    """The software behind a table of ops: bare cuDNN and cuBLAS of 2017 in DeepBench, else PyTorch 2."""
    return SoftwareSetting() if source == "deepbench" else SoftwareSetting(framework_age=0.64)


@dataclass(frozen=True)
class _Work:
    """The work of every row, as if all were of one family; `read` and `written` are elements, not bytes."""

    flops: Array
    read: Array
    written: Array
    m: Array
    n: Array
    k: Array
    count: Array


@dataclass(frozen=True)
class Formats:
    """The number formats of rows: math of their products, and bytes of an element, an operand and a result."""

    math: NDArray[np.int64]
    element_bytes: Array
    operand_bytes: Array
    result_bytes: Array

    @classmethod
    def of(cls, dtypes: pl.Series) -> "Formats":
        """By the names in a table."""
        unknown = set(dtypes.unique().to_list()) - set(DTYPES)
        if unknown:
            raise BadInput(f"no rule for dtypes {sorted(map(str, unknown))}; known: {', '.join(DTYPES)}")
        names, index = np.unique(dtypes.to_numpy().astype(str), return_inverse=True)
        rows = [FORMATS[ALIASES.get(name, name)] for name in names]
        math = np.array([op_math_index(row[0]) for row in rows], dtype=np.int64)
        sizes = np.array([row[1:] for row in rows], dtype=np.float64).reshape(-1, 3)
        return cls(math[index], *sizes[index].T)


def op_columns(table: pl.DataFrame) -> Columns:
    """Every row as one op. Flops and bytes are computed from the shapes, not read from the table."""
    unknown = set(table["family"].unique()) - set(FAMILIES)
    if unknown:
        raise BadInput(f"no rule for op families {sorted(unknown)}; known: {', '.join(FAMILIES)}")
    family, phase = (table[name].to_numpy() for name in ("family", "phase"))
    is_conv, formats = family == "conv", Formats.of(table["dtype"])
    works = {"conv": _convolutions(table), "rnn": _recurrences(table), "attention": _attentions(table)}
    works |= dict.fromkeys(_ROW_FAMILIES, _rows(table))
    product, is_family = _products(table), [family == name for name in works]

    def column(field: str) -> Array:
        return np.select(is_family, [getattr(work, field) for work in works.values()], getattr(product, field))

    kernel, stride, groups = _window(table, "kernel"), _window(table, "stride"), _groups(table)
    count, channels_in = column("count"), _column(table, "in_channels")
    classes = np.array([FAMILIES[f] for f in family], dtype=object)
    classes[(family == "matmul") & (count > 1)] = OpClass.BATCHED_MATMUL
    classes[is_conv & (kernel == 1)] = OpClass.CONV_POINTWISE
    classes[is_conv & (groups > 1)] = OpClass.CONV_GROUPED
    classes[is_conv & (groups > 1) & (groups == channels_in)] = OpClass.CONV_DEPTHWISE
    return Columns(
        flops=column("flops"),
        read_bytes=formats.operand_bytes * column("read"),
        written_bytes=formats.result_bytes * column("written"),
        m=column("m"),
        n=column("n"),
        k=column("k"),
        count=count,
        launches=np.where((family == "attention") & (phase != "forward"), ATTENTION_BACKWARD_LAUNCHES, 1.0),
        op_class=np.array([CLASSES.index(c) for c in classes]),
        phase=np.where(phase == "forward", PHASES.index(Phase.FORWARD), PHASES.index(Phase.BACKWARD)),
        math=formats.math,
        gradient=np.select([phase == f"backward_{field}" for field in ("data", "weights", "both")], [1, 2, 3], 0),
        element_bytes=formats.element_bytes,
        kernel=np.where(is_conv, kernel, 1.0),
        stride=np.where(is_conv, stride, 1.0),
        groups=np.where(is_conv, groups, 1.0),
        channels_in=np.where(is_conv, channels_in, 0.0),
        channels_out=np.where(is_conv, _column(table, "out_channels"), 0.0),
        is_matrix=np.array([c in MATRIX_CLASSES for c in classes]),
        samples=_batch(table),
    )


def _column(table: pl.DataFrame, name: str, default: float = 0.0) -> Array:
    if name not in table.columns:
        return np.full(len(table), default)
    return table[name].cast(pl.Float64).fill_null(default).to_numpy()


def _window(table: pl.DataFrame, name: str) -> Array:
    """Height times width, 1 where there is none."""
    return np.maximum(_column(table, f"{name}_height", 1) * _column(table, f"{name}_width", 1), 1)


def _groups(table: pl.DataFrame) -> Array:
    return np.maximum(_column(table, "groups", 1), 1)


def _batch(table: pl.DataFrame) -> Array:
    return np.maximum(_column(table, "batch", 1), 1)


def _products(table: pl.DataFrame) -> _Work:
    """(m × k) · (k × n), `count` times. A linear layer's batch multiplies its rows, not its weight."""
    m, n, k, batch = *(_column(table, name) for name in "mnk"), _batch(table)
    linear = table["op"].to_numpy() == "linear"
    rows, count = np.where(linear, m * batch, m), np.where(linear, 1.0, batch)
    return _Work(2 * rows * n * k * count, count * (rows * k + k * n), count * rows * n, rows, n, k, count)


def _convolutions(table: pl.DataFrame) -> _Work:
    """x (input positions) and w give y (output positions), or two of the three give the gradient of the third."""

    def outputs(side: str) -> Array:
        padded = _column(table, f"in_{side}") + 2 * _column(table, f"pad_{side}")
        dilation = np.maximum(_column(table, f"dilation_{side}", 1), 1)
        return (padded - dilation * (_column(table, f"kernel_{side}", 1) - 1) - 1) // np.maximum(
            _column(table, f"stride_{side}", 1), 1
        ) + 1

    phase = table["phase"].to_numpy()
    is_pass = [phase == "backward_weights", phase == "backward_data"]
    batch, channels_in, channels_out = _batch(table), _column(table, "in_channels"), _column(table, "out_channels")
    kernel, groups = _window(table, "kernel"), _groups(table)
    input_positions = batch * _column(table, "in_height") * _column(table, "in_width")
    output_positions = batch * outputs("height") * outputs("width")
    x, y, w = (
        input_positions * channels_in,
        output_positions * channels_out,
        channels_out * channels_in / groups * kernel,
    )
    return _Work(
        2 * output_positions * channels_out * channels_in / groups * kernel,
        np.select(is_pass, [x + y, y + w], x + w),
        np.select(is_pass, [w, x], y),
        np.select(is_pass, [channels_out / groups, input_positions], output_positions),
        np.select(is_pass, [channels_in / groups * kernel, channels_in / groups], channels_out / groups),
        np.select(is_pass, [output_positions, channels_out / groups * kernel], channels_in / groups * kernel),
        groups,
    )


def _attentions(table: pl.DataFrame) -> _Work:
    """softmax(q kᵀ) v in one kernel; a causal mask or a `window` leaves the pairs of tokens that are seen. Backward, in
    three kernels, has five products for two.
    """
    batch, heads, width = _batch(table), _column(table, "heads"), _column(table, "head_dim")
    length, keys = (_column(table, name) for name in ("query_length", "key_length"))
    kv_heads, width_v, window = (_column(table, name) for name in ("kv_heads", "head_dim_v", "window"))
    kv_heads, width_v = np.where(kv_heads > 0, kv_heads, heads), np.where(width_v > 0, width_v, width)
    seen = np.minimum(np.where(window > 0, window, keys), keys)
    causal = _flag(table, "causal")
    pairs = batch * heads * length * np.where(causal, seen * (2 * keys - seen + 1) / np.maximum(2 * keys, 1), seen)
    q, k, v = batch * heads * length * width, batch * kv_heads * keys * width, batch * kv_heads * keys * width_v
    out, back = batch * heads * length * width_v, table["phase"].to_numpy() != "forward"
    return _Work(
        2 * pairs * np.where(back, 3 * width + 2 * width_v, width + width_v),
        q + k + v + np.where(back, 2 * out, 0.0),
        np.where(back, q + k + v, out),
        length,
        seen,
        width,
        batch * heads,
    )


def _flag(table: pl.DataFrame, name: str) -> NDArray[np.bool_]:
    """True or false, as such or in words; false where there is nothing."""
    if name not in table.columns:
        return np.zeros(len(table), dtype=bool)
    flags: NDArray[np.bool_] = (table[name].cast(pl.String).str.to_lowercase() == "true").fill_null(False).to_numpy()
    return flags


def _rows(table: pl.DataFrame) -> _Work:
    """`batch` rows of `hidden` elements, elementwise or normalised row by row."""
    op, family = table["op"].to_numpy(), table["family"].to_numpy()
    batch, hidden, ones = _batch(table), _column(table, "hidden"), np.ones(len(table))
    elements, is_normed = batch * hidden, np.isin(family, ["softmax", "layernorm"])
    per_element = np.select(
        [op == "gelu", op == "tanh", family == "softmax", family == "layernorm"], [10.0, 6.0, 5.0, 7.0], 1.0
    )
    read = elements * np.where(np.isin(op, ["add", "mul", "div", "pow"]), 2, 1)
    m, n = np.where(is_normed, batch, elements), np.where(is_normed, hidden, 1.0)
    return _Work(per_element * elements, read, elements, m, n, ones, ones)


def _recurrences(table: pl.DataFrame) -> _Work:
    """Only the recurrent product, as the source times it."""
    batch, hidden, steps = _batch(table), _column(table, "hidden"), np.maximum(_column(table, "timesteps", 1), 1)
    gates = np.array([_GATES.get(str(op), 1) for op in table["op"]], dtype=np.float64)
    weights, states = gates * hidden * hidden, batch * steps * hidden
    return _Work(2 * batch * steps * weights, weights + states, states, batch, gates * hidden, 2 * hidden, steps)
