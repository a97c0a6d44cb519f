"""How often the drift alarm is wrong, and how long it takes, on the spans of real logs.

*Confirmed*: the pace of the spans after an alarm, as many as set a level, keeps at least half of the change it told.
*In shuffled spans* there is no drift, so that each alarm is a false one. *Injected*: the second half of shuffled spans
is made slower by a factor; told are the share of logs with an alarm of that direction within a hundred spans, and the
median of spans until it. The seed is 0.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log
from statistics import median

import numpy as np

from epochcast.observe.runs.drift import LEVEL, DriftWatch
from epochcast.observe.runs.report import Report
from epochcast.observe.runs.run_history import History

FACTORS = (1.05, 1.1, 1.2, 1.5)
# Fewer spans than this say nothing of a rate.
LEAST_SPANS = 100
WITHIN = 100
SpanList = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Alarms:
    """Over all logs: alarms by kind, and spans they came in."""

    logs: int
    spans: int
    alarms: int
    confirmed: int
    judged: int
    shuffled_spans: int
    shuffled_alarms: int
    quiet_logs: int
    injected: Mapping[float, tuple[float, float | None]]


def spans_of(seen: Sequence[Report]) -> list[tuple[float, float]]:
    """Steps and seconds between reports, as the watch is given them."""
    history = History()
    return [span for one in seen if (span := history.add(one)) is not None and span[1] > 0]


def measured(logs: Sequence[SpanList]) -> Alarms:
    """All figures of the docstring."""
    kept = [spans for spans in logs if len(spans) >= LEAST_SPANS]
    shuffled = [_shuffled(spans) for spans in kept]
    found = [list(_alarms(spans)) for spans in kept]
    verdicts = [
        verdict
        for spans, alarms in zip(kept, found, strict=True)
        for place, before, after in alarms
        if (verdict := _holds(spans, place, before, after)) is not None
    ]
    false = [list(_alarms(spans)) for spans in shuffled]
    return Alarms(
        logs=len(kept),
        spans=sum(map(len, kept)),
        alarms=sum(map(len, found)),
        confirmed=sum(verdicts),
        judged=len(verdicts),
        shuffled_spans=sum(map(len, shuffled)),
        shuffled_alarms=sum(map(len, false)),
        quiet_logs=sum(not alarms for alarms in false),
        injected={factor: _delay([_injected(spans, factor) for spans in shuffled]) for factor in FACTORS},
    )


def _alarms(spans: SpanList) -> Iterator[tuple[int, float, float]]:
    """Where alarms came, and the logs of the levels that they told."""
    watch, step, clock = DriftWatch(), 0.0, 0.0
    for place, (steps, seconds) in enumerate(spans):
        step, clock = step + steps, clock + seconds
        drift = watch.add(step, clock, steps, seconds)
        if drift is not None:
            yield place, log(drift.step_seconds_before), log(drift.step_seconds_after)


def _holds(spans: SpanList, place: int, before: float, after: float) -> bool | None:
    later = [log(seconds / steps) for steps, seconds in spans[place + 1 : place + 1 + LEVEL]]
    if len(later) < LEVEL:
        return None
    return (median(later) - before) / (after - before) >= 0.5


def _shuffled(spans: SpanList) -> SpanList:
    order = np.random.default_rng(0).permutation(len(spans))
    return [spans[place] for place in order]


def _injected(spans: SpanList, factor: float) -> SpanList:
    half = len(spans) // 2
    return [*spans[:half], *((steps, seconds * factor) for steps, seconds in spans[half:])]


def _delay(logs: Sequence[SpanList]) -> tuple[float, float | None]:
    waits = []
    for spans in logs:
        half = len(spans) // 2
        later = (
            place - half + 1
            for place, before, after in _alarms(spans)
            if half <= place < half + WITHIN and after > before
        )
        waits.append(next(later, None))
    known = [wait for wait in waits if wait is not None]
    return len(known) / len(waits), median(known) if known else None


def as_text(found: Alarms) -> str:
    """In words, for the page."""
    per = 1000 * found.alarms / found.spans
    false = 1000 * found.shuffled_alarms / found.shuffled_spans
    rows = [
        f"| +{100 * (factor - 1):.0f} % | {share:.0%} | {'–' if wait is None else format(wait, '.0f')} |".replace(
            "%", " %"
        ).replace("  %", " %")
        for factor, (share, wait) in found.injected.items()
    ]
    return "\n".join(
        [
            f"{found.logs} logs with at least {LEAST_SPANS} spans, {found.spans:,} spans: {found.alarms} alarms "
            f"({per:.1f} per thousand spans). {found.confirmed} of {found.judged} that could be judged were confirmed "
            f"by the spans that followed. With spans shuffled, where every alarm is false: "
            f"{found.shuffled_alarms} alarms ({false:.2f} per thousand spans), none in "
            f"{found.quiet_logs} of {found.logs} logs.\n",
            f"| slower by | noticed within {WITHIN} spans | after (median) |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )
