"""Progress bars: tqdm in general, and what Lightning, Hugging Face, YOLO and rich make of it.

A log holds bars that are not training: downloads, tokenizing, validation. A bar's words tell; where it has none, the
bar that is running when others come and go is the training. One bar may be the whole run or one epoch of it: a second
bar of the same length after a finished first says that they are epochs.
"""

import re
from collections import deque
from dataclasses import dataclass

from epochcast.observe.logs.formats.format_rule import NUMBER, Format, number
from epochcast.observe.logs.formats.sighting import Sighting
from epochcast.observe.logs.formats.wording_cache import remembered
from epochcast.observe.logs.time_stamps import clock_text_seconds

_DRAWN = (
    r"\|[^|]*\|\s*(?P<done>[\d.]+[kMG]?)/(?P<total>[\d.]+[kMG]?|\?) "
    r"\[(?P<elapsed>[\d:]+)<(?P<rest>\d+ days?, [\d:]+|[\d:]+|\?),\s*(?P<rate>[\d.?]+)\s*"
    r"(?P<unit>\w*/\w+)(?P<behind>[^\]]*)\]?"
)
_AT_PERCENT = re.compile(_DRAWN)
_TQDM = re.compile(r"(?P<words>.*?)(?:\d+%|(?<=: ))" + _DRAWN)
_ENDLESS = re.compile(
    r"(?P<words>.*?)(?P<done>\d[\d.]*[kMG]?)(?P<total>)(?:it|ba|batch\w*|steps?) \[(?P<elapsed>[\d:]+)(?P<rest>),\s*"
    r"(?P<rate>[\d.?]+)\s*(?P<unit>\w*/\w+)(?P<behind>[^\]]*)\]?"
)
_ULTRALYTICS = re.compile(
    r"(?P<words>.*?)\d+% [━─╸╺ ]+ (?P<done>\d+)/(?P<total>\d+) (?P<rate>[\d.]+)(?P<unit>it/s|s/it) "
    r"(?P<elapsed>[\d:.]+)s?(?:<(?P<rest>[\d:.]+)s?)?(?P<behind>)"
)
_RICH = re.compile(
    r"(?P<words>.*?)[━╸╺]+ +(?P<done>\d+)/(?P<total>\d+) (?P<elapsed>\d+:\d\d:\d\d) • (?P<rest>[-\d]+:[-\d]+:[-\d]+) "
    r"(?P<rate>[\d.]+)(?P<unit>it/s)(?P<behind>.*)"
)

_prepares = remembered(
    r"(?i)\b(?:download|load|fetch|tokeniz|map\b(?!@)|filter|cach|scann|extract|generating|sampl|pars|reading|convert|pack|"
    r"process|build|writ|sav|upload|resolv|collect|decod|prepar|creat|autoanchor|materializ|shard|comput|compress|encod"
    r")"
)
_validates = remembered(
    r"(?i)(?<![a-z])(?:valid\w*|val|test\w*|eval\w*|sanity|predict\w*|infer\w*|dev)(?![a-z])|Class\s+Images"
)
_EPOCH = re.compile(r"(?i)epochs?[\s_:\[#=]*(\d+)(?:\s*(?:/|of)\s*(\d+))?")
_YOLO_EPOCH = re.compile(r"^\s*(\d+)/(\d+)\s+(?:\d[\d.]*[GM]\b|(?:[\d.e+-]+\s+){1,6}[\d.]+: )")
_OUTER = re.compile(r"(?i)^\W*(?:total )?epochs?\W*$")
_LOSS = re.compile(rf"(?i)loss\w*['\"]?[=:] ?'?({NUMBER})")
_COMPLETED = re.compile(r"^\W*(\d+) epochs completed in ([\d.]+) hours")
_RUNTIME = re.compile(rf"'train_runtime': '?({NUMBER})")
_STEPS = re.compile(r"Total optimization steps = ([\d,]+)")
_PRINTED_EPOCH = re.compile(r"^\W*(?:Starting )?[Ee]poch:? \[?(\d+)\]?\s*(?:/|of)\s*(\d+)")

# No bar is longer; patterns that look for words in front of it take the square of a line's length.
LONGEST_BAR = 2000

NEEDLES = ("%|", " |", " [", "% ━", " • ", "hours", "{'", "poch ", "optimization steps")


@dataclass
class Bar:
    """One progress bar as it was last drawn."""

    words: str
    done: float
    total: float | None
    elapsed_seconds: float
    rest_seconds: float | None
    step_seconds: float | None
    unit: str
    behind: str


@dataclass
class BarParser:
    """Finds the training among a log's bars."""

    flavour: str = "tqdm"
    main_total: float | None = None
    main_done: float = 0.0
    main_seconds: float = 0.0
    bars: int = 0
    epoch: int | None = None
    epochs: float | None = None
    first_epoch: int | None = None
    other_total: float | None = None
    other_bars: int = 0
    pause_seconds: float = 0.0
    has_total: bool = False
    is_labelled: bool = False
    is_outer_counted: bool = False

    def sight(self, line: str) -> Sighting | None:
        """What the last bar in the line says, or what is announced beside the bars."""
        bar = _bar(line)
        if bar is None:
            return self._beside(line)
        if _prepares(bar.words) or bar.unit.endswith("B/s"):
            return None
        if "v_num" in bar.behind:
            self.flavour = "lightning"
        if _validates(bar.words):
            return self._validation(bar)
        if _OUTER.match(bar.words):
            return self._outer(bar)
        sighting = self._labelled(bar) or self._unlabelled(bar)
        if sighting is not None:
            self._fill(sighting, bar, line)
        return sighting

    def _labelled(self, bar: Bar) -> Sighting | None:
        """A bar that names its epoch."""
        yolo = _YOLO_EPOCH.match(bar.words)
        match = yolo or _EPOCH.search(bar.words)
        if match is None:
            return None
        self.is_labelled = True
        epoch, last = int(match[1]), match[2]
        if yolo:
            self.flavour = "yolo_console"
        if self.first_epoch is None or epoch == 0:
            self.first_epoch = min(epoch, 1)
        if last is not None:
            # YOLO up to version 7 and rich bars count 0/299 … 299/299, others 1/300 … 300/300.
            self.epochs = float(last) + (1 - self.first_epoch)
        self.epoch = max(epoch - self.first_epoch, 0)
        self.main_done, self.main_total = bar.done, bar.total
        return Sighting(epoch=self.epoch, epochs=self.epochs, forgets_total=not self.has_total)

    def _unlabelled(self, bar: Bar) -> Sighting | None:
        if self.is_labelled:
            return None
        if self.main_total is None:
            self.main_total, self.bars = bar.total, 1
        elif bar.total != self.main_total and not self._takes_over(bar):
            return None
        elif bar.done < self.main_done:
            is_next = self.main_done >= 0.9 * self.main_total
            self.bars += is_next
        self.main_done, self.main_seconds = bar.done, bar.elapsed_seconds
        if self.bars > 1 or self.is_outer_counted:
            self.epoch = self.epoch if self.is_outer_counted else self.bars - 1
            return Sighting(epoch=self.epoch or 0, epochs=self.epochs, forgets_total=not self.has_total)
        if self.epochs is not None:
            return Sighting(epoch=self.epoch or 0, epochs=self.epochs)
        return Sighting(step=bar.done, total=bar.total, epoch=0 if bar.total is None else None)

    def _takes_over(self, bar: Bar) -> bool:
        """A bar of another length is the training if it comes again and again, and the first one did not."""
        assert self.main_total is not None
        if bar.total is None or self.main_done < self.main_total or self.bars > 1:
            return False
        if bar.elapsed_seconds > 2 * self.main_seconds + 5:  # what came first was a preparation
            self.main_total, self.bars = bar.total, 1
            return True
        if bar.total != self.other_total:
            self.other_total, self.other_bars = bar.total, 0
        self.other_bars += bar.done == 0
        if self.other_bars < 2:
            return False
        self.main_total, self.main_done, self.bars = bar.total, 0.0, 1
        return True

    def _outer(self, bar: Bar) -> Sighting:
        """A bar of epochs around bars of batches: `Epoch: 33%|…| 1/3`."""
        self.is_outer_counted = True
        self.epoch, self.epochs = int(bar.done), bar.total
        return Sighting("header", epochs=bar.total)

    def _validation(self, bar: Bar) -> Sighting:
        """Time in validation, as it grows; a new bar starts at nothing."""
        if "Sanity" in bar.words or "DataLoader" in bar.words:
            self.flavour = "lightning"
        before = self.pause_seconds if bar.elapsed_seconds >= self.pause_seconds and bar.done > 0 else 0.0
        self.pause_seconds = bar.elapsed_seconds
        # A training bar that is not full yet counts this time itself; so does Lightning's, which is drawn around it.
        is_counted = self.main_total is not None and self.main_done >= self.main_total and self.flavour != "lightning"
        seconds = bar.elapsed_seconds - before if is_counted else None
        return Sighting("validation", pause_seconds=seconds, is_redrawn=True)

    def _fill(self, sighting: Sighting, bar: Bar, line: str) -> None:
        if sighting.step is None:
            sighting.batch, sighting.batches = bar.done, bar.total
            sighting.section_seconds = bar.elapsed_seconds
        else:
            sighting.section_seconds = bar.elapsed_seconds
            sighting.remaining_seconds = bar.rest_seconds
        sighting.step_seconds = bar.step_seconds
        if match := _LOSS.search(line):
            sighting.loss = number(match[1])
        if "{'loss'" in line:
            self.flavour = "hf_tqdm"

    def _beside(self, line: str) -> Sighting | None:
        if match := _COMPLETED.match(line):
            return Sighting("end", elapsed_seconds=float(match[2]) * 3600)
        if match := _RUNTIME.search(line):
            self.flavour = "hf_tqdm"
            return Sighting("end", elapsed_seconds=number(match[1]))
        if "{'loss'" in line or "{'eval_loss'" in line:
            self.flavour = "hf_tqdm"
            return None
        if match := _STEPS.search(line):
            self.flavour, self.has_total = "hf_tqdm", True
            return Sighting("header", total=number(match[1]))
        if (match := _PRINTED_EPOCH.match(line)) and not self.is_labelled:
            if self.first_epoch is None or int(match[1]) == 0:
                self.first_epoch = min(int(match[1]), 1)
            self.epoch, self.epochs, self.is_outer_counted = int(match[1]) - self.first_epoch, float(match[2]), True
            return Sighting("header", epochs=self.epochs)
        return None


def _form(line: str) -> re.Pattern[str] | None:
    if "%|" in line or "/? [" in line:
        return _TQDM
    if "% ━" in line:
        return _ULTRALYTICS
    if " • " in line:
        return _RICH
    return _ENDLESS if "/s" in line and " [" in line else None


def _last_bar(line: str) -> tuple[str, re.Match[str]] | None:
    """The words in front of the last bar, and the bar."""
    form = _form(line)
    if form is None:
        return None
    line = line[-LONGEST_BAR:]
    percent = line.find("%|")
    if percent >= 0 and line.find("%|", percent + 2) < 0 and (match := _AT_PERCENT.match(line, percent + 1)):
        return line[:percent].rstrip("0123456789"), match
    matches = deque(form.finditer(line), maxlen=1)
    return (matches[0]["words"], matches[0]) if matches else None


def _bar(line: str) -> Bar | None:
    """The last bar of a line: bars that are redrawn without a carriage return stand behind each other."""
    parts = _last_bar(line)
    if parts is None:
        return None
    words, match = parts
    rate = match["rate"]
    value = None if "?" in rate else float(rate)
    if value and not match["unit"].startswith("s/"):
        value = 1 / value
    return Bar(
        words,
        number(match["done"]),
        number(match["total"]) if match["total"].strip("?") else None,
        clock_text_seconds(match["elapsed"]),
        clock_text_seconds(match["rest"]) if match["rest"] and match["rest"][0].isdigit() else None,
        value or None,
        match["unit"],
        match["behind"],
    )


TQDM = Format("tqdm", "tqdm, Lightning, Hugging Face Trainer, YOLO", NEEDLES, BarParser, sureness=0.5)

FORMATS: tuple[Format, ...] = (TQDM,)
