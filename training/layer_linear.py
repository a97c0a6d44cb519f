"""One straight line per kind of layer: t = β0 + β1·c (Gianniti, Zhang & Ardagna 2018, SBAC-PAD; 2019, CLOSER).

c is the layer's complexity: per output position as below, times the positions of the batch. H_f·W_f is the window,
C channels, C_n the channels normalised over:

    layer             forward               backward
    conv              H_f·W_f·C_in·C_out    (2·H_f·W_f·C_in + 1)·C_out
    fully connected   H·W·C_in·C_out        2·H·W·C_in·C_out
    loss              4·C_out - 1           C_out + 1
    normalisation     5·C_out + C_n - 2     8·C_out + C_n - 1
    pooling           H_f·W_f·C_out         (H_f·W_f + 1)·C_out
    ReLU              3·C_out               4·C_out

The table is per layer, a trace is per op: the backward pass of a convolution or a fully connected layer is its data
and its weight gradient, each with half of the table's product, and the line is fitted per op. Softmax and loss ops are
both "loss"; every elementwise op is "relu"; C_n is one for batch normalisation, the row for layer normalisation, five
(AlexNet's window) for the rest. Kinds that are not in the table, and kinds nobody measured, are answered NaN:
`fill_gaps` takes them from another model.

The lines are fitted by least squares, t in seconds, under β0 ≥ 0 and β1 ≥ 0: no op takes less than no time.
They hold for the device and the framework they were measured on; asking for another device is refused.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epochcast.describe.graph.op import Op, Phase
from epochcast.describe.graph.op_work import OpClass
from epochcast.describe.graph.trace import CLASSES, PHASES, Columns, columns_of
from epochcast.errors import BadInput
from epochcast.hardware.device import Device
from epochcast.predict.cost.cost_model import Array, Costs
from epochcast.predict.cost.software_setting import SoftwareSetting

LINE_KINDS = ("conv", "fully_connected", "loss", "normalisation", "pooling", "relu")
LOCAL_RESPONSE_CHANNELS = 5  # Krizhevsky et al. 2012, section 3.3

_KIND_OF_CLASS: Mapping[OpClass, str] = {
    OpClass.CONV: "conv",
    OpClass.CONV_POINTWISE: "conv",
    OpClass.CONV_GROUPED: "conv",
    OpClass.CONV_DEPTHWISE: "conv",
    OpClass.LINEAR: "fully_connected",
    OpClass.SOFTMAX: "loss",
    OpClass.LOSS: "loss",
    OpClass.BATCH_NORM: "normalisation",
    OpClass.LAYER_NORM: "normalisation",
    OpClass.OTHER_NORM: "normalisation",
    OpClass.POOL: "pooling",
    OpClass.ELEMENTWISE: "relu",
}
_KIND_INDEX = np.array([LINE_KINDS.index(_KIND_OF_CLASS[c]) if c in _KIND_OF_CLASS else -1 for c in CLASSES])
_FORWARD, _BACKWARD = PHASES.index(Phase.FORWARD), PHASES.index(Phase.BACKWARD)
_WEIGHTS = 2  # entry of Columns.gradient


@dataclass(frozen=True, slots=True)
class Line:
    """t = β0 + β1·c, the number of rows it was fitted on, and the ratio that holds 90 % of them."""

    base_seconds: float
    seconds_per_operation: float
    rows: int
    factor: float

    def __post_init__(self) -> None:
        if (
            self.base_seconds < 0
            or self.seconds_per_operation < 0
            or self.base_seconds + self.seconds_per_operation == 0
        ):
            raise BadInput(f"a line needs coefficients of at least 0, one above it, got {self}")
        if not self.factor >= 1:
            raise BadInput(f"factor must be at least 1, got {self.factor}")


@dataclass(frozen=True)
class LayerLinear:
    """The fitted lines of one device, by "kind forward" and "kind backward"."""

    device: str
    lines: Mapping[str, Line]
    name: str = "layer_linear"
    is_monotone: bool = True

    @classmethod
    def fit(cls, ops: Sequence[Op], seconds: Sequence[float], device: Device) -> "LayerLinear":
        """Lines through measured ops. Ops of kinds the table lacks are left out; a line needs two rows."""
        columns = columns_of(ops)
        measured = np.asarray(seconds, dtype=np.float64)
        if len(columns) != len(ops) or measured.shape != (len(ops),):
            raise BadInput(
                f"{len(ops)} ops ({len(columns)} of them kernels) do not match {measured.size} measured times"
            )
        if not np.all(np.isfinite(measured) & (measured > 0)):
            raise BadInput("every measured time must be finite and above 0")
        group, complexity = complexities(columns)
        lines = {}
        for index, label in enumerate(_LABELS):
            mine = group == index
            if np.count_nonzero(mine) >= 2:
                lines[label] = fit_line(complexity[mine], measured[mine])
        if not lines:
            raise BadInput(f"nothing to fit: no two ops of one kind among {', '.join(LINE_KINDS)}")
        return cls(device.name, lines)

    def costs(self, columns: Columns, device: Device, setting: SoftwareSetting) -> Costs:
        """β0 + β1·c, between the factor's ends; NaN for what the table or the measurements lack."""
        if device.name != self.device:
            raise BadInput(f"layer_linear was fitted on {self.device}, not on {device.name}")
        group, complexity = complexities(columns)
        table = np.full((len(_LABELS) + 1, 3), np.nan)
        for label, line in self.lines.items():
            table[_LABELS.index(label)] = line.base_seconds, line.seconds_per_operation, line.factor
        base, slope, factor = table[group].T
        mid = base + slope * complexity
        mid = np.where(mid > 0, mid, np.nan)
        factor = np.where(np.isnan(mid), np.nan, factor)
        return Costs.by(self.name, mid / factor, mid, mid * factor)


_LABELS = tuple(f"{kind} {phase}" for phase in ("forward", "backward") for kind in LINE_KINDS)


def complexities(columns: Columns) -> tuple[NDArray[np.int64], Array]:
    """For every op its line (an index, -1 for none) and its complexity by the table."""
    kind = _KIND_INDEX[columns.op_class]
    is_backward = columns.phase == _BACKWARD
    has_line = (kind >= 0) & (is_backward | (columns.phase == _FORWARD))
    group = np.where(has_line, kind + len(LINE_KINDS) * is_backward, -1)

    multiplications = columns.flops / 2
    is_weights = columns.gradient == _WEIGHTS
    # A weight gradient's product is C_out × taps by k output positions; the table's "+ 1" is the bias, once per output.
    bias = np.where(is_weights, columns.channels_out * columns.k, 0)
    per_position = np.where(is_backward, columns.n + 1, 4 * columns.n - 1)
    is_layer = columns.op_class == CLASSES.index(OpClass.LAYER_NORM)
    is_batch = columns.op_class == CLASSES.index(OpClass.BATCH_NORM)
    positions, channels = np.where(is_layer, columns.m, columns.n), np.where(is_layer, columns.n, columns.m)
    across = np.where(is_layer, columns.n, np.where(is_batch, 1, LOCAL_RESPONSE_CHANNELS))
    by_kind = [
        multiplications + bias,
        multiplications,
        columns.m * per_position,
        positions * np.where(is_backward, 8 * channels + across - 1, 5 * channels + across - 2),
        # Backward, m is the size of the input: a stride-th of it are outputs.
        np.where(is_backward, (columns.kernel + 1) * columns.m / columns.stride, columns.flops),
        columns.m * np.where(is_backward, 4, 3),
    ]
    return group.astype(np.int64), np.select([kind == i for i in range(len(LINE_KINDS))], by_kind, default=np.nan)


def fit_line(complexity: Array, seconds: Array) -> Line:
    """argmin Σ(t - β0 - β1·c)² under β0, β1 ≥ 0: the free optimum, or the better of the two edges."""
    design = np.stack([np.ones_like(complexity), complexity], axis=1)
    scale = max(float(complexity.max()), 1.0)
    free = np.linalg.lstsq(design / [1.0, scale], seconds, rcond=None)[0] / [1.0, scale]
    candidates = [free] if np.all(free >= 0) else []
    if not candidates:
        squares = float(complexity @ complexity)
        through_origin = float(complexity @ seconds) / squares if squares else 0.0
        candidates = [np.array([0.0, through_origin]), np.array([float(seconds.mean()), 0.0])]
    base, slope = min(candidates, key=lambda beta: float(np.sum((seconds - design @ beta) ** 2)))
    predicted = np.maximum(base + slope * complexity, np.finfo(np.float64).tiny)
    ratio = np.exp(np.abs(np.log(predicted / seconds)))
    return Line(float(base), float(slope), len(seconds), max(1.0, float(np.quantile(ratio, 0.9))))
