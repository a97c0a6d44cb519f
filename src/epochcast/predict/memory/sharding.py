"""What one rank holds of a step, as fractions of what a single device would hold.

ZeRO (Rajbhandari et al. 2020) shards the optimizer's state (stage 1), gradients too (2), parameters too (3, FSDP):

    stage   parameters          gradients                     state
    1       whole               whole, and in DDP's buckets   1/p
    2       whole               1/p, whole until summed       1/p
    3       1/p, whole units    1/p, whole until summed       1/p
            while they run

How long a unit's parameters and gradients are whole is `units`'. Of what is whole a rank has its own p-th already.
Under autocast what is gathered and summed is in half (FSDP's mixed precision, DeepSpeed's bf16): the cast copies of
parameters are what is gathered. DistributedDataParallel keeps its gradients twice, once in buckets that are reduced
together: as the backward pass makes them, in half where they are added up in float32 elsewhere (`bucket_fraction`; they
are in the buckets then, and nowhere else). DeepSpeed's stage 1 in half has no such buckets: gradients are copied into
one of 500 million values and reduced from there (`reduce_bucket_size`).

FSDP gathers what no block has (tables, the last norm, the head) as its root unit at the beginning of a step and keeps
it to the end of the backward pass; DeepSpeed gathers it by module like everything else.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from epochcast.describe.graph.precision import Method
from epochcast.describe.graph.recipe import OFFLOADS
from epochcast.describe.graph.tensor import DType, gradient_name
from epochcast.describe.graph.trace import Trace
from epochcast.errors import BadInput
from epochcast.predict.memory.gather_units import finished_gradients, units
from epochcast.predict.memory.lifetimes import BEFORE, Integers, Lifetimes, Role


@dataclass(frozen=True, slots=True)
class RankShares:
    """Fractions of parameters, gradients, optimizer state and activations, and what a rank holds in addition.

    `others_sample_bytes` are activations that are not of this batch, per sample of it: what other ranks send to the one
    with the loss, micro-batches in flight. `bucket_fraction` is of the bytes of the gradients. Where gradients or
    parameters are sharded (`sums_apart`, `gathers`), what is whole for a while comes on top. `communication_bytes` are
    beside tensors (`communication_buffers`).
    """

    parameter_fraction: float = 1.0
    gradient_fraction: float = 1.0
    state_fraction: float = 1.0
    activation_fraction: float = 1.0
    bucket_fraction: float = 0.0
    others_sample_bytes: int = 0
    sums_apart: bool = False
    gathers: bool = False
    keeps_root: bool = False
    communication_bytes: int = 0

    def __post_init__(self) -> None:
        for name in ("parameter", "gradient", "state", "activation", "bucket"):
            name = f"{name}_fraction"
            if not getattr(self, name) >= 0:
                raise BadInput(f"{name} must be at least 0, got {getattr(self, name)}")

    @property
    def on_top(self) -> tuple[float | int | bool, ...]:
        """What a rank holds in addition to its part."""
        return (
            self.bucket_fraction,
            self.others_sample_bytes,
            self.sums_apart,
            self.gradient_fraction if self.sums_apart else 1.0,
            self.gathers,
            self.parameter_fraction if self.gathers else 1.0,
            self.keeps_root,
        )

    def of(self, lives: Lifetimes, trace: Trace) -> Lifetimes:
        """The lifetimes with buckets, and with gathered parameters and unsummed gradients."""
        added = [each for each in self._added(lives, trace) if each.fixed_bytes or each.sample_bytes]
        if not added:
            return lives
        names = tuple(f"{each.name}#rank" for each in added)
        columns = np.array([each[1:] for each in added], dtype=np.int64).T
        own = lives.rank_own.union(names)
        return replace(lives, rank_own=own).joined(names, *columns)

    def _added(self, lives: Lifetimes, trace: Trace) -> "Iterator[_Added]":
        buckets_bytes = int(self.bucket_fraction * lives.total_bytes(Role.GRADIENTS))
        yield _Added("buckets", Role.BUCKETS, buckets_bytes, 0, BEFORE, lives.ops)
        yield _Added("others", Role.ACTIVATIONS, 0, self.others_sample_bytes, BEFORE, lives.ops)
        if self.gathers:
            yield from _gathered(lives, trace, 1 - self.parameter_fraction, keeps_root=self.keeps_root)
        if self.sums_apart:
            yield from _unsummed(lives, trace, 1 - self.gradient_fraction)

    def scaled(self, size_bytes: Integers, lives: Lifetimes) -> Integers:
        """The bytes of every storage that a rank holds."""
        fractions = np.ones(len(Role))
        fractions[Role.PARAMETERS] = self.parameter_fraction
        fractions[Role.GRADIENTS] = self.gradient_fraction
        fractions[Role.OPTIMIZER_STATE] = self.state_fraction
        fractions[[Role.ACTIVATIONS, Role.TEMPORARIES, Role.AUTOCAST_COPIES]] = self.activation_fraction
        if self.gathers:
            fractions[Role.AUTOCAST_COPIES] = 0  # gathered in half
        if np.all(fractions == 1) and not (self.bucket_fraction and lives.own_gradients.any()):
            return size_bytes
        share = fractions[lives.roles]
        share[lives.of_update] = self.state_fraction  # a rank updates the parameters whose state it has
        if self.sums_apart or self.bucket_fraction:
            share[lives.own_gradients] = 0  # unsummed, or in the buckets: both come on top
        share[[name in lives.rank_own for name in lives.names]] = 1
        return np.ceil(size_bytes * share).astype(np.int64)


class _Added(NamedTuple):
    """A storage that a rank holds in addition to its share of the others."""

    name: str
    role: Role
    fixed_bytes: int
    sample_bytes: int
    born: int
    last: int


def _gathered(lives: Lifetimes, trace: Trace, fraction: float, *, keeps_root: bool) -> Iterator[_Added]:
    """Parameters in whole units; those that come and go together are one storage."""
    stored_bytes = dict(zip(lives.names, lives.fixed_bytes.tolist(), strict=True))
    if trace.recipe.precision_rules.is_autocast:  # parameters that are stored in float32 are gathered in half
        wide = {p.name: p.elements * DType.FLOAT32.bytes for p in trace.parameters}
        stored_bytes = {
            name: size * HALF_BYTES // DType.FLOAT32.bytes if wide.get(name) == size else size
            for name, size in stored_bytes.items()
        }
    together: dict[tuple[int, int], int] = {}
    root = units(trace).outside if keeps_root else frozenset()
    if root:
        together[0, max(0, lives.update - 1)] = sum(stored_bytes.get(name, 0) for name in root)
    for each in units(trace).gathered():
        if each.parameter in root:
            continue
        at = each.asked, each.last
        together[at] = together.get(at, 0) + stored_bytes.get(each.parameter, 0)
    for (born, last), size_bytes in together.items():
        yield _Added(f"gathered.{born}.{last}", Role.GATHERED, int(fraction * size_bytes), 0, born, last)


def _unsummed(lives: Lifetimes, trace: Trace, fraction: float) -> Iterator[_Added]:
    """Gradients between their birth and the end of their sum, as they travel; each in a storage of its own."""
    gathered, rules = units(trace), trace.recipe.precision_rules
    scale = 1.0 if rules.is_wide else min(1.0, HALF_BYTES / rules.weights.gradients.bytes)
    place_of = {name: place for place, name in enumerate(lives.names)}
    in_half = {
        owner: place_of[name] for name, owner in lives.gradient_copies.items() if lives.own_gradients[place_of[name]]
    }
    for owner, finished in finished_gradients(trace).items():
        kept = place_of.get(gradient_name(owner))
        if kept is None:
            continue
        born = int(lives.born[in_half.get(owner, kept)])
        last = max(born, min(gathered.end_of(finished, behind=1), lives.update - 1))
        size_bytes = int(scale * fraction * lives.fixed_bytes[kept])
        yield _Added(f"{gradient_name(owner)}.unsummed", Role.BUCKETS, size_bytes, 0, born, last)


HALF_BYTES = 2
REDUCE_BUCKET_VALUES = 500_000_000
"""`reduce_bucket_size` of DeepSpeed."""

WHOLE = RankShares()
"""A single device, which holds everything."""


class Held(NamedTuple):
    """A step, and what a GPU holds of its storages."""

    trace: Trace
    shares: RankShares = WHOLE


def zero_shares(stage: int, ranks: int, trace: Trace, *, keeps_root: bool = False) -> RankShares:
    """ZeRO stage 1, 2 or 3 of a step over so many ranks. Stage 1 stands behind DDP, with its buckets, or is
    DeepSpeed's, with one. `keeps_root`: what no block has stays gathered, as in FSDP.
    """
    if stage not in (1, 2, 3) or ranks < 1:
        raise BadInput(f"ZeRO has stages 1, 2 and 3 over at least one rank, got stage {stage} over {ranks}")
    part = 1 / ranks
    return RankShares(
        parameter_fraction=part if stage == 3 else 1.0,
        gradient_fraction=part if stage >= 2 else 1.0,
        state_fraction=part,
        bucket_fraction=zero1_bucket_fraction(trace) if stage == 1 else 0.0,
        sums_apart=stage >= 2,
        gathers=stage == 3,
        keeps_root=keeps_root and stage == 3,
    )


def offloaded(shares: RankShares, trace: Trace) -> RankShares:
    """What a GPU still holds of what the recipe leaves to its host: gradients until they have travelled there, and
    parameters while their unit runs.
    """
    if trace.recipe.offload == OFFLOADS[0]:
        return shares
    left = replace(shares, state_fraction=0.0, gradient_fraction=0.0, bucket_fraction=0.0, sums_apart=True)
    return replace(left, parameter_fraction=0.0, gathers=True) if trace.recipe.offload == OFFLOADS[2] else left


def zero1_bucket_fraction(trace: Trace) -> float:
    """The same behind an optimizer whose state is sharded: DeepSpeed's in half reduces from a bucket of fixed size."""
    rules = trace.recipe.precision_rules
    if rules.method is not Method.MASTERED or rules.weights.sums_wider:
        return bucket_fraction(trace)
    return min(1.0, REDUCE_BUCKET_VALUES / max(1, trace.parameter_counts[1]))


def bucket_fraction(trace: Trace) -> float:
    """Bytes of a gradient as the backward pass makes it and buckets hold it, of a byte of the gradient that is kept."""
    rules = trace.recipe.precision_rules
    is_summed = rules.method is Method.MASTERED and rules.weights.sums_wider
    return rules.weights.parameters.bytes / rules.weights.gradients.bytes if is_summed else 1.0
