"""Reading a typed speed: "39s/it", "1.2 it/s", "2.1k tokens/s", "88h/job", "12 min per epoch", "340 img/s/gpu".

A time per thing or things per time; the number is known to half of its last digit.
"""

import re
from collections.abc import Mapping

from epochcast.errors import BadInput
from epochcast.interval import Interval
from epochcast.observe.check.observation import EPOCH, IMAGE, JOB, SAMPLE, STEP, TOKEN, Observation

LONGEST_TEXT = 100
_NUMBER = r"(?P<number>\d[\d,]*(?:\.\d+)?|\.\d+)(?P<exponent>e[+-]?\d{1,2})?"
_RATE = re.compile(rf"{_NUMBER}\s*(?P<prefix>[kmg](?![a-z]))?\s*(?P<unit>[a-z]+)")
_TIME_PART = re.compile(rf"{_NUMBER}\s*(?P<unit>[a-zµμ]+)\s*")
_CLOCK = re.compile(r"(?:(\d+):)?(\d{1,2}):(\d{2}(?:\.\d+)?)")
_PER = re.compile(r"\s*(?:/|\bper\b|\ba(?:n)?\b|\beach\b)\s*")

_PREFIXES: Mapping[str, float] = {"k": 1e3, "m": 1e6, "g": 1e9}
_SECONDS: Mapping[str, float] = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), 1e-3),
    **dict.fromkeys(("us", "µs", "μs", "microsecond", "microseconds"), 1e-6),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86400.0),
}
_UNITS: Mapping[str, str] = {
    **dict.fromkeys(
        ("it", "its", "iter", "iters", "iteration", "iterations", "step", "steps", "update", "updates"), STEP
    ),
    **dict.fromkeys(("batch", "batches", "ba"), STEP),
    **dict.fromkeys(("sample", "samples", "seq", "seqs", "sequence", "sequences", "example", "examples", "ex"), SAMPLE),
    **dict.fromkeys(("clip", "clips", "video", "videos", "text", "texts"), SAMPLE),
    **dict.fromkeys(("image", "images", "img", "imgs", "im", "picture", "pictures", "frame", "frames"), IMAGE),
    **dict.fromkeys(("token", "tokens", "tok", "toks", "word", "words"), TOKEN),
    **dict.fromkeys(("epoch", "epochs", "ep"), EPOCH),
    **dict.fromkeys(("job", "run", "training", "total"), JOB),
}
_DEVICES = frozenset({"gpu", "device", "card", "rank"})
_EXAMPLES = "write it like 39s/it, 1.2it/s, '2.1k tokens/s', 340img/s, 12min/epoch or 88h/job"


def read_rate(text: str) -> Observation:
    """The observation that a text is."""
    plain = " ".join(text.casefold().split())
    if len(plain) > LONGEST_TEXT:
        raise BadInput(f"{text[:40]!r}… is no speed; {_EXAMPLES}")
    if not any(letter.isdecimal() for letter in plain):
        raise BadInput(f"{text!r} has no number; {_EXAMPLES}")
    parts = _PER.split(plain)
    is_per_gpu = len(parts) == 3 and parts[2] in _DEVICES
    if is_per_gpu:
        parts.pop()
    if len(parts) == 1:
        raise BadInput(f"{text!r} does not say of what: {_EXAMPLES}")
    if len(parts) != 2:
        raise BadInput(f"{text!r} is no speed; {_EXAMPLES}")
    first, second = parts
    seconds = _time_seconds(first)
    if seconds is not None and second in _UNITS:
        return Observation(text, seconds, _UNITS[second], is_per_gpu=is_per_gpu)
    rate = _things(first)
    if rate is not None and second in _SECONDS:
        count, unit = rate
        second_seconds = _SECONDS[second]
        inverse = Interval(second_seconds / count.high, second_seconds / count.mid, second_seconds / count.low)
        return Observation(text, inverse, unit, is_per_gpu=is_per_gpu)
    raise BadInput(f"{text!r} is no speed; {_EXAMPLES}")


def _time_seconds(text: str) -> Interval | None:
    """Seconds of "1h 30min", "39 s" or "1:23"."""
    clock = _CLOCK.fullmatch(text)
    if clock is not None:
        seconds = int(clock[1] or 0) * 3600 + int(clock[2]) * 60 + float(clock[3])
        return _around(seconds, 0.5 if "." not in clock[3] else 0.05)
    total, half, place = 0.0, 0.0, 0
    for match in _TIME_PART.finditer(text):
        if match.start() != place or match["unit"] not in _SECONDS:
            return None
        scale = _SECONDS[match["unit"]]
        value, half = _value(match)
        total, half, place = total + value * scale, half * scale, match.end()
    return _around(total, half) if total > 0 and place == len(text) else None


def _things(text: str) -> tuple[Interval, str] | None:
    """How many of what: "2.1k tokens"."""
    match = _RATE.fullmatch(text)
    if match is None or match["unit"] not in _UNITS:
        return None
    scale = _PREFIXES[match["prefix"]] if match["prefix"] else 1.0
    value, half = _value(match)
    return (_around(value * scale, half * scale), _UNITS[match["unit"]]) if value > 0 else None


def _value(match: re.Match[str]) -> tuple[float, float]:
    """A number and half of its last digit."""
    digits, power = match["number"].replace(",", ""), 10.0 ** int((match["exponent"] or "e0")[1:])
    decimals = len(digits.partition(".")[2])
    return float(digits) * power, 0.5 * 10.0**-decimals * power


def _around(value: float, half: float) -> Interval:
    return Interval(value - min(half, value / 2), value, value + half)
