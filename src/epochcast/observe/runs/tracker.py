"""One running job, followed: observations in, progress out.

>>> from epochcast.observe.logs.observation import Observation
>>> tracker = Tracker(total=100)
>>> for step in range(0, 50, 10):
...     tracker.add(Observation(step=step, clock_seconds=3.0 * step))
>>> round(tracker.progress().remaining_seconds.mid)
180
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from math import ceil
from typing import Any

from epochcast.errors import BadInput
from epochcast.interval import Interval
from epochcast.observe.logs.observation import Observation
from epochcast.observe.runs.drift import Drift, DriftWatch, RankWatch, Steadiness, steadiness
from epochcast.observe.runs.early_stopping import StoppingWatch
from epochcast.observe.runs.pace_reasons import reasons
from epochcast.observe.runs.phases import Phases
from epochcast.observe.runs.remaining_time import Remaining, remaining
from epochcast.observe.runs.report_spans import find_pauses, start_spans
from epochcast.observe.runs.run_history import History
from epochcast.observe.runs.run_prior import Prior, combined, prior_of_forecast
from epochcast.observe.runs.total_steps import Total, total_of
from epochcast.predict.forecast.forecast import Forecast


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is, and when it ends. None means that nobody said (a job, a price, a clock)."""

    step: float
    total: Total
    elapsed_seconds: float
    down_seconds: float
    restarts: int
    left: Remaining
    is_done: bool
    log_remaining_seconds: float | None
    forecast: Forecast | None
    drift: Drift | None
    reasons: tuple[str, ...]
    prior: Prior | None = None
    stopping: StoppingWatch | None = None
    stop_step: Interval | None = None
    rank_drifts: Mapping[int, Drift] = field(default_factory=dict)

    @property
    def fraction(self) -> float:
        """Steps done of all."""
        return min(1.0, self.step / self.total.steps)

    @property
    def remaining_seconds(self) -> Interval:
        """Until the last step."""
        return self.left.remaining_seconds

    @property
    def against_forecast(self) -> float | None:
        """Observed over forecast seconds per step; None without a forecast, or before a step was timed."""
        if self.forecast is None or self.left.prior_weight == 1.0:
            return None
        return self.left.step_seconds / self.forecast.step_seconds.mid

    @property
    def dollars_so_far(self) -> float | None:
        """What was paid while the job ran, all attempts; the time between attempts is not counted.

        None for a log that is past its first step and has not told any time.
        """
        each = None if self.forecast is None else self.forecast.dollars_per_hour
        is_untimed = self.elapsed_seconds == 0 and self.step > 0
        return None if each is None or is_untimed else (self.elapsed_seconds - self.down_seconds) / 3600 * each

    @property
    def dollars_in_all(self) -> Interval | None:
        """So far, and for what is left at the same price."""
        so_far, forecast = self.dollars_so_far, self.forecast
        if so_far is None or forecast is None or forecast.dollars_per_hour is None:
            return None
        each, left, down = forecast.dollars_per_hour / 3600, self.remaining_seconds, self.left.down_seconds
        low, mid, high = (so_far + seconds * each for seconds in (left.low, max(left.low, left.mid - down), left.high))
        return Interval(low, mid, high, left.coverage)

    def finish_at(self, reported_at: datetime) -> datetime:
        """When the last step ends, if the last report came at `reported_at`."""
        try:
            return reported_at + timedelta(seconds=self.remaining_seconds.mid)
        except OverflowError:
            message = (
                f"with {self.total.steps:.0f} steps in all the run would end after the year 9999; is that the total?"
            )
            raise BadInput(message) from None

    def as_dict(self) -> dict[str, Any]:
        """The numbers, by the names of the JSON contract."""
        in_all = self.dollars_in_all
        return {
            "step": self.step,
            "total_steps": self.total.steps,
            "total_told_by": self.total.told_by,
            "fraction": self.fraction,
            "step_seconds": self.left.step_seconds,
            "remaining_seconds": self.remaining_seconds.as_dict(),
            "elapsed_seconds": self.elapsed_seconds,
            "start_seconds": self.left.start_seconds,
            "down_seconds": self.down_seconds,
            "pause_seconds": self.left.pause_seconds,
            "restarts": self.restarts,
            "log_remaining_seconds": self.log_remaining_seconds,
            "forecast_step_seconds": None if self.forecast is None else self.forecast.step_seconds.as_dict(),
            "against_forecast": self.against_forecast,
            "prior_told_by": None if self.prior is None else self.prior.told_by,
            "prior_weight": self.left.prior_weight,
            "dollars_so_far": self.dollars_so_far,
            "dollars_in_all": None if in_all is None else in_all.as_dict(),
            "drift": None if self.drift is None else self.drift.as_dict(),
            "rank_drifts": [{"rank": rank, **drift.as_dict()} for rank, drift in self.rank_drifts.items()],
            "reasons": list(self.reasons),
            **({} if self.stopping is None else {"early_stopping": self._stopping_dict()}),
        }

    def _stopping_dict(self) -> dict[str, Any]:
        assert self.stopping is not None
        return {
            **self.stopping.as_dict(),
            "stop_step": None if self.stop_step is None else self.stop_step.as_dict(),
        }


@dataclass(slots=True)
class Tracker:
    """A run and what is known beforehand: its total, if given, the forecast of its job, and what past runs showed.

    With `stopping` the run may end before its total; whoever reads the log adds the metric's evaluations to it. With
    `phases` it is known beforehand where steps take longer.
    """

    total: float | None = None
    forecast: Forecast | None = None
    past: Prior | None = None
    stopping: StoppingWatch | None = None
    phases: Phases | None = None
    history: History = field(default_factory=History)
    watch: DriftWatch = field(default_factory=DriftWatch)
    ranks: RankWatch = field(default_factory=RankWatch)

    def add(self, seen: Observation) -> None:
        """Take in one report."""
        span = self.history.add(seen)
        if seen.rank is not None and seen.step_seconds is not None and seen.phase == "train":
            self.ranks.add(seen.rank, seen.step, self.history.elapsed_seconds, seen.step_seconds)
        if span is not None:
            self.watch.add(self.history.step, self.history.elapsed_seconds, *span)

    def add_all(self, seen: Iterable[Observation]) -> "Tracker":
        """Take in many; gives itself back."""
        for one in seen:
            self.add(one)
        return self

    def progress(self) -> Progress:
        """How far the run is now."""
        history = self.history
        if not history.reports:
            raise BadInput("no training step was reported yet")
        total = total_of(history, self.total)
        # A forecast counts steps; it says nothing of a log that counts epochs alone.
        forecast = None if self._counts_epochs(total) else self.forecast
        prior = combined([None if forecast is None else prior_of_forecast(forecast), self.past])
        left, stop_step = self._left(total, prior)
        has_stopped = self.stopping is not None and self.stopping.has_stopped
        return Progress(
            step=history.step,
            total=total,
            elapsed_seconds=history.elapsed_seconds,
            down_seconds=history.down_seconds,
            restarts=history.restarts,
            left=left,
            is_done=history.has_ended or history.step >= total.steps or has_stopped,
            log_remaining_seconds=history.log_remaining_seconds,
            forecast=forecast,
            drift=self.watch.latest,
            reasons=tuple(reasons(history, self.watch.latest, forecast, left.step_seconds)),
            prior=prior,
            stopping=self.stopping,
            stop_step=stop_step,
            rank_drifts=self.ranks.latest(),
        )

    def _left(self, total: Total, prior: Prior | None) -> tuple[Remaining, Interval | None]:
        """What is left until the total, or until early stopping where that is watched; and the step at which."""
        history, watch = self.history, self.stopping
        if watch is None or not watch.evaluations:
            return remaining(history, total.steps, prior, self.phases), None
        steps_each = history.step / watch.evaluations
        evaluations_left = max(0, ceil((total.steps - history.step) / steps_each)) if steps_each > 0 else 0
        ends = [min(total.steps, history.step + count * steps_each) for count in watch.ends(evaluations_left)]
        low, middle, high = (remaining(history, max(end, history.step), prior, self.phases) for end in ends)
        seconds = Interval(
            min(low.remaining_seconds.low, middle.remaining_seconds.mid),
            middle.remaining_seconds.mid,
            max(high.remaining_seconds.high, middle.remaining_seconds.mid),
        )
        return replace(middle, remaining_seconds=seconds), Interval(*ends)

    def steadiness(self) -> Steadiness:
        """After the fact: variation, stationarity and change points of the pace, start-up and pauses left out."""
        spans = self.history.spans()
        if len(spans) < 3:
            raise BadInput(f"change points need more than three timed reports, got {len(spans)}")
        spans = spans.after(start_spans(spans))
        paces = (spans.seconds - find_pauses(spans).span_seconds) / spans.steps
        seconds = spans.seconds.cumsum() + (self.history.elapsed_seconds - spans.seconds.sum())
        return steadiness(spans.ends.tolist(), seconds.tolist(), paces.clip(min=1e-12).tolist())

    def _counts_epochs(self, total: Total) -> bool:
        epochs = self.history.total_epochs
        return epochs is not None and total.steps == epochs and self.history.steps_per_epoch is None
