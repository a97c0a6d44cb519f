"""A whole training job: steps into epochs, epochs into hours and dollars.

    epoch = ⌈samples/global batch⌉ · step + validation + checkpoint
    total = first step's warm-up + epochs · epoch

Batch augmentation (Hoffer et al. 2019): each of the B samples of a step is seen as M augmented copies, so that a step
computes on M·B and an epoch has as many steps as before. Validation runs forward passes of the size a GPU takes, M·B.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from math import ceil

from epochcast.caching import Cache, Derived, derived_property
from epochcast.errors import BadInput
from epochcast.forecasting.placement import Placement
from epochcast.forecasting.step import StepForecast
from epochcast.graph.trace import Trace
from epochcast.interval import Interval
from epochcast.memory.peak import PeakMemory
from epochcast.memory.remedies import Remedy
from epochcast.units import show_seconds

# First epoch minus the later ones, median over the source report's CIFAR-10 runs on a P100 (report_runs: 11 batch
# sizes, 1.8–2.2 s): loading libraries, building the graph, choosing algorithms.
WARMUP_SECONDS = 2.0
# An assumption, not a measurement: one local NVMe disk. Checkpoints are rarely a visible part of a job.
CHECKPOINT_BYTES_PER_SECOND = 1e9


@dataclass(frozen=True, slots=True)
class Schedule:
    """How much there is to train: samples and epochs, and what happens at the end of each."""

    samples: int | None = None
    epochs: int = 1
    validation_samples: int = 0
    checkpoints_per_epoch: float = 1.0
    augment: int = 1
    dataset: str | None = None

    def __post_init__(self) -> None:
        if self.samples is not None and self.samples < 1:
            raise BadInput(f"samples must be at least 1, got {self.samples}")
        for name, value, least in (
            ("epochs", self.epochs, 1),
            ("validation samples", self.validation_samples, 0),
            ("checkpoints per epoch", self.checkpoints_per_epoch, 0),
            ("augment", self.augment, 1),
        ):
            if value < least:
                raise BadInput(f"{name} must be at least {least}, got {value}")

    def steps(self, global_batch: int) -> int | None:
        """⌈samples/global batch⌉; None where nobody said how many samples there are."""
        return None if self.samples is None else ceil(self.samples / global_batch)

    def epoch_seconds(
        self, step: StepForecast, *, global_batch: int, validation_batch: int, saved_bytes: int
    ) -> Interval | None:
        """Steps, validation and checkpoints, with the step's relative uncertainty: all rest on the same device."""
        steps = self.steps(global_batch)
        if steps is None:
            return None
        validation = ceil(self.validation_samples / validation_batch) * step.forward_seconds
        checkpoints = self.checkpoints_per_epoch * saved_bytes / CHECKPOINT_BYTES_PER_SECOND
        mid = steps * step.seconds.mid + validation + checkpoints
        return step.seconds.scaled(mid / step.seconds.mid)

    def total_seconds(self, epoch_seconds: Interval | None) -> Interval | None:
        """Warm-up and all epochs."""
        if epoch_seconds is None:
            return None
        mid = WARMUP_SECONDS + self.epochs * epoch_seconds.mid
        return epoch_seconds.scaled(mid / epoch_seconds.mid)


@dataclass(frozen=True, repr=False)
class Forecast:
    """The answer: what one step, one epoch and the job take, need and cost, and how sure that is."""

    trace: Trace
    placement: Placement
    schedule: Schedule
    step: StepForecast
    memory: PeakMemory
    warnings: tuple[str, ...] = field(default=())
    remedies: Callable[[], tuple[Remedy, ...]] = field(default=tuple, compare=False)
    derived: Derived = field(init=False, compare=False, repr=False, default_factory=partial(Cache, 1))

    def __repr__(self) -> str:
        place, step = self.placement, self.step.seconds
        took = f"{show_seconds(step.mid)} ({show_seconds(step.low)} … {show_seconds(step.high)})"
        where = f"{place.gpus} × {place.device.name}"
        return f"Forecast({self.trace.name} on {where}, batch {self.batch_per_gpu}: step {took})"

    @property
    def batch_per_gpu(self) -> int:
        """Samples a GPU takes per step, before augmentation; all accumulated passes together."""
        return self.trace.batch // self.schedule.augment * self.trace.recipe.accumulate

    @property
    def global_batch(self) -> int:
        """Samples of one step over all GPUs."""
        return self.batch_per_gpu * self.placement.replicas

    @property
    def samples_per_second(self) -> float:
        """Distinct samples over all GPUs."""
        return self.global_batch / self.step.seconds.mid

    @property
    def steps_per_epoch(self) -> int | None:
        """⌈samples/global batch⌉; None where nobody said how many samples there are."""
        return self.schedule.steps(self.global_batch)

    @property
    def epoch_seconds(self) -> Interval | None:
        """Steps, validation and checkpoints; None where nobody said how many samples there are."""
        return self.schedule.epoch_seconds(
            self.step,
            global_batch=self.global_batch,
            validation_batch=self.trace.batch * self.placement.replicas,
            saved_bytes=self.memory.saved_bytes,
        )

    @property
    def total_seconds(self) -> Interval | None:
        """Warm-up and all epochs."""
        return self.schedule.total_seconds(self.epoch_seconds)

    @property
    def dollars(self) -> Interval | None:
        """The job at the placement's price; None where either is unknown."""
        total, price = self.total_seconds, self.placement.dollars_per_hour
        return None if total is None or price is None else total.scaled(price / 3600)

    @property
    def fits(self) -> bool:
        """Whether the memory the step is expected to need is there."""
        return bool(self.memory.fits)

    @derived_property
    def would_fit(self) -> tuple[Remedy, ...]:
        """What would make the step fit; nothing where it does. Looked for when asked."""
        return () if self.fits else self.remedies()

    def as_dict(self) -> dict[str, object]:
        """The JSON contract of `epochcast forecast`."""

        def shown(interval: Interval | None) -> dict[str, float] | None:
            return None if interval is None else interval.as_dict()

        return {
            "model": self.trace.name,
            "device": self.placement.device.name,
            "gpus": self.placement.gpus,
            "nodes": self.placement.nodes,
            "strategy": self.placement.strategy,
            "precision": self.trace.recipe.precision,
            "optimizer": self.trace.recipe.optimizer,
            "mode": self.trace.recipe.mode,
            "batch_per_gpu": self.batch_per_gpu,
            "global_batch": self.global_batch,
            "augment": self.schedule.augment,
            "dataset": self.schedule.dataset,
            "samples": self.schedule.samples,
            "epochs": self.schedule.epochs,
            "steps_per_epoch": self.steps_per_epoch,
            "step_seconds": self.step.seconds.as_dict(),
            "step_parts": self.step.parts.as_dict(),
            "epoch_seconds": shown(self.epoch_seconds),
            "total_seconds": shown(self.total_seconds),
            "samples_per_second": self.samples_per_second,
            "peak_bytes": self.memory.bytes.as_dict(),
            "peak_breakdown": dict(self.memory.breakdown),
            "peak_op": self.memory.peak_op,
            "allocated_bytes": self.memory.allocated_bytes,
            "reserved_bytes": self.memory.reserved_bytes,
            "memory_bytes": self.placement.device.memory_bytes,
            "fits": self.fits,
            "would_fit": [remedy.as_dict() for remedy in self.would_fit],
            "dollars": shown(self.dollars),
            "dollars_per_hour": self.placement.dollars_per_hour,
            "price_source": self.placement.price_source,
            "flops_per_sample": self.trace.flops["matrix"] / self.trace.batch,
            "parameters": sum(p.elements for p in self.trace.parameters),
            "trainable_parameters": sum(p.elements for p in self.trace.parameters if p.trainable),
            "answered_by": self.step.answered_by,
            "opaque_ops": list(self.trace.opaque),
            "warnings": list(self.warnings),
        }
