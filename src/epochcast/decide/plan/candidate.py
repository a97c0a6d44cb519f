"""One configuration for a job (offer, strategy, batch): what the job takes and costs there, or why it cannot run."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import ClassVar

from epochcast.base.record import Record, paths
from epochcast.decide.plan.billing import NO_EXTRAS, Extras
from epochcast.decide.plan.offers import Offer
from epochcast.decide.plan.plan_terms import Variant
from epochcast.decide.plan.spot import Spot, interrupted
from epochcast.hardware.price import OWNED
from epochcast.interval import Interval
from epochcast.predict.forecast.epochs import CHECKPOINT_BYTES_PER_SECOND, WARMUP_SECONDS
from epochcast.predict.forecast.forecast import Forecast

# From this part of a step on, a note says that the GPUs of a machine wait for data.
NOTICED_FRACTION = 0.05


@dataclass(frozen=True, slots=True)
class Candidate(Record):
    """A configuration that runs the job, with its forecast. `total_seconds` are from the first boot to the last step.

    `epochs` are those of this batch. On spare capacity, `interruptions` are expected ones, and the job saves every
    `checkpoint_interval_seconds`.
    """

    offer: Offer
    forecast: Forecast
    total_seconds: Interval
    dollars: Interval
    epochs: float = 1.0
    variant: Variant = ()
    interruptions: float | None = None
    checkpoint_interval_seconds: float | None = None

    json_paths: ClassVar[Mapping[str, str]] = paths(
        *("strategy", "batch_per_gpu", "global_batch", "epochs", "what_if", "total_seconds", "dollars"),
        *("interruptions", "checkpoint_interval_seconds", "input_fraction", "host_note"),
        offer="offer.instance.name",
        cloud="offer.instance.cloud",
        region="offer.instance.region",
        device="offer.instance.device",
        board_is_assumed="offer.instance.board_is_assumed",
        gpus="offer.gpus",
        nodes="offer.nodes",
        precision="forecast.precision",
        memory_verdict="forecast.memory_verdict",
        fits_probability="forecast.fits_probability",
        tokens_per_second="forecast.tokens_per_second",
        mfu="forecast.mfu",
        dollars_per_hour="offer.dollars_per_hour",
        is_spot="offer.is_spot",
        on_demand_dollars_per_hour="offer.on_demand_dollars_per_hour",
        cpus="offer.instance.cpus",
        priced_on="offer.instance.priced_on",
    )

    @property
    def what_if(self) -> dict[str, str]:
        """What the job has here that it was not asked with."""
        return dict(self.variant)

    @property
    def strategy(self) -> str:
        """How the GPUs work together."""
        return self.forecast.strategy

    @property
    def batch_per_gpu(self) -> int:
        """Samples of a GPU per step."""
        return self.forecast.batch_per_gpu

    @property
    def global_batch(self) -> int:
        """Samples of a step over all GPUs."""
        return self.forecast.global_batch

    @property
    def input_fraction(self) -> float:
        """The part of a step in which the GPUs wait for data."""
        parts = self.forecast.step_parts
        return parts.exposed_input / self.forecast.step_seconds.mid if parts is not None else 0.0

    @property
    def host_note(self) -> str | None:
        """That the processors of the machine cannot feed its GPUs, where they cannot."""
        if self.input_fraction < NOTICED_FRACTION:
            return None
        box = self.offer.instance
        gpus = f"{box.gpus} GPUs" if box.gpus > 1 else "the GPU"
        return f"{box.cpus} CPUs cannot feed {gpus}: data loading takes {self.input_fraction:.0%} of the step"


@dataclass(frozen=True, slots=True)
class Pricing:
    """How time on an offer becomes time and money in all."""

    extras: Extras = NO_EXTRAS
    spot: Spot | None = None

    def candidate(self, offer: Offer, forecast: Forecast, epochs: float, variant: Variant = ()) -> Candidate | None:
        """A forecast on an offer; None where it is interrupted too often to get on."""
        work = _work_seconds(forecast, epochs)
        took, interruptions, interval = work, None, None
        if self.spot is not None:
            stopped = interrupted(work, self.spot, _checkpoint_seconds(forecast), offer.nodes)
            if stopped is None:
                return None
            took, interruptions = stopped.total_seconds, stopped.interruptions
            interval = stopped.checkpoint_interval_seconds
        startup = self.startup_seconds(offer)
        if startup:
            took = Interval(took.low + startup, took.mid + startup, took.high + startup, took.coverage)
        paid = self.extras.interval_dollars(took, offer.dollars_per_hour, offer.instance.cloud)
        return Candidate(offer, forecast, took, paid, epochs, variant, interruptions, interval)

    def startup_seconds(self, offer: Offer) -> float:
        """Boot, image and data of a rented machine; one's own is up and has them."""
        return 0.0 if offer.instance.cloud in OWNED else self.extras.startup_seconds

    def at_epochs(self, candidate: Candidate, epochs: float) -> Candidate | None:
        """The same configuration for another number of epochs."""
        return self.candidate(candidate.offer, candidate.forecast, epochs, candidate.variant)


def priced(forecast: Forecast, offer: Offer) -> Forecast:
    """The forecast of a like offer, at the price of this one."""
    source = f"{offer.instance.cloud} {offer.instance.name}"
    return replace(forecast, dollars_per_hour=offer.dollars_per_hour, price_source=source)


def _work_seconds(forecast: Forecast, epochs: float) -> Interval:
    """Warm-up and epochs, as `forecasting.epochs.total_seconds` has it."""
    epoch = forecast.epoch_seconds
    assert epoch is not None  # a planned job has samples
    return epoch.scaled((WARMUP_SECONDS + epochs * epoch.mid) / epoch.mid)


def _checkpoint_seconds(forecast: Forecast) -> float:
    """What writing the state takes, as the forecast counts it."""
    memory = forecast.details.memory
    return inf if memory is None else memory.saved_bytes / CHECKPOINT_BYTES_PER_SECOND


@dataclass(frozen=True, slots=True)
class CannotRun:
    """Why a job cannot run somewhere; `is_too_large` where it needs more memory than the GPUs have."""

    reason: str
    is_too_large: bool = False


TOO_LARGE = CannotRun("does not fit in memory", is_too_large=True)


@dataclass(frozen=True, slots=True)
class RefusedCandidate:
    """A configuration that cannot run the job, and why."""

    offer: Offer
    strategy: str | None
    why: CannotRun
