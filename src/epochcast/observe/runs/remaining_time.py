"""How long a run still takes: pace of steps, pauses to come, the forecast made before, and how sure that is.

    remaining = (steps left · pace + pauses to come) · (1 + what was not seen yet) + interruptions to come

The pace is what the run has shown (`pace`), combined in log space, by precision, with what a forecast said before it
began. Two reports make the forecast a small voice; before them it is the only one.

The interval is conformal: how far answers of this kind were off on real logs. The score of an answer is
log(true remaining / estimated remaining) over its scale, √(floor² + doubt²), where `doubt` is how unsteady the run has
been and how short a time it was watched. By fraction of the run `remaining_spread.toml` has the quantiles of these
scores that hold 90 % of the true values; between fractions they are interpolated. (Split conformal prediction with a
difficulty estimate: Papadopoulos et al. 2002, Lei et al. 2018.)
"""

import tomllib
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from math import exp, hypot, log, sqrt
from typing import Any

import numpy as np

from epochcast.errors import BadInput
from epochcast.interval import Interval
from epochcast.observe.runs.interruptions import attempt_error, interruptions_to_come
from epochcast.observe.runs.pace import Pace, expected_pace
from epochcast.observe.runs.pace_change import lasting_change
from epochcast.observe.runs.pauses import seconds_to_come
from epochcast.observe.runs.phases import Phases
from epochcast.observe.runs.report_spans import NOTHING, Pause, Spans, find_pauses, start_spans
from epochcast.observe.runs.run_history import History
from epochcast.observe.runs.run_prior import Prior

# What one report alone may be off by (log), shrinking with the square root of their number.
ONE_REPORT_ERROR = 0.3
# What a run that was only just begun may still hold, shrinking with the square root of the time it was watched (log,
# and seconds that count as nothing). Chosen among some seventy variants so that the interval holds runs of seconds as
# well as runs of days (`studies/track`, `studies/trainings`); 0.4 and 30 seconds hold as many within 3 of a hundred.
SHORT_ERROR, SHORT_SECONDS = 0.5, 15.0
# What a run has not shown yet, as a fraction of what is left: ends of epochs, pauses that come later. A forecast or
# past runs may say it; otherwise it is what was usual on real logs.
# Before any epoch has ended. Chosen on all logs of `studies/track` among some twenty variants; it lowers the median
# error at 10 % of the run in either half of them.
BEFORE_AN_EPOCH_ENDED = 0.02
# Where no epochs are counted and no pause was seen: c·(1/√f − 1) at a fraction f of the run. Either half of the logs of
# `studies/track` has a median of true over estimated of +1.5 and +1.7 % at 1–3 % of the run, +0.8 % at 5–10 %, below
# 0.5 % from 14 % on.
BEFORE_A_PAUSE = 0.0025
LEAST_FRACTION = 0.01
# An attempt with so many spans has a pace of its own; one with fewer shares that of those before.
OWN_SPANS = 2
# No interval says more than that a run takes between a twentieth and twenty times of its estimate.
WIDEST_LOG = log(20.0)


@dataclass(frozen=True, slots=True)
class Remaining:
    """What is left of a run. `start_seconds` passed before the steps had their pace and do not come again.

    `interrupted_seconds` of it are for interruptions, of these `down_seconds` with nothing running.
    """

    remaining_seconds: Interval
    step_seconds: float
    pause_seconds: float
    start_seconds: float
    pauses_seen: int
    prior_weight: float
    interrupted_seconds: float = 0.0
    down_seconds: float = 0.0

    @property
    def pause_fraction(self) -> float:
        """The part of the remaining time that will not be steps."""
        return self.pause_seconds / self.remaining_seconds.mid if self.remaining_seconds.mid else 0.0


def remaining(
    history: History, total_steps: float, prior: Prior | None = None, phases: Phases | None = None
) -> Remaining:
    """What is left of the run until `total_steps`; with `phases` steps do not all take alike, and it is known where."""
    left = max(0.0, total_steps - history.step)
    offset = history.step - history.executed_steps
    shown = _shown(history, left, None if phases is None else _Weights(phases, total_steps, offset))
    if shown.pace is not None and shown.pace.step_seconds <= 0:
        shown = _Shown(None)  # steps without any time say nothing of the next
    work, weight = _work(history, total_steps, phases)
    pace, prior_weight = _with_prior(shown, history, prior)
    pauses = shown.pauses
    coming = seconds_to_come(pauses, shown.begin, history.executed_steps, left) if pauses else 0.0
    # Pauses were seen at the pace seen; a forecast that corrects the pace corrects them alike.
    coming *= pace / shown.pace.step_seconds if shown.pace else 1.0
    unseen = unseen_fraction(history, total_steps, len(pauses), prior)
    middle = (work * pace + coming) * (1 + unseen) + _start_to_come(shown, history, prior)
    fraction = history.step / total_steps if total_steps > 0 else 1.0
    factor_low, factor_high = _spread(min(1.0, fraction), _doubt(shown, history, prior))
    broken = interruptions_to_come(history.interruptions, history.executed_steps, left, pace * weight)
    return Remaining(
        remaining_seconds=Interval(
            middle * factor_low,
            middle + broken.seconds,
            middle * factor_high + max(broken.seconds, broken.high_seconds),
        ),
        step_seconds=pace * weight,
        pause_seconds=coming,
        start_seconds=history.start_seconds + shown.start_seconds,
        pauses_seen=len(pauses),
        prior_weight=prior_weight,
        interrupted_seconds=broken.seconds,
        down_seconds=broken.down_seconds,
    )


def _work(history: History, total_steps: float, phases: Phases | None) -> tuple[float, float]:
    """Steps that are left, counted in steps of weight 1, and what a step weighs now."""
    left = max(0.0, total_steps - history.step)
    if phases is None or not left:
        return left, 1.0
    return phases.work(total_steps, history.step, total_steps), phases.work(total_steps, history.step - 1, history.step)


def _start_to_come(shown: "_Shown", history: History, prior: Prior | None) -> float:
    """What is left of the start that was forecast, while no step has been timed."""
    if shown.pace is not None or prior is None or prior.start_seconds is None:
        return 0.0
    return max(0.0, prior.start_seconds - history.elapsed_seconds)


def doubt_of(history: History, total_steps: float) -> float:
    """How far the answer may be off, as the interval takes it."""
    return _doubt(_shown(history, max(0.0, total_steps - history.step)), history, None)


@dataclass(frozen=True, slots=True)
class _Shown:
    """What the run itself has shown."""

    pace: Pace | None
    pauses: tuple[Pause, ...] = ()
    begin: float = 0.0
    start_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class _Weights:
    """Phases for what was seen: executed steps lie `offset` before the steps of the run."""

    phases: Phases
    total_steps: float
    offset: float

    def of(self, ends: np.ndarray, steps: np.ndarray) -> np.ndarray:
        return self.phases.weigh(self.total_steps, ends - steps + self.offset, ends + self.offset)

    def lighten(self, spans: Spans) -> Spans:
        """Spans as if all steps had weight 1."""
        return replace(spans, seconds=spans.seconds / self.of(spans.ends, spans.steps))

    def restore(self, pauses: tuple[Pause, ...]) -> tuple[Pause, ...]:
        """Pauses that were found in such spans, as long as they were."""
        places = np.array([pause.at_step for pause in pauses])
        weights = self.of(places, np.ones(len(places)))
        weighted = zip(pauses, weights, strict=True)
        return tuple(replace(pause, seconds=pause.seconds * weight) for pause, weight in weighted)


def _shown(history: History, left: float, weights: _Weights | None = None) -> _Shown:
    spans = history.spans()
    if not len(spans) or spans.seconds.sum() <= 0:
        printed = history.printed_step_seconds
        return _Shown(None if not printed else Pace(printed, None))
    spans = spans if weights is None else weights.lighten(spans)
    earlier, recent = spans.split(history.attempt_begin)
    if len(recent) < OWN_SPANS:
        earlier, recent = NOTHING, spans
    else:
        earlier = earlier.since(history.run_begin)
    if len(recent) < 3:
        return _Shown(Pace(float(recent.seconds.sum() / recent.steps.sum()), None))
    start = start_spans(recent)
    steady = recent.after(start)
    changed = lasting_change(steady, left)
    usual_seconds = _median_pace(steady) * float(recent.steps[:start].sum())
    start_seconds = max(0.0, float(recent.seconds[:start].sum()) - usual_seconds)
    known_pauses = (*earlier.known_pauses, *steady.known_pauses)
    begin = earlier.ends[0] - earlier.steps[0] if len(earlier) else steady.ends[0] - steady.steps[0]
    old, new = steady.first(changed), steady.after(changed)
    before = (*find_pauses(earlier).new, *find_pauses(old).new)
    pauses_found = find_pauses(new)
    new_pauses = (*before, *pauses_found.new)
    pauses = (*known_pauses, *(new_pauses if weights is None else weights.restore(new_pauses)))
    pace = expected_pace(new.ends, new.steps, new.seconds - pauses_found.span_seconds)
    return _Shown(pace, pauses, float(begin), start_seconds)


def _median_pace(spans: Spans) -> float:
    return float(np.median(spans.seconds / spans.steps))


def _with_prior(shown: _Shown, history: History, prior: Prior | None) -> tuple[float, float]:
    """The pace and the weight that the forecast has in it, in log space by precision."""
    if prior is None or prior.step_seconds is None or prior.log_error is None:
        if shown.pace is None:
            raise BadInput(_untimed(history))
        return shown.pace.step_seconds, 0.0
    if shown.pace is None:
        return prior.step_seconds.mid, 1.0
    own_weight, prior_weight = _own_error(shown.pace, history) ** -2, prior.log_error**-2
    weight = prior_weight / (own_weight + prior_weight)
    return exp((1 - weight) * log(shown.pace.step_seconds) + weight * log(prior.step_seconds.mid)), weight


def _untimed(history: History) -> str:
    if history.reports < 2 or 0 < history.run_begin == history.executed_steps:
        return "no step has been timed yet: at least two reports are needed, or a forecast to begin with"
    return (
        f"the {history.reports:,} reports of the log have no times (no date, no seconds of a step): "
        "follow it while it grows, or let the training print the time"
    )


def _own_error(pace: Pace, history: History) -> float:
    return hypot(ONE_REPORT_ERROR / max(1, history.reports - 1), pace.error or 0.0, 1e-3)


def _doubt(shown: _Shown, history: History, prior: Prior | None) -> float:
    """How far the answer may be off: by how unsteady the run has been, and by how short a time it was watched."""
    prior_error = None if prior is None else prior.log_error
    watched_seconds = max(0.0, history.elapsed_seconds - history.down_seconds)
    short = SHORT_ERROR / sqrt(1 + watched_seconds / SHORT_SECONDS)
    between = attempt_error([*history.attempt_paces, *([] if shown.pace is None else [shown.pace.step_seconds])])
    short = short if prior_error is None else min(short, prior_error)
    return hypot(_unsteadiness(shown, history, prior_error), short, between)


def _unsteadiness(shown: _Shown, history: History, prior_error: float | None) -> float:
    """The error of guesses made earlier in the run, or what is usual with few reports."""
    if shown.pace is None:
        return 1.0 if prior_error is None else prior_error
    if shown.pace.error is None:
        return ONE_REPORT_ERROR / sqrt(max(1, history.reports - 1))
    return shown.pace.error


def unseen_fraction(history: History, total_steps: float, pauses_seen: int, prior: Prior | None) -> float:
    """Seconds beside steps that were not seen yet, over the seconds expected by what was seen."""
    prior_fraction = None if prior is None else prior.pause_fraction
    length = history.steps_per_epoch
    if not length:
        if pauses_seen or total_steps <= 0:
            return 0.0
        fraction = min(1.0, max(LEAST_FRACTION, history.step / total_steps))
        return BEFORE_A_PAUSE * (1 / sqrt(fraction) - 1) if prior_fraction is None else prior_fraction
    is_first_epoch = history.step // length == (history.first_step or 0.0) // length
    if not is_first_epoch or total_steps <= 1.5 * length:
        return 0.0
    return BEFORE_AN_EPOCH_ENDED if prior_fraction is None else prior_fraction


@cache
def _spread_table() -> dict[str, Any]:
    return tomllib.loads(files("epochcast.observe.runs").joinpath("remaining_spread.toml").read_text(encoding="utf-8"))


def _spread(fraction: float, doubt: float) -> tuple[float, float]:
    """The factors on a remaining time within which the truth lies, at a fraction of the run."""
    table = _spread_table()
    place, places = log(max(fraction, 1e-6)), np.log(table["fractions"])
    low, high = (float(np.interp(place, places, table[side])) for side in ("low", "high"))
    scale = hypot(float(table["floor"]), doubt)
    return exp(max(-WIDEST_LOG, min(0.0, low * scale))), exp(min(WIDEST_LOG, max(0.0, high * scale)))
