"""How long the responses of a generation are.

    900                                    every response has 900 tokens (also fixed:900)
    lognormal:mean=900,max=8192            most are short, a few reach the maximum and are cut there
    lognormal:mean=900,max=8192,sigma=0.8  the same with the standard deviation of the logarithm
    uniform:min=200,max=1000               evenly spread
    file=lengths.txt                       a length a line, such as those of an earlier run

A log-normal distribution fits lengths of language (Limpert et al. 2001); its mean counts after the cut. Where nobody
says sigma, it is 0.7, or what leaves one response in a hundred at the maximum where that is less: reasoning models are
trained under a maximum that some responses reach.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import exp, log, sqrt
from pathlib import Path
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from epochcast.base.caching import remembered
from epochcast.errors import BadInput, UnknownName
from epochcast.predict.forecast.lengths import lengths_in
from epochcast.units import parse_count

USUAL_SIGMA = 0.7
CUT_FRACTION = 0.01
LONGEST_RESPONSE = 10**7
FORM = "lognormal:mean=900,max=8192, uniform:min=200,max=1000, file=lengths.txt, or a number of tokens"
_STEPS = 4096


@dataclass(frozen=True, slots=True)
class ResponseLengths:
    """Lengths at even steps of their distribution, from the shortest to the longest, as `text` writes it."""

    text: str
    mean: float
    longest: int
    quantiles: tuple[float, ...]

    def drawn(self, count: int, seed: int = 0) -> NDArray[np.int64]:
        """`count` lengths: one from each of as many equal shares of the distribution, shuffled, so that the mean and
        the longest of few draws are those of the distribution.
        """
        generator = np.random.default_rng(seed)
        shares = (np.arange(count) + generator.random(count)) / count
        generator.shuffle(shares)
        places = np.linspace(0, 1, len(self.quantiles))
        return np.maximum(1, np.rint(np.interp(shares, places, self.quantiles))).astype(np.int64)

    def scaled(self, factor: float) -> "ResponseLengths":
        """Lengths that are so many times as long, cut at the same maximum."""
        quantiles = tuple(min(self.longest, max(1.0, length * factor)) for length in self.quantiles)
        return ResponseLengths(self.text, float(np.mean(quantiles)), self.longest, quantiles)


@remembered(64)
def response_lengths(text: str) -> ResponseLengths:
    """The lengths that an option says.

    >>> round(response_lengths("lognormal:mean=900,max=8192").mean)
    900
    """
    stripped = text.strip()
    kind, colon, rest = stripped.partition(":")
    if stripped.startswith("file="):
        return _from_file(stripped, Path(stripped.removeprefix("file=")))
    if not colon:
        return _fixed(stripped, stripped)
    if kind not in _KINDS:
        raise UnknownName("distribution of response lengths", kind, _KINDS)
    return _KINDS[kind](stripped, rest)


def _fixed(text: str, rest: str) -> ResponseLengths:
    length = _whole(rest, text)
    return ResponseLengths(text, float(length), length, (float(length), float(length)))


def _uniform(text: str, rest: str) -> ResponseLengths:
    named = _named(text, rest, ("min", "max"))
    least, most = (_whole(_given(named, name, text), text) for name in ("min", "max"))
    if least > most:
        raise BadInput(f"{text!r}: min is above max")
    return ResponseLengths(text, (least + most) / 2, most, (float(least), float(most)))


def _lognormal(text: str, rest: str) -> ResponseLengths:
    named = _named(text, rest, ("mean", "max", "sigma"))
    mean, most = _number(_given(named, "mean", text), text), _whole(_given(named, "max", text), text)
    if not 1 <= mean <= most:
        raise BadInput(f"{text!r}: the mean must be between 1 and the maximum of {most}")
    sigma = _number(named["sigma"], text) if "sigma" in named else _sigma(mean, most)
    if not 0 < sigma <= 5:
        raise BadInput(f"{text!r}: sigma must be above 0 and at most 5, got {sigma:g}")
    lengths = _cut_lognormal(mean, most, sigma)
    return ResponseLengths(text, float(np.mean(lengths)), most, tuple(lengths.tolist()))


def _sigma(mean: float, most: int) -> float:
    """The usual one, or that of which one in a hundred reaches the maximum: ln(max/mean) = zσ - σ²/2."""
    z = NormalDist().inv_cdf(1 - CUT_FRACTION)
    room = z * z - 2 * log(most / mean)
    return USUAL_SIGMA if room <= 0 else max(0.05, min(USUAL_SIGMA, z - sqrt(room)))


def _cut_lognormal(mean: float, most: int, sigma: float) -> NDArray[np.float64]:
    """Even steps of a log-normal whose mean after the cut at `most` is `mean`, by bisection of its median."""
    standard = NormalDist()
    shares = [(place + 0.5) / _STEPS for place in range(_STEPS)]
    factors = np.exp(sigma * np.array([standard.inv_cdf(share) for share in shares]))
    low, high = log(mean) - sigma * sigma - 5.0, log(most) + 5.0 + sigma * sigma
    for _ in range(60):
        middle = (low + high) / 2
        is_short = float(np.clip(exp(middle) * factors, 1, most).mean()) < mean
        low, high = (middle, high) if is_short else (low, middle)
    cut: NDArray[np.float64] = np.clip(exp((low + high) / 2) * factors, 1, most)
    return cut


def _from_file(text: str, path: Path) -> ResponseLengths:
    lengths = lengths_in(f"file={path},full")
    return ResponseLengths(text, lengths.mean, lengths.most, lengths.quantiles)


_KINDS: Mapping[str, Callable[[str, str], ResponseLengths]] = {
    "fixed": _fixed,
    "lognormal": _lognormal,
    "uniform": _uniform,
}


def _named(text: str, rest: str, names: tuple[str, ...]) -> dict[str, str]:
    named = {}
    for part in rest.split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise BadInput(f"{text!r} is no distribution of response lengths; write {FORM}")
        if name not in names:
            raise UnknownName("part of response lengths", name, names)
        named[name] = value
    return named


def _given(named: Mapping[str, str], name: str, text: str) -> str:
    if name not in named:
        raise BadInput(f"{text!r} does not say {name}; write {FORM}")
    return named[name]


def _number(value: str, text: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise BadInput(f"{value!r} in {text!r} is no number; write {FORM}") from None


def _whole(value: str, text: str) -> int:
    try:
        length = parse_count(value)
    except BadInput:
        raise BadInput(f"{value!r} is no number of tokens; write {FORM}") from None
    if not 1 <= length <= LONGEST_RESPONSE:
        raise BadInput(f"a response must have between 1 and {LONGEST_RESPONSE:,} tokens, got {length}")
    return length
