"""The advice: largest batch, best batch, workers and prefetch, what binds, and what else could be done.

Largest batches come from the memory model (safe, expected, limit), seconds from the forecast at every batch, waiting
from the loader's queue. What binds is the resource that, were there more of it, would make training faster.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from epochcast.advising.search import NEAR, Choice, LoaderHost, Solution, candidate_batches, search
from epochcast.advising.thesis import PROBE_BATCHES, Coefficients, Rule, thesis_rule
from epochcast.display import Displayed
from epochcast.errors import BadInput, EpochcastError
from epochcast.forecasting.forecast import Forecast
from epochcast.forecasting.forecaster import forecast_job
from epochcast.forecasting.job import Job
from epochcast.forecasting.loader import Host, Service, device_copy_seconds, sample_bytes
from epochcast.forecasting.placement import Placement
from epochcast.forecasting.rank_memory import memory_options
from epochcast.forecasting.session import Session
from epochcast.forecasting.step import StepForecast
from epochcast.graph.precision import find_precision, mixed_precision
from epochcast.graph.trace import Trace
from epochcast.hardware.catalogue import devices
from epochcast.interval import Interval
from epochcast.memory.largest import LargestBatch, largest_batch
from epochcast.memory.remedies import Remedy
from epochcast.units import show_bytes


@dataclass(frozen=True)
class Question:
    """What advice is asked for. The job's own batch and loader do not matter: they are what is looked for."""

    job: Job
    placement: Placement
    session: Session
    service: Service
    host: Host
    data_bytes: float = 0.0
    most_batch: int | None = None

    @property
    def ranks(self) -> int:
        """GPUs of one box."""
        return self.placement.ranks_per_node

    def at(self, batch: int) -> Job:
        """The job at a batch, its data always there."""
        return replace(self.job, batch=batch, global_batch=None, loader_seconds=None, workers=None, cpus=None)

    def trace(self, batch: int = 1) -> Trace:
        """One step at a batch."""
        return self.session.trace(self.session.model(self.job), self.job.recipe(batch))

    def forecast(self, batch: int) -> Forecast:
        """The job at a batch, with its memory."""
        return forecast_job(self.at(batch), self.placement, self.session)


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
class Advice(Displayed):
    """The answer. `solution` is None where not even one sample fits on the device."""

    question: Question
    trace: Trace
    max_batch: LargestBatch
    solution: Solution | None
    peak_bytes: Interval
    binding: str
    alternatives: tuple[Alternative, ...] = ()
    thesis: Rule | None = None
    warnings: tuple[str, ...] = field(default=())
    remedies: tuple[Remedy, ...] = ()

    def __repr__(self) -> str:
        name, place = self.trace.name, self.question.placement
        if self.solution is None:
            return f"Advice({name} does not fit on {place.device.name})"
        chosen = self.solution.smallest
        return (
            f"Advice({name} on {place.gpus} × {place.device.name}: batch {chosen.batch}, {chosen.feed.workers} workers)"
        )

    @property
    def fits(self) -> bool:
        """Whether one sample at least fits."""
        return self.solution is not None

    @property
    def choice(self) -> Choice:
        """What is advised: the smallest batch within 2 % of the fastest."""
        if self.solution is None:
            raise BadInput(f"{self.trace.name} does not fit on {self.question.placement.device.name} at any batch")
        return self.solution.smallest

    def as_dict(self) -> dict[str, object]:
        """The JSON contract of `epochcast advise`; settings and peak are of one GPU, `global_` is over all of them."""
        place = self.question.placement
        common: dict[str, object] = {
            "model": self.trace.name,
            "device": place.device.name,
            "gpus": place.gpus,
            "nodes": place.nodes,
            "strategy": place.strategy.name,
            "precision": self.question.job.precision,
            "optimizer": self.question.job.optimizer,
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
        if self.solution is None:
            absent = ("batch", "workers", "prefetch", "stall_fraction", "host_bytes", "step_seconds")
            ends["remedies"] = [remedy.as_dict() for remedy in self.remedies]
            return {**common, **dict.fromkeys(absent), **ends}
        choice, fastest = self.solution.smallest, self.solution.fastest
        return {
            **common,
            "batch": choice.batch,
            "global_batch": choice.batch * self.question.job.accumulate * place.replicas,
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
    solution, most = _solve(question)
    forecast = question.forecast(solution.smallest.batch if solution else 1)
    assert forecast.peak_bytes is not None
    warnings = [*notes, *forecast.warnings]
    if solution and most.safe < 1:
        warnings.append("no batch is safe on this device; the advice rests on the expected peak")
    return Advice(
        question,
        question.trace(),
        most,
        solution,
        forecast.peak_bytes,
        _binding(question, solution, most) if solution else "gpu_memory",
        tuple(_alternatives(question, solution)),
        _thesis(question, solution) if with_thesis else None,
        tuple(warnings),
        () if solution else forecast.details.remedies(),
    )


def _solve(question: Question) -> tuple[Solution | None, LargestBatch]:
    """The best setting and the largest batches; None where the device holds no sample."""
    job, trace = question.job, question.trace(1)
    most = largest_batch(trace, question.placement.device, **memory_options(job, question.placement, trace))
    most = LargestBatch(most.safe // job.augment, most.expected // job.augment, most.limit // job.augment)
    largest = min(most.safe or most.expected, question.most_batch or most.limit)
    if largest < 1:
        return None, most
    host = _loader_host(question, trace)
    least = host.feed(1, 0, 1).host_bytes
    if least > host.host.memory_bytes:
        raise BadInput(
            f"host memory of {show_bytes(host.host.memory_bytes)} holds no batch: training processes and one sample "
            f"each need {show_bytes(least)}"
        )
    return search(candidate_batches(largest), lambda batch: _gpu_step(question, batch), host), most


def _gpu_step(question: Question, batch: int) -> StepForecast:
    """The forecast of the step where data is always there."""
    return forecast_job(question.at(batch), question.placement, question.session, step_only=True).details.step


def _loader_host(question: Question, trace: Trace) -> LoaderHost:
    """The loader's host, shared by the ranks of a box."""
    carried = question.service.sample_bytes or sample_bytes(trace)
    # More workers than twice the processors only help who waits; beyond that nobody is helped.
    most = max(2, min(64, int(2 * question.host.cpus / question.ranks) if not question.service.wait_seconds else 64))
    return LoaderHost(
        question.service,
        question.host,
        question.ranks,
        question.data_bytes,
        lambda samples: device_copy_seconds(samples * carried, question.placement.device),
        most,
        question.job.accumulate,
        question.job.augment,
    )


def _binding(question: Question, solution: Solution, most: LargestBatch) -> str:
    """Which resource, were there more of it, would make training faster: gpu, gpu_memory, cpus, disk, host_memory."""
    best = solution.fastest
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


def _alternatives(question: Question, solution: Solution | None) -> Iterator[Alternative]:
    """One thing changed at a time; those that cannot be traced or do not fit are left out."""
    before = solution.smallest.samples_per_second if solution else None
    for change, changed in _changes(question, solution):
        try:
            other, most = _solve(changed)
        except EpochcastError:
            continue
        if other is None:
            continue
        peak = changed.forecast(other.smallest.batch).peak_bytes
        assert peak is not None
        speedup = None if before is None else other.smallest.samples_per_second / before
        yield Alternative(change, most, other.smallest, changed.placement.replicas, peak, speedup)


def _changes(question: Question, solution: Solution | None) -> Iterator[tuple[str, Question]]:
    job, device = question.job, question.placement.device
    if find_precision(job.precision).is_single and device.kind != "cpu":
        half = mixed_precision(device.peak_flops_per_second).name
        mixed = replace(job, precision=half)
        yield f"precision {half}", replace(question, job=mixed)
        if not job.channels_last and device.tensor_cores and any(len(t.shape) == 4 for t in question.trace().inputs):
            yield f"precision {half}, channels_last", replace(question, job=replace(mixed, channels_last=True))
    if not job.checkpointing:
        yield "checkpointing", replace(question, job=replace(job, checkpointing=True))
    larger = [d for d in devices() if d.vendor == device.vendor and d.kind == device.kind]
    larger = [d for d in larger if d.generation == device.generation and d.memory_bytes > 1.2 * device.memory_bytes]
    if larger:
        bigger = min(larger, key=lambda d: (d.memory_bytes, abs(d.peak("fp32") - device.peak("fp32")), d.name))
        yield f"device {bigger.name}", replace(question, placement=question.placement.with_device(bigger))
    if solution and solution.smallest.stall_fraction >= NEAR:
        more = replace(question.host, cpus=2 * question.host.cpus)
        yield "twice the idle processors", replace(question, host=more)


# ---- the thesis beside it -----------------------------------------------------------------------


def _thesis(question: Question, solution: Solution | None) -> Rule:
    """Equations 4.7–4.17 on forecast memory at the thesis' two batches."""
    device = question.placement.device
    peaks = [question.forecast(batch).peak_bytes for batch in PROBE_BATCHES]
    held = [peak.mid for peak in peaks if peak is not None]
    graph = question.session.model(question.job).graph(2)
    output = sum(tensor.bytes for tensor in graph.outputs) / 2
    coefficients = Coefficients(PROBE_BATCHES, (held[0], held[1]), sample_bytes(question.trace()), output)
    batch = solution.smallest.batch if solution else 1
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
