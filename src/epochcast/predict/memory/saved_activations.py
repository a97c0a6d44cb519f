"""What a kernel saves for its backward pass in addition to its results: statistics, log-sum-exps, gates.

These storages have no name in a trace because no other op reads them.
"""

from functools import singledispatch
from math import prod

from epochcast.describe.graph.op import Op
from epochcast.describe.graph.op_kinds import Attention, Kind, Norm, Recurrent

STATISTIC_BYTES = 4  # statistics are float32, whatever the data (aten/src/ATen/native/cuda/Normalization.cu)


@singledispatch
def saved_bytes(kind: Kind, op: Op) -> int:
    """Bytes saved in addition to the results; most kernels save nothing."""
    return 0


@saved_bytes.register
def _(kind: Norm, op: Op) -> int:
    """Mean and reciprocal deviation: per channel of a batch norm, per row of a layer norm (rms: only the latter)."""
    data = op.inputs[0]
    match kind.style:
        case "batch" if len(data.shape) > 1:
            return 2 * STATISTIC_BYTES * data.shape[1]
        case "layer" | "rms" if op.weights and op.weights[0].elements:
            return (2 if kind.style == "layer" else 1) * STATISTIC_BYTES * data.elements // op.weights[0].elements
        case _:
            return 0


@saved_bytes.register
def _(kind: Attention, op: Op) -> int:
    """The log-sum-exp of every row of scores (Dao et al. 2022)."""
    return STATISTIC_BYTES * prod(op.inputs[0].shape[:-1])


@saved_bytes.register
def _(kind: Recurrent, op: Op) -> int:
    """cuDNN's reserve space: the gates of every step and, of an LSTM, the cell state and its tanh.

    The layout is not published; this is what the backward formulas need.
    """
    values_per_step = kind.gates + (2 if kind.cell == "lstm" else 1)
    batch, steps = op.inputs[0].shape[:2]
    return values_per_step * kind.hidden * kind.directions * batch * steps * op.dtype.bytes
