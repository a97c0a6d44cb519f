"""The clock of a queue: which time is second 0, and times of the clock in a file as seconds from it.

`start_at` of a file is second 0; without one it is the moment of asking, or the earliest `submit_at` where that is
before. A job may say `submit_at` and `deadline` instead of `submit_seconds` and `deadline_seconds`: a date with a time,
or as people say it ('Friday 18:00', '+6h', 'in 6h'). A duration of `submit_at` counts from now, one of `deadline` from
when the job is submitted.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from epochcast.decide.plan.deadline import seconds_until
from epochcast.errors import BadInput
from epochcast.schedule.queue_document import ClockTime, QueueDocument, QueueJobRow, RefusedJob

FAR_SECONDS = 3e9
"""A century: no clock is asked for times further away."""


@dataclass(frozen=True, slots=True)
class QueueClock:
    """The time of second 0, with its zone."""

    start_at: datetime

    def __post_init__(self) -> None:
        if self.start_at.tzinfo is None:
            raise BadInput(f"a clock needs a zone, got {self.start_at}")

    def at(self, seconds: float) -> datetime:
        """The time after so many seconds, to the second."""
        if abs(seconds) > FAR_SECONDS:
            raise BadInput(f"a time {seconds:g} seconds from the start is no time of a clock")
        return self.start_at + timedelta(seconds=round(seconds))

    def at_second(self, seconds: float) -> datetime:
        """The same without fractions of a second, as answers have it."""
        return self.at(seconds).replace(microsecond=0)

    def text(self, seconds: float) -> str:
        """The same as text: 2026-11-17T09:20:00+01:00."""
        return self.at_second(seconds).isoformat()

    def seconds(self, moment: datetime) -> float:
        """Seconds from the start until a time."""
        return (moment - self.start_at).total_seconds()


@dataclass(frozen=True)
class TimedDocument:
    """A document whose jobs have their times in seconds, and its clock."""

    document: QueueDocument
    clock: QueueClock


def with_seconds(document: QueueDocument, at: datetime) -> TimedDocument:
    """A document with all times in seconds; jobs whose times make no sense are refused. `at` is now, with its zone."""
    refused: list[RefusedJob] = []
    submitted: dict[str, datetime] = {}
    for row in document.jobs:
        if row.submit_at is not None:
            try:
                submitted[row.id] = _moment(row.submit_at, f"job {row.id!r}: submit_at", at)
            except BadInput as error:
                refused.append(RefusedJob(row.id, str(error)))
    start = document.start_at
    clock = QueueClock(
        (min([at, *submitted.values()]) if start is None else _moment(start, "start_at", at)).astimezone(at.tzinfo)
    )
    jobs = []
    for row in document.jobs:
        if row.submit_at is None or row.id in submitted:
            try:
                jobs.append(_in_seconds(row, submitted.get(row.id), clock))
            except BadInput as error:
                refused.append(RefusedJob(row.id, str(error)))
    return TimedDocument(replace(document, jobs=tuple(jobs), refused=(*document.refused, *refused)), clock)


def _moment(time: ClockTime, label: str, at: datetime) -> datetime:
    """A time of a file; without a zone it is in that of `at`."""
    if isinstance(time, datetime):
        return time if time.tzinfo else time.replace(tzinfo=at.tzinfo)
    try:
        return at + timedelta(seconds=seconds_until(time, at))
    except (BadInput, OverflowError):
        raise BadInput(f"{label} must be a time like 2026-11-20T18:00, got {time!r}") from None


def _in_seconds(row: QueueJobRow, submitted: datetime | None, clock: QueueClock) -> QueueJobRow:
    """A row whose times are seconds."""
    submit_seconds = row.submit_seconds if submitted is None else clock.seconds(submitted)
    deadline_seconds = row.deadline_seconds
    if row.deadline is not None:
        since = clock.at(submit_seconds)
        deadline_seconds = clock.seconds(_moment(row.deadline, f"job {row.id!r}: deadline", since))
    return replace(row, submit_at=None, submit_seconds=submit_seconds, deadline=None, deadline_seconds=deadline_seconds)
