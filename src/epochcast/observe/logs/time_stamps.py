"""Dates and times as logs write them, as seconds; years that are left out are counted from the first line on."""

import re
from datetime import UTC, datetime

DAY_SECONDS = 86400.0
MONTHS = dict(zip("jan feb mar apr may jun jul aug sep oct nov dec".split(), range(1, 13), strict=True))  # noqa: SIM905

# Where no year is written, any leap year serves; only differences count.
SOME_YEAR = 2000

_CLOCK = r"(?P<hour>\d{2}):(?P<minute>\d{2}):(?P<second>\d{2})(?:[.,](?P<fraction>\d{1,9}))?"
_ZONE = r"(?P<zone>Z|[+-]\d{2}:?\d{2}(?!\d))?"

FORMS: tuple[re.Pattern[str], ...] = (
    re.compile(
        rf"(?<!\d)(?P<year>(?:19|20)\d{{2}})[-/](?P<month>\d{{2}})[-/](?P<day>\d{{2}})[ T:_,]{{1,2}}{_CLOCK}{_ZONE}"
    ),
    re.compile(rf"(?<![\w-])(?P<short_year>\d{{2}})-(?P<month>\d{{2}})-(?P<day>\d{{2}}) {_CLOCK}"),
    re.compile(rf"(?<!\w)[IWEF](?P<year>(?:19|20)\d{{2}})?(?P<month>\d{{2}})(?P<day>\d{{2}}) {_CLOCK}"),
    re.compile(rf"(?<![\d/])(?P<month>\d{{2}})/(?P<day>\d{{2}}) {_CLOCK}"),
    re.compile(rf"(?<![\d/])(?P<month>\d{{2}})/(?P<day>\d{{2}})/(?P<year>(?:19|20)\d{{2}}),? {_CLOCK}"),
    re.compile(rf"(?<![\d/])(?P<month>\d{{2}})/(?P<day>\d{{2}})/(?P<short_year>\d{{2}}),? {_CLOCK}"),
    re.compile(rf"(?<!\d)(?P<day>\d{{1,2}})[ /-](?P<name>[A-Z][a-z]{{2}})[ /-](?P<year>(?:19|20)\d{{2}})[ :T]{_CLOCK}"),
    re.compile(rf"\b(?P<name>[A-Z][a-z]{{2}}) +(?P<day>\d{{1,2}}) {_CLOCK}(?: (?P<year>(?:19|20)\d{{2}}))?"),
    re.compile(r'"?time_ms"?: ?"?(?P<unix_thousandths>\d{12,14})'),
    re.compile(r'"(?:_?timestamp|wall_time|time)": ?"?(?P<unix>1\d{9}(?:\.\d+)?)(?!\d)'),
    re.compile(rf"^\W{{0,2}}{_CLOCK}\W"),
)

# A stamp stands at the head of its line, behind at most a host name, a rank and a logger's name.
SEARCHED = 160


class Stamps:
    """Reads the stamps of one log: the form that fitted last is tried first, missing years and days are carried on."""

    def __init__(self) -> None:
        self._form: re.Pattern[str] | None = None
        self._midnights: dict[tuple[str | None, ...], float] = {}
        self._year = SOME_YEAR
        self._last: float | None = None
        self.is_dated = False  # whether the log writes whole dates, so that its seconds are those since 1970

    def seconds(self, line: str) -> float | None:
        """The line's time in seconds; since 1970 where the log writes the year, comparable within the log otherwise."""
        head = line[:SEARCHED]
        if self._form is not None and (match := self._form.search(head)):
            return self._read(match)
        for form in FORMS:
            if form is not self._form and (match := form.search(head)):
                value = self._read(match)
                if value is not None:
                    self._form = form
                    return value
        return None

    def _read(self, match: re.Match[str]) -> float | None:
        parts = match.groupdict()
        if unix := parts.get("unix"):
            self.is_dated = True
            return float(unix)
        if thousandths := parts.get("unix_thousandths"):
            self.is_dated = True
            return float(thousandths) / 1e3
        self.is_dated = bool(parts.get("year") or parts.get("short_year"))
        day = self._day(parts)
        if day is None:
            return None
        seconds = day + int(parts["hour"]) * 3600 + int(parts["minute"]) * 60 + int(parts["second"])
        if fraction := parts.get("fraction"):
            seconds += float("0." + fraction)
        if parts.get("day") is None:
            return self._carried(seconds, DAY_SECONDS)
        return seconds - _zone_seconds(parts.get("zone"))

    def _day(self, parts: dict[str, str | None]) -> float | None:
        key = (parts.get("year"), parts.get("short_year"), parts.get("month") or parts.get("name"), parts.get("day"))
        if key not in self._midnights:
            midnight = self._midnight_of(parts)
            if midnight is None:
                return None
            if len(self._midnights) > 4096:
                self._midnights.clear()
            self._midnights[key] = midnight
        return self._midnights[key]

    def _midnight_of(self, parts: dict[str, str | None]) -> float | None:
        if parts.get("day") is None:
            return 0.0
        year, short = parts.get("year"), parts.get("short_year")
        month = parts.get("month") or str(MONTHS.get((parts.get("name") or "").lower(), 0))
        number = int(year) if year else 2000 + int(short) if short else self._year
        try:
            seconds = datetime(number, int(month), int(parts["day"] or 0), tzinfo=UTC).timestamp()
        except ValueError:
            return None
        if year is None and short is None:
            seconds = self._carried_year(seconds, int(month), int(parts["day"] or 0))
        return seconds

    def _carried_year(self, seconds: float, month: int, day: int) -> float:
        """New Year within a log that writes no years: a day half a year back is one of the next year."""
        if self._last is not None and seconds < self._last - 182 * DAY_SECONDS:
            self._year += 1
            self._midnights.clear()
            seconds = datetime(self._year, month, day if (month, day) != (2, 29) else 28, tzinfo=UTC).timestamp()
        self._last = seconds
        return seconds

    def _carried(self, seconds: float, cycle: float) -> float:
        """Midnight within a log that writes no days: a clock half a day back is that of the next day."""
        if self._last is not None:
            seconds += (
                cycle * ((self._last - seconds + cycle / 2) // cycle) if seconds < self._last - cycle / 2 else 0.0
            )
        self._last = seconds
        return seconds


def _zone_seconds(zone: str | None) -> float:
    if zone is None or zone == "Z":
        return 0.0
    digits = zone[1:].replace(":", "")
    return (-1 if zone[0] == "-" else 1) * (int(digits[:2]) * 3600 + int(digits[2:]) * 60.0)


def clock_text_seconds(text: str) -> float:
    """Seconds of a duration as bars and trainers write: `1:02:03`, `02:03`, `14s`, `1 day, 2:03:04`, `2d 14h 58m`."""
    days_seconds, text = _days_in(text.strip()) if "day" in text else (0.0, text.strip())
    if ":" in text:
        seconds = 0.0
        for part in text.rstrip("s").split(":"):
            seconds = seconds * 60 + float(part)
        return days_seconds + seconds
    total = days_seconds
    for amount, unit in _AMOUNTS.findall(text):
        total += float(amount) * UNITS[unit]
    return total


_AMOUNTS = re.compile(r"([\d.]+)\s*(ms|us|d|h|m|s|)")
UNITS: dict[str, float] = {"ms": 1e-3, "us": 1e-6, "d": DAY_SECONDS, "h": 3600.0, "m": 60.0, "s": 1.0, "": 1.0}


def _days_in(text: str) -> tuple[float, str]:
    """Seconds of the days that are written in front, and the rest."""
    match = re.match(r"(\d+) days?,?\s*", text)
    return (float(match[1]) * DAY_SECONDS, text[match.end() :]) if match else (0.0, text)
