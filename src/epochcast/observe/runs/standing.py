"""How a run stands: the one record of it.

The tracker makes it of a run's reports. The database keeps it, and the command line, the API, the event stream and the
pages show it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar

from epochcast.base.record import Record, json_key, json_name
from epochcast.errors import InvalidField
from epochcast.interval import Interval
from epochcast.observe.runs.drift import Drift, RankDrift
from epochcast.observe.runs.speed_verdict import speed_factor, speed_verdict

Moment = tuple[float, float, float, float]
"""Elapsed seconds, and the total that was expected then: low, middle, high."""
# Moments of the fan that are kept: every second one is dropped when there are more.
MOST_MOMENTS = 64


@dataclass(frozen=True, slots=True)
class EarlyStopping(Record):
    """What the metric of early stopping did, and at which step the run may stop."""

    metric: str
    patience: int
    evaluations: int
    best: float | None
    waited: int
    has_stopped: bool
    stop_step: Interval | None = None


@dataclass(frozen=True, slots=True)
class ShownPace(Record):
    """What a run itself has shown, without what was expected of it beforehand."""

    step_seconds: float
    start_seconds: float
    executed_steps: float


@dataclass(frozen=True, slots=True)
class Standing(Record):
    """How far a run is and when it ends. None: unknown (a job, a price, a clock).

    `step_seconds` is the expected pace, `shown` what the run itself showed. Of `remaining_seconds`, `pause_seconds` are
    for pauses and `interruption_seconds` for interruptions, during which nothing runs for `interruption_down_seconds`.
    `down_seconds` passed between attempts. `prior_weight` is the weight of what was expected beforehand in the pace.

    >>> import epochcast as ec
    >>> left = ec.Interval(50.0, 60.0, 80.0)
    >>> standing = ec.Standing(40, 100, "given", step_seconds=1.0, remaining_seconds=left, elapsed_seconds=40.0)
    >>> standing.fraction
    0.4
    """

    step: float
    total_steps: float
    total_source: str = field(metadata=json_key("total_told_by"))
    step_seconds: float
    remaining_seconds: Interval
    elapsed_seconds: float
    is_done: bool = False
    is_total_inferred: bool = False
    start_seconds: float = 0.0
    down_seconds: float = 0.0
    pause_seconds: float = 0.0
    interruption_seconds: float = 0.0
    interruption_down_seconds: float = 0.0
    restarts: int = 0
    report_seconds: float | None = None
    """Mean time from one report to the next while the job ran, pauses included."""
    log_remaining_seconds: float | None = None
    forecast_step_seconds: Interval | None = None
    against_forecast: float | None = None
    """Observed over forecast seconds per step."""
    prior_source: str | None = json_name("prior_told_by", default=None)
    prior_weight: float = 0.0
    dollars_so_far: float | None = None
    """Cost of the time while the job ran, all attempts; the time between attempts is not counted."""
    dollars_in_all: Interval | None = None
    drift: Drift | None = None
    rank_drifts: tuple[RankDrift, ...] = ()
    reasons: tuple[str, ...] = ()
    early_stopping: EarlyStopping | None = None
    shown: ShownPace | None = None
    seen_at: datetime | None = None
    finish_at: datetime | None = None
    fan: tuple[Moment, ...] = ()
    """What the total was expected to be at moments of the run."""

    json_also: ClassVar[tuple[str, ...]] = ("fraction", "speed_verdict")
    json_lenient: ClassVar[bool] = True

    @property
    def speed_verdict(self) -> str | None:
        """Whether the pace that the run showed is normal for its forecast; None where there is none to compare."""
        if self.forecast_step_seconds is None or self.shown is None or self.against_forecast is None:
            return None
        shown_seconds = Interval.exact(self.shown.step_seconds)
        return speed_verdict(speed_factor(shown_seconds, self.forecast_step_seconds), None)

    @property
    def fraction(self) -> float:
        """Steps done of all."""
        return min(1.0, self.step / self.total_steps)

    @classmethod
    def stored(cls, values: Mapping[str, Any]) -> "Standing | None":
        """The standing in a database, of this version or one before; None where there is none, or not enough of it."""
        try:
            return cls.from_dict({key: value for key, value in values.items() if value != {}})
        except InvalidField:
            return None

    def with_moment(self, fan: tuple[Moment, ...]) -> tuple[Moment, ...]:
        """The fan with this moment at its end."""
        elapsed, left = self.elapsed_seconds, self.remaining_seconds
        if fan and fan[-1][0] >= elapsed:
            return fan
        fan = (*fan, (elapsed, elapsed + left.low, elapsed + left.mid, elapsed + left.high))
        return fan if len(fan) <= MOST_MOMENTS else (*fan[:-1:2], fan[-1])
