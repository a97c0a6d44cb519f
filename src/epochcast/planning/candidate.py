"""One way to run the job: an offer, a strategy, a batch, and what the job takes and costs there."""

from dataclasses import dataclass

from epochcast.interval import Interval
from epochcast.planning.offers import Offer


@dataclass(frozen=True, slots=True)
class Candidate:
    """The whole job on an offer, as intervals."""

    offer: Offer
    strategy: str
    batch_per_gpu: int
    global_batch: int
    total_seconds: Interval
    dollars: Interval

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
            "total_seconds": self.total_seconds.as_dict(),
            "dollars": self.dollars.as_dict(),
            "dollars_per_hour": self.offer.dollars_per_hour,
            "priced_on": self.offer.instance.priced_on,
        }


@dataclass(frozen=True, slots=True)
class Refusal:
    """A way that is none, and why."""

    offer: Offer
    strategy: str | None
    reason: str


TOO_LARGE = "does not fit in memory"
"""The reason of a way that needs more memory than its GPUs have."""
