"""What the numbers of a forecast were made of, for whoever asks: the step op by op, memory over time, remedies."""

from dataclasses import dataclass
from functools import partial

from epochcast.describe.capture.model import Model
from epochcast.describe.graph.trace import Trace
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.placement import Placement
from epochcast.predict.forecast.rank_memory import held_by_rank, memory_options
from epochcast.predict.forecast.step import StepForecast
from epochcast.predict.memory.peak import PeakMemory, Timeline
from epochcast.predict.memory.remedies import Remedy, would_fit


@dataclass(frozen=True)
class Details:
    """One forecast from the inside. `memory` is None where nobody asked for it."""

    job: Job
    placement: Placement
    model: Model
    trace: Trace
    step: StepForecast
    memory: PeakMemory | None

    @property
    def timeline(self) -> Timeline | None:
        """Bytes alive during every op."""
        return None if self.memory is None else self.memory.timeline

    def remedies(self) -> tuple[Remedy, ...]:
        """What would make the step fit; nothing where it does. Looked for when asked."""
        if self.memory is None or self.memory.fits:
            return ()
        return would_fit(
            self.model,
            self.trace.recipe,
            self.placement.device,
            augment=self.job.augment,
            holds=partial(held_by_rank, self.placement),
            **memory_options(self.job),
        )
