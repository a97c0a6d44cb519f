"""One run, followed: reports of a source into the tracker, how the run stands to every sink.

The command line (`track`), the scheduler, the server and `ec.follow` use the same loop with sources and sinks of their
own. A source is called for the reports that are new; a sink is given the standing and when its last report came.

>>> from epochcast.observe.runs.report import Report
>>> looks = [[], [Report(step, clock_seconds=2.0 * step, total_steps=100) for step in range(50)]]
>>> shown = []
>>> watch = RunWatch(lambda: looks.pop(0), Tracker(), [lambda standing, at: shown.append(standing.step)])
>>> watch.look(), watch.look().fraction, shown
(None, 0.49, [49])
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from epochcast.observe.runs.report import Report
from epochcast.observe.runs.standing import Standing
from epochcast.observe.runs.tracker import Tracker

ReportSource = Callable[[], Iterable[Report]]
StandingSink = Callable[[Standing, float], None]


@dataclass(slots=True)
class RunWatch:
    """A run that is followed. `look` reads and reports; call `read` and `tell` to do something in between."""

    source: ReportSource
    tracker: Tracker = field(default_factory=Tracker)
    sinks: Sequence[StandingSink] = ()

    def look(self) -> Standing | None:
        """How the run stands after the reports that are new; None where nothing is new, or no step was timed yet."""
        return self.tell() if self.read() else None

    def read(self) -> bool:
        """Take in the reports that are new; whether there are any."""
        return self.take(self.source())

    def take(self, reports: Iterable[Report]) -> bool:
        """Take in these reports; whether there are any."""
        is_new = False
        for report in reports:
            self.tracker.add(report)
            is_new = True
        return is_new

    def tell(self, reported_at_seconds: float | None = None) -> Standing | None:
        """Give the standing to the sinks; None before a step was timed. The last report came at that time, or now."""
        if not self.tracker.is_ready:
            return None
        at_seconds = time.time() if reported_at_seconds is None else reported_at_seconds
        standing = self.tracker.standing(datetime.fromtimestamp(at_seconds).astimezone())
        for sink in self.sinks:
            sink(standing, at_seconds)
        return standing
