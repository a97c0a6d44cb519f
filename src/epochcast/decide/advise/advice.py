"""The advice: largest batch, best batch, workers and prefetch, the bottleneck, and what else could be changed.

Largest batches come from the memory model (safe, expected, limit), seconds from the forecast at every batch, waiting
times from the loader's queue. The bottleneck is the resource of which more would make training faster.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from epochcast.base.display import Displayed
from epochcast.base.frames import Framed
from epochcast.base.notes import Importance, Note
from epochcast.base.record import Record, paths
from epochcast.decide.advise.batch_search import (
    BATCH_TOLERANCE,
    BatchChoice,
    LoaderHost,
    Solution,
    candidate_batches,
    search,
)
from epochcast.decide.advise.thesis_rule import PROBE_BATCHES, Coefficients, ThesisRule, thesis_rule
from epochcast.describe.graph.precision import find_precision, mixed_precision
from epochcast.describe.graph.trace import Trace
from epochcast.errors import BadInput, EpochcastError
from epochcast.hardware.catalogue import devices
from epochcast.interval import Interval
from epochcast.predict.forecast.forecast import Forecast
from epochcast.predict.forecast.forecaster import forecast_job
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.job_data import Data, data_of
from epochcast.predict.forecast.job_defaults import plain_options
from epochcast.predict.forecast.job_doubts import is_about_loader
from epochcast.predict.forecast.loader_queue import Service, WorkerHost, device_copy_seconds, sample_bytes
from epochcast.predict.forecast.loader_step import CountedLoader
from epochcast.predict.forecast.placement import Placement
from epochcast.predict.forecast.rank_memory import job_largest_batch
from epochcast.predict.forecast.remedies import Remedy
from epochcast.predict.forecast.session import Session
from epochcast.predict.forecast.step import StepForecast
from epochcast.predict.memory.largest_batch import LargestBatch
from epochcast.units import show_bytes


@dataclass(frozen=True)
class AdviceProblem:
    """What advice is asked for. The batch and loader settings of `job` are ignored: finding them is the task. `assumed`
    are those of its other options that nobody said (`predict.forecast.job_defaults`).
    """

    job: Job
    placement: Placement
    session: Session
    service: Service
    host: WorkerHost
    data_bytes: float = 0.0
    most_batch: int | None = None
    assumed: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ranks(self) -> int:
        """GPUs of one node."""
        return self.placement.ranks_per_node

    def at(self, batch: int) -> Job:
        """The job at a batch, never waiting for data."""
        return replace(self.job, batch=batch, global_batch=None, loader_seconds=None, workers=None, cpus=None)

    def trace(self, batch: int = 1) -> Trace:
        """One step at a batch."""
        return self.session.trace(self.session.model(self.job), self.job.recipe(batch, self.placement.device))

    def forecast(self, batch: int) -> Forecast:
        """The job at a batch, with its memory."""
        answer = forecast_job(self.at(batch), self.placement, self.session, loader=CountedLoader.NONE)
        return replace(answer, assumed={**plain_options(self.assumed), **answer.assumed})


@dataclass(frozen=True)
class Alternative(Record):
    """The advice after one change."""

    json_paths: ClassVar[Mapping[str, str]] = paths(
        *("change", "max_batch", "samples_per_second", "peak_bytes", "speedup"),
        batch="choice.batch",
        workers="choice.feed.workers",
        prefetch="choice.feed.prefetch",
        step_seconds="choice.step.seconds",
        stall_fraction="choice.stall_fraction",
    )

    change: str
    max_batch: LargestBatch
    choice: BatchChoice
    replicas: int
    peak_bytes: Interval
    speedup: float | None

    @property
    def samples_per_second(self) -> float:
        """Throughput of all GPUs."""
        return self.replicas * self.choice.samples_per_second


@dataclass(frozen=True, slots=True)
class FastestBatch(Record):
    """The fastest setting, where a smaller batch is advised."""

    batch: int
    workers: int
    prefetch: int
    samples_per_second: float


@dataclass(frozen=True, slots=True)
class LoaderValues(Record):
    """How fast one worker loads samples, and the processors that may work."""

    seconds_per_sample: float
    variation: float
    idle_cpus: float


@dataclass(frozen=True, repr=False)
class Advice(Displayed, Framed, Record):
    """The answer. `solution` is None where not even one sample fits on the device.

    In JSON, settings and peak are of one GPU, `global_` is over all of them.
    """

    view: ClassVar[str] = "advice"
    json_paths: ClassVar[Mapping[str, str]] = paths(
        *("max_batch", "global_batch", "samples_per_second", "tokens_per_second", "fastest", "loader", "peak_bytes"),
        *("fits", "memory_verdict", "binding", "alternatives", "warnings", "thesis"),
        model="trace.name",
        device="problem.placement.device.name",
        gpus="problem.placement.gpus",
        nodes="problem.placement.nodes",
        strategy="problem.placement.strategy.name",
        precision="problem.job.precision",
        optimizer="problem.job.optimizer",
        batch="solution.smallest.batch",
        workers="solution.smallest.feed.workers",
        workers_per_box="workers_per_node",
        prefetch="solution.smallest.feed.prefetch",
        stall_fraction="solution.smallest.stall_fraction",
        host_bytes="solution.smallest.feed.host_bytes",
        step_seconds="solution.smallest.step.seconds",
        step_parts="solution.smallest.step.parts",
        memory_bytes="problem.placement.device.memory_bytes",
        fits_probability="forecast.fits_probability",
        remedies="remedies_to_fit",
    )
    json_merged: ClassVar[tuple[str, ...]] = ("setup",)
    json_omitted: ClassVar[tuple[str, ...]] = (
        *("global_batch", "workers_per_box", "samples_per_second", "step_parts", "fastest", "loader"),
        *("thesis", "remedies"),
    )

    problem: AdviceProblem
    trace: Trace
    max_batch: LargestBatch
    solution: Solution | None
    peak_bytes: Interval
    memory_verdict: str
    binding: str
    forecast: Forecast
    """Of the advised batch (of one sample where nothing fits), without a loader."""
    alternatives: tuple[Alternative, ...] = ()
    thesis: ThesisRule | None = None
    warnings: tuple[str, ...] = field(default=())
    remedies: tuple[Remedy, ...] = ()

    def __repr__(self) -> str:
        name, placement = self.trace.name, self.problem.placement
        if self.solution is None:
            return f"Advice({name} does not fit on {placement.device.name})"
        chosen = self.solution.smallest
        return (
            f"Advice({name} on {placement.gpus} × {placement.device.name}: "
            f"batch {chosen.batch}, {chosen.feed.workers} workers)"
        )

    @property
    def fits(self) -> bool:
        """Whether at least one sample fits on the device."""
        return self.solution is not None

    @property
    def choice(self) -> BatchChoice:
        """What is advised: the smallest batch within 2 % of the fastest."""
        if self.solution is None:
            raise BadInput(f"{self.trace.name} does not fit on {self.problem.placement.device.name} at any batch")
        return self.solution.smallest

    @property
    def data(self) -> Data:
        """What is trained on, as the network counts it."""
        return data_of(self.problem.job, self.trace)

    def records(self) -> tuple[dict[str, object], ...]:
        """What is advised, then a row for each change; where nothing fits, the changes alone."""
        values = self.as_dict()
        changes = [alternative.as_dict() for alternative in self.alternatives]
        names = changes[0] if changes else ("max_batch", "batch", "step_seconds", "peak_bytes")
        advised = {"change": "", **{name: values.get(name) for name in names if name not in ("change", "speedup")}}
        return (*([{**advised, "speedup": 1.0}] if self.fits else []), *changes)

    @property
    def setup(self) -> dict[str, Any]:
        """What decides the numbers beside model and place."""
        return self.forecast.setup

    @property
    def global_batch(self) -> int | None:
        """Samples of a step over all GPUs."""
        job, replicas = self.problem.job, self.problem.placement.replicas
        return None if self.solution is None else self.choice.batch * job.accumulate * replicas

    @property
    def workers_per_node(self) -> int | None:
        """Loader workers of all GPUs of a node."""
        return None if self.solution is None else self.choice.feed.workers * self.problem.ranks

    @property
    def samples_per_second(self) -> float | None:
        """Throughput of all GPUs."""
        return None if self.solution is None else self._throughput(self.choice)

    @property
    def tokens_per_second(self) -> float | None:
        """The same in tokens; None where the network has none."""
        tokens = self.data.tokens_per_sample
        return None if tokens is None or self.solution is None else tokens * self._throughput(self.choice)

    def _throughput(self, choice: BatchChoice) -> float:
        return self.problem.placement.replicas * choice.samples_per_second

    @property
    def fastest(self) -> FastestBatch | None:
        """The fastest batch, which may be larger than the one advised."""
        if self.solution is None:
            return None
        fastest = self.solution.fastest
        return FastestBatch(fastest.batch, fastest.feed.workers, fastest.feed.prefetch, self._throughput(fastest))

    @property
    def loader(self) -> LoaderValues | None:
        """The loader that was reckoned with."""
        service = self.problem.service
        values = LoaderValues(service.sample_mean_seconds, service.variation, self.problem.host.cpus)
        return None if self.solution is None else values

    @property
    def remedies_to_fit(self) -> tuple[Remedy, ...] | None:
        """What would make it fit, where nothing does."""
        return self.remedies if self.solution is None else None


def advise(problem: AdviceProblem, *, with_thesis: bool = False, notes: tuple[str, ...] = ()) -> Advice:
    """The advice for a problem, and for it with one thing changed at a time; `notes` come first in the warnings."""
    solution, max_batch = _solve(problem)
    forecast = problem.forecast(solution.smallest.batch if solution else 1)
    assert forecast.peak_bytes is not None and forecast.memory_verdict is not None
    # An advice has a loader, given or assumed; the forecast of its batch has none.
    warnings = [*notes, *(text for text in forecast.warnings if not is_about_loader(text))]
    if solution and max_batch.safe < 1:
        warnings.append(
            Note("No batch is safe on this GPU: this advice uses the expected peak memory.", Importance.NOT_AS_ASKED)
        )
    return Advice(
        problem,
        problem.trace(),
        max_batch,
        solution,
        forecast.peak_bytes,
        forecast.memory_verdict,
        _binding(problem, solution, max_batch) if solution else "gpu_memory",
        forecast,
        tuple(_alternatives(problem, solution)),
        _thesis(problem, solution) if with_thesis else None,
        tuple(warnings),
        () if solution else forecast.details.remedies(),
    )


def _solve(problem: AdviceProblem) -> tuple[Solution | None, LargestBatch]:
    """The best setting and the largest batches; None where not even one sample fits on the device."""
    job, trace = problem.job, problem.trace(1)
    max_batch = job_largest_batch(job, problem.placement, problem.session.model(job), trace, problem.session)
    max_batch = LargestBatch(
        max_batch.safe // job.augment, max_batch.expected // job.augment, max_batch.limit // job.augment
    )
    largest = min(max_batch.safe or max_batch.expected, problem.most_batch or max_batch.limit)
    if largest < 1:
        return None, max_batch
    host = _loader_host(problem, trace)
    least_bytes = host.feed(1, 0, 1).host_bytes
    if least_bytes > host.host.memory_bytes:
        raise BadInput(
            f"host memory of {show_bytes(host.host.memory_bytes)} holds no batch: training processes and one sample "
            f"each need {show_bytes(least_bytes)}"
        )
    return search(candidate_batches(largest), lambda batch: _gpu_step(problem, batch), host), max_batch


def _gpu_step(problem: AdviceProblem, batch: int) -> StepForecast:
    """The forecast of a step that does not wait for data."""
    return forecast_job(problem.at(batch), problem.placement, problem.session, step_only=True).details.step


def _loader_host(problem: AdviceProblem, trace: Trace) -> LoaderHost:
    """The loader's host, shared by the ranks of a node."""
    bytes_per_sample = problem.service.sample_bytes or sample_bytes(trace)
    # More workers than twice the processors help only loaders that wait, for example for a network.
    most_workers = max(
        2, min(64, int(2 * problem.host.cpus / problem.ranks) if not problem.service.wait_seconds else 64)
    )
    return LoaderHost(
        problem.service,
        problem.host,
        problem.ranks,
        problem.data_bytes,
        lambda samples: device_copy_seconds(samples * bytes_per_sample, problem.placement.device),
        most_workers,
        problem.job.accumulate,
        problem.job.augment,
    )


def _binding(problem: AdviceProblem, solution: Solution, max_batch: LargestBatch) -> str:
    """What would make training faster if there were more: gpu, gpu_memory, cpus, disk, host_memory, workers, copy."""
    best = solution.fastest
    if best.stall_fraction >= BATCH_TOLERANCE:
        bounds = best.feed.bounds(best.gpu.seconds.mid)
        tightest = max(("cpus", "disk", "workers"), key=bounds.__getitem__)
        if tightest == "workers":
            one_worker_more = replace(best.feed, workers=best.feed.workers + 1)
            return "host_memory" if one_worker_more.host_bytes > problem.host.memory_bytes else "workers"
        return tightest if bounds[tightest] > bounds["gpu"] else "copy"
    double_batch = 2 * (max_batch.safe or max_batch.expected)
    double_rate = double_batch / _gpu_step(problem, double_batch).seconds.mid
    return "gpu_memory" if double_rate > (1 + BATCH_TOLERANCE) * best.batch / best.gpu.seconds.mid else "gpu"


# ---- what else could be changed -----------------------------------------------------------------


def _alternatives(problem: AdviceProblem, solution: Solution | None) -> Iterator[Alternative]:
    """One thing changed at a time; changes that cannot be forecast or do not fit are left out."""
    current_rate = solution.smallest.samples_per_second if solution else None
    for change, changed in _changes(problem, solution):
        try:
            alternative, max_batch = _solve(changed)
        except EpochcastError:
            continue
        if alternative is None:
            continue
        peak_bytes = changed.forecast(alternative.smallest.batch).peak_bytes
        assert peak_bytes is not None
        speedup = None if current_rate is None else alternative.smallest.samples_per_second / current_rate
        yield Alternative(change, max_batch, alternative.smallest, changed.placement.replicas, peak_bytes, speedup)


def _changes(problem: AdviceProblem, solution: Solution | None) -> Iterator[tuple[str, AdviceProblem]]:
    job, device = problem.job, problem.placement.device
    if find_precision(job.precision).is_single and device.kind != "cpu":
        half_name = mixed_precision(device.peak_flops_per_second).name
        mixed = replace(job, precision=half_name)
        yield f"precision {half_name}", replace(problem, job=mixed)
        if not job.channels_last and device.tensor_cores and any(len(t.shape) == 4 for t in problem.trace().inputs):
            yield f"precision {half_name}, channels_last", replace(problem, job=replace(mixed, channels_last=True))
    if not job.checkpointing:
        yield "checkpointing", replace(problem, job=replace(job, checkpointing=True))
    larger_devices = [d for d in devices() if d.vendor == device.vendor and d.kind == device.kind]
    larger_devices = [
        d for d in larger_devices if d.generation == device.generation and d.memory_bytes > 1.2 * device.memory_bytes
    ]
    if larger_devices:
        larger_device = min(
            larger_devices, key=lambda d: (d.memory_bytes, abs(d.peak("fp32") - device.peak("fp32")), d.name)
        )
        yield f"device {larger_device.name}", replace(problem, placement=problem.placement.with_device(larger_device))
    if solution and solution.smallest.stall_fraction >= BATCH_TOLERANCE:
        more_cpus = replace(problem.host, cpus=2 * problem.host.cpus)
        yield "twice the idle processors", replace(problem, host=more_cpus)


# ---- the rule of the thesis ----------------------------------------------------------------------


def _thesis(problem: AdviceProblem, solution: Solution | None) -> ThesisRule:
    """Equations 4.7–4.17 on forecast memory at the thesis' two batches."""
    device = problem.placement.device
    peaks = [problem.forecast(batch).peak_bytes for batch in PROBE_BATCHES]
    peak_mids = [peak.mid for peak in peaks if peak is not None]
    graph = problem.session.model(problem.job).graph(2)
    output_bytes = sum(tensor.bytes for tensor in graph.outputs) / 2
    coefficients = Coefficients(
        PROBE_BATCHES, (peak_mids[0], peak_mids[1]), sample_bytes(problem.trace()), output_bytes
    )
    batch = solution.smallest.batch if solution else 1
    ratio = problem.service.seconds(batch) / _gpu_step(problem, batch).seconds.mid
    return thesis_rule(
        coefficients,
        gpu_bytes=device.memory_bytes,
        host_bytes=problem.host.memory_bytes,
        load_over_step=ratio,
        gpus=problem.ranks,
    )
