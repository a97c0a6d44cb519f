"""Texts of different lengths: how long the sequences of a step are, how many of them there are.

    mean=180,max=512,padded     every batch is padded to the longest text in it
    mean=180,max=512,bucketed   the same, and the texts of a batch are about as long (`group_by_length`)
    mean=180,max=512,packed     texts are joined into sequences of the maximum; samples · mean ÷ max of them
    mean=180,max=512,full       every text is padded to the maximum
    quantiles=12/60/120/240/512,padded      lengths at even steps from the shortest (0 %) to the longest (100 %)
    file=lengths.txt,max=512,padded         a length a line; what is above the maximum is cut
    mean=900,std=700,max=512,cut,padded     mean and standard deviation before texts above the maximum are cut
    mean=900,std=700,max=512,dropped,padded     the same, and such texts are left out (`limited_lengths`)

Where only mean and maximum are known, lengths between 1 and the maximum are spread as the distribution of largest
entropy with that mean, which assumes nothing else (Jaynes 1957): p(x) ∝ exp(-λx), λ from the mean. The longest of n
texts has the distribution function Fⁿ, so that

    E[longest of n] = ∫₀¹ Q(u^(1/n)) du,    Q the quantile function,

and a padded step is computed at that length, rounded up. Time grows a little faster than the length (attention), which
is left aside. The memory of a job is that of a batch that holds the longest text: sooner or later one comes, behind
others whose blocks the allocator keeps (`batches`).
"""

from dataclasses import dataclass
from math import ceil, isfinite
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from epochcast.base.notes import Note
from epochcast.errors import BadInput, UnknownName
from epochcast.predict.forecast.limited_lengths import LIMITS, limited_quantiles, mean_of
from epochcast.units import parse_count

PADDED, BUCKETED, PACKED, FULL = "padded", "bucketed", "packed", "full"
WAYS = (PADDED, BUCKETED, PACKED, FULL)
VARIED = (PADDED, BUCKETED)
"""Ways in which batches have different lengths."""
BATCHES, STRIDE = 16, 7
"""Batches that are replayed before the longest and behind it, at even steps of the distribution, in an order that jumps
(every seventh of sixteen)."""
LONGEST = 10**8
"""Longer texts are not fed to networks at once."""
MOST_BYTES = 100_000_000
"""A larger file of lengths is refused; a sample of the lengths says the same."""
FILE_QUANTILES = 101
FORM = "mean=180,max=512,padded (or packed, full)"
_STEPS = 2048
_NAMES = ("mean", "std", "max", "quantiles", "file")


@dataclass(frozen=True)
class Lengths:
    """Tokens of texts: their mean, the most there are, and what is done with shorter ones. `quantiles` are lengths at
    even steps from 0 to 1; empty where only mean and maximum are known.
    """

    mean: float
    most: int
    way: str
    quantiles: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.way not in WAYS:
            raise UnknownName("way of lengths", self.way, WAYS)
        if not 1 <= self.most <= LONGEST:
            raise BadInput(f"the longest text must have between 1 and {LONGEST:,} tokens, got {self.most}")
        if not (isfinite(self.mean) and 1 <= self.mean <= self.most):
            raise BadInput(f"the mean of lengths must be between 1 and the maximum of {self.most}, got {self.mean:g}")

    @property
    def text(self) -> str:
        """As an option writes it."""
        steps = "/".join(f"{length:g}" for length in self.quantiles)
        return f"mean={self.mean:g},max={self.most}" + (f",quantiles={steps}" if steps else "") + f",{self.way}"

    @property
    def tokens_per_sample(self) -> float:
        """Tokens of text, without padding, in a sequence that a network is fed."""
        return float(self.most) if self.way == PACKED else self.mean

    def sequences(self, texts: int) -> int:
        """How many sequences so many texts are: fewer where they are packed."""
        return max(1, ceil(texts * self.mean / self.most)) if self.way == PACKED else texts

    def computed(self, samples: int) -> tuple[int, float]:
        """Tokens of every sequence in a batch of `samples`, padding included, and by which fraction (one standard
        deviation) that differs from batch to batch.
        """
        if self.way not in VARIED:
            return self.most, 0.0
        longest = self._longest(_STEPS, samples)
        mean = float(longest.mean())
        return min(self.most, ceil(mean)), float(longest.std()) / mean

    def batches(self, samples: int) -> tuple[int, ...]:
        """Lengths of batches of `samples` as they come, the longest of all among them; of one where all are alike."""
        if self.way not in VARIED:
            return (self.most,)
        even = [min(self.most, ceil(length)) for length in self._longest(BATCHES, samples)]
        mixed = [even[place * STRIDE % BATCHES] for place in range(BATCHES)]
        return (*mixed, self.most, *mixed)

    def _longest(self, steps: int, samples: int) -> NDArray[np.float64]:
        """The longest text of a batch at even steps of its distribution; where texts are sorted, all are as long."""
        shares = (np.arange(steps) + 0.5) / steps
        return self._quantile(shares if self.way == BUCKETED else shares ** (1 / samples))

    def notes(self, samples: int) -> tuple[str, ...]:
        """What is assumed of a batch of `samples`."""
        if self.way not in VARIED:
            return ()
        spread = "" if self.quantiles else ", for lengths spread as evenly as mean and maximum allow (or give file=)"
        return (
            Note(
                f"Batches are {self.way} to their longest text: {self.computed(samples)[0]:,} of {self.most:,} tokens "
                f"on average{spread}. Peak memory is that of the longest batch, {samples} x {self.most:,} tokens, "
                "among others."
            ),
        )

    def _quantile(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """The length that a share of the texts does not exceed."""
        if self.quantiles:
            return np.interp(shares, np.linspace(0, 1, len(self.quantiles)), self.quantiles)
        return 1 + (self.most - 1) * _exponential(shares, _steepness((self.mean - 1) / max(1, self.most - 1)))


def lengths_in(text: str, *, is_packed: bool = False) -> Lengths:
    """The lengths that an option says; `is_packed`: the job says what is done with short texts.

    >>> lengths_in("mean=180,max=512,packed").sequences(1000)
    352
    """
    named, words = _parts(text)
    ways, limits = ([word for word in words if word in kind] for kind in (WAYS, LIMITS))
    if is_packed and set(ways) - {PACKED}:
        raise BadInput(f"{text!r}: `packing` joins texts; leave {ways[0]} out of `lengths`")
    if is_packed:
        ways = [PACKED]
    if len(ways) != 1:
        raise BadInput(f"{text!r} does not say what is done with short texts: {', '.join(WAYS)}, like {FORM}")
    most = _whole(named["max"], text) if "max" in named else 0
    mean = _number(named["mean"], text) if "mean" in named else 0.0
    quantiles: tuple[float, ...] = ()
    if limits or "std" in named:
        if not (len(limits) == 1 and {*named} == {"mean", "std", "max"}):
            raise BadInput(
                f"{text!r}: lengths before a limit are a mean, std and max, and {' or '.join(LIMITS)}, "
                "like mean=900,std=700,max=512,cut,padded"
            )
        quantiles = limited_quantiles(mean, _number(named["std"], text), most, limits[0])
        mean = mean_of(quantiles)
    elif "file" in named:
        mean, quantiles = _from_file(Path(named["file"]), most)
    elif "quantiles" in named:
        quantiles = tuple(sorted(_number(part, text) for part in named["quantiles"].split("/")))
        if len(quantiles) < 2 or not all(1 <= length <= LONGEST for length in quantiles):
            raise BadInput(f"{text!r}: quantiles are two lengths or more, each at least 1, like 12/60/120/240/512")
        quantiles = tuple(min(length, most or length) for length in quantiles)
        mean = mean or mean_of(quantiles)
    elif not (mean and most):
        raise BadInput(f"{text!r} must say the mean and the maximum of the lengths, like {FORM}")
    return Lengths(mean, most or ceil(quantiles[-1]), ways[0], quantiles)


def _parts(text: str) -> tuple[dict[str, str], list[str]]:
    named: dict[str, str] = {}
    ways: list[str] = []
    for part in text.split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if equals:
            if name not in _NAMES:
                raise UnknownName("part of lengths", name, _NAMES)
            named[name] = value
        elif name in (*WAYS, *LIMITS):
            ways.append(name)
        else:
            raise BadInput(f"{text!r} is no distribution of lengths; write it like {FORM}")
    if "file" in named and len(named) > 1 + ("max" in named):
        raise BadInput("a file of lengths has their mean and quantiles: give file and max alone")
    return named, ways


def _from_file(path: Path, most: int) -> tuple[float, tuple[float, ...]]:
    """Mean and quantiles of the lengths in a file, cut at the most where one is given."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise BadInput(f"{path.name} has more than {MOST_BYTES:,} bytes; a sample of the lengths says the same")
        words = path.read_text(encoding="utf-8").replace(",", " ").split()
        lengths = np.array([int(word) for word in words], dtype=np.float64)
    except OSError as problem:
        raise BadInput(f"no file of lengths {str(path)!r}: {problem.strerror}") from None
    except (UnicodeDecodeError, ValueError, OverflowError) as problem:
        if isinstance(problem, BadInput):
            raise
        raise BadInput(f"{path.name} must hold whole numbers alone, a length a line") from None
    if not len(lengths) or lengths.min() < 1 or lengths.max() > LONGEST:
        raise BadInput(f"{path.name} must hold lengths between 1 and {LONGEST:,}")
    lengths = np.minimum(lengths, most or lengths.max())
    return float(lengths.mean()), tuple(np.quantile(lengths, np.linspace(0, 1, FILE_QUANTILES)).tolist())


def _number(text: str, whole: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise BadInput(f"{text!r} in {whole!r} is no number; write lengths like {FORM}") from None


def _whole(text: str, whole: str) -> int:
    try:
        return parse_count(text)
    except BadInput:
        raise BadInput(f"{text!r} in {whole!r} is no whole number; write lengths like {FORM}") from None


# ---- the distribution of largest entropy on [0, 1] ----------------------------------------------


def _exponential(shares: NDArray[np.float64], steepness: float) -> NDArray[np.float64]:
    """Quantiles of p(x) ∝ exp(-λx) on [0, 1]."""
    if abs(steepness) < 1e-6:
        return shares
    quantiles: NDArray[np.float64] = -np.log1p(shares * np.expm1(-steepness)) / steepness
    return quantiles


def _mean(steepness: float) -> float:
    """1/λ - 1/(e^λ - 1)."""
    return 0.5 - steepness / 12 if abs(steepness) < 1e-3 else 1 / steepness - 1 / float(np.expm1(steepness))


def _steepness(mean: float) -> float:
    """λ of a mean, by bisection; means at the ends count as just inside them."""
    mean = min(max(mean, 2e-3), 1 - 2e-3)
    low, high = -600.0, 600.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if _mean(middle) > mean else (low, middle)
    return (low + high) / 2
