"""The learned cost model: a small ensemble of nets that predict how much slower an op is than what the device sustains.

    free       = factors · flops/(g·peak) · (peak/reference)^u        arithmetic = free · padding
    traffic    = factors · bytes/(b·bandwidth·(1 + 3·min(1, L2/bytes))) · (bandwidth/reference)^v
    bound      = max(arithmetic, traffic)
    seconds    = e^-cap · min(Σ_j e^(a_j) · s·(bound/s)^(p_j) · MiB^(q_j) + e^c·free + e^d·traffic,  60·bound)

s = 10 µs. g, b and the factors (by group of op, by generation of the framework) are what the device sustains
(`hardware.sustained`), or similar devices where it was not measured. `padding` is that of tiles and waves
(`predict.cost.waves`); neither side is above that of a slower sibling (`predict.cost.slower_siblings`). u and v, by
group of op, say how much less is gained than a data sheet promises; they are between 0 and 1. a, c and d are outputs
of nets whose inputs are neither the device nor the size of the op (`predict.cost.features`); that of the bound is
never below 0. p and q are never negative. So more flops, more bytes, a larger batch or a slower device never make an
op cheaper, whatever the nets learnt: small ops are slower than their bound by the terms with p < 1, those larger than
the caches by the one with q > 0, those near the ridge of the roofline by both sides. A product in tf32 is never slower
than in fp32, which is there, too.

Trained by `make model` (`training.train`), stored as text, evaluated with numpy: a forecast needs no framework. Each op
has quantiles, from ops measured alone. The interval of a step (`predict.cost.spreads`) comes from errors of whole
steps on families, devices and sources left out of the training.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from epochcast.base.caching import Cache, remembered
from epochcast.describe.graph.math_modes import OP_MATHS, op_math_index
from epochcast.describe.graph.op_work import OpClass
from epochcast.describe.graph.trace import CLASSES, Columns
from epochcast.hardware.device import Device
from epochcast.hardware.sustained import sustained
from epochcast.predict.cost.cost_model import Costs
from epochcast.predict.cost.features import Outline, math_features, outline_features
from epochcast.predict.cost.op_bounds import CLASS_TOWERS, GROUPS, TOWERS, OpBounds, as_run, caps, limits, op_groups
from epochcast.predict.cost.slower_siblings import SlowerSiblings, slower_siblings
from epochcast.predict.cost.software_setting import GENERATIONS, SoftwareSetting
from epochcast.predict.cost.spreads import Spreads
from epochcast.predict.cost.waves import log_padding, most_padding

Array = NDArray[np.float64]

# An op is assumed to reach at least a sixtieth of its bound: the worst that was measured repeatedly.
MOST_SLOWDOWN = float(np.log(60.0))
# The powers (of the bound, of the bytes) whose terms are summed, and the unit of the bound: about the length of a
# kernel that does not fill a device.
POWERS = ((0.0, 0.0), (0.33, 0.0), (0.67, 0.0), (1.0, 0.0), (1.0, 0.2))
BOUND = POWERS.index((1.0, 0.0))
# Behind them: arithmetic alone, traffic alone.
LIMBS = 2
UNIT_SECONDS = 1e-5
# Ops that go through a net at once. OpenBLAS starts threads for a product of more than 4 · 65,536 multiply-adds
# (interface/gemm.c); on cores that others use, waiting for them takes longer than the net itself.
ROWS_AT_ONCE = 48
# No kernel is shorter than this from its launch to its end.
KERNEL_SECONDS = 1.5e-6
_P, _Q = np.array(POWERS).T
_TF32, _FP32 = op_math_index("tf32"), op_math_index("fp32")


@dataclass(frozen=True)
class Net:
    """Dense layers with SiLU between them, in double precision.

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
    """How far below and above the middle 90 % of the ops of a kind are: logarithms, a softplus of linear functions."""

    weight: Array
    bias: Array

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
class Laws:
    """What holds for all devices: logarithms of what each choice of tile costs, and u and v by group of op."""

    tile_costs: Array
    compute_losses: Array
    bandwidth_losses: Array

    def limbs(self, limit: OpBounds, groups: NDArray[np.int64]) -> tuple[Array, Array, Array]:
        """Logarithms of arithmetic without tiles, of arithmetic, and of traffic, as far as data sheets go."""
        free = limit.compute + self.compute_losses[groups] * limit.peak
        padding = log_padding(limit.paddings, limit.is_tiled, self.tile_costs)
        return free, free + padding, limit.memory + self.bandwidth_losses[groups] * limit.bandwidth_gain


@dataclass(frozen=True)
class Learned:
    """The ensemble as a cost model; a member has one net for each of TOWERS.

    `seen` is the range of every feature in training: features are clipped to it. A format that no row of the training
    had is not answered: its feature would be clipped away.
    """

    members: tuple[tuple[Net, ...], ...]
    laws: Laws
    seen: tuple[Array, Array]
    quantiles: Quantiles
    spreads: Spreads
    name: str = "learned"
    is_monotone: bool = True
    net_outputs: Cache[tuple[bytes, SoftwareSetting], NetOutputs] = field(
        default_factory=lambda: Cache(256), compare=False
    )
    siblings: Cache[tuple[Device, int], SlowerSiblings] = field(default_factory=lambda: Cache(512), compare=False)

    def costs(self, columns: Columns, device: Device, setting: SoftwareSetting) -> Costs:
        """Seconds of every op; low and high are those of the whole step."""
        columns = as_run(columns, device)
        mid = self._middle(columns, device, setting, self._net_outputs(columns, setting))
        spread = self.spreads.of(columns, device, setting, mid)
        costs = Costs.by(self.name, mid * spread.low, mid, mid * spread.high)
        return replace(costs, variances=spread.variances)

    def alone(self, columns: Columns, device: Device, setting: SoftwareSetting) -> Costs:
        """The same for ops on their own: low and high are the quantiles of each op."""
        columns = as_run(columns, device)
        outputs = self._net_outputs(columns, setting)
        mid = self._middle(columns, device, setting, outputs)
        below, above = outputs.distances[outputs.index].T
        return Costs.by(self.name, mid * np.exp(-below), mid, mid * np.exp(above))

    def _net_outputs(self, columns: Columns, setting: SoftwareSetting) -> NetOutputs:
        """Evaluated once per step: neither batch nor device changes them."""
        ops = Outline.of(columns)
        return self.net_outputs.get((ops.digest, setting), lambda: self._evaluated(ops, setting))

    def _evaluated(self, ops: Outline, setting: SoftwareSetting) -> NetOutputs:
        distinct, index = ops.distinct()
        inputs: Array = np.clip(outline_features(distinct, setting), *self.seen)
        outputs = np.zeros((len(self.members), len(inputs), len(POWERS) + LIMBS))
        towers = CLASS_TOWERS[distinct.op_class]
        for tower in range(len(TOWERS)):
            places = np.flatnonzero(towers == tower)
            for block in (places[i : i + ROWS_AT_ONCE] for i in range(0, len(places), ROWS_AT_ONCE)):
                outputs[:, block] = [member[tower](inputs[block]) for member in self.members]
        outputs[:, :, BOUND] = np.logaddexp(0.0, outputs[:, :, BOUND])  # softplus
        return NetOutputs(np.exp(outputs), self.quantiles(inputs), index)

    def seconds(self, columns: Columns, device: Device, setting: SoftwareSetting) -> Array:
        """The middle alone."""
        columns = as_run(columns, device)
        return self._middle(columns, device, setting, self._net_outputs(columns, setting))

    def _middle(self, columns: Columns, device: Device, setting: SoftwareSetting, outputs: NetOutputs) -> Array:
        mid = self._seconds(columns, device, setting, outputs)
        is_tf32 = columns.math == _TF32
        if is_tf32.any():
            plain = replace(columns, math=np.where(is_tf32, _FP32, columns.math))
            mid = np.minimum(mid, self._seconds(plain, device, setting, self._net_outputs(plain, setting)))
        mid[~self.knows(columns, device)] = np.nan
        return mid

    def _seconds(self, columns: Columns, device: Device, setting: SoftwareSetting, outputs: NetOutputs) -> Array:
        own, groups, limit = sustained(device), op_groups(columns, setting), limits(columns, device)
        fractions, group_factors = _tables(device)
        rates = np.log(np.where(columns.is_matrix, fractions[columns.math], own.vector_fraction))
        free, arithmetic, traffic = self.laws.limbs(limit, groups)
        free, arithmetic, traffic = free - rates, arithmetic - rates, traffic - np.log(own.bandwidth_fraction)
        near = self.siblings.get((device, setting.generation), lambda: self._siblings(device, setting.generation))
        arithmetic = near.least_arithmetic(arithmetic, free, columns, groups, self.laws.tile_costs)
        traffic = near.least_traffic(traffic, columns, groups)
        sharp = np.maximum(arithmetic, traffic)
        factors = group_factors[groups] * own.generation_factors.get(GENERATIONS[setting.generation], 1.0)
        bound = factors * np.exp(sharp)
        powers = np.outer(np.log(bound / UNIT_SECONDS), _P - 1) + np.outer(limit.traffic, _Q)
        terms = np.concatenate([powers, np.stack([free - sharp, traffic - sharp], axis=1)], axis=1)
        seconds: Array = np.maximum(bound * np.exp(outputs.slowdown(terms) - caps(columns)), KERNEL_SECONDS)
        return seconds

    def _siblings(self, device: Device, generation: int) -> SlowerSiblings:
        laws = self.laws
        most = most_padding(laws.tile_costs)
        return slower_siblings(device, generation, laws.compute_losses, laws.bandwidth_losses, most)

    def knows(self, columns: Columns, device: Device) -> NDArray[np.bool_]:
        """Which ops were in the training data: no opaque ops, no format without rows, only GPUs."""
        trained = math_features(self.seen[1]) > math_features(self.seen[0])
        is_known = (columns.op_class != CLASSES.index(OpClass.OPAQUE)) & trained[columns.math]
        return is_known if device.kind == "gpu" else np.zeros_like(is_known)


@remembered(256)
def _tables(device: Device) -> tuple[Array, Array]:
    """What a device sustains by math, and how it runs groups of ops."""
    own = sustained(device)
    fractions = np.array([own.math_fraction(math) for math in OP_MATHS])
    return fractions, np.array([own.group_factors.get(group, 1.0) for group in GROUPS])


@remembered(1)
def load_learned() -> Learned:
    """The shipped model."""
    return read_learned(files("epochcast.predict.cost").joinpath("learned.json").read_text(encoding="utf-8"))


def read_learned(text: str) -> Learned:
    """A model from its text."""
    document = json.loads(text)
    members = tuple(tuple(_net(tower) for tower in member) for member in document["nets"])
    parts = document["spreads"]
    scales = {group: (below, above) for group, (below, above) in parts["scales"].items()}
    spreads = Spreads(parts["devices"], parts["frameworks"], parts["kernels"], scales)
    laws = Laws(*(np.array(document["laws"][name]) for name in ("tile_costs", "compute_losses", "bandwidth_losses")))
    lines = document["quantiles"]
    quantiles = Quantiles(np.array(lines["weight"]), np.array(lines["bias"]))
    return Learned(members, laws, (np.array(document["seen"][0]), np.array(document["seen"][1])), quantiles, spreads)


def _net(layers: Sequence[Mapping[str, Sequence[float]]]) -> Net:
    weights, biases = (
        tuple(np.array(layer[name], dtype=np.float64) for layer in layers) for name in ("weight", "bias")
    )
    return Net(weights, biases)
