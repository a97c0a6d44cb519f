"""The learned cost model: a small ensemble of nets that predict how much slower an op is than what the device sustains.

    arithmetic = factors · flops/(g·peak)           traffic = factors · bytes/(b·bandwidth·(1 + 3·min(1, L2/bytes)))
    bound      = max(arithmetic, traffic)
    seconds    = e^-cap · min(Σ_j e^(a_j) · s·(bound/s)^(p_j) · MiB^(q_j) + e^c·arithmetic + e^d·traffic,  60·bound)

s = 10 µs. g, b and the factors (by group of op, by generation of the framework) are what the device sustains
(`hardware.sustained`), or similar devices where it was not measured. a, c and d are outputs of nets whose inputs are
neither the device nor the size of the op (`cost.features`); that of the bound is never below 0. p and q are never
negative. So more flops, more bytes, a larger batch or a slower device never make an op cheaper, whatever the nets
learnt: small ops are slower than their bound by the terms with p < 1, those larger than the caches by the one with q >
0, those near the ridge of the roofline by both sides.

Trained by `make model` (`fit.train`), stored as text, evaluated with numpy: a forecast needs no framework. Each op has
quantiles, from ops measured alone. The interval of a step (`spreads`) comes from errors of whole steps on families and
devices left out of the training; it is distributed over ops by their quantiles.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from epochcast.caching import Cache, remembered
from epochcast.cost.features import Outline, outline_features
from epochcast.cost.model import Costs
from epochcast.cost.roofline import bounds
from epochcast.cost.setting import GENERATIONS, Setting
from epochcast.graph.maths import OP_MATHS, op_math_index
from epochcast.graph.trace import CLASSES, Columns
from epochcast.graph.work import OpClass
from epochcast.hardware.device import Device
from epochcast.hardware.sustained import sustained

Array = NDArray[np.float64]

# Winograd F(2x2, 3x3) multiplies 2.25 times less than a convolution is counted with (Lavin & Gray 2016); FFT may do
# better still.
_CONVOLUTION_CAP = float(np.log(2.6))
# Everything else: a little above one, for operands that stay in cache between ops.
_CAP = float(np.log(1.25))
# An op is assumed to reach at least a sixtieth of its bound: the worst that was measured repeatedly.
MOST_SLOWDOWN = float(np.log(60.0))
# The powers (of the bound, of the bytes) whose terms are summed, and the unit of the bound: about the length of a
# kernel that does not fill a device.
POWERS = ((0.0, 0.0), (0.33, 0.0), (0.67, 0.0), (1.0, 0.0), (1.0, 0.2))
BOUND = POWERS.index((1.0, 0.0))
# Behind them: arithmetic alone, traffic alone.
LIMBS = 2
UNIT_SECONDS = 1e-5
# How much faster an L2 cache is than the memory behind it: 2.4 times on a V100 (Jia et al. 2018), 4.6 on an A100
# (NVIDIA's white paper), about 5 on an RTX 4090.
CACHE_SPEED = 4.0
# Traffic counts from here, about a cache line for each multiprocessor, in MiB as a logarithm.
LEAST_TRAFFIC = -8.0
# The least and most width of an op's interval, relative to a typical op, within the interval of a step.
LEAST_WIDTH, MOST_WIDTH = 0.5, 2.0
# Ops that go through a net at once. OpenBLAS starts threads for a product of more than 4 · 65,536 multiply-adds
# (interface/gemm.c); on cores that others use, waiting for them takes longer than the net itself.
ROWS_AT_ONCE = 48
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
    """The logarithm of how much faster than its bound each op may be."""
    table = np.array([_CONVOLUTION_CAP if c in _WINOGRAD else _CAP for c in CLASSES])
    return table[columns.op_class]


def log_bounds(columns: Columns, device: Device) -> tuple[Array, Array]:
    """Logarithms of the two sides of the roofline: arithmetic, and memory traffic with the L2 cache considered.

    What fits into the cache was written by the op before, and is read several times faster than from memory.
    """
    bound = bounds(columns, device)
    cached = np.minimum(1.0, (device.l2_bytes or 0) / np.maximum(columns.bytes, 1.0))
    memory = bound.memory / (1 + (CACHE_SPEED - 1) * cached)
    return np.log(np.maximum(bound.compute, 1e-12)), np.log(np.maximum(memory, 1e-12))


def is_fp32_products(columns: Columns) -> bool:
    """Whether most of the matrix work is plain products in fp32."""
    is_product = _PLAIN_GROUPS[columns.op_class] == _PRODUCTS
    products = columns.is_matrix & (columns.math == op_math_index("fp32")) & is_product
    return bool(columns.flops[products].sum() > 0.5 * columns.flops[columns.is_matrix].sum() > 0)


@dataclass(frozen=True)
class Net:
    """One member: dense layers with SiLU between them, in double precision.

    In single precision an op's seconds would depend on the CPU and on the op's position, by 1e-7.
    """

    weights: tuple[Array, ...]
    biases: tuple[Array, ...]

    def __call__(self, inputs: Array) -> Array:
        x = inputs
        last = len(self.weights) - 1
        for place, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = x @ weight + bias
            if place < last:
                x = x / (1 + np.exp(-np.clip(x, -30, 30)))
        return x


@dataclass(frozen=True)
class Quantiles:
    """How far below and above the middle nine of ten ops of a kind are: logarithms, a softplus of linear functions.

    `typical` is the mean of both for most of a step's ops.
    """

    weight: Array
    bias: Array
    typical: float

    def __call__(self, inputs: Array) -> Array:
        """Two columns."""
        distances: Array = np.logaddexp(0.0, inputs @ self.weight + self.bias)
        return distances


@dataclass(frozen=True)
class NetOutputs:
    """The outputs of the ensemble for the ops of a step, the same at any batch and on any device.

    `factors` are e^a, e^c and e^d by net, distinct op and term; `distances` are the quantiles of every distinct op;
    `index` says which of those each op is.
    """

    factors: Array
    distances: Array
    index: NDArray[np.int64]

    def slowdown(self, terms: Array) -> Array:
        """log Σ_j e^(a_j)·term_j of every op, bounded, as the mean of the nets; `terms` are logarithms relative to the
        bound.
        """
        sums = (self.factors[:, self.index] * np.exp(terms)).sum(axis=2)
        slowdown: Array = np.minimum(np.log(sums), MOST_SLOWDOWN).mean(axis=0)
        return slowdown


@dataclass(frozen=True)
class Learned:
    """The ensemble as a cost model.

    `seen` is the range of every feature in training: features are clipped to it. `spreads` are the factors of the
    90 % interval of a step on a device that was measured ("known") and on one that was not ("unseen"); networks of
    fp32 products (transformers, mostly) are forecast better and have their own.
    """

    nets: tuple[Net, ...]
    seen: tuple[Array, Array]
    quantiles: Quantiles
    spreads: Mapping[str, tuple[float, float]]
    name: str = "learned"
    is_monotone: bool = True
    net_outputs: Cache[tuple[bytes, Setting], NetOutputs] = field(default_factory=lambda: Cache(256), compare=False)

    def costs(self, columns: Columns, device: Device, setting: Setting) -> Costs:
        """Seconds of every op; low and high are those of a step, distributed over its ops."""
        limits, outputs = sustained(device), self._net_outputs(columns, setting)
        mid = self._middle(outputs, columns, device, setting)
        group = "known" if limits.is_known else "unseen"
        if is_fp32_products(columns):
            low, high = self.spreads[f"{group}, fp32 products"]
        else:
            low, high = limits.spread or self.spreads[group]
        widths = np.clip(outputs.distances.mean(axis=1) / self.quantiles.typical, LEAST_WIDTH, MOST_WIDTH)
        return Costs.by(self.name, mid * (low**widths)[outputs.index], mid, mid * (high**widths)[outputs.index])

    def alone(self, columns: Columns, device: Device, setting: Setting) -> Costs:
        """The same for ops on their own: low and high are the quantiles of each op."""
        outputs = self._net_outputs(columns, setting)
        mid = self._middle(outputs, columns, device, setting)
        below, above = outputs.distances[outputs.index].T
        return Costs.by(self.name, mid * np.exp(-below), mid, mid * np.exp(above))

    def _net_outputs(self, columns: Columns, setting: Setting) -> NetOutputs:
        """Evaluated once per step: neither batch nor device changes them."""
        ops = Outline.of(columns)
        return self.net_outputs.get((ops.digest, setting), lambda: self._evaluated(ops, setting))

    def _evaluated(self, ops: Outline, setting: Setting) -> NetOutputs:
        distinct, index = ops.distinct()
        inputs: Array = np.clip(outline_features(distinct, setting), *self.seen)
        blocks = [inputs[i : i + ROWS_AT_ONCE] for i in range(0, max(1, len(inputs)), ROWS_AT_ONCE)]
        outputs = np.stack([np.concatenate([net(block) for block in blocks]) for net in self.nets])
        outputs[:, :, BOUND] = np.logaddexp(0.0, outputs[:, :, BOUND])  # softplus
        return NetOutputs(np.exp(outputs), np.concatenate([self.quantiles(block) for block in blocks]), index)

    def _middle(self, outputs: NetOutputs, columns: Columns, device: Device, setting: Setting) -> Array:
        limits = sustained(device)
        compute, memory = log_bounds(columns, device)
        fractions = np.array([limits.math_fraction(math) for math in OP_MATHS])
        peaks = np.where(columns.is_matrix, fractions[columns.math], limits.vector_fraction)
        limbs = np.stack([compute - np.log(peaks), memory - np.log(limits.bandwidth_fraction)], axis=1)
        sharp = limbs.max(axis=1)
        factors = np.array([limits.group_factors.get(group, 1.0) for group in GROUPS])[op_groups(columns, setting)]
        factors = factors * limits.generation_factors.get(GENERATIONS[setting.generation], 1.0)
        bound = factors * np.exp(sharp)
        p, q = np.array(POWERS).T
        powers = np.outer(np.log(bound / UNIT_SECONDS), p - 1) + np.outer(log_traffic(columns), q)
        terms = np.concatenate([powers, limbs - sharp[:, None]], axis=1)
        mid: Array = np.maximum(bound * np.exp(outputs.slowdown(terms) - caps(columns)), KERNEL_SECONDS)
        mid[~self.knows(columns, device)] = np.nan
        return mid

    def knows(self, columns: Columns, device: Device) -> NDArray[np.bool_]:
        """Which ops were in the training data: no opaque ops, no eight-bit arithmetic, only GPUs."""
        is_known = (columns.op_class != CLASSES.index(OpClass.OPAQUE)) & (columns.math != op_math_index("fp8"))
        return is_known if device.kind == "gpu" else np.zeros_like(is_known)


def log_traffic(columns: Columns) -> Array:
    """Logarithms of the MiB that each op moves."""
    logs: Array = np.maximum(np.log(np.maximum(columns.bytes, 1.0) / 2**20), LEAST_TRAFFIC)
    return logs


@remembered(1)
def load_learned() -> Learned:
    """The shipped model."""
    return read_learned(files("epochcast.cost").joinpath("learned.json").read_text(encoding="utf-8"))


def read_learned(text: str) -> Learned:
    """A model from its text."""
    document = json.loads(text)
    nets = tuple(
        Net(
            tuple(np.array(layer["weight"], dtype=np.float64) for layer in net),
            tuple(np.array(layer["bias"], dtype=np.float64) for layer in net),
        )
        for net in document["nets"]
    )
    spreads = {name: (low, high) for name, (low, high) in document["spreads"].items()}
    lines = document["quantiles"]
    quantiles = Quantiles(np.array(lines["weight"]), np.array(lines["bias"]), lines["typical"])
    return Learned(nets, (np.array(document["seen"][0]), np.array(document["seen"][1])), quantiles, spreads)
