"""Changes that would make a job fit, each with its peak memory and its time, the cheapest first.

    same job       passes of fewer samples (accumulation), checkpointing, half precision, a loss in chunks, an 8-bit
                   optimizer, offloading, sharding over the GPUs given; where one is not enough also with smaller
                   passes, and with checkpointing
    more hardware  ZeRO on more GPUs, a device with more memory
    another job    a smaller batch, LoRA, QLoRA: what is trained changes, so they come last

Every candidate is a job of its own: its memory is replayed as any other's, and its step is forecast where it fits. Time
is that of a sample, compared with the job as asked, as if it fitted. Changes that surely fit come before tight ones.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import ceil

from epochcast.base.record import Record, json_key
from epochcast.describe.capture.model import Model
from epochcast.describe.graph.optimizer import OPTIMIZERS
from epochcast.describe.graph.precision import mixed_precision
from epochcast.describe.graph.recipe import OFFLOADS
from epochcast.describe.graph.trace import Trace
from epochcast.errors import EpochcastError
from epochcast.hardware.catalogue import devices
from epochcast.hardware.device import Device
from epochcast.interval import Interval
from epochcast.predict.forecast.forecast import Forecast
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.job_data import TEXT
from epochcast.predict.forecast.job_defaults import half_base
from epochcast.predict.forecast.placement import Placement, placed
from epochcast.predict.forecast.rank_memory import job_largest_batch, job_memory
from epochcast.predict.forecast.session import Session
from epochcast.predict.forecast.strategies.strategy_table import find_strategy
from epochcast.predict.memory.peak import PeakMemory
from epochcast.predict.memory.verdict import FITS

Ask = Callable[[Job, Placement, Session], Forecast]
"""The forecaster, which is passed in: it asks here for remedies."""

RANKS = (2, 4, 8, 16, 32, 64)
"""The numbers of GPUs that ZeRO is tried on."""
STAGES = ("zero1", "zero2", "zero3")
CHECKPOINTING = "checkpointing"
LOSS_CHUNKS = 8
"""Of tokens, in which head and cross entropy are tried: torchtune's own number (CEWithChunkedOutputLoss)."""
LORA_RANK = 16
"""Of the adapters that are tried, as most scripts set it."""
CHANGED = (
    *("batch", "accumulate", "checkpointing", "precision", "weights", "optimizer", "offload", "lora", "four_bit"),
    "loss_chunks",
)
"""Options that candidates change."""
SAME_JOB, MORE_HARDWARE, OTHER_JOB = "same job", "more hardware", "another job"
EFFORTS = (SAME_JOB, MORE_HARDWARE, OTHER_JOB)
"""What a change asks of the user, the least first."""


@dataclass(frozen=True, slots=True)
class Remedy(Record):
    """A change that fits: what is changed, to what, the peak it leads to, and with which probability that fits.

    `step_seconds` is the step of the changed job. `time_factor` is its time per sample over that of the job as asked.
    `options` are those of the changed job that differ. `effort` is one of EFFORTS.
    """

    change: str
    value: str
    peak_bytes: Interval
    device: str
    verdict: str = field(metadata=json_key("memory_verdict"))
    fits_probability: float
    step_seconds: Interval
    time_factor: float
    effort: str
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A changed job at a place."""

    change: str
    value: str
    job: Job
    placement: Placement
    effort: str = SAME_JOB


@dataclass(frozen=True)
class UnfitJob:
    """A job that does not fit, and whom to ask about changes."""

    job: Job
    placement: Placement
    batch: int
    """Samples of one pass of a GPU."""
    fed: str
    seconds_per_sample: float
    session: Session
    ask: Ask
    larger: Sequence[Device] | None = None
    """Devices that are tried instead; None for those with more memory."""

    def remedies(self) -> tuple[Remedy, ...]:
        """Every change that fits, the cheapest first."""
        alone = list(self._same_job())
        fitting = [remedy for candidate in alone for remedy in self._tried(candidate)]
        enough = {remedy.change for remedy in fitting}
        others = [*self._with_checkpointing(alone, enough), *self._more_hardware(), *self._other_jobs()]
        fitting += [remedy for candidate in others for remedy in self._tried(candidate)]
        worth = [remedy for remedy in fitting if not any(_is_enough(other, remedy) for other in fitting)]
        return tuple(sorted(worth, key=lambda r: (EFFORTS.index(r.effort), r.verdict != FITS, r.time_factor)))

    # ---- one candidate --------------------------------------------------------------------------

    def _tried(self, candidate: _Candidate) -> Iterator[Remedy]:
        """The remedy if it fits; if it does not and the job stays the same, that with smaller passes."""
        memory = self._memory(candidate.job, candidate.placement)
        if memory is not None and memory.fits:
            yield from self._remedy(candidate, memory)
        elif candidate.effort == SAME_JOB or candidate.job.lora:
            split = self._split(candidate)
            memory = None if split is None else self._memory(split.job, split.placement)
            if split is not None and memory is not None and memory.fits:
                yield from self._remedy(split, memory)

    def _remedy(self, candidate: _Candidate, memory: PeakMemory) -> Iterator[Remedy]:
        try:
            answer = self.ask(candidate.job, candidate.placement, self.session)
        except EpochcastError:
            return
        assert memory.verdict is not None and memory.fits_probability is not None
        yield Remedy(
            candidate.change,
            candidate.value,
            memory.bytes,
            candidate.placement.device.name,
            memory.verdict,
            memory.fits_probability,
            answer.step_seconds,
            1 / answer.samples_per_second / self.seconds_per_sample,
            candidate.effort,
            self._options(candidate),
        )

    def _options(self, candidate: _Candidate) -> dict[str, str]:
        """What differs from the job as asked, as options are written."""
        job, before = candidate.job, replace(self.job, batch=self.batch, global_batch=None)
        changed = (name for name in CHANGED if getattr(job, name) not in (None, getattr(before, name)))
        options = {name: str(getattr(job, name)) for name in changed}
        if "weights" in options:
            options["precision"] = before.precision  # the job's own names both
        places = {
            "device": (candidate.placement.device.name, self.placement.device.name),
            "gpus": (candidate.placement.gpus, self.placement.gpus),
            "strategy": (candidate.placement.strategy.name, self.placement.strategy.name),
        }
        return options | {name: str(after) for name, (after, before) in places.items() if after != before}

    def _memory(self, job: Job, placement: Placement) -> PeakMemory | None:
        """None for a job that cannot be: an optimizer that is not offloaded, a network without blocks."""
        try:
            model, trace = self._trace(job, placement)
            return job_memory(job, placement, model, trace, self.session)
        except EpochcastError:
            return None

    def _trace(self, job: Job, placement: Placement) -> tuple[Model, Trace]:
        model = self.session.model(job)
        return model, self.session.trace(model, job.recipe(job.batch or self.batch, placement.device))

    def _split(self, candidate: _Candidate) -> _Candidate | None:
        """The same samples in more passes of as many as surely fit; None where no sample fits, or all do."""
        most = self._most(candidate.job, candidate.placement)
        if not 0 < most < self.batch:
            return None
        passes = _passes(self.batch, most)
        each = ceil(self.batch / passes)
        job = replace(candidate.job, batch=each, global_batch=None, accumulate=self.job.accumulate * passes)
        value = f"{job.accumulate} passes of {each}"
        if not candidate.change:
            return replace(candidate, change="accumulate", value=value, job=job)
        return replace(
            candidate, change=f"{candidate.change}, accumulate", value=f"{candidate.value}, {value}", job=job
        )

    def _most(self, job: Job, placement: Placement) -> int:
        """The most samples of a pass that surely fit, else that rather do."""
        try:
            model, trace = self._trace(job, placement)
            largest = job_largest_batch(job, placement, model, trace, self.session)
        except EpochcastError:
            return 0
        return (largest.safe // job.augment) or (largest.expected // job.augment)

    # ---- candidates -----------------------------------------------------------------------------

    def _same_job(self) -> Iterator[_Candidate]:
        job, placement = replace(self.job, batch=self.batch, global_batch=None), self.placement
        here = partial(_Candidate, placement=placement)
        yield here("", "", job)
        recipe = job.recipe(self.batch, placement.device)
        if recipe.precision_rules.is_single and placement.device.kind == "gpu":
            half = mixed_precision(placement.device.peak_flops_per_second).name
            yield here("precision", half, replace(job, precision=half, weights=None))
        if recipe.mode == "forward":
            return
        if not recipe.checkpointing:
            yield here(CHECKPOINTING, "every block", replace(job, checkpointing="full"))
        if recipe.mode != "training":
            return
        yield from self._leaner(job)
        for offload in OFFLOADS[1:]:
            if recipe.offload == OFFLOADS[0]:
                yield here("offload", offload, replace(job, offload=offload))
        for strategy in STAGES if placement.gpus > 1 and placement.replicas == placement.gpus else ():
            sharded = find_strategy(strategy, placement.gpus)
            if strategy > placement.strategy.name or placement.strategy.name not in (*STAGES, "fsdp"):
                yield _Candidate("strategy", strategy, job, replace(placement, strategy=sharded))

    def _leaner(self, job: Job) -> Iterator[_Candidate]:
        """A loss that never holds all scores of the vocabulary, and an optimizer with 8-bit state."""
        if self.fed == TEXT and job.loss_chunks == 1:
            chunked = replace(job, loss_chunks=LOSS_CHUNKS)
            yield _Candidate("loss", f"{LOSS_CHUNKS} chunks", chunked, self.placement)
        narrow = f"{job.recipe(self.batch, self.placement.device).optimizer}8bit"
        if narrow in OPTIMIZERS:
            yield _Candidate("optimizer", narrow, replace(job, optimizer=narrow), self.placement)

    def _with_checkpointing(self, alone: list[_Candidate], enough: set[str]) -> Iterator[_Candidate]:
        """Each of the others with checkpointing, where neither is enough without smaller passes."""
        if CHECKPOINTING in enough or all(candidate.change != CHECKPOINTING for candidate in alone):
            return
        for candidate in alone:
            if candidate.change not in ("", CHECKPOINTING, *enough):
                both = replace(candidate.job, checkpointing="full")
                change, value = f"{candidate.change}, {CHECKPOINTING}", f"{candidate.value}, every block"
                yield replace(candidate, change=change, value=value, job=both)

    def _more_hardware(self) -> Iterator[_Candidate]:
        """The lowest stage on the fewest GPUs, and the smallest device, on which the job fits as it is."""
        job = replace(self.job, batch=self.batch, global_batch=None)
        if self.placement.gpus == 1 and job.mode == "training":
            yield from self._first_fitting(self._sharded(job))
        larger = (
            _Candidate("device", device.name, job, self.placement.with_device(device), MORE_HARDWARE)
            for device in (larger_devices(self.placement.device) if self.larger is None else self.larger)
        )
        yield from self._first_fitting(larger)

    def _sharded(self, job: Job) -> Iterator[_Candidate]:
        for ranks in RANKS:
            for stage in STAGES:
                place = placed(self.placement.device, ranks, 1, stage)
                yield _Candidate("strategy", f"{stage} on {ranks} GPUs", job, place, MORE_HARDWARE)

    def _first_fitting(self, candidates: Iterator[_Candidate]) -> Iterator[_Candidate]:
        for candidate in candidates:
            memory = self._memory(candidate.job, candidate.placement)
            if memory is not None and memory.fits:
                yield candidate
                return

    def _other_jobs(self) -> Iterator[_Candidate]:
        job = replace(self.job, batch=self.batch, global_batch=None)
        most = self._most(job, self.placement)
        if 0 < most < self.batch:
            yield _Candidate("batch", str(most), replace(job, batch=most), self.placement, OTHER_JOB)
        if self.fed != TEXT or job.mode != "training" or job.lora or job.freeze:
            return
        tuned = replace(job, lora=LORA_RANK)
        half = half_base(job.precision) if job.weights is None else None
        for method, value, adapted in (
            ("LoRA", f"rank {LORA_RANK}", tuned if half is None else replace(tuned, weights=half)),
            ("QLoRA", f"rank {LORA_RANK}, 4-bit base", replace(tuned, four_bit=True)),
        ):
            alone = _Candidate(method, value, adapted, self.placement, OTHER_JOB)
            again = replace(adapted, checkpointing="full")
            both = replace(alone, change=f"{method}, {CHECKPOINTING}", value=f"{value}, every block", job=again)
            yield from list(self._first_fitting(iter((alone, both)))) or [both]


def _is_enough(less: Remedy, more: Remedy) -> bool:
    """Whether a change makes another superfluous: it changes fewer things, costs no more time than the whole percents
    that are shown, and fits as surely.
    """
    is_part = less.options.keys() < more.options.keys() and EFFORTS.index(less.effort) <= EFFORTS.index(more.effort)
    is_no_slower = round(less.time_factor, 2) <= round(more.time_factor, 2)
    return is_part and is_no_slower and (less.verdict == FITS or more.verdict != FITS)


def _passes(samples: int, most: int) -> int:
    """The fewest passes of at most so many samples that leave a step its samples; up to twice as many as are needed,
    else (a prime number of samples) passes of nearly one size.
    """
    fewest = ceil(samples / most)
    return next((passes for passes in range(fewest, 2 * fewest + 1) if samples % passes == 0), fewest)


def larger_devices(device: Device) -> list[Device]:
    """Devices of the same vendor with more memory, the smallest first."""
    others = (d for d in devices() if d.kind == "gpu" and d.vendor == device.vendor)
    return sorted((d for d in others if d.memory_bytes > device.memory_bytes), key=lambda d: (d.memory_bytes, d.name))
