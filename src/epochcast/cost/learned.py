"""The learned cost model: a small ensemble of nets that say how far an op stays behind what the device sustains.

    seconds = bound / efficiency,   bound = max(flops/(g·peak), bytes/(b·bandwidth))
    efficiency = e^cap · e^(-softplus(net(features)))

g and b are the sustained fractions of the device's profile, or of its generation where nobody measured it. Trained by
`make model` (`fit.train`), kept as text, evaluated with numpy: no framework is needed to forecast. The nets'
disagreement and the errors on held-out families and devices set the interval (`spread`).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from math import exp

import numpy as np
from numpy.typing import NDArray

from epochcast.cost.features import Setting, features
from epochcast.cost.model import Costs
from epochcast.cost.roofline import limits
from epochcast.graph.trace import CLASSES, MATHS, Columns, Trace
from epochcast.graph.work import OpClass
from epochcast.hardware.device import Device

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


def caps(columns: Columns) -> Array:
    """The most each op may beat its bound by, as a logarithm."""
    table = np.array([_CONVOLUTION_CAP if c in _WINOGRAD else _CAP for c in CLASSES])
    return table[columns.op_class]


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
class Sustained:
    """What a device keeps up, as fractions of its data sheet; `is_known` where it was measured."""

    math_fractions: Mapping[str, float]
    vector_fraction: float
    bandwidth_fraction: float
    is_known: bool


@dataclass(frozen=True)
class Learned:
    """The ensemble as a cost model.

    `seen` is the range of every feature in training: beyond it the nets are not asked. `launch_seconds` are the host's
    per kernel, by source of the measurements.
    """

    nets: tuple[Net, ...]
    seen: tuple[Array, Array]
    devices: Mapping[str, Sustained]
    published: Mapping[str, Sustained]
    generations: Mapping[str, Sustained]
    spreads: Mapping[str, tuple[float, float]]
    launch_seconds: Mapping[str, float]
    name: str = "learned"
    is_monotone: bool = False

    def sustained(self, device: Device) -> Sustained:
        """The device's own fractions, else its generation's, else those of all."""
        found = (
            self.devices.get(device.name) or self.published.get(device.name) or self.generations.get(device.generation)
        )
        return found or self.generations["any"]

    def costs(self, trace: Trace, device: Device) -> Costs:
        """Seconds of every op of a trace."""
        return self.column_costs(trace.columns, device, replace(TODAY, channels_last=trace.recipe.channels_last))

    def column_costs(self, columns: Columns, device: Device, setting: Setting) -> Costs:
        """Seconds of every op of some columns."""
        sustained = self.sustained(device)
        limit = limits(columns, device)
        fractions = np.array([sustained.math_fractions.get(math, sustained.math_fractions["fp32"]) for math in MATHS])
        arithmetic = limit.compute / np.where(columns.is_matrix, fractions[columns.math], sustained.vector_fraction)
        bound = np.maximum(np.maximum(arithmetic, limit.memory / sustained.bandwidth_fraction), 1e-12)
        inputs = np.clip(features(columns, device, setting), *self.seen)
        outputs = np.stack([net(inputs) for net in self.nets])
        slowdown = np.minimum(np.logaddexp(0.0, outputs), MOST_SLOWDOWN)  # softplus, bounded
        mid = np.maximum(bound * np.exp(slowdown.mean(axis=0) - caps(columns)), KERNEL_SECONDS)
        mid[~self.knows(columns, device)] = np.nan
        low, high = self.spread(device)
        return Costs.by(self.name, mid * low, mid, mid * high)

    def knows(self, columns: Columns, device: Device) -> NDArray[np.bool_]:
        """Not what no GPU was seen doing: opaque ops, eight-bit arithmetic, anything on another kind of device."""
        seen = (columns.op_class != CLASSES.index(OpClass.OPAQUE)) & (columns.math != MATHS.index("fp8"))
        return seen if device.kind == "gpu" else np.zeros_like(seen)

    def spread(self, device: Device) -> tuple[float, float]:
        """Factors of the 90 % interval of a step: narrower where the device was measured, its own where often."""
        group = "known" if device.name in self.devices else "unseen"
        return self.spreads.get(device.name, self.spreads[group])


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

    def table(rows: Mapping[str, Mapping[str, float]], known: bool) -> dict[str, Sustained]:
        return {
            name: Sustained(
                {m: exp(row[m]) for m in MATHS if m in row}, exp(row["vector"]), exp(row["bandwidth"]), known
            )
            for name, row in rows.items()
        }

    spreads = {name: (low, high) for name, (low, high) in document["spreads"].items()}
    return Learned(
        nets,
        (np.array(document["seen"][0]), np.array(document["seen"][1])),
        table(document["devices"], True),
        table(document.get("published", {}), False),
        table(document["generations"], False),
        spreads,
        document["launch_seconds"],
    )
