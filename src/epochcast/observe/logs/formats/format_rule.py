"""Formats as tables: rules are patterns whose named groups say what a number means; units are in the names.

| group | meaning |
|---|---|
| `step`, `index` | finished steps of the run; number of the step, counted from 0 |
| `total`, `last_index` | steps of the whole run; number of its last step, counted from 0 |
| `batch`, `batch_index`, `batches` | finished batches of the epoch; number from 0; how many an epoch has |
| `last_batch_index` | number of an epoch's last batch, counted from 0 |
| `epoch`, `epoch_index`, `epoch_any` | epoch counted from 1; from 0; from whichever of both comes first in the log |
| `epochs`, `epochs_done` | epochs of the run; epochs that are finished, with a fraction |
| `step_seconds`, `step_ms`, `steps_per_second` | time of one step |
| `average_seconds` | mean time of the steps of this epoch |
| `interval_seconds`, `section_…`, `elapsed_…`, `pause_…` | time since the last report, in this epoch, run, outside |
| `remaining`, `epoch_remaining` | what the log expects, for the run or the epoch |
| `data_seconds`, `samples_per_second`, `loss`, `rank`, `unix`, `time` | as they say |
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from epochcast.errors import BadInput
from epochcast.observe.logs.formats.sighting import Sight, Sighting
from epochcast.observe.logs.time_stamps import Stamps, clock_text_seconds

NUMBER = r"[-+]?(?:\d[\d,]*(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|inf|NaN|NAN|Infinity)"
DURATION = r"(?:\d+ days?, ?)?\d+(?::\d+)+(?:\.\d+)?"


def number(text: str) -> float:
    """A number, also with thousands commas or a `k`, `M` behind it."""
    try:
        return float(text)
    except ValueError:
        text = text.replace(",", "")
    scale = SCALES.get(text[-1:], 1.0)
    return float(text[:-1] if scale != 1.0 else text) * scale


SCALES = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9}

_plus_one: Callable[[str], float] = lambda text: number(text) + 1  # noqa: E731
_integer: Callable[[str], int] = lambda text: int(number(text))  # noqa: E731
_thousandth: Callable[[str], float] = lambda text: number(text) * 1e-3  # noqa: E731
_hours: Callable[[str], float] = lambda text: number(text) * 3600.0  # noqa: E731


def _inverse(text: str) -> float | None:
    value = number(text)
    return 1.0 / value if value > 0 else None


GROUPS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "step": ("step", number),
    "index": ("step", _plus_one),
    "total": ("total", number),
    "last_index": ("total", _plus_one),
    "batch": ("batch", number),
    "batch_index": ("batch", _plus_one),
    "batches": ("batches", number),
    "last_batch_index": ("batches", _plus_one),
    "epoch": ("epoch", lambda text: max(int(text) - 1, 0)),
    "epoch_index": ("epoch", _integer),
    "epoch_any": ("epoch", _integer),
    "epochs": ("epochs", number),
    "epochs_done": ("epochs_done", number),
    "epochs_done_index": ("epochs_done", _plus_one),
    "step_seconds": ("step_seconds", number),
    "step_ms": ("step_seconds", _thousandth),
    "steps_per_second": ("step_seconds", _inverse),
    "average_seconds": ("average_seconds", number),
    "interval_seconds": ("interval_seconds", number),
    "interval": ("interval_seconds", clock_text_seconds),
    "section_seconds": ("section_seconds", number),
    "section": ("section_seconds", clock_text_seconds),
    "elapsed_seconds": ("elapsed_seconds", number),
    "elapsed_ms": ("elapsed_seconds", _thousandth),
    "elapsed_hours": ("elapsed_seconds", _hours),
    "elapsed": ("elapsed_seconds", clock_text_seconds),
    "pause": ("pause_seconds", clock_text_seconds),
    "pause_seconds": ("pause_seconds", number),
    "remaining": ("remaining_seconds", clock_text_seconds),
    "remaining_seconds": ("remaining_seconds", number),
    "epoch_remaining": ("epoch_remaining_seconds", clock_text_seconds),
    "data_seconds": ("data_seconds", number),
    "samples_per_second": ("samples_per_second", number),
    "loss": ("loss", number),
    "rank": ("rank", _integer),
    "unix": ("stamp_seconds", number),
    "time": ("stamp_seconds", lambda text: Stamps().seconds(text)),
}


@dataclass(frozen=True)
class LineRule:
    """Lines that hold `needle` and match `pattern` (searched) say what its named groups say."""

    needle: str
    pattern: str
    phase: Sight = "train"
    closes_epoch: bool = False
    is_sampled: bool = False
    forgets_total: bool = False
    compiled: re.Pattern[str] = field(init=False, repr=False, compare=False)
    readers: tuple[tuple[str, Callable[[str], Any]], ...] = field(init=False, repr=False, compare=False)
    counts_either_way: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "compiled", re.compile(self.pattern.replace("NUM", NUMBER).replace("DUR", DURATION)))
        if self.compiled.groups != len(self.compiled.groupindex):
            raise BadInput(f"all groups of a pattern must be named or (?:…): {self.pattern}")
        object.__setattr__(self, "readers", tuple(GROUPS[name] for name in self.compiled.groupindex))
        object.__setattr__(self, "counts_either_way", "epoch_any" in self.compiled.groupindex)

    def sight(self, line: str) -> Sighting | None:
        """What the line says, or None where it is not one of this rule's."""
        match = self.compiled.search(line)
        if match is None:
            return None
        sighting = Sighting(self.phase, closes_epoch=self.closes_epoch, is_sampled=self.is_sampled)
        sighting.forgets_total = self.forgets_total
        for text, (attribute, read) in zip(match.groups(), self.readers, strict=True):
            if text is not None:
                setattr(sighting, attribute, read(text))
        return sighting


class Parser(Protocol):
    """Reads the lines of one log in one format; it may remember lines that it has read."""

    @property
    def flavour(self) -> str:
        """The format's name, as exact as the lines so far tell."""

    def sight(self, line: str) -> Sighting | None:
        """What the line says of the run."""


@dataclass
class RuleParser:
    """The parser of a format that is a table of rules: the first rule that fits speaks."""

    flavour: str
    rules: tuple[LineRule, ...]
    first_epoch: int | None = None

    def sight(self, line: str) -> Sighting | None:
        """What the first fitting rule says; of lines for validation and headers as of others."""
        for rule in self.rules:
            if rule.needle in line:
                sighting = rule.sight(line)
                if sighting is not None:
                    if rule.counts_either_way:
                        self._recount(sighting)
                    return sighting
        return None

    def _recount(self, sighting: Sighting) -> None:
        """Epochs from 0 or from 1: the first one of a log decides."""
        if sighting.epoch is None:
            return
        if self.first_epoch is None or sighting.epoch == 0:
            self.first_epoch = min(sighting.epoch, 1)
        sighting.epoch = max(sighting.epoch - self.first_epoch, 0)


@dataclass(frozen=True)
class Format:
    """One way to write logs: its name, who writes it, what its lines contain, and a maker of parsers.

    `sureness` is how much one fitting line says: 1 for patterns that nobody else prints, less for common shapes. Where
    `is_dated` the parser itself reads time stamps, as seconds since 1970. `weight` is how many times as long
    as a rule's its lines take to read.
    """

    name: str
    framework: str
    needles: tuple[str, ...]
    parser: Callable[[], Parser]
    sureness: float = 1.0
    is_dated: bool = False
    weight: float = 1.0


def format_of(name: str, framework: str, *rules: LineRule, sureness: float = 1.0) -> Format:
    """A format that is a table of rules."""
    needles = tuple(dict.fromkeys(rule.needle for rule in rules))
    return Format(name, framework, needles, lambda: RuleParser(name, rules), sureness)
