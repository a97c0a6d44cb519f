"""Runs that were restarted, asked attempt by attempt: when will the attempt under way have made its steps?

A file with restarts mostly holds several runs one after the other, of other batch sizes or on other machines. Who looks
at one of them wants to know when that one ends. Every attempt with enough reports is cut where 1, 5, 10, 25 and 50 % of
its own time had passed; all that stands before in the file is known as well.
"""

from collections.abc import Iterator, Sequence

from epochcast.observe.runs.report import Report
from epochcast.observe.runs.run_history import History
from studies.track.replay import PERCENTS, Case, End, Log, case_at

# Attempts with fewer timed reports have no beginning to tell the end from.
LEAST_REPORTS = 20


def attempt_cases(log: Log) -> Iterator[Case]:
    """Every attempt of a log with restarts, at every cut."""
    if not int(log.row["restarts"]):
        return
    cuts = [cut for attempt in sorted({one.attempt for one in log.seen}) for cut in _cuts(log.seen, attempt)]
    history, position = History(), 0
    for count, percent, end in sorted(cuts, key=lambda cut: cut[:2]):
        for one in log.seen[position:count]:
            history.add(one)
        position = count
        yield case_at(log.row, percent, log.seen[:count], history, end)


def _cuts(seen: Sequence[Report], attempt: int) -> Iterator[tuple[int, int, End]]:
    """Reports known at each cut of an attempt, and what is asked there."""
    timed = [
        (place, one.step, one.clock_seconds)
        for place, one in enumerate(seen)
        if one.attempt == attempt and one.phase == "train" and one.clock_seconds is not None
    ]
    if len(timed) < LEAST_REPORTS:
        return
    begin, true_seconds = timed[0][2], timed[-1][2] - timed[0][2]
    last_step = max(step for _, step, _ in timed)
    for percent in PERCENTS:
        known = [one for one in timed if one[2] - begin <= percent / 100 * true_seconds]
        place, _, clock = known[-1]
        yield place + 1, percent, End(true_seconds, clock - begin, last_step, true_seconds, "attempt")
