"""The learned cost model: a small ensemble of nets that say how far an op stays behind what the device sustains.

    seconds = bound / efficiency,   bound = max(flops/(g·peak), bytes/(b·bandwidth))
    efficiency = e^cap · e^(-softplus(net(features)))

g and b are what the device sustains (`hardware.sustained`), or its relatives where nobody measured it. Trained by
`make model` (`fit.train`), kept as text, evaluated with numpy: no framework is needed to forecast. Errors on families
and devices that were left out of the training set the interval (`spreads`).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from epochcast.cost.features import Setting, features
from epochcast.cost.model import Costs
from epochcast.cost.roofline import limits
from epochcast.graph.trace import CLASSES, MATHS, Columns, Trace
from epochcast.graph.work import OpClass
from epochcast.hardware.device import Device
from epochcast.hardware.sustained import sustained

Array = NDArray[np.float64]

# Winograd F(2x2, 3x3) multiplies 2.25 times less than a convolution is counted with (Lavin & Gray 2016); FFT may do
# better still.
_CONVOLUTION_CAP = float(np.log(2.6))
# Everything else: a little above one, for operands that stay in cache between ops.
_CAP = float(np.log(1.25))
# An op is taken to reach a sixtieth of its bound at the least: the worst that was measured and is no accident.
MOST_SLOWDOWN = float(np.log(60.0))
# What a trace is asked about where nobody says otherwise: PyTorch 2.4.
TODAY = Setting(framework_age=0.77)
# No kernel is shorter than this from its launch to its end.
KERNEL_SECONDS = 1.5e-6
_WINOGRAD = frozenset({OpClass.CONV, OpClass.CONV_GROUPED, OpClass.CONV_TRANSPOSED, OpClass.CONV_DEPTHWISE})


# Classes of op that a device may run better or worse than others do; convolutions by layout too.
GROUPS = (
    "conv",
    "conv_channels_last",
    "conv_grouped",
    "conv_grouped_channels_last",
    "matmul",
    "norm",
    "elementwise",
    "update",
)
_GROUP_OF = {
    OpClass.CONV: "conv",
    OpClass.CONV_POINTWISE: "conv",
    OpClass.CONV_TRANSPOSED: "conv",
    OpClass.CONV_GROUPED: "conv_grouped",
    OpClass.CONV_DEPTHWISE: "conv_grouped",
    OpClass.LINEAR: "matmul",
    OpClass.BATCHED_MATMUL: "matmul",
    OpClass.ATTENTION: "matmul",
    OpClass.RECURRENT: "matmul",
    OpClass.BATCH_NORM: "norm",
    OpClass.LAYER_NORM: "norm",
    OpClass.OTHER_NORM: "norm",
    OpClass.UPDATE: "update",
}
_PLAIN_GROUPS = np.array([GROUPS.index(_GROUP_OF.get(c, "elementwise")) for c in CLASSES])
_PRODUCTS = GROUPS.index("matmul")
_LAYOUT_GROUPS = np.array([g + 1 if GROUPS[g].startswith("conv") else g for g in _PLAIN_GROUPS])


def op_groups(columns: Columns, setting: Setting) -> NDArray[np.int64]:
    """The group of every op, as an index of GROUPS."""
    table = _LAYOUT_GROUPS if setting.channels_last else _PLAIN_GROUPS
    groups: NDArray[np.int64] = table[columns.op_class]
    return groups


def caps(columns: Columns) -> Array:
    """The most each op may beat its bound by, as a logarithm."""
    table = np.array([_CONVOLUTION_CAP if c in _WINOGRAD else _CAP for c in CLASSES])
    return table[columns.op_class]


def is_fp32_products(columns: Columns) -> bool:
    """Whether most of the matrix work is plain products in fp32."""
    is_product = _PLAIN_GROUPS[columns.op_class] == _PRODUCTS
    products = columns.is_matrix & (columns.math == MATHS.index("fp32")) & is_product
    return bool(columns.flops[products].sum() > 0.5 * columns.flops[columns.is_matrix].sum() > 0)


@dataclass(frozen=True)
class Net:
    """One member: dense layers with SiLU between them."""

    weights: tuple[Array, ...]
    biases: tuple[Array, ...]

    def __call__(self, inputs: Array) -> Array:
        x: NDArray[np.floating] = inputs.astype(np.float32)
        last = len(self.weights) - 1
        for place, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = x @ weight + bias
            if place < last:
                x = x / (1 + np.exp(-np.clip(x, -30, 30)))
        return x[:, 0].astype(np.float64)


@dataclass(frozen=True)
class Learned:
    """The ensemble as a cost model.

    `seen` is the range of every feature in training: beyond it the nets are not asked. `spreads` are the factors of the
    90 % interval of a step on a device that was measured ("known") and on one that was not ("unseen"); networks of
    fp32 products (transformers, mostly) are forecast better and have their own. The nets are told nothing of the
    device, so that a faster one is never forecast slower.
    """

    nets: tuple[Net, ...]
    seen: tuple[Array, Array]
    spreads: Mapping[str, tuple[float, float]]
    name: str = "learned"
    is_monotone: bool = False

    def costs(self, trace: Trace, device: Device) -> Costs:
        """Seconds of every op of a trace."""
        return self.column_costs(trace.columns, device, replace(TODAY, channels_last=trace.recipe.channels_last))

    def column_costs(self, columns: Columns, device: Device, setting: Setting) -> Costs:
        """Seconds of every op of some columns."""
        kept = sustained(device)
        limit = limits(columns, device)
        fractions = np.array([kept.math_fraction(math) for math in MATHS])
        arithmetic = limit.compute / np.where(columns.is_matrix, fractions[columns.math], kept.vector_fraction)
        bound = np.maximum(np.maximum(arithmetic, limit.memory / kept.bandwidth_fraction), 1e-12)
        inputs = np.clip(features(columns, setting), *self.seen)
        outputs = np.stack([net(inputs) for net in self.nets])
        slowdown = np.minimum(np.logaddexp(0.0, outputs), MOST_SLOWDOWN)  # softplus, bounded
        groups = np.array([kept.group_factors.get(group, 1.0) for group in GROUPS])[op_groups(columns, setting)]
        mid = np.maximum(groups * bound * np.exp(slowdown.mean(axis=0) - caps(columns)), KERNEL_SECONDS)
        mid[~self.knows(columns, device)] = np.nan
        group = "known" if kept.is_known else "unseen"
        if is_fp32_products(columns):
            low, high = self.spreads[f"{group}, fp32 products"]
        else:
            low, high = kept.spread or self.spreads[group]
        return Costs.by(self.name, mid * low, mid, mid * high)

    def knows(self, columns: Columns, device: Device) -> NDArray[np.bool_]:
        """Not what no GPU was seen doing: opaque ops, eight-bit arithmetic, anything on another kind of device."""
        seen = (columns.op_class != CLASSES.index(OpClass.OPAQUE)) & (columns.math != MATHS.index("fp8"))
        return seen if device.kind == "gpu" else np.zeros_like(seen)


@cache
def load_learned() -> Learned:
    """The shipped model."""
    return read_learned(files("epochcast.cost").joinpath("learned.json").read_text(encoding="utf-8"))


def read_learned(text: str) -> Learned:
    """A model from its text."""
    document = json.loads(text)
    nets = tuple(
        Net(
            tuple(np.array(layer["weight"], dtype=np.float32) for layer in net),
            tuple(np.array(layer["bias"], dtype=np.float32) for layer in net),
        )
        for net in document["nets"]
    )
    spreads = {name: (low, high) for name, (low, high) in document["spreads"].items()}
    return Learned(nets, (np.array(document["seen"][0]), np.array(document["seen"][1])), spreads)
