"""Peak memory of a training step, as nvidia-smi shows it.

    peak = what the allocator holds + context
    what the allocator holds = storages alive at the peak + workspaces + rounding and fragmentation

Live storages follow from the trace (`lifetimes`), a rank's share of them from the strategy (`sharding`), what the
allocator reserves for them from a replay of a job's first two steps (`caching_allocator`), workspaces and context from
fitted tables (`workspaces`, `context`). PyTorch frees cached segments before it fails, so whether a step fits is asked
of replays within a limit. How sure all of it is comes from `memory_spreads`:

    P(fits) = P(measured / forecast ≤ usable / (least limit in which a replay succeeds + context))

On a CPU there is no cache and no context: the peak is the live storages.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b

import numpy as np

from epochcast.describe.graph.trace import Trace
from epochcast.errors import BadInput, UnknownName
from epochcast.hardware.device import Device
from epochcast.interval import Interval
from epochcast.predict.memory.bfc_allocator import BfcAllocator
from epochcast.predict.memory.caching_allocator import CachingAllocator
from epochcast.predict.memory.device_context import FrameworkVersion, context_bytes, usable_bytes
from epochcast.predict.memory.lifetimes import Integers, Lifetimes, Role, lifetimes
from epochcast.predict.memory.memory_kinds import ALLOCATED, ON_DEVICE, RESERVED
from epochcast.predict.memory.memory_spreads import (
    ALONE,
    ALONE_OF_ZOO,
    LEAST,
    OPAQUE,
    MemorySpread,
    StepKind,
    shipped_spreads,
)
from epochcast.predict.memory.peak_contents import AliveBytes, alive_at
from epochcast.predict.memory.replay import Allocator, OutOfMemory, Usage, replay
from epochcast.predict.memory.sharding import WHOLE, RankShares
from epochcast.predict.memory.timeline import Timeline
from epochcast.predict.memory.varied_lengths import VariedLengths, VariedStorages
from epochcast.predict.memory.verdict import EVEN, HARDLY, SURE, is_fitting, verdict_of
from epochcast.predict.memory.workspaces import most_workspace_bytes, with_workspaces

SMALLER_TRIED = 6
MOST_LOST = 1.6
"""How many smaller batches are replayed, of those whose storages could reserve as much: an allocator seldom reserves
1.6 times what is alive (U-Net at a batch of 32: 1.5). What is left are small falls between batches of other sizes."""

STANDING = (Role.PARAMETERS, Role.GRADIENTS, Role.OPTIMIZER_STATE)
"""What a job holds whatever its activations are."""
NEAR = 0.1
"""Bounds of a probability that are closer need no further replay."""

ALLOCATORS: Mapping[str, Callable[[int | None], Allocator]] = {
    "caching": CachingAllocator,
    "expandable": lambda limit_bytes: CachingAllocator(limit_bytes, expandable_segments=True),
    "bfc": BfcAllocator,
}
"""PyTorch's allocator, the same with expandable_segments, and TensorFlow's as it grows."""


@dataclass(frozen=True)
class PeakMemory:
    """Bytes of one step at its peak.

    `bytes` is what nvidia-smi shows; its middle is `reserved_bytes` + `context_bytes`, and the sum of `breakdown`.
    `context_bytes` is all that is beside tensors: in `breakdown` it is "context" and "communication".
    `allocated_bytes` is PyTorch's max_memory_allocated. `peak_op` is the op during which most is alive.
    `alive` is what is alive then, by layer. `fits_probability` is None where no device is given. `spread` says how sure
    the numbers are. `paged_bytes` of state had to go to the host for that, where the optimizer pages it.
    """

    bytes: Interval
    allocated_bytes: int
    reserved_bytes: int
    context_bytes: int
    breakdown: Mapping[str, int]
    peak_op: str
    fits_probability: float | None
    timeline: Timeline = field(repr=False)
    spread: MemorySpread = field(repr=False)
    alive: tuple[AliveBytes, ...] = field(default=(), repr=False)
    paged_bytes: int = 0

    def at_most(self, other: "PeakMemory") -> "PeakMemory":
        """The same step where it can also be held as `other` holds it, which has at least its storages: then no more is
        reserved in addition to them than there, and it fits where that does.
        """
        probabilities = [each.fits_probability for each in (self, other) if each.fits_probability is not None]
        least = replace(
            self,
            allocated_bytes=min(self.allocated_bytes, other.allocated_bytes),
            fits_probability=max(probabilities, default=None),
        )
        if self.reserved_bytes <= other.reserved_bytes:
            return least
        saved_bytes = self.reserved_bytes - other.reserved_bytes
        return replace(
            least,
            bytes=other.bytes,
            reserved_bytes=other.reserved_bytes,
            breakdown={**self.breakdown, "fragmentation": self.breakdown["fragmentation"] - saved_bytes},
        )

    @property
    def verdict(self) -> str | None:
        """One of `predict.memory.verdict`'s words; None where no device is given."""
        return None if self.fits_probability is None else verdict_of(self.fits_probability)

    @property
    def fits(self) -> bool | None:
        """Whether the step rather fits than not; None where no device is given."""
        return is_fitting(self.verdict, self.fits_probability)

    def interval_of(self, number: str) -> Interval:
        """One of the three numbers that people quote (`memory_kinds`)."""
        middles = {ALLOCATED: self.allocated_bytes, RESERVED: self.reserved_bytes, ON_DEVICE: self.bytes.mid}
        if number == ON_DEVICE:
            return self.bytes
        return self.spread.interval(middles[number], number, allocated_bytes=self.allocated_bytes)

    @property
    def saved_bytes(self) -> int:
        """What a checkpoint writes: parameters and optimizer state."""
        return self.breakdown.get("parameters", 0) + self.breakdown.get("optimizer_state", 0)


@dataclass(frozen=True)
class MemoryStep:
    """The storages of a step on a device, at any batch."""

    name: str
    lives: Lifetimes
    device: Device | None = None
    shares: RankShares = WHOLE
    allocator: str = "caching"
    varied: VariedStorages | None = None
    framework_version: FrameworkVersion | None = None
    kind: StepKind = field(default_factory=StepKind)

    def __post_init__(self) -> None:
        if self.allocator not in ALLOCATORS:
            raise UnknownName("allocator", self.allocator, ALLOCATORS)

    @property
    def workspaces(self) -> frozenset[int]:
        """Storages that the step can do without if there is no room."""
        return frozenset(np.flatnonzero(self.lives.roles == Role.WORKSPACE).tolist())

    @property
    def is_cached(self) -> bool:
        """Whether the device has a caching allocator."""
        return self.device is None or self.device.kind != "cpu"

    def size_bytes(self, batch: int) -> Integers:
        """This rank's share of every storage; 0 for a workspace that is too large to be requested."""
        return self._bytes_of(self.lives, batch)

    def _bytes_of(self, lives: Lifetimes, batch: int) -> Integers:
        size_bytes = self.shares.scaled(lives.bytes_at(batch), lives)
        most = None if self.device is None else most_workspace_bytes(self.device)
        if most is not None:
            size_bytes[(lives.roles == Role.WORKSPACE) & (size_bytes > most)] = 0
        return size_bytes

    def live_bytes(self, batch: int) -> Integers:
        """(roles, ops + 1): live bytes of this rank."""
        return self.lives.live_bytes(self.size_bytes(batch))

    def most_live_bytes(self, batch: int) -> int:
        """What is alive at the peak."""
        workspace = None if self.device is None else most_workspace_bytes(self.device)
        return int(
            self.lives.peaks.get((batch, self.shares, workspace), lambda: int(self.live_bytes(batch).sum(axis=0).max()))
        )

    def is_hopeless(self, batch: int, limit_bytes: int) -> bool:
        """Whether live bytes without workspaces exceed a limit at any time: then no allocator makes it fit."""
        live = self.live_bytes(batch)
        return int((live.sum(axis=0) - live[Role.WORKSPACE]).max()) > limit_bytes

    def usage(self, batch: int, limit_bytes: int | None = None) -> Usage:
        """A replay; OutOfMemory where it does not fit in `limit_bytes`."""
        sizes = self._sizes(batch)
        digest = blake2b(b"".join(each.tobytes() for each in sizes), digest_size=16).digest()
        key = self.allocator, self.is_cached, limit_bytes, digest, self.varied and self.varied.flushed_every
        usage: Usage | None = self.lives.replays.get(key, lambda: self._replayed(sizes, limit_bytes))
        if usage is None:
            raise OutOfMemory
        return usage

    def _sizes(self, batch: int) -> list[Integers]:
        """The bytes of all storages in each step of a replay: two alike, or batches of different lengths."""
        if self.varied is None or not self.is_cached:
            return [self.size_bytes(batch)] * 2
        return list(self.varied.sizes(lambda lives: self._bytes_of(lives, batch)))

    def _replayed(self, sizes: list[Integers], limit_bytes: int | None) -> Usage | None:
        """None where it does not fit."""
        if not self.is_cached:
            most = int(self.lives.live_bytes(sizes[0]).sum(axis=0).max())
            return None if limit_bytes is not None and most > limit_bytes else Usage(most, most)
        allocator = ALLOCATORS[self.allocator](limit_bytes)
        try:
            before, (first, later) = self.lives.history
            steps = [first, *[later] * (len(sizes) - 1)]
            return replay(
                allocator,
                [each.tolist() for each in sizes],
                before,
                steps,
                optional=self.workspaces,
                flushed_every=None if self.varied is None else self.varied.flushed_every,
            )
        except OutOfMemory:
            return None

    def fits(self, batch: int, limit_bytes: int) -> bool:
        """Whether a replay within a limit succeeds; a hopeless one is not run."""
        if self.is_hopeless(batch, limit_bytes):
            return False
        try:
            self.usage(batch, limit_bytes)
        except OutOfMemory:
            return False
        return True

    @property
    def context_bytes(self) -> int:
        """What the process holds beside tensors: the context, and the buffers of its communicators."""
        return sum(self.beside_tensors.values())

    @property
    def beside_tensors(self) -> dict[str, int]:
        """The parts of `context_bytes`, as a breakdown names them."""
        context = 0 if self.device is None else context_bytes(self.device, self.framework_version)
        buffers = self.shares.communication_bytes
        return {**({"communication": buffers} if buffers else {}), "context": context}

    @property
    def room_bytes(self) -> int:
        """What the allocator may take of the device."""
        assert self.device is not None
        return max(0, usable_bytes(self.device) - self.context_bytes)

    def spread(self, batch: int) -> MemorySpread:
        """How sure the forecast at a batch is."""
        live = self.live_bytes(batch)
        where = int(np.argmax(live.sum(axis=0)))
        parts = {role.label: int(live[role, where]) for role in Role}
        return shipped_spreads().of(self.kind, parts | self.beside_tensors, self._certain(live))

    def _certain(self, live: Integers) -> int:
        """The most that parameters, gradients and optimizer state take together at any time: known to the byte on one
        GPU that holds them all. What several GPUs share depends on how they do it.
        """
        return int(live[list(STANDING)].sum(axis=0).max()) if self.kind.sharing == ALONE else 0

    def limit_bytes(self, batch: int, probability: float) -> int:
        """What the allocator may need in a replay for a step that is on the device with that probability."""
        assert self.device is not None
        return max(0, int(usable_bytes(self.device) / self.spread(batch).factor(probability)) - self.context_bytes)

    def fits_with(self, batch: int, probability: float) -> bool:
        """Whether a step is on the device with at least that probability; not where what is certain is too much."""
        assert self.device is not None
        is_possible = self._certain(self.live_bytes(batch)) + self.context_bytes <= usable_bytes(self.device)
        return is_possible and self.fits(batch, self.limit_bytes(batch, probability))

    def is_sure(self, batch: int) -> bool:
        """Whether the verdict on a batch is "fits"."""
        return self.fits_with(batch, SURE)

    def fits_probability(self, batch: int) -> float:
        """That a step is on the device. The limits of verdicts are replayed, then one between."""
        assert self.device is not None
        usable, spread = usable_bytes(self.device), self.spread(batch)
        live = self.live_bytes(batch)
        if self._certain(live) + self.context_bytes > usable:
            return LEAST
        most_bytes = self.usage(batch).reserved_bytes
        least_bytes = int((live.sum(axis=0) - live[Role.WORKSPACE]).max())
        lower, upper = (
            spread.probability(usable / max(1, need + self.context_bytes)) for need in (most_bytes, least_bytes)
        )
        for probability in (EVEN, SURE, HARDLY):
            lower, upper = self._narrowed(batch, lower, upper, probability)
        if upper - lower > NEAR:
            lower, upper = self._narrowed(batch, lower, upper, (lower + upper) / 2)
        return (lower + upper) / 2

    def _narrowed(self, batch: int, lower: float, upper: float, probability: float) -> tuple[float, float]:
        """Bounds of a probability after a replay in between."""
        if not lower < probability < upper:
            return lower, upper
        return (probability, upper) if self.fits_with(batch, probability) else (lower, probability)


def step_on(
    trace: Trace,
    device: Device | None,
    *,
    set_to_none: bool = True,
    sums_in_place: bool = True,
    allocator: str = "caching",
    shares: RankShares = WHOLE,
    varied: VariedLengths | None = None,
    framework_version: FrameworkVersion | None = None,
    kind: StepKind = ALONE_OF_ZOO,
) -> MemoryStep:
    """The storages of a step on a device. `set_to_none`: gradients are dropped between steps, not zeroed;
    `sums_in_place`: a second gradient is added into the first. PyTorch before 2.0 did neither. `varied`: batches of
    other lengths come before and behind this one, which is the longest. `kind` says how the network is known and what
    a GPU has of the model (`memory_spreads`); the rest of it is the step's.
    """
    if device is not None and device.memory_bytes <= 0:
        raise BadInput(f"{device.name} has no memory size, so nobody can tell whether a step fits")

    def held(step: Trace) -> Lifetimes:
        lives = lifetimes(step, set_to_none=set_to_none, sums_in_place=sums_in_place)
        return _with_rank_storages(lives, step, device, shares)

    lives = held(trace)
    storages = None if varied is None else _alike(lives, varied, held)
    return MemoryStep(trace.name, lives, device, shares, allocator, storages, framework_version, _kind_of(trace, kind))


def _alike(lives: Lifetimes, varied: VariedLengths, held: Callable[[Trace], Lifetimes]) -> VariedStorages | None:
    """The storages of the other lengths; None where a step of another length has others."""
    nodes = tuple((length, held(step)) for length, step in varied.nodes)
    is_alike = all(other.names == lives.names for _, other in nodes)
    return VariedStorages(nodes, varied.drawn, varied.flushed_every) if is_alike else None


def _kind_of(trace: Trace, kind: StepKind) -> StepKind:
    """What the uncertainty of a step depends on."""
    recipe = trace.recipe
    return replace(
        kind,
        capture=OPAQUE if trace.opaque else kind.capture,
        is_recomputed=bool(recipe.checkpointing),
        is_quantised=recipe.base_bits is not None,
    )


def _with_rank_storages(lives: Lifetimes, trace: Trace, device: Device | None, shares: RankShares) -> Lifetimes:
    """The lifetimes with workspaces and a rank's extra storages. Devices of one generation share the cached result."""
    generation = None if device is None else (device.kind, device.generation)
    result: Lifetimes = lives.derived.get(
        ("held", generation, trace.recipe.channels_last, *shares.on_top),
        lambda: shares.of(with_workspaces(lives, trace, device), trace),
    )
    return result


def peak_memory(
    trace: Trace,
    device: Device | None = None,
    *,
    set_to_none: bool = True,
    sums_in_place: bool = True,
    allocator: str = "caching",
    shares: RankShares = WHOLE,
    varied: VariedLengths | None = None,
    framework_version: FrameworkVersion | None = None,
    kind: StepKind = ALONE_OF_ZOO,
) -> PeakMemory:
    """The peak of the step at the trace's batch on a device (None: no limit, no context)."""
    step = step_on(
        trace,
        device,
        set_to_none=set_to_none,
        sums_in_place=sums_in_place,
        allocator=allocator,
        shares=shares,
        varied=varied,
        framework_version=framework_version,
        kind=kind,
    )
    usage = _usage(step, trace.batch)
    live = step.live_bytes(trace.batch)
    where = int(np.argmax(live.sum(axis=0)))
    context, spread = step.context_bytes, step.spread(trace.batch)
    parts = {role.label: int(live[role, where]) for role in Role if live[role, where]}
    parts |= {"fragmentation": usage.reserved_bytes - sum(parts.values()), **step.beside_tensors}
    names, phases = trace.template.derived.get("timeline", lambda: _entries(trace))
    timeline = Timeline(names, phases, {role.label: live[role] for role in Role if live[role].any()})
    return PeakMemory(
        spread.interval(usage.reserved_bytes + context, allocated_bytes=usage.allocated_bytes),
        usage.allocated_bytes,
        usage.reserved_bytes,
        context,
        parts,
        timeline.names[where],
        None if device is None else step.fits_probability(trace.batch),
        timeline,
        spread,
        alive_at(step.lives, trace, step.size_bytes(trace.batch), where),
    )


def _entries(trace: Trace) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names and phases of a timeline's entries."""
    ops = trace.template.base
    return ("start", *(op.name for op in ops)), ("start", *(op.phase.value for op in ops))


def _usage(step: MemoryStep, batch: int) -> Usage:
    """The usage without a limit; if that is too much, with the limit of the device, where a replay succeeds in it."""
    free = step.usage(batch)
    if step.device is None:
        return _no_less_than_smaller(step, batch, free)
    room = step.room_bytes
    if free.reserved_bytes <= room:
        grown = _no_less_than_smaller(step, batch, free)
        return Usage(min(grown.allocated_bytes, room), min(grown.reserved_bytes, room))
    if step.is_hopeless(batch, room):
        return _no_less_than_smaller(step, batch, free)
    try:
        return step.usage(batch, room)
    except OutOfMemory:
        return free


def _no_less_than_smaller(step: MemoryStep, batch: int, usage: Usage) -> Usage:
    """At least the usage at the powers of two below and half-way between them. A larger batch may happen to fall into
    an allocator's segments with less loss; that is luck nobody should plan with.
    """
    powers = [1 << power for power in range(batch.bit_length())]
    ladder = sorted(each for each in {*powers, *(3 * power for power in powers)} if each < batch)
    smaller = ladder[-SMALLER_TRIED:] if step.is_cached and step.varied is None else []
    could_be_more = (each for each in smaller if MOST_LOST * step.most_live_bytes(each) > usage.reserved_bytes)
    usages = [usage, *(step.usage(each) for each in could_be_more)]
    if step.varied is not None:
        usages.append(replace(step, varied=None).usage(batch))
    return Usage(max(each.allocated_bytes for each in usages), max(each.reserved_bytes for each in usages))
