"""The advice: largest batch, best batch, workers and prefetch, what binds, and what else could be done.

Largest batches come from the memory model (safe, expected, limit), seconds from the forecast at every batch, waiting
from the loader's queue. What binds is the resource that, were there more of it, would make training faster.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from epochcast.advising.search import NEAR, Choice, Found, Room, candidate_batches, search
from epochcast.advising.thesis import PROBE_BATCHES, Coefficients, Rule, thesis_rule
from epochcast.capture.model import Model
from epochcast.cost.calibrated import calibrated_device, with_profile
from epochcast.cost.model import CostModel
from epochcast.errors import BadInput, EpochcastError
from epochcast.forecasting.loader import Host, Service, device_copy_seconds, sample_bytes
from epochcast.forecasting.placement import Placement
from epochcast.forecasting.step import StepForecast, step_forecast
from epochcast.forecasting.strategies.shares import memory_shares, rank_memory
from epochcast.graph.precision import mixed_precision
from epochcast.graph.recipe import Recipe
from epochcast.graph.trace import Trace
from epochcast.hardware.catalogue import devices
from epochcast.interval import Interval
from epochcast.memory.largest import LargestBatch, largest_batch
from epochcast.memory.remedies import Remedy, would_fit
from epochcast.units import show_bytes

# Precisions that compute in 32 bits.


@dataclass(frozen=True)
class Question:
    """What advice is asked for. The recipe's batch does not matter."""

    model: Model
    recipe: Recipe
    placement: Placement
    costing: CostModel
    service: Service
    host: Host
    data_bytes: float = 0.0
    most_batch: int | None = None

    @property
    def ranks(self) -> int:
        """GPUs of one box."""
        return self.placement.gpus // self.placement.nodes

    def trace(self, batch: int = 1) -> Trace:
        """One step at a batch."""
        return self.model.trace(self.recipe.at(batch))


@dataclass(frozen=True)
class Alternative:
    """Another way to run it, solved as the first."""

    change: str
    max_batch: LargestBatch
    choice: Choice
    replicas: int
    peak_bytes: Interval
    speedup: float | None

    def as_dict(self) -> dict[str, object]:
        """An entry of `alternatives`."""
        return {
            "change": self.change,
            "max_batch": _batches(self.max_batch),
            "batch": self.choice.batch,
            "workers": self.choice.feed.workers,
            "prefetch": self.choice.feed.prefetch,
            "samples_per_second": self.replicas * self.choice.samples_per_second,
            "step_seconds": self.choice.step.seconds.as_dict(),
            "stall_fraction": self.choice.stall_fraction,
            "peak_bytes": self.peak_bytes.as_dict(),
            "speedup": self.speedup,
        }


@dataclass(frozen=True, repr=False)
class Advice:
    """The answer. `found` is None where not even one sample fits on the device."""

    question: Question
    trace: Trace
    max_batch: LargestBatch
    found: Found | None
    peak_bytes: Interval
    binding: str
    alternatives: tuple[Alternative, ...] = ()
    thesis: Rule | None = None
    warnings: tuple[str, ...] = field(default=())
    remedies: tuple[Remedy, ...] = ()

    def __repr__(self) -> str:
        name, place = self.trace.name, self.question.placement
        if self.found is None:
            return f"Advice({name} does not fit on {place.device.name})"
        chosen = self.found.smallest
        return (
            f"Advice({name} on {place.gpus} × {place.device.name}: batch {chosen.batch}, {chosen.feed.workers} workers)"
        )

    @property
    def fits(self) -> bool:
        """Whether one sample at least fits."""
        return self.found is not None

    @property
    def choice(self) -> Choice:
        """What is advised: the smallest batch within 2 % of the fastest."""
        if self.found is None:
            raise BadInput(f"{self.trace.name} does not fit on {self.question.placement.device.name} at any batch")
        return self.found.smallest

    def as_dict(self) -> dict[str, object]:
        """The JSON contract of `epochcast advise`; settings and peak are of one GPU, `global_` is over all of them."""
        place = self.question.placement
        common: dict[str, object] = {
            "model": self.trace.name,
            "device": place.device.name,
            "gpus": place.gpus,
            "nodes": place.nodes,
            "strategy": place.strategy,
            "precision": self.trace.recipe.precision,
            "optimizer": self.trace.recipe.optimizer,
            "max_batch": _batches(self.max_batch),
        }
        ends: dict[str, object] = {
            "peak_bytes": self.peak_bytes.as_dict(),
            "memory_bytes": place.device.memory_bytes,
            "fits": self.fits,
            "binding": self.binding,
            "alternatives": [alternative.as_dict() for alternative in self.alternatives],
            "warnings": list(self.warnings),
        }
        if self.thesis is not None:
            ends["thesis"] = self.thesis.as_dict()
        if self.found is None:
            absent = ("batch", "workers", "prefetch", "stall_fraction", "host_bytes", "step_seconds")
            ends["remedies"] = [remedy.as_dict() for remedy in self.remedies]
            return {**common, **dict.fromkeys(absent), **ends}
        choice, fastest = self.found.smallest, self.found.fastest
        return {
            **common,
            "batch": choice.batch,
            "global_batch": choice.batch * place.replicas,
            "workers": choice.feed.workers,
            "workers_per_box": choice.feed.workers * self.question.ranks,
            "prefetch": choice.feed.prefetch,
            "stall_fraction": choice.stall_fraction,
            "host_bytes": choice.feed.host_bytes,
            "step_seconds": choice.step.seconds.as_dict(),
            "step_parts": choice.step.parts.as_dict(),
            "samples_per_second": place.replicas * choice.samples_per_second,
            "fastest": {
                "batch": fastest.batch,
                "workers": fastest.feed.workers,
                "prefetch": fastest.feed.prefetch,
                "samples_per_second": place.replicas * fastest.samples_per_second,
            },
            "loader": {
                "seconds_per_sample": self.question.service.sample_mean_seconds,
                "variation": self.question.service.variation,
                "idle_cpus": self.question.host.cpus,
            },
            **ends,
        }


def advise(question: Question, *, with_thesis: bool = False, notes: tuple[str, ...] = ()) -> Advice:
    """Solve the question, and the same with one thing changed at a time; `notes` lead the warnings."""
    trace = question.trace()
    found, most = _solve(question)
    fitting = found.smallest.batch if found else 1
    peak = rank_memory(question.trace(fitting), question.placement).bytes
    rule = _thesis(question, found) if with_thesis else None
    others = tuple(_alternatives(question, found))
    warnings = [*notes, *trace.notes]
    if found and most.safe < 1:
        warnings.append("no batch is safe on this device; the advice rests on the expected peak")
    if trace.opaque:
        warnings.append(f"{len(trace.opaque)} kinds of op are unknown and costed by their bytes alone")
    binding = _binding(question, found, most) if found else "gpu_memory"
    place = question.placement
    remedies = () if found else would_fit(question.model, question.recipe, place.device, memory_shares(trace, place))
    return Advice(question, trace, most, found, peak, binding, others, rule, tuple(warnings), remedies)


def _solve(question: Question) -> tuple[Found | None, LargestBatch]:
    """The best setting and the largest batches; None where the device holds no sample."""
    trace, device = question.trace(1), question.placement.device
    most = largest_batch(trace, device, shares=memory_shares(trace, question.placement))
    largest = min(most.safe or most.expected, question.most_batch or most.limit)
    if largest < 1:
        return None, most
    room = _room(question, trace)
    least = room.feed(1, 0, 1).host_bytes
    if least > room.host.memory_bytes:
        raise BadInput(
            f"host memory of {show_bytes(room.host.memory_bytes)} holds no batch: training processes and one sample "
            f"each need {show_bytes(least)}"
        )
    return search(candidate_batches(largest), lambda batch: _gpu_step(question, batch), room), most


def _gpu_step(question: Question, batch: int) -> StepForecast:
    """The forecast of the step where data is always there."""
    place, costing = question.placement, question.costing
    own = replace(place, device=calibrated_device(costing, place.device))
    return step_forecast(question.trace(batch), own, with_profile(costing, place.device))


def _room(question: Question, trace: Trace) -> Room:
    """The loader's host, shared by the ranks of a box."""
    carried = question.service.sample_bytes or sample_bytes(trace)
    # More workers than twice the processors only help who waits; beyond that nobody is helped.
    most = max(2, min(64, int(2 * question.host.cpus / question.ranks) if not question.service.wait_seconds else 64))
    return Room(
        question.service,
        question.host,
        question.ranks,
        question.data_bytes,
        lambda batch: device_copy_seconds(batch * carried, question.placement.device),
        most,
    )


def _binding(question: Question, found: Found, most: LargestBatch) -> str:
    """Which resource, were there more of it, would make training faster: gpu, gpu_memory, cpus, disk, host_memory."""
    best = found.fastest
    if best.stall_fraction >= NEAR:
        bounds = best.feed.bounds(best.gpu.seconds.mid)
        tightest = max(("cpus", "disk", "workers"), key=bounds.__getitem__)
        if tightest == "workers":
            one_more = replace(best.feed, workers=best.feed.workers + 1)
            return "host_memory" if one_more.host_bytes > question.host.memory_bytes else "workers"
        return tightest if bounds[tightest] > bounds["gpu"] else "copy"
    twice = 2 * (most.safe or most.expected)
    beyond = twice / _gpu_step(question, twice).seconds.mid
    return "gpu_memory" if beyond > (1 + NEAR) * best.batch / best.gpu.seconds.mid else "gpu"


# ---- what else could be done --------------------------------------------------------------------


def _alternatives(question: Question, found: Found | None) -> Iterator[Alternative]:
    """One thing changed at a time; those that cannot be traced or do not fit are left out."""
    before = found.smallest.samples_per_second if found else None
    for change, changed in _changes(question, found):
        try:
            other, most = _solve(changed)
        except EpochcastError:
            continue
        if other is None:
            continue
        peak = rank_memory(changed.trace(other.smallest.batch), changed.placement).bytes
        speedup = None if before is None else other.smallest.samples_per_second / before
        yield Alternative(change, most, other.smallest, changed.placement.replicas, peak, speedup)


def _changes(question: Question, found: Found | None) -> Iterator[tuple[str, Question]]:
    recipe, device = question.recipe, question.placement.device
    if recipe.precision_rules.is_single and device.kind != "cpu":
        half = mixed_precision(device.peak_flops_per_second).name
        mixed = replace(recipe, precision=half)
        yield f"--precision {half}", replace(question, recipe=mixed)
        if not recipe.channels_last and device.tensor_cores and any(len(t.shape) == 4 for t in question.trace().inputs):
            last = replace(mixed, channels_last=True)
            yield f"--precision {half} --channels-last", replace(question, recipe=last)
    if not recipe.checkpointing:
        yield "checkpointing", replace(question, recipe=replace(recipe, checkpointing=True))
    larger = [d for d in devices() if d.vendor == device.vendor and d.kind == device.kind]
    larger = [d for d in larger if d.generation == device.generation and d.memory_bytes > 1.2 * device.memory_bytes]
    if larger:
        bigger = min(larger, key=lambda d: (d.memory_bytes, abs(d.peak("fp32") - device.peak("fp32")), d.name))
        yield f"--device {bigger.name}", replace(question, placement=replace(question.placement, device=bigger))
    if found and found.smallest.stall_fraction >= NEAR:
        more = replace(question.host, cpus=2 * question.host.cpus)
        yield "twice the idle processors", replace(question, host=more)


# ---- the thesis beside it -----------------------------------------------------------------------


def _thesis(question: Question, found: Found | None) -> Rule:
    """Equations 4.7–4.17 on forecast memory at the thesis' two batches."""
    device = question.placement.device
    held = tuple(rank_memory(question.trace(batch), question.placement).bytes.mid for batch in PROBE_BATCHES)
    graph = question.model.graph(2)
    output = sum(tensor.bytes for tensor in graph.outputs) / 2
    coefficients = Coefficients(PROBE_BATCHES, (held[0], held[1]), sample_bytes(question.trace()), output)
    batch = found.smallest.batch if found else 1
    ratio = question.service.seconds(batch) / _gpu_step(question, batch).seconds.mid
    return thesis_rule(
        coefficients,
        gpu_bytes=device.memory_bytes,
        host_bytes=question.host.memory_bytes,
        load_over_step=ratio,
        gpus=question.ranks,
    )


def _batches(most: LargestBatch) -> dict[str, int]:
    return {"safe": most.safe, "expected": most.expected, "limit": most.limit}
