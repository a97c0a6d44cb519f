"""Why steps take what they take, where the log has their parts: only what the numbers show, one line each.

A log gives the time of a step, often what of it was waiting for data, sometimes every rank apart. From these follow:
input-bound (waiting is a large part), slower by data or not by data (what grew since the pace changed), one slow rank.
What exceeds the forecast and is no waiting for data is compute or communication; a log that does not time its
all-reduces does not tell these apart, and neither do we.
"""

from collections.abc import Iterator
from statistics import median

from epochcast.observe.runs.drift import Drift
from epochcast.observe.runs.run_history import History
from epochcast.predict.forecast.forecast import Forecast

# Waiting for data that takes more of a step than this is named. Set by hand: hiding less would win less than a fifth.
INPUT_BOUND = 0.2
# A rank that is slower than the median by this factor is named. Set by hand.
SLOW_RANK = 1.15
# A step that takes this much longer than forecast is explained. Set by hand.
OVER_FORECAST = 1.1


def reasons(history: History, drift: Drift | None, forecast: Forecast | None, step_seconds: float) -> Iterator[str]:
    """What is known of why, the plainest first."""
    waiting = history.data_fraction
    if waiting is not None and waiting > INPUT_BOUND:
        yield f"input-bound: waiting for data takes {waiting:.0%} of a step"
    yield from _slow_rank(history)
    if drift is not None and drift.ratio > 1:
        yield from _slower(history, drift)
    if forecast is not None and step_seconds > OVER_FORECAST * forecast.step_seconds.mid:
        yield from _over_forecast(history, forecast, step_seconds)


def _slow_rank(history: History) -> Iterator[str]:
    if len(history.rank_seconds) < 2:
        return
    usual = median(history.rank_seconds.values())
    rank, slowest = max(history.rank_seconds.items(), key=lambda item: item[1])
    if slowest > SLOW_RANK * usual:
        yield f"rank {rank} is slow: {slowest / usual:.2f} times the median"


def _slower(history: History, drift: Drift) -> Iterator[str]:
    """Of a pace that fell: whether waiting for data grew with it."""
    now, first = history.data_seconds, history.first_data_seconds
    if now is None or first is None:
        return
    grown = drift.step_seconds_after - drift.step_seconds_before
    share = (now - first) / grown
    if share > 0.5:
        yield f"{min(1.0, share):.0%} of the slowdown is time spent waiting for data"
    elif share < 0.1:
        yield "throttled: steps slowed while waiting for data stayed (heat, clock speed, neighbours, or the network)"


def _over_forecast(history: History, forecast: Forecast, step_seconds: float) -> Iterator[str]:
    """Of a step that takes longer than forecast: what of the excess is data, and what could be the rest."""
    if history.data_fraction is None or forecast.step_parts is None:
        return
    excess = step_seconds - forecast.step_seconds.mid
    data = history.data_fraction * step_seconds - forecast.step_parts.exposed_input
    if data > 0.5 * excess:
        yield f"slower than forecast: {min(1.0, data / excess):.0%} of the excess is time spent waiting for data"
        return
    exchanged = forecast.step_parts.exposed_comm
    what = "compute or communication (the log does not separate them)" if exchanged > 0 else "compute"
    yield f"slower than forecast: {1 - max(0.0, data) / excess:.0%} of the excess is {what}, not waiting for data"
