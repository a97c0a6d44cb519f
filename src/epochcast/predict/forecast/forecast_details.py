"""What the numbers of a forecast were made of, for whoever asks: the step op by op, memory over time, remedies."""

from dataclasses import dataclass

from epochcast.describe.capture.model import Model
from epochcast.describe.graph.trace import Trace
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.placement import Placement
from epochcast.predict.forecast.remedies import Remedy, UnfitJob
from epochcast.predict.forecast.step import StepForecast
from epochcast.predict.memory.peak import PeakMemory
from epochcast.predict.memory.timeline import Timeline


@dataclass(frozen=True)
class Details:
    """One forecast from the inside. `memory` is None where nobody asked for it. `unfit` finds what would make
    the job fit.
    """

    job: Job
    placement: Placement
    model: Model
    trace: Trace
    step: StepForecast
    memory: PeakMemory | None
    unfit: UnfitJob

    @property
    def timeline(self) -> Timeline | None:
        """Bytes alive during every op."""
        return None if self.memory is None else self.memory.timeline

    def remedies(self) -> tuple[Remedy, ...]:
        """What would make the step fit, the cheapest first; nothing where it does. Looked for when asked."""
        return () if self.memory is None or self.memory.fits else self.unfit.remedies()
