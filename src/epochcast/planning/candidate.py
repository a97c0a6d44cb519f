"""One configuration for a job (offer, strategy, batch): what the job takes and costs there, or why it cannot run."""

from dataclasses import dataclass

from epochcast.forecasting.forecast import Forecast
from epochcast.interval import Interval
from epochcast.planning.offers import Offer


@dataclass(frozen=True, slots=True)
class Candidate:
    """A configuration that runs the job, with its forecast."""

    offer: Offer
    forecast: Forecast
    total_seconds: Interval
    dollars: Interval

    @classmethod
    def of(cls, offer: Offer, forecast: Forecast) -> "Candidate":
        """The forecast of a whole job at the price of an offer."""
        total_seconds = forecast.total_seconds
        assert total_seconds is not None  # a planned job has samples
        return cls(offer, forecast, total_seconds, total_seconds.scaled(offer.dollars_per_hour / 3600))

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

    def as_dict(self) -> dict[str, object]:
        """An entry of the JSON contract."""
        return {
            "offer": self.offer.instance.name,
            "cloud": self.offer.instance.cloud,
            "device": self.offer.instance.device,
            "gpus": self.offer.gpus,
            "nodes": self.offer.nodes,
            "strategy": self.strategy,
            "batch_per_gpu": self.batch_per_gpu,
            "global_batch": self.global_batch,
            "memory_verdict": self.forecast.memory_verdict,
            "tokens_per_second": self.forecast.tokens_per_second,
            "mfu": self.forecast.mfu,
            "total_seconds": self.total_seconds.as_dict(),
            "dollars": self.dollars.as_dict(),
            "dollars_per_hour": self.offer.dollars_per_hour,
            "priced_on": self.offer.instance.priced_on,
        }


@dataclass(frozen=True, slots=True)
class Refusal:
    """A configuration that cannot run the job, and why."""

    offer: Offer
    strategy: str | None
    reason: str


TOO_LARGE = "does not fit in memory"
"""The reason of a configuration that needs more memory than its GPUs have."""
