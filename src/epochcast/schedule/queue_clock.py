"""The clock of a queue: which time is second 0, and times of the clock in a file as seconds from it.

`start_at` of a file is second 0; without one it is the moment of asking, or the earliest `submit_at` where that is
before. A job may say `submit_at` and `deadline` instead of `submit_seconds` and `deadline_seconds`: a date with a time,
or as people say it ('Friday 18:00', '+6h', 'in 6h'). A duration of `submit_at` counts from now, one of `deadline` from
when the job is submitted.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from epochcast.decide.plan.deadline import seconds_until
from epochcast.errors import BadInput
from epochcast.schedule.workload_file import Refused, name_of

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

    def text(self, seconds: float) -> str:
        """The same as text: 2026-11-17T09:20:00+01:00."""
        return self.at(seconds).isoformat(timespec="seconds")

    def seconds(self, moment: datetime) -> float:
        """Seconds from the start until a time."""
        return (moment - self.start_at).total_seconds()


@dataclass(frozen=True)
class Timed:
    """A document whose times are seconds, its clock, and the jobs whose times make no sense."""

    document: Mapping[str, Any]
    clock: QueueClock
    refused: tuple[Refused, ...]


def timed(document: Mapping[str, Any], at: datetime) -> Timed:
    """A document with all times in seconds. `at` is now, with its zone."""
    rows = document.get("jobs")
    if not isinstance(rows, list):
        return Timed(document, QueueClock(_start(document, at) or at), ())
    refused: list[Refused] = []
    submitted: dict[int, datetime] = {}
    for place, row in enumerate(rows):
        if isinstance(row, dict) and "submit_at" in row:
            try:
                submitted[place] = _time(row["submit_at"], f"submit_at of job {name_of(row, place + 1)!r}", at)
            except BadInput as error:
                refused.append(Refused(name_of(row, place + 1), str(error)))
    clock = QueueClock(_start(document, at) or min([at, *submitted.values()]).astimezone(at.tzinfo))
    kept = []
    for place, row in enumerate(rows):
        if not isinstance(row, dict):
            kept.append(row)
        elif "submit_at" not in row or place in submitted:
            try:
                kept.append(_seconds(row, name_of(row, place + 1), submitted.get(place), clock, at))
            except BadInput as error:
                refused.append(Refused(name_of(row, place + 1), str(error)))
    return Timed({**document, "jobs": kept}, clock, tuple(refused))


def _start(document: Mapping[str, Any], at: datetime) -> datetime | None:
    """Second 0, in the zone of whoever asks."""
    told = document.get("start_at")
    return None if told is None else _time(told, "start_at of the file", at).astimezone(at.tzinfo)


def _time(told: Any, what: str, at: datetime) -> datetime:
    """A time of a file: a date with a time, as TOML has it or as text. Without a zone it is that of `at`."""
    if isinstance(told, date) and not isinstance(told, datetime):
        told = datetime(told.year, told.month, told.day)
    if isinstance(told, datetime):
        return told if told.tzinfo else told.replace(tzinfo=at.tzinfo)
    if not isinstance(told, str):
        raise BadInput(f"{what} is {told!r}; a time like 2026-11-20T18:00 is needed")
    try:
        return at + timedelta(seconds=seconds_until(told, at))
    except (BadInput, OverflowError):
        raise BadInput(f"{what} is {told!r}; a time like 2026-11-20T18:00 is needed") from None


def _seconds(
    row: Mapping[str, Any], name: str, submitted: datetime | None, clock: QueueClock, at: datetime
) -> Mapping[str, Any]:
    """A row whose times are seconds."""
    for word, seconds in (("submit_at", "submit_seconds"), ("deadline", "deadline_seconds")):
        if word in row and seconds in row:
            raise BadInput(f"job {name!r} has both {word} and {seconds}: give one of them")
    changed = {key: value for key, value in row.items() if key not in ("submit_at", "deadline")}
    if submitted is not None:
        changed["submit_seconds"] = clock.seconds(submitted)
    if "deadline" in row:
        told = changed.get("submit_seconds", 0.0)
        is_number = isinstance(told, int | float) and not isinstance(told, bool)
        since = clock.at(told) if is_number else at
        changed["deadline_seconds"] = clock.seconds(_time(row["deadline"], f"deadline of job {name!r}", since))
    return changed
