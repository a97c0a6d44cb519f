"""One running job, followed: reports in, its standing out.

>>> from epochcast.observe.runs.report import Report
>>> tracker = Tracker(total=100)
>>> for step in range(0, 50, 10):
...     tracker.add(Report(step=step, clock_seconds=3.0 * step))
>>> round(tracker.standing().remaining_seconds.mid)
180
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from math import ceil

from epochcast.errors import BadInput
from epochcast.interval import Interval
from epochcast.observe.runs.drift import DriftWatch, RankWatch, Steadiness, steadiness
from epochcast.observe.runs.early_stopping import StoppingWatch
from epochcast.observe.runs.pace_reasons import reasons
from epochcast.observe.runs.phases import Phases
from epochcast.observe.runs.remaining_time import Remaining, remaining
from epochcast.observe.runs.report import Report
from epochcast.observe.runs.report_spans import find_pauses, start_spans
from epochcast.observe.runs.run_history import History
from epochcast.observe.runs.run_prior import Prior, combined, prior_of_forecast
from epochcast.observe.runs.standing import ShownPace, Standing
from epochcast.observe.runs.total_steps import Total, total_of
from epochcast.predict.forecast.forecast import Forecast


@dataclass(slots=True)
class Tracker:
    """A run and what is known beforehand: its total or its epochs, the forecast of its job, and what past runs showed.

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
    epochs: float | None = None

    def add(self, seen: Report) -> None:
        """Take in one report."""
        span = self.history.add(seen)
        if seen.rank is not None and seen.step_seconds is not None and seen.phase == "train":
            self.ranks.add(seen.rank, seen.step, self.history.elapsed_seconds, seen.step_seconds)
        if span is not None:
            self.watch.add(self.history.step, self.history.elapsed_seconds, *span)

    def add_all(self, seen: Iterable[Report]) -> "Tracker":
        """Take in many; gives itself back."""
        for report in seen:
            self.add(report)
        return self

    @property
    def is_ready(self) -> bool:
        """Whether there is an answer: a step was timed, or is forecast."""
        history = self.history
        is_timed = history.executed_steps > 0 or history.printed_step_seconds is not None
        return history.reports > 0 and (is_timed or self.forecast is not None or self.past is not None)

    def standing(self, reported_at: datetime | None = None) -> Standing:
        """How the run stands, and when it ends if its last report came at `reported_at`."""
        history = self.history
        if not history.reports:
            raise BadInput("no training step was reported yet")
        total = total_of(history, self.total, self.epochs)
        # A forecast counts steps; it says nothing of a log that counts epochs alone.
        forecast = None if self._counts_epochs(total) else self.forecast
        prior = combined([None if forecast is None else prior_of_forecast(forecast), self.past])
        left, stop_step = self._left(total, prior)
        has_stopped = self.stopping is not None and self.stopping.has_stopped
        is_compared = forecast is not None and left.prior_weight < 1.0
        so_far, in_all = _dollars(history, left, forecast)
        running_seconds = history.elapsed_seconds - history.down_seconds
        return Standing(
            step=history.step,
            total_steps=total.steps,
            total_source=total.source,
            is_total_inferred=total.is_inferred,
            step_seconds=left.step_seconds,
            remaining_seconds=left.remaining_seconds,
            elapsed_seconds=history.elapsed_seconds,
            is_done=history.has_ended or history.step >= total.steps or has_stopped,
            start_seconds=left.start_seconds,
            down_seconds=history.down_seconds,
            pause_seconds=left.pause_seconds,
            interruption_seconds=left.interrupted_seconds,
            interruption_down_seconds=left.down_seconds,
            restarts=history.restarts,
            report_seconds=running_seconds / history.reports or None if history.reports > 1 else None,
            log_remaining_seconds=history.log_remaining_seconds,
            forecast_step_seconds=None if forecast is None else forecast.step_seconds,
            against_forecast=left.step_seconds / forecast.step_seconds.mid if forecast and is_compared else None,
            prior_source=None if prior is None else prior.source,
            prior_weight=left.prior_weight,
            dollars_so_far=so_far,
            dollars_in_all=in_all,
            drift=self.watch.latest,
            rank_drifts=self.ranks.latest(),
            reasons=tuple(reasons(history, self.watch.latest, forecast, left.step_seconds)),
            early_stopping=None if self.stopping is None else self.stopping.standing(stop_step),
            shown=self._shown(total, left, is_own=prior is None),
            seen_at=None if reported_at is None else reported_at.replace(microsecond=0),
            finish_at=None if reported_at is None else _finish_at(reported_at, left.remaining_seconds.mid, total),
        )

    def _shown(self, total: Total, left: Remaining, is_own: bool) -> ShownPace | None:
        """What the run itself has shown; None before a step was timed."""
        if not is_own or self.stopping is not None or self.phases is not None:
            try:
                left = remaining(self.history, total.steps)
            except BadInput:
                return None
        return ShownPace(left.step_seconds, left.start_seconds, self.history.executed_steps)

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


def _dollars(history: History, left: Remaining, forecast: Forecast | None) -> tuple[float | None, Interval | None]:
    """Cost so far, and with what is left at the same price; None for a log that has steps and no time."""
    is_untimed = history.elapsed_seconds == 0 and history.step > 0
    if forecast is None or forecast.dollars_per_hour is None or is_untimed:
        return None, None
    each, seconds, down = forecast.dollars_per_hour, left.remaining_seconds, left.down_seconds
    so_far = (history.elapsed_seconds - history.down_seconds) / 3600 * each
    ends = (seconds.low, max(seconds.low, seconds.mid - down), seconds.high)
    low, mid, high = (so_far + end * (each / 3600) for end in ends)
    return so_far, Interval(low, mid, high, seconds.coverage)


def _finish_at(reported_at: datetime, remaining_seconds: float, total: Total) -> datetime:
    try:
        return (reported_at + timedelta(seconds=remaining_seconds)).replace(microsecond=0)
    except OverflowError:
        raise BadInput(
            f"with {total.steps:.0f} steps in all the run would end after the year 9999; is that the total?"
        ) from None
