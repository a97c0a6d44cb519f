"""Reading and printing quantities. Inside the program every number is in a base unit; only here is anything scaled.

Decimal prefixes are powers of ten ("1 GB" is 10⁹ bytes), binary ones powers of two ("1 GiB" is 2³⁰ bytes), as in
IEC 80000-13. Rates may be in bits ("200 Gbit/s") or bytes ("25 GB/s"). A multiply-add is two flops.
"""

import re
from math import isfinite, sqrt

from epochcast.errors import BadInput, MissingUnit

_DECIMAL = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15, "e": 1e18}
_COUNTS = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9, "t": 1e12}
_BINARY = {"ki": 2.0**10, "mi": 2.0**20, "gi": 2.0**30, "ti": 2.0**40, "pi": 2.0**50, "ei": 2.0**60}
_SECONDS = {
    "ns": 1e-9,
    "us": 1e-6,
    "μs": 1e-6,  # a Greek mu: casefold() turns the micro sign into it
    "ms": 1e-3,
    "s": 1.0,
    "min": 60.0,
    "m": 60.0,
    "h": 3600.0,
    "d": 86400.0,
    "w": 604800.0,
}
_NUMBER = r"([0-9]+(?:\.[0-9]*)?(?:e[+-]?[0-9]+)?|\.[0-9]+(?:e[+-]?[0-9]+)?)"

# Ends of names of columns: the base unit that they become, and its size in it.
_COLUMN_UNITS: dict[str, tuple[str, float]] = {
    "s": ("seconds", 1.0),
    "sec": ("seconds", 1.0),
    "secs": ("seconds", 1.0),
    "ms": ("seconds", 1e-3),
    "us": ("seconds", 1e-6),
    "ns": ("seconds", 1e-9),
    "min": ("seconds", 60.0),
    "mins": ("seconds", 60.0),
    "minutes": ("seconds", 60.0),
    "h": ("seconds", 3600.0),
    "hours": ("seconds", 3600.0),
    "days": ("seconds", 86400.0),
    "kb": ("bytes", 1e3),
    "mb": ("bytes", 1e6),
    "gb": ("bytes", 1e9),
    "tb": ("bytes", 1e12),
    "kib": ("bytes", 2.0**10),
    "mib": ("bytes", 2.0**20),
    "gib": ("bytes", 2.0**30),
    "tib": ("bytes", 2.0**40),
    "mflops": ("flops", 1e6),
    "gflops": ("flops", 1e9),
    "tflops": ("flops", 1e12),
    "gbps": ("bytes_per_second", 1.25e8),
    "mbps": ("bytes_per_second", 1.25e5),
    "percent": ("fraction", 0.01),
}

# A text of more characters is no quantity, and a count of more digits is no count.
_LONGEST, _MOST_DIGITS = 200, 18
MOST_GPUS = 4096

# From here on a value prints as one of the next larger unit: 999.5 ms would round to "1000 ms".
_ALMOST_ONE = 0.9995


def parse_bytes(text: str) -> int:
    """Bytes of "80 GiB", "512MB", "1.5e9" or a bare number of bytes.

    >>> parse_bytes("80 GiB")
    85899345920
    """
    match = re.fullmatch(rf"\s*{_NUMBER}\s*([kmgtpe]?i?)b?\s*", text.casefold())
    if not match or (match[2] not in _DECIMAL and match[2] not in _BINARY):
        raise BadInput(f"{text!r} is not a size in bytes; write it like '80 GiB' or '512 MB'")
    return round(_finite(float(match[1]) * {**_DECIMAL, **_BINARY}[match[2]], text))


def parse_size(text: str) -> int:
    """Bytes of "500GB" as an option has them: a bare number is refused, as it may be bytes or gigabytes; 0 is 0.

    >>> parse_size("500GB")
    500000000000
    """
    plain = text.strip()
    if re.fullmatch(_NUMBER, plain) and float(plain) != 0:
        raise MissingUnit(plain, f"{plain}GB")
    return parse_bytes(text)


def parse_rate(text: str) -> float:
    """Bytes per second of "25 GB/s" or "200 Gbit/s". A small b ("Gb/s") is refused: read as bytes it errs eightfold.

    >>> parse_rate("200 Gbit/s")
    25000000000.0
    """
    match = re.fullmatch(rf"\s*{_NUMBER}\s*((?i:[kmgtp]?i?))(B|(?i:bit))/(?i:s)\s*", text)
    prefix = match[2].casefold() if match else ""
    if not match or (prefix not in _DECIMAL and prefix not in _BINARY):
        raise BadInput(f"{text!r} is not a rate; write it like '25 GB/s' or '200 Gbit/s'")
    bits = 1 if match[3] == "B" else 8
    return _finite(float(match[1]) * {**_DECIMAL, **_BINARY}[prefix] / bits, text)


def parse_flops_rate(text: str) -> float:
    """Flops per second of "165 TFLOPS", "1.3 PFLOP/s" or "330 TOPS".

    >>> parse_flops_rate("165 TFLOPS")
    165000000000000.0
    """
    match = re.fullmatch(rf"\s*{_NUMBER}\s*([kmgtpe]?)(?:fl)?op(?:s|s?/s)\s*", text.casefold())
    if not match:
        raise BadInput(f"{text!r} is not a rate of arithmetic; write it like '165 TFLOPS'")
    return _finite(float(match[1]) * _DECIMAL[match[2]], text)


def parse_count(text: str) -> int:
    """A number of things: "300B", "1.5T", "52k" or a bare number; B and G are 10⁹.

    >>> parse_count("300B"), parse_count("1_281_167")
    (300000000000, 1281167)
    """
    match = re.fullmatch(rf"\s*{_NUMBER}\s*([kmbgt]?)\s*", re.sub(r"(?<=\d)[_,](?=\d)", "", text.casefold()))
    count = _finite(float(match[1]) * _COUNTS[match[2]], text) if match else 0.5
    if match and not match[2] and match[1].isdecimal():
        return int(match[1])  # exact, however long
    if count != round(count):
        raise BadInput(f"{text!r} is no whole number; write it like 300B, 1.5T, 52k or 1281167")
    return round(count)


def parse_watts(text: str) -> float:
    """Watts of "450 W" or a bare number."""
    return _with_unit(text, "w", "a power; write it like '450 W'")


def parse_hertz(text: str) -> float:
    """Hertz of "2.52 GHz"."""
    return _with_unit(text, "hz", "a clock; write it like '2.52 GHz'")


def _with_unit(text: str, unit: str, wanted: str) -> float:
    match = re.fullmatch(rf"\s*{_NUMBER}\s*(?:([kmg]?){unit})?\s*", text.casefold())
    if not match:
        raise BadInput(f"{text!r} is not {wanted}")
    return _finite(float(match[1]) * _DECIMAL[match[2] or ""], text)


def parse_seconds(text: str, option: str = "", *, unit: str = "h") -> float:
    """Seconds of "6h", "1h30m", "90 min" or "250 ms". A bare number is refused: it may be seconds or hours; 0 is 0.

    The message names the option and repeats the number with the unit that the option usually has.

    >>> parse_seconds("1h30m")
    5400.0
    """
    plain = text.strip().casefold()
    if re.fullmatch(_NUMBER, plain):
        number = _finite(float(plain), text)
        if number == 0:
            return 0.0
        raise MissingUnit(text.strip(), f"{plain}{unit if number >= 1 else 's'}", option)
    too_long = len(plain) > _LONGEST
    pieces = [] if too_long else re.findall(rf"{_NUMBER}\s*(ns|us|μs|ms|min|[smhdw])\s*", plain)
    if not pieces or "".join(n + u for n, u in pieces) != plain.replace(" ", ""):
        raise BadInput(f"{text!r} is not a time; write it like '6h', '1h30m' or '250 ms'")
    return _finite(sum(float(number) * _SECONDS[unit] for number, unit in pieces), text)


def parse_seconds_per_sample(text: str) -> float:
    """Seconds per sample of "8ms", or of a batch with its size: "0.5s/64".

    >>> parse_seconds_per_sample("512ms/64")
    0.008
    """
    time, slash, samples = text.partition("/")
    if slash and not (samples.strip().isdecimal() and len(samples) <= _MOST_DIGITS and int(samples) > 0):
        raise BadInput(f"{text!r} is no time per sample; write it like '8ms', or '0.5s/64' for a batch of 64")
    return parse_seconds(time, unit="ms") / (int(samples) if slash else 1)


def parse_dollars(text: str) -> float:
    """Dollars of "$100", "1,200" or "2.5k".

    >>> parse_dollars("$1,200"), parse_dollars("2.5k")
    (1200.0, 2500.0)
    """
    plain = re.sub(r"(?<=\d),(?=\d{3})", "", text.casefold())
    match = re.fullmatch(rf"\s*\$?\s*{_NUMBER}\s*(k|m)?\s*(?:\$|usd|dollars)?\s*", plain)
    if not match:
        raise BadInput(f"{text!r} is not an amount of dollars; write it like $100 or 2.5k")
    return _finite(float(match[1]) * {None: 1.0, "k": 1e3, "m": 1e6}[match[2]], text)


def parse_dollars_per_hour(text: str) -> float:
    """Dollars per hour of "2.50", "$2.50" or "2.50/h"."""
    match = re.fullmatch(rf"\s*\$?\s*{_NUMBER}\s*(?:\$)?\s*(?:/\s*h(?:our)?)?\s*", text.casefold())
    if not match:
        raise BadInput(f"{text!r} is not a price in dollars per hour; write it like 2.50")
    return _finite(float(match[1]), text)


def parse_dollars_per_kilowatt_hour(text: str) -> float:
    """Dollars per kilowatt-hour of "0.15", "$0.15" or "0.15/kWh"."""
    match = re.fullmatch(rf"\s*\$?\s*{_NUMBER}\s*(?:/\s*kwh)?\s*", text.casefold())
    if not match:
        raise BadInput(f"{text!r} is not a price of electricity; write it like 0.15/kWh")
    return _finite(float(match[1]), text)


def parse_fraction(text: str) -> float:
    """A fraction of "5%" or "0.05"."""
    match = re.fullmatch(rf"\s*{_NUMBER}\s*(%?)\s*", text.casefold())
    if not match:
        raise BadInput(f"{text!r} is not a fraction; write it like 5% or 0.05")
    return _finite(float(match[1]) / (100 if match[2] else 1), text)


def parse_shape(text: str) -> tuple[int, ...]:
    """Dimensions of "3x224x224" (also with × or commas), every one at least 1."""
    pieces = [piece.strip() for piece in re.split(r"[x×,]", text.casefold())]
    if not all(piece.isdecimal() and len(piece) <= _MOST_DIGITS and int(piece) > 0 for piece in pieces):
        raise BadInput(f"{text!r} is not a shape; write it like 3x224x224")
    return tuple(int(piece) for piece in pieces)


def parse_counts(text: str, what: str = "GPUs") -> tuple[int, ...]:
    """Numbers of GPUs of "1,2,8" or of a range: "1-64" has every power of two in it, and both ends.

    >>> parse_counts("1,3-16")
    (1, 3, 4, 8, 16)
    """
    counts: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,7})\s*(?:(?:-|\.\.)\s*(\d{1,7}))?\s*", part)
        if match is None:
            raise BadInput(f"numbers of {what} are written 1,2,4,8 or 1-64; got {text!r}")
        low, high = int(match[1]), int(match[2] or match[1])
        if not 1 <= low <= high <= MOST_GPUS:
            raise BadInput(f"numbers of {what} go from 1 to {MOST_GPUS}, the smaller first; got {text!r}")
        counts += [low, high, *(2**n for n in range(low.bit_length(), high.bit_length()) if low <= 2**n <= high)]
    return tuple(dict.fromkeys(sorted(counts)))


def parse_names(text: str) -> tuple[str, ...]:
    """Names of a list: a,b."""
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    if not names:
        raise BadInput(f"names are written a,b; got {text!r}")
    return names


def parse_uneven(text: str) -> float:
    """By which fraction of its work one batch differs from the next: "0.35", or of images whose sides are drawn anew
    for each between two: work goes by their area, σ/mean of s² for s even between the two.

    >>> round(parse_uneven("320..608"), 3)
    0.348
    """
    sides = re.fullmatch(rf"\s*(\d{{1,{_MOST_DIGITS}}})\s*\.\.\s*(\d{{1,{_MOST_DIGITS}}})\s*", text)
    if sides is None:
        return parse_fraction(text)
    low, high = int(sides[1]), int(sides[2])
    if not 0 < low < high:
        raise BadInput(f"{text!r} is no range of sides; write the smaller first, like 320..608")
    square, fourth = ((high**n - low**n) / (n * (high - low)) for n in (3, 5))
    return sqrt(fourth / square**2 - 1)


def base_column(name: str) -> tuple[str, float]:
    """The name of a column in its base unit, and what its numbers are multiplied by; others stay as they are.

    >>> base_column("epoch_ms"), base_column("host_memory_gb"), base_column("batch")
    (('epoch_seconds', 0.001), ('host_memory_bytes', 1000000000.0), ('batch', 1.0))
    """
    stem, _, end = name.rpartition("_")
    unit = _COLUMN_UNITS.get(end.casefold()) if stem and not stem.endswith("_per") else None
    return (name, 1.0) if unit is None else (f"{stem}_{unit[0]}", unit[1])


def show_seconds(seconds: float) -> str:
    """A time to three digits in the unit a person would use.

    >>> show_seconds(0.00123), show_seconds(5400)
    ('1.23 ms', '1 h 30 min')
    """
    if not isfinite(seconds):
        return str(seconds)
    if seconds < 0:
        return f"-{show_seconds(-seconds)}"
    if round(seconds / 60) >= 24 * 60:
        days, rest = divmod(round(seconds / 3600), 24)
        return f"{days} d {rest} h"
    if round(seconds) >= 3600:
        hours, rest = divmod(round(seconds / 60), 60)
        return f"{hours} h {rest} min"
    if seconds >= 99.95:
        minutes, rest = divmod(round(seconds), 60)
        return f"{minutes} min {rest} s"
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= scale * _ALMOST_ONE:
            return f"{_digits(seconds / scale)} {unit}"
    return f"{_digits(seconds / 1e-9)} ns" if seconds else "0 s"


def show_bytes(size_bytes: float) -> str:
    """A size in binary units, as nvidia-smi counts them.

    >>> show_bytes(85899345920)
    '80 GiB'
    """
    for scale, unit in ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if abs(size_bytes) >= scale * _ALMOST_ONE:
            return f"{_digits(size_bytes / scale)} {unit}"
    return f"{size_bytes:.0f} B"


def show_count(count: float, unit: str = "") -> str:
    """A large count with a decimal prefix.

    >>> show_count(25557032), show_count(8.2e9, "FLOP")
    ('25.6 M', '8.2 GFLOP')
    """
    for scale, prefix in ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(count) >= scale * _ALMOST_ONE:
            return f"{_digits(count / scale)} {prefix}{unit}"
    return f"{_digits(count)} {unit}".rstrip()


def show_gpus(device: str, gpus: int, nodes: int = 1) -> str:
    """8 × A100 of one machine; 2 machines × 8 A100 of several."""
    if nodes == 1:
        return f"{gpus} × {device}"
    if gpus % nodes:
        return f"{gpus} × {device} on {nodes} machines"
    return f"{nodes} machines × {gpus // nodes} {device}"


def show_tokens(count: float) -> str:
    """A number of tokens as it is written for language models.

    >>> show_tokens(3e11), show_tokens(1.5e12), show_tokens(800)
    ('300B', '1.5T', '800')
    """
    for scale, letter in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "K")):
        if count >= scale * _ALMOST_ONE:
            return f"{_digits(count / scale)}{letter}"
    return _digits(count)


def show_dollars(dollars: float) -> str:
    """Dollars, with cents where cents matter.

    >>> show_dollars(12345.6), show_dollars(2.5), show_dollars(-0.0123)
    ('$12,346', '$2.50', '-$0.012')
    """
    if dollars < 0:
        return f"-{show_dollars(-dollars)}"
    if dollars >= 1000:
        return f"${dollars:,.0f}"
    return f"${dollars:.2f}" if dollars >= 0.1 else f"${dollars:.2g}"


def _digits(value: float) -> str:
    """Three significant digits, no trailing zeros, no exponent."""
    if not isfinite(value):
        return str(value)
    digits = len(str(int(abs(value))))
    text = f"{value:.{max(0, 3 - digits)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _finite(value: float, text: str) -> float:
    if not isfinite(value):
        raise BadInput(f"{text!r} is too large a number")
    return value
