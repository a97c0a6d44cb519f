"""Every way to run a job: offer × strategy, forecast one by one.

Nothing is computed twice. The model is traced once and resized; an op's seconds depend on the device and the batch
alone, so they serve every number of boxes and every strategy that gives a GPU the same work; memory depends on the
device, the batch and what a rank holds.

The batch of a GPU is its part of the job's, where that is given. Otherwise it is the largest power of two that fits
almost surely (`memory.largest`) and leaves every GPU a full step per epoch.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from epochcast.caching import Cache
from epochcast.capture.model import Model
from epochcast.cost.calibrated import calibrated_device, with_profile
from epochcast.cost.model import CostModel, Costs
from epochcast.cost.setting import Setting
from epochcast.errors import BadInput
from epochcast.forecasting.job import Schedule
from epochcast.forecasting.placement import Placement
from epochcast.forecasting.scaling import names_in, strategy_for
from epochcast.forecasting.step import step_forecast
from epochcast.forecasting.strategies.rules import parts_of
from epochcast.graph.recipe import Recipe
from epochcast.graph.trace import Columns, Trace, digest
from epochcast.hardware.device import Device
from epochcast.planning.candidate import TOO_LARGE, Candidate, Refusal
from epochcast.planning.offers import Offer
from epochcast.planning.room import Room, power_of_two

Way = tuple[Offer, str | None]


@dataclass(frozen=True)
class Job:
    """What is to be trained. The recipe's batch does not matter; `global_batch` is the job's, None where it is free."""

    model: Model
    recipe: Recipe
    schedule: Schedule
    costing: CostModel
    global_batch: int | None = None

    def __post_init__(self) -> None:
        if self.schedule.samples is None:
            raise BadInput("a plan is for a whole job: give --dataset or --samples")
        if self.global_batch is not None and self.global_batch < 1:
            raise BadInput(f"batch must be at least 1, got {self.global_batch}")

    @property
    def samples(self) -> int:
        """Of one epoch."""
        return self.schedule.samples or 0


def strategies_in(texts: Sequence[str]) -> tuple[str, ...]:
    """ddp,zero3 are two; the parts of a product, tp4,pp2, are one."""
    return tuple(name for text in texts for name in ((text,) if parts_of(text) else names_in(text)))


def search(
    job: Job,
    offers: Sequence[Offer],
    strategies: Sequence[str] = (),
    progress: Callable[[int, int], None] | None = None,
) -> tuple[tuple[Candidate, ...], tuple[Refusal, ...]]:
    """Every strategy on every offer: those that work, and those that do not."""
    ways, refused = _ways(offers, strategies)
    asked = _Asked(job)
    found: list[Candidate] = []
    for place, (offer, strategy) in enumerate(ways):
        try:
            found.append(asked.candidate(offer, strategy))
        except _TooLarge:
            refused.append(Refusal(offer, strategy, TOO_LARGE))
        except BadInput as error:
            refused.append(Refusal(offer, strategy, str(error)))
        if progress is not None:
            progress(place + 1, len(ways))
    return tuple(found), tuple(refused)


def _ways(offers: Sequence[Offer], strategies: Sequence[str]) -> tuple[list[Way], list[Refusal]]:
    """Every strategy as it is called on each offer: one GPU needs none, so there it is asked once."""
    ways: dict[Way, None] = {}
    refused: list[Refusal] = []
    for offer in offers:
        for strategy in strategies or (None,):
            try:
                ways[offer, strategy_for(strategy, offer.gpus, offer.nodes)] = None
            except BadInput as error:
                refused.append(Refusal(offer, strategy, str(error)))
    return list(ways), refused


class _TooLarge(Exception):
    """A step that no GPU of the offer holds."""


@dataclass(frozen=True)
class _Remembering:
    """A cost model that is asked once per step, batch and device."""

    base: CostModel
    answers: Cache[tuple[bytes, Device, Setting], Costs] = field(default_factory=lambda: Cache(256))

    @property
    def name(self) -> str:
        return self.base.name

    @property
    def is_monotone(self) -> bool:
        return self.base.is_monotone

    def costs(self, columns: Columns, device: Device, setting: Setting) -> Costs:
        key = digest(columns), device, setting
        return self.answers.get(key, lambda: self.base.costs(columns, device, setting))


class _Asked:
    """What was computed for a job so far."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.room = Room()
        self.traces: dict[int, Trace] = {}
        self.models: dict[str, CostModel] = {}
        self.measured: dict[str, Device] = {}

    def candidate(self, offer: Offer, strategy: str | None) -> Candidate:
        """One way, forecast as `epochcast forecast` does."""
        job, placement = self.job, offer.placement(strategy)
        trace = self._trace(self._batch(placement))
        if not self.room.fits(trace, placement):
            raise _TooLarge
        measured = self._measured(placement.device)
        own = placement if measured is placement.device else replace(placement, device=measured)
        step = step_forecast(trace, own, self._model(placement.device))
        batch_per_gpu = trace.batch * job.recipe.accumulate
        global_batch = batch_per_gpu * placement.replicas
        epoch_seconds = job.schedule.epoch_seconds(
            step,
            global_batch=global_batch,
            validation_batch=trace.batch * placement.replicas,
            saved_bytes=self.room.saved_bytes(trace, placement),
        )
        total_seconds = job.schedule.total_seconds(epoch_seconds)
        assert total_seconds is not None  # a job has samples
        dollars = total_seconds.scaled(offer.dollars_per_hour / 3600)
        return Candidate(offer, placement.strategy, batch_per_gpu, global_batch, total_seconds, dollars)

    def _trace(self, batch: int) -> Trace:
        if batch not in self.traces:
            self.traces[batch] = self.job.model.trace(self.job.recipe.at(batch))
        return self.traces[batch]

    def _measured(self, device: Device) -> Device:
        if device.name not in self.measured:
            self.measured[device.name] = calibrated_device(self.job.costing, device)
        return self.measured[device.name]

    def _model(self, device: Device) -> CostModel:
        if device.name not in self.models:
            self.models[device.name] = _Remembering(with_profile(self.job.costing, device))
        return self.models[device.name]

    def _batch(self, placement: Placement) -> int:
        """Samples of one pass of a GPU."""
        passes = placement.replicas * self.job.recipe.accumulate
        whole = self.job.global_batch or self.job.samples
        if whole < passes or (self.job.global_batch and whole % passes):
            what = f"a batch of {whole}" if self.job.global_batch else f"an epoch of {whole} samples"
            accumulated = f" and {self.job.recipe.accumulate} passes" if self.job.recipe.accumulate > 1 else ""
            raise BadInput(f"{what} does not divide over {placement.replicas} replicas{accumulated}")
        if self.job.global_batch:
            return whole // passes
        largest = self.room.largest(self._trace(1), placement, whole)
        if not largest:
            raise _TooLarge
        return min(largest, power_of_two(whole // passes))
