"""Tables of single measured operators (the columns of `ops`) as columns of a trace, so that the cost model of steps can
forecast them, too.
"""

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
}
_ROW_FAMILIES = ("elementwise", "softmax", "layernorm")
_GATES = {"lstm": 4, "gru": 3}

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


def op_columns(table: pl.DataFrame) -> Columns:
    """Every row as one op. Flops and bytes are computed from the shapes, not read from the table."""
    unknown = set(table["family"].unique()) - set(FAMILIES)
    if unknown:
        raise BadInput(f"no rule for op families {sorted(unknown)}; known: {', '.join(FAMILIES)}")
    family, dtype, phase = (table[name].to_numpy() for name in ("family", "dtype", "phase"))
    is_conv, is_half = family == "conv", dtype == "float16"
    element_bytes = np.where(is_half, 2.0, 4.0)
    works = {"conv": _convolutions(table), "rnn": _recurrences(table)} | dict.fromkeys(_ROW_FAMILIES, _rows(table))
    product, is_family = _products(table), [family == name for name in works]

    def column(field: str) -> Array:
        return np.select(is_family, [getattr(work, field) for work in works.values()], getattr(product, field))

    kernel, stride = _window(table, "kernel"), _window(table, "stride")
    count = column("count")
    classes = np.array([FAMILIES[f] for f in family], dtype=object)
    classes[(family == "matmul") & (count > 1)] = OpClass.BATCHED_MATMUL
    classes[is_conv & (kernel == 1)] = OpClass.CONV_POINTWISE
    return Columns(
        flops=column("flops"),
        read_bytes=element_bytes * column("read"),
        written_bytes=element_bytes * column("written"),
        m=column("m"),
        n=column("n"),
        k=column("k"),
        count=count,
        launches=np.ones(len(table)),
        op_class=np.array([CLASSES.index(c) for c in classes]),
        phase=np.where(phase == "forward", PHASES.index(Phase.FORWARD), PHASES.index(Phase.BACKWARD)),
        math=np.where(is_half, op_math_index("fp16"), op_math_index("fp32")),
        gradient=np.select([phase == f"backward_{field}" for field in ("data", "weights", "both")], [1, 2, 3], 0),
        element_bytes=element_bytes,
        kernel=np.where(is_conv, kernel, 1.0),
        stride=np.where(is_conv, stride, 1.0),
        groups=np.ones(len(table)),
        channels_in=np.where(is_conv, _column(table, "in_channels"), 0.0),
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
        return (padded - _column(table, f"kernel_{side}", 1)) // np.maximum(_column(table, f"stride_{side}", 1), 1) + 1

    phase = table["phase"].to_numpy()
    is_pass = [phase == "backward_weights", phase == "backward_data"]
    batch, channels_in, channels_out = _batch(table), _column(table, "in_channels"), _column(table, "out_channels")
    kernel = _window(table, "kernel")
    input_positions = batch * _column(table, "in_height") * _column(table, "in_width")
    output_positions = batch * outputs("height") * outputs("width")
    x, y, w = input_positions * channels_in, output_positions * channels_out, channels_out * channels_in * kernel
    return _Work(
        2 * output_positions * channels_out * channels_in * kernel,
        np.select(is_pass, [x + y, y + w], x + w),
        np.select(is_pass, [w, x], y),
        np.select(is_pass, [channels_out, input_positions], output_positions),
        np.select(is_pass, [channels_in * kernel, channels_in], channels_out),
        np.select(is_pass, [output_positions, channels_out * kernel], channels_in * kernel),
        np.ones(len(table)),
    )


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
