"""Deadlines as people say them: 6h, +6h, in 6h, by Friday 18:00, tomorrow at nine, 2026-11-20T18:00.

A day of the week is the next one to come, today where the time is still ahead; a day alone means its end.
"""

import re
from datetime import datetime, time, timedelta

from epochcast.errors import BadInput, MissingUnit
from epochcast.units import parse_seconds

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_CLOCK = r"(?:(\d{1,2})(?::(\d{2}))?\s*(am|pm|h)?)"
_SPOKEN = re.compile(
    rf"(?:by\s+)?(today|tomorrow|{'|'.join(f'{day[:3]}(?:{day[3:]})?' for day in _DAYS)})?\s*(?:at\s+)?{_CLOCK}?"
)
_FROM_NOW = re.compile(r"(?:\+|in\s)\s*(.+)")
_EXAMPLES = "write it like '6h', 'Friday 18:00' or '2026-11-20T18:00'"


def deadline_seconds(text: str, now: datetime) -> float:
    """Seconds from now until the deadline of `--deadline`, which must be ahead."""
    left = seconds_until(text, now, "--deadline")
    if left == 0:
        raise BadInput(f"the deadline {text!r} is now: give a later one")
    if left < 0:
        raise BadInput(f"the deadline {text!r} is in the past: it is {now:%A %Y-%m-%d %H:%M}")
    return left


def seconds_until(text: str, now: datetime, option: str = "") -> float:
    """Seconds from now until a time as people say it; below 0 where a date is past. `option` is where it was given."""
    folded = text.strip().casefold()
    from_now = _FROM_NOW.fullmatch(folded)
    if from_now is not None:
        return parse_seconds(from_now[1])
    try:
        return parse_seconds(folded, option)
    except MissingUnit:
        raise
    except BadInput:
        return (_moment(folded, text, now) - now).total_seconds()


def _moment(folded: str, text: str, now: datetime) -> datetime:
    if re.match(r"\d{4}-\d{2}", folded):
        return _iso(text, now)
    match = _SPOKEN.fullmatch(folded)
    if match is None or not (match[1] or (match[2] and (match[3] or match[4]))):
        raise BadInput(f"{text!r} is not a time; {_EXAMPLES}")
    clock = _clock(match, text)
    if match[1] in (None, "today"):
        return _at(now, 0, clock)
    if match[1] == "tomorrow":
        return _at(now, 1, clock)
    ahead = ([day[:3] for day in _DAYS].index(match[1][:3]) - now.weekday()) % 7
    until = _at(now, ahead, clock)
    return until if until > now else _at(now, ahead + 7, clock)


def _iso(text: str, now: datetime) -> datetime:
    try:
        until = datetime.fromisoformat(text.strip())
    except ValueError:
        raise BadInput(f"{text!r} is not a time; {_EXAMPLES}") from None
    if len(text.strip()) <= len("2026-11-20"):
        until += timedelta(days=1)
    return until if until.tzinfo else until.replace(tzinfo=now.tzinfo)


def _clock(match: "re.Match[str]", text: str) -> time | None:
    """The time of day; None where only the day was said."""
    if not match[2]:
        return None
    hour, minute = int(match[2]), int(match[3] or 0)
    if match[4] in ("am", "pm"):
        if not 1 <= hour <= 12:
            raise BadInput(f"{text!r} is not a time; {_EXAMPLES}")
        hour = hour % 12 + 12 * (match[4] == "pm")
    if hour > 23 or minute > 59:
        raise BadInput(f"{text!r} is not a time; {_EXAMPLES}")
    return time(hour, minute)


def _at(now: datetime, days: int, clock: time | None) -> datetime:
    """So many days ahead, at a time of day or at the day's end."""
    day = (now + timedelta(days=days + (clock is None))).date()
    return datetime.combine(day, clock or time(), tzinfo=now.tzinfo)
