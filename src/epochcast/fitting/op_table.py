"""Tables of single measured operators (the columns of `ops`) as columns of a trace, so that one cost model serves
both.
"""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from epochcast.cost.setting import Setting
from epochcast.errors import BadInput
from epochcast.graph.op import Phase
from epochcast.graph.trace import CLASSES, MATHS, PHASES, Columns
from epochcast.graph.work import MATRIX_CLASSES, OpClass

FAMILIES = {
    "matmul": OpClass.LINEAR,
    "conv": OpClass.CONV,
    "elementwise": OpClass.ELEMENTWISE,
    "softmax": OpClass.SOFTMAX,
    "layernorm": OpClass.LAYER_NORM,
    "rnn": OpClass.RECURRENT,
}
_GATES = {"lstm": 4, "gru": 3}


def op_setting(source: str | None) -> Setting:
    """The software behind a table of ops: bare cuDNN and cuBLAS of 2017 in DeepBench, else PyTorch 2."""
    return Setting() if source == "deepbench" else Setting(framework_age=0.64)


def op_columns(table: pl.DataFrame) -> Columns:
    """Every row as one op. Flops and bytes are worked out from the shapes, whatever the table says of them."""
    unknown = set(table["family"].unique()) - set(FAMILIES)
    if unknown:
        raise BadInput(f"no rule for op families {sorted(unknown)}; known: {', '.join(FAMILIES)}")

    def column(name: str, default: float = 0.0) -> NDArray[np.float64]:
        if name not in table.columns:
            return np.full(len(table), default)
        return table[name].cast(pl.Float64).fill_null(default).to_numpy()

    family = table["family"].to_numpy()
    dtype = table["dtype"].to_numpy()
    element = np.where(dtype == "float16", 2.0, 4.0)
    batch, hidden = np.maximum(column("batch", 1), 1), column("hidden")
    m, n, k, count = column("m"), column("n"), column("k"), batch.copy()

    is_conv, is_rnn, is_row = (
        family == "conv",
        family == "rnn",
        np.isin(family, ["elementwise", "softmax", "layernorm"]),
    )
    into, out = column("in_channels"), column("out_channels")
    kernel = np.maximum(column("kernel_height", 1) * column("kernel_width", 1), 1)
    stride = np.maximum(column("stride_height", 1) * column("stride_width", 1), 1)
    high = (column("in_height") + 2 * column("pad_height") - column("kernel_height", 1)) // np.maximum(
        column("stride_height", 1), 1
    ) + 1
    wide = (column("in_width") + 2 * column("pad_width") - column("kernel_width", 1)) // np.maximum(
        column("stride_width", 1), 1
    ) + 1
    phase = table["phase"].to_numpy()
    to_weights, to_data = phase == "backward_weights", phase == "backward_data"

    inside, outside = batch * column("in_height") * column("in_width"), batch * high * wide
    flops = 2 * m * n * k * count
    read = element * count * (m * k + k * n)
    written = element * count * m * n
    linear = table["op"].to_numpy() == "linear"
    # A linear layer's batch multiplies its rows, not its weight.
    m, count = np.where(linear, m * count, m), np.where(linear, 1.0, count)
    read = np.where(linear, element * (m * k + k * n), read)

    flops = np.where(is_conv, 2 * outside * out * into * kernel, flops)
    x, y, w = inside * into, outside * out, out * into * kernel
    read = np.where(is_conv, element * np.select([to_weights, to_data], [x + y, y + w], x + w), read)
    written = np.where(is_conv, element * np.select([to_weights, to_data], [w, x], y), written)
    m = np.where(is_conv, np.select([to_weights, to_data], [out, inside], outside), m)
    n = np.where(is_conv, np.select([to_weights, to_data], [into * kernel, into], out), n)
    k = np.where(is_conv, np.select([to_weights, to_data], [outside, out * kernel], into * kernel), k)
    count = np.where(is_conv, 1.0, count)

    elements = batch * hidden
    op = table["op"].to_numpy()
    binary = np.isin(op, ["add", "mul", "div", "pow"])
    per_element = np.select(
        [op == "gelu", op == "tanh", family == "softmax", family == "layernorm"], [10.0, 6.0, 5.0, 7.0], 1.0
    )
    flops = np.where(is_row, per_element * elements, flops)
    read = np.where(is_row, element * elements * np.where(binary, 2, 1), read)
    written = np.where(is_row, element * elements, written)
    is_normed = np.isin(family, ["softmax", "layernorm"])
    m = np.where(is_row, np.where(is_normed, batch, elements), m)
    n = np.where(is_row, np.where(is_normed, hidden, 1.0), n)
    k, count = np.where(is_row, 1.0, k), np.where(is_row, 1.0, count)

    steps = np.maximum(column("timesteps", 1), 1)
    gates = np.array([_GATES.get(str(o), 1) for o in op], dtype=np.float64)
    weights = gates * hidden * hidden  # the recurrent product alone: that is what the source times
    flops = np.where(is_rnn, 2 * batch * steps * weights, flops)
    read = np.where(is_rnn, element * (weights + batch * steps * hidden), read)
    written = np.where(is_rnn, element * batch * steps * hidden, written)
    m, n = np.where(is_rnn, batch, m), np.where(is_rnn, gates * hidden, n)
    k, count = np.where(is_rnn, 2 * hidden, k), np.where(is_rnn, steps, count)

    kinds = np.array([FAMILIES[f] for f in family], dtype=object)
    kinds[(family == "matmul") & (count > 1)] = OpClass.BATCHED_MATMUL
    kinds[is_conv & (kernel == 1)] = OpClass.CONV_POINTWISE
    gradient = np.select([to_data, to_weights, phase == "backward_both"], [1, 2, 3], 0)
    return Columns(
        flops=flops,
        read_bytes=read,
        written_bytes=written,
        m=m,
        n=n,
        k=k,
        count=count,
        launches=np.ones(len(table)),
        op_class=np.array([CLASSES.index(c) for c in kinds]),
        phase=np.where(phase == "forward", PHASES.index(Phase.FORWARD), PHASES.index(Phase.BACKWARD)),
        math=np.where(dtype == "float16", MATHS.index("fp16"), MATHS.index("fp32")),
        gradient=gradient,
        element_bytes=element,
        kernel=np.where(is_conv, kernel, 1.0),
        stride=np.where(is_conv, stride, 1.0),
        groups=np.ones(len(table)),
        channels_in=np.where(is_conv, into, 0.0),
        channels_out=np.where(is_conv, out, 0.0),
        is_matrix=np.array([c in MATRIX_CLASSES for c in kinds]),
        samples=batch,
    )
