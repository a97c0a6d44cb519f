"""Changes that would make a step fit, each with its peak memory, the least intrusive first."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import ceil

from epochcast.base.record import Record, json_name
from epochcast.describe.capture.model import Model
from epochcast.describe.graph.precision import mixed_precision
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.trace import Trace
from epochcast.errors import BadInput
from epochcast.hardware.catalogue import devices
from epochcast.hardware.device import Device
from epochcast.interval import Interval
from epochcast.predict.memory.device_context import room_bytes
from epochcast.predict.memory.largest_batch import largest_batch
from epochcast.predict.memory.peak import peak_memory, step_on
from epochcast.predict.memory.sharding import WHOLE, Held, zero_shares

Holds = Callable[[Trace], Held]
"""From a step to what a GPU has of it."""

FittingPeak = tuple[Interval, str]
"""The peak of a step that fits, and its verdict."""


RANKS = (2, 4, 8, 16, 32, 64)
"""The numbers of GPUs that ZeRO is tried on."""


@dataclass(frozen=True, slots=True)
class Remedy(Record):
    """A change that fits: what is changed, to what, the peak it leads to, and whether that fits or is tight."""

    change: str
    value: str
    peak_bytes: Interval
    device: str
    verdict: str = json_name("memory_verdict")


def would_fit(
    model: Model,
    recipe: Recipe,
    device: Device,
    *,
    augment: int = 1,
    set_to_none: bool = True,
    allocator: str = "caching",
    holds: Holds = Held,
) -> tuple[Remedy, ...]:
    """Every single change that fits, and checkpointing with half precision if neither fits alone.

    A sample of the recipe's batch is one of `augment` copies; batches in the answer count samples before that. `holds`
    says what a GPU has of a step; by default all of it.
    """
    need = partial(_need, set_to_none=set_to_none, allocator=allocator)
    return tuple(_remedies(model, recipe, device, augment, holds, need))


def _remedies(
    model: Model, recipe: Recipe, device: Device, augment: int, holds: Holds, need: Callable[..., FittingPeak | None]
) -> Iterator[Remedy]:
    def remedy(change: str, value: str, changed: Recipe, on: Device = device) -> Iterator[Remedy]:
        peak = need(holds(model.trace(changed)), on)
        if peak is not None:
            yield Remedy(change, value, peak[0], on.name, peak[1])

    options = need.keywords if isinstance(need, partial) else {}
    whole = model.trace(recipe)
    held = holds(whole)
    largest = largest_batch(held.trace, device, shares=held.shares, **options)
    most = (largest.safe // augment) or (largest.expected // augment)
    if most:
        yield from remedy("batch", str(most), recipe.at(most * augment))
    changes = _changes(model, recipe, device)
    helped = False
    for name, (value, changed) in changes.items():
        remedies = list(remedy(name, value, changed))
        helped = helped or bool(remedies)
        yield from remedies
    if len(changes) == 2 and not helped:
        (_, (half, mixed)), _ = changes.items()
        both = replace(mixed, checkpointing=True)
        yield from remedy("precision and checkpointing", f"{half}, checkpointing", both)
    if most:
        samples = recipe.batch // augment
        passes = ceil(samples / most)
        each = ceil(samples / passes)
        split = replace(recipe, batch=each * augment, accumulate=recipe.accumulate * passes)
        yield from remedy("accumulate", f"{split.accumulate} passes of {each}", split)
    is_alone = held.shares == WHOLE and held.trace.template is whole.template
    if is_alone and recipe.mode == "training":
        yield from _zero(model, recipe, device, need)
    for larger in _larger(device):
        enough = list(remedy("device", larger.name, recipe, larger))
        if enough:
            yield from enough
            break


def _need(held: Held, device: Device, *, set_to_none: bool, allocator: str) -> FittingPeak | None:
    """The peak of a step that fits; None where it does not."""
    trace, shares = held
    step = step_on(trace, device, shares=shares, set_to_none=set_to_none, allocator=allocator)
    if step.is_hopeless(trace.batch, room_bytes(device)):
        return None
    peak = peak_memory(trace, device, shares=shares, set_to_none=set_to_none, allocator=allocator)
    return (peak.bytes, peak.verdict) if peak.fits and peak.verdict is not None else None


def _changes(model: Model, recipe: Recipe, device: Device) -> dict[str, tuple[str, Recipe]]:
    """Half precision if the step is in float32, checkpointing if the network has blocks."""
    changes = {}
    if recipe.precision_rules.is_single:
        half = mixed_precision(device.peak_flops_per_second).name
        changes["precision"] = (half, replace(recipe, precision=half))
    if recipe.mode != "forward" and not recipe.checkpointing:
        again = replace(recipe, checkpointing=True)
        try:
            model.trace(again)
        except BadInput:  # no blocks
            return changes
        changes["checkpointing"] = ("every block", again)
    return changes


def _zero(model: Model, recipe: Recipe, device: Device, need: Callable[..., FittingPeak | None]) -> Iterator[Remedy]:
    """The lowest stage on the fewest GPUs."""
    trace = model.trace(recipe)
    for ranks in RANKS:
        for stage in (1, 2, 3):
            peak = need(Held(trace, zero_shares(stage, ranks, trace)), device)
            if peak is not None:
                yield Remedy("strategy", f"zero{stage} on {ranks} GPUs", peak[0], device.name, peak[1])
                return


def _larger(device: Device) -> list[Device]:
    """Devices of the same vendor with more memory, the smallest first."""
    others = (d for d in devices() if d.kind == "gpu" and d.vendor == device.vendor)
    return sorted((d for d in others if d.memory_bytes > device.memory_bytes), key=lambda d: (d.memory_bytes, d.name))
