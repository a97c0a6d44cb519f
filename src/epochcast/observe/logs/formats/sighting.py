"""What one line of a log says in its own terms, before it is placed in the run (`course`)."""

from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Literal

Sight = Literal["train", "validation", "checkpoint", "pause", "header", "end"]


@dataclass(slots=True)
class Sighting:
    """The numbers of one line; what it did not say is None.

    Position: `step` finished steps of the run, or `batch` finished batches of `epoch` (the epochs finished before it),
    or `epochs_done` where only epochs are counted. Time, best first: `stamp_seconds` (date and time), `elapsed_seconds`
    since the run's start, `section_seconds` since the start of this epoch or bar, `interval_seconds` since the report
    before, `step_seconds`. `pause_seconds` is time that passed outside of training steps.
    `attempt` is a number that changes with every start of the job, where lines say it.
    `what` is the name of a pause that was recorded from its beginning to its end.
    `is_redrawn` where a pause is a bar that is drawn again as it grows: its last drawing has all of it.
    `reports` are those it stands for, where lines that say the same were passed over.
    `section` separates sections of the same epoch; `forgets_total` takes back a total of but one epoch.
    """

    phase: Sight = "train"
    step: float | None = None
    total: float | None = None
    batch: float | None = None
    batches: float | None = None
    epoch: int | None = None
    epochs: float | None = None
    epochs_done: float | None = None
    stamp_seconds: float | None = None
    elapsed_seconds: float | None = None
    section_seconds: float | None = None
    average_seconds: float | None = None
    epoch_remaining_seconds: float | None = None
    remaining_seconds: float | None = None
    interval_seconds: float | None = None
    pause_seconds: float | None = None
    step_seconds: float | None = None
    data_seconds: float | None = None
    samples_per_second: float | None = None
    loss: float | None = None
    rank: int | None = None
    section: int | None = None
    attempt: int | None = None
    closes_epoch: bool = False
    forgets_total: bool = False
    is_sampled: bool = False
    is_redrawn: bool = False
    reports: int = 1
    what: str = ""

    def leave_out_nonsense(self) -> None:
        """Forget numbers that no run has, as of a damaged line: they were not said."""
        for value in _numbers(self):
            if value is not None and not -MOST_NUMBER <= value <= MOST_NUMBER:  # NaN is not, either
                break
        else:
            return
        for name in _NUMBERS:
            value = getattr(self, name)
            if value is not None and not -MOST_NUMBER <= value <= MOST_NUMBER:
                setattr(self, name, None)


MOST_NUMBER = 1e14
"""Steps, samples or seconds: no run has more."""
_NUMBERS = tuple(f.name for f in fields(Sighting) if ("float" in str(f.type) or f.name == "epoch") and f.name != "loss")
_numbers = attrgetter(*_NUMBERS)
