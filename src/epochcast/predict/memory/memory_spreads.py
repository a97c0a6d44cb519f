"""How sure the forecast of a step's memory is: a distribution made of parts whose errors were measured.

    variance(number) = Σ_p share_p(number)² · variance_p       of log(measured/forecast)
    z = log(measured/forecast) ÷ √variance
    P(measured ≤ f · forecast) = share of left-out runs whose z is at most ln f ÷ √variance

share_p is the part of the number (allocated, reserved, nvidia-smi) that depends on p:

    activations      activations, temporaries, copies and workspaces; as sure as the capture of the network
    recomputation    the same, where blocks run again in the backward pass
    quantised        parameters that are kept in fewer bits than they are computed in
    fragmentation    the same as activations, of the numbers that an allocator holds
    context          the context and its libraries, of nvidia-smi's number
    communication    1 GiB of buffers of NCCL, of nvidia-smi's number, where several GPUs talk
    sharding         parameters, gradients and what is gathered of them, on several GPUs
    setup            all: sources run a network in their own way (lengths, versions, what else is on the card), the
                     more so the less usual the way is
    assumed          all, where nobody said what decides memory: the lengths of texts, the rank of adapters

Parameters, gradients and optimizer states on one GPU are certain: they have no part of their own. The shares of
left-out runs are those of a conformal step by group (one GPU, one GPU with quantised weights, several GPUs that
replicate, shard or split the model), every network of every source counted alike.
`training.memory_spreads` fits all of it and writes `memory_spreads.toml`.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from math import exp, log, sqrt
from statistics import NormalDist

import numpy as np

from epochcast.base.caching import remembered
from epochcast.interval import COVERAGE, Interval
from epochcast.predict.memory.memory_kinds import ALLOCATED, MEMORY_KINDS, ON_DEVICE

_FILE = "memory_spreads.toml"
_NORMAL = NormalDist()
OUTSIDE = (1 - COVERAGE) / 2
"""What is below an interval, and above it."""
LEAST, MOST = 0.001, 0.999
"""No verdict is surer than this: rarer things than any table shows happen."""
DYNAMIC = ("activations", "temporaries", "autocast_copies", "workspace")
"""Parts of a breakdown that come and go during a step."""
KEPT = ("parameters", "gathered", "gradients", "optimizer_state", "buckets")
"""Parts of a breakdown that several GPUs may share."""

ZOO, CAPTURED, OPAQUE = "zoo", "captured", "opaque"
CAPTURES = (ZOO, CAPTURED, OPAQUE)
"""How the activations are known: a network written here, one that its own code was traced of, one with unknown ops."""
ALONE, REPLICAS, SHARDED, SPLIT = "one GPU", "replicas", "sharded", "split"
"""What a GPU has of the model: all of it, alone or as others do; a share of its state (ZeRO, FSDP); a part of its
layers (tensor, pipeline, context and expert parallel).
"""
QUANTISED, ASSUMED = "quantised", "assumed"
GROUPS = (ALONE, f"{ALONE}, {QUANTISED}", REPLICAS, SHARDED, SPLIT)
"""Conformal groups."""
PARTS = (
    *(f"activations, {capture}" for capture in CAPTURES),
    *("recomputation", QUANTISED, "fragmentation", "context", "communication", "sharding", ASSUMED),
    *(f"setup, {group}" for group in GROUPS),
)


@dataclass(frozen=True, slots=True)
class StepKind:
    """What the uncertainty of a step's memory depends on, beside its sizes."""

    capture: str = ZOO
    is_recomputed: bool = False
    is_quantised: bool = False
    sharing: str = ALONE
    is_assumed: bool = False

    @property
    def group(self) -> str:
        """The conformal group."""
        return f"{ALONE}, {QUANTISED}" if self.is_quantised and self.sharing == ALONE else self.sharing


ALONE_OF_ZOO = StepKind()
"""The default: a network of the zoo on one GPU."""


def part_shares(kind: StepKind, breakdown: Mapping[str, int], number: str) -> dict[str, float]:
    """The shares of one of MEMORY_KINDS by part, of what is alive at the peak and the context."""
    beside = ("fragmentation",) if number == ON_DEVICE else ("fragmentation", "communication", "context")
    sizes = {name: size for name, size in breakdown.items() if name not in beside}
    whole = max(1, sum(sizes.values()))
    dynamic = sum(sizes.get(name, 0) for name in DYNAMIC) / whole
    shares = {f"activations, {kind.capture}": dynamic, f"setup, {kind.group}": 1.0}
    if kind.is_assumed:
        shares[ASSUMED] = 1.0
    if kind.is_recomputed:
        shares["recomputation"] = dynamic
    if kind.is_quantised:
        shares[QUANTISED] = sizes.get("parameters", 0) / whole
    if number != ALLOCATED:
        shares["fragmentation"] = dynamic
    if number == ON_DEVICE:
        shares["context"] = sizes.get("context", 0) / whole
    if kind.sharing in (SHARDED, SPLIT):
        shares["sharding"] = sum(sizes.get(name, 0) for name in KEPT) / whole
    if kind.sharing != ALONE and number == ON_DEVICE:
        shares["communication"] = sizes.get("communication", 0) / whole
    return shares


@dataclass(frozen=True)
class MemorySpread:
    """The distribution of one step's measured memory around its forecast, by number, and the parts of nvidia-smi's."""

    deviations: Mapping[str, float]
    quantiles: tuple[tuple[float, float], ...]
    """Of log(measured/forecast) ÷ deviation: (probability, value), rising."""
    variances: Mapping[str, float]
    kind: StepKind
    certain_bytes: int = 0
    """What every number has at least."""

    def factor(self, probability: float, number: str = ON_DEVICE) -> float:
        """The least multiple of the forecast that a measured number exceeds with no more than 1 − probability."""
        scores, values = self._curve
        score = _NORMAL.inv_cdf(min(MOST, max(LEAST, probability)))
        return exp(self.deviations[number] * _line(score, scores, values))

    def probability(self, factor: float, number: str = ON_DEVICE) -> float:
        """That the measured number is at most so many times the forecast."""
        if factor <= 0:
            return LEAST
        scores, values = self._curve
        score = _line(log(factor) / self.deviations[number], values, scores)
        return min(MOST, max(LEAST, _NORMAL.cdf(score)))

    def interval(self, mid_bytes: float, number: str = ON_DEVICE, *, allocated_bytes: float | None = None) -> Interval:
        """The middle 90 %, but nothing below what is certain; the forecast itself is inside. Every number is at least
        what is allocated, so that none is lower than the low end of that.
        """
        low, high = (self.factor(share, number) * mid_bytes for share in (OUTSIDE, 1 - OUTSIDE))
        least = 0.0 if allocated_bytes is None else self.factor(OUTSIDE, ALLOCATED) * allocated_bytes
        return Interval(min(mid_bytes, max(low, least, self.certain_bytes)), mid_bytes, max(mid_bytes, high))

    @property
    def _curve(self) -> tuple[list[float], list[float]]:
        """The quantiles over standard normal scores: straight between them and beyond."""
        return [_NORMAL.inv_cdf(share) for share, _ in self.quantiles], [value for _, value in self.quantiles]


def _line(at: float, xs: list[float], ys: list[float]) -> float:
    """The broken line through points, its ends prolonged."""
    place = min(max(int(np.searchsorted(xs, at)), 1), len(xs) - 1)
    x0, x1, y0, y1 = xs[place - 1], xs[place], ys[place - 1], ys[place]
    return y0 + (y1 - y0) * (at - x0) / (x1 - x0)


@dataclass(frozen=True)
class MemorySpreads:
    """The fitted variances by part, and the quantiles by group."""

    variances: Mapping[str, float]
    quantiles: Mapping[str, tuple[tuple[float, float], ...]]

    def of(self, kind: StepKind, breakdown: Mapping[str, int], certain_bytes: int = 0) -> MemorySpread:
        """Of one step whose nvidia-smi number is made of these parts, and which holds `certain_bytes` at some time."""
        shares = {number: part_shares(kind, breakdown, number) for number in MEMORY_KINDS}
        parts = {
            number: {part: share**2 * self.variances[part] for part, share in of_number.items()}
            for number, of_number in shares.items()
        }
        deviations = {number: sqrt(sum(variances.values())) for number, variances in parts.items()}
        return MemorySpread(deviations, self.quantiles[kind.group], parts[ON_DEVICE], kind, certain_bytes)


@remembered(1)
def shipped_spreads() -> MemorySpreads:
    """Those of `memory_spreads.toml`."""
    return read_spreads(files("epochcast.predict.memory").joinpath(_FILE).read_text(encoding="utf-8"))


def read_spreads(text: str) -> MemorySpreads:
    """From the text of such a file."""
    document = tomllib.loads(text)
    quantiles = {
        group: tuple((float(share), float(value)) for share, value in document["quantiles"][group]) for group in GROUPS
    }
    return MemorySpreads({part: float(document["variances"][part]) for part in PARTS}, quantiles)
