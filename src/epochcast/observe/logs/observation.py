"""One report of a running job, in the same terms whatever wrote it."""

from typing import Literal, NamedTuple

Phase = Literal["train", "validation", "checkpoint", "pause", "start", "end"]


class Observation(NamedTuple):
    """What one line said of a run.

    `step` counts finished training steps from the start of the run (a fraction where only epochs are counted);
    `clock_seconds` is the time of the line on the log's own clock, since the log's first time stamp. Everything that
    the line did not say is None. A named tuple, because a long log makes very many.
    """

    step: float
    clock_seconds: float | None = None
    phase: Phase = "train"
    attempt: int = 0
    rank: int | None = None
    epoch: float | None = None
    total_steps: float | None = None
    total_epochs: float | None = None
    steps_per_epoch: float | None = None
    step_seconds: float | None = None
    data_seconds: float | None = None
    remaining_seconds: float | None = None
    loss: float | None = None
    pause_seconds: float | None = None
    """How long the pause took that ends with this report, where it was recorded; `what` is its name."""
    what: str = ""
