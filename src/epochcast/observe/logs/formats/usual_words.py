"""Loops that people write themselves, and every trainer that no other format knows: the usual words in a line.

A line is cut into names with numbers (`Epoch [3/90]`, `iter: 1,200 of 9000`, `loss=0.3`, `0.4 s/it`); names are known
by their last words. A line reports training where it has a position (an epoch, a step, a pair in brackets) and says
something of a loss, a rate or a time. Of lines that count epochs and lines that count steps, the latter are believed.
This is the last resort of recognition and says so: one fitting line counts little.
"""

import re
from dataclasses import dataclass, field
from functools import lru_cache

from epochcast.observe.logs.formats.format_rule import DURATION, NUMBER, Format, number
from epochcast.observe.logs.formats.number_habits import Counter, Timer
from epochcast.observe.logs.formats.sighting import Sighting
from epochcast.observe.logs.formats.wording_cache import remembered
from epochcast.observe.logs.time_stamps import UNITS, clock_text_seconds

_NAMED = re.compile(
    r"(?P<name>[A-Za-z][A-Za-z_/ ]{0,40}+)(?:\((?P<note>[A-Za-z]{1,10})\))?[\"'\]]{0,2} {0,12}[:=#\[(|]{0,3}"
    rf"\s{{0,12}}[\"'\[(]?\s{{0,8}}(?P<value>{DURATION}|\d+[dhm](?: ?\d+[hms])+|{NUMBER})"
    r"(?:\s{0,8}(?:/|of)\s{0,8}\[?(?P<of>\d[\d,]*)(?![\d.:]))?"
    r"(?: ?(?P<unit>ms|us|secs?|seconds?|s|mins?|minutes?|m|hours?|hrs?|h)(?![\w/]))?"
    r"(?:\s{1,2}\(\s{0,4}(?P<mean>[\d.]+)s?\))?"
)
_PAIR = re.compile(r"\[\s*(?P<value>\d[\d,]*)\s*/\s*(?P<of>\d[\d,]*)\s*(?:\(\s*[\d.]+ ?%\)\s*)?\]")
_BESIDE = re.compile(r"[\s\]:,\-|]{0,12}[\[(]?\s*(?P<value>\d[\d,]*)\s*/\s*(?P<of>\d[\d,]*)(?![\d.:/])")
_FIRST = re.compile(r"^\W*(?P<value>\d[\d,]*)\s*/\s*(?P<of>\d[\d,]*)(?![\d.:/]|\s+\d+:\d)")
_STEPS = r"(?:it|iter|iters|iterations?|steps?|batch|batches|updates?|u|ba)"
_RATE = re.compile(rf"(?P<value>\d[\d.]*)(?P<scale>[kM]?) ?{_STEPS}\s?/\s?s(?:ec|econd)?s?\b", re.IGNORECASE)
_RATE_NAMED = re.compile(
    rf"\b{_STEPS}\s?/\s?s(?:ec|econd)?s?\s?[:=]?\s{{0,8}}(?P<value>\d[\d.]*)(?P<scale>)", re.IGNORECASE
)
_PACE = re.compile(rf"(?P<value>\d[\d.]*) ?(?P<unit>us|ms|s|secs?|seconds)\s?/\s?{_STEPS}\b", re.IGNORECASE)

_VALIDATING = re.compile(r"(?i)(?<![a-z])(?:valid\w*|val|test\w*|eval\w*|dev|infer\w*|predict\w*)(?![a-z])")
_is_command = remembered(r" --[a-z]|^\W*(?:\d*: )?\+{1,3} |\bexport ")
_TRAIN_LOSS = re.compile(r"(?i)(?<![a-z_])(?:train\w*[ _/]?)?loss|train")
_OTHER_LOSS = re.compile(r"(?i)(?:valid\w*|val|test|eval\w*|dev)[ _/]?loss")
_prepares = remembered(
    r"(?i)\b(?:download|loading|tokeniz|preprocess|extracting|caching|scanning|copying|resum\w* from|restor)"
)
_MEASURED = re.compile(
    r"(?i)(?:loss|(?<![a-z])l_\w+|(?<![a-z])lr|rate|speed|throughput|ppl|perplexity|acc\w*|err\w*|norm|reward|score|mfu"
    r"|tps|wer|cer|miou)[\"')\]]{0,2}\s{0,4}[:=|]?\s{0,8}[\"'(\[]{0,2}\s{0,4}[-+]?\.?(?:\d|nan|inf)"
)
_RATED = re.compile(r"\d ?\w{0,12}/s(?:ec)?(?!\w)")
_COUNT = re.compile(r"\d+(?:\.\d*)?|\d{1,3}(?:,\d{3})+")
_BARE_MS = re.compile(r"(?<![\d.:=])[ |(](?P<value>\d[\d.]*) ?ms\b(?!/)")
_EPOCH_LINE = re.compile(
    r"(?i)(?:^|[\s\]:|-])(?:training |starting |begin\w* )?epoch\W{0,4}(\d+)(?:\s*(?:/|of)\s*(\d+))?\W*$"
)
_HEADER = re.compile(
    r"(?<![\w.])(?:-{0,2})['\"]?(?:(?P<steps>(?:max|total|num|n|train|num_train|total_train)[_ -]?(?:optimization[_ ])?"
    r"(?:iter|iters|iterations|steps|updates?|train[_ ]steps)|niter|num_iter)"
    r"|(?P<epochs>(?:max|total|num|n|num_train|train)?[_ -]?epochs?))['\"]?"
    r"(?:\s{0,20}[:=]\s{0,20}|,? )['\"]?(?P<value>[1-9][\d,]*)(?![\d.])",
    re.IGNORECASE,
)

EPOCHS = frozenset(("epoch", "ep"))
STEPS = frozenset("iter iters iteration iterations step steps update updates nupdates it globalstep kimg".split())  # noqa: SIM905
BATCHES = frozenset("batch batches minibatch minibatches".split())  # noqa: SIM905
SHORT = {"e": EPOCHS, "b": BATCHES}
_ELSEWHERE = (
    "warmup best per max total last save saved saving every skipped consumed of lr size micro each reward decay at "
    "restoring resuming from loading remaining early workers accumulation"
)
NOT_POSITIONS = frozenset(_ELSEWHERE.split())
ELAPSED = frozenset("elapsed wall walltime runtime".split())  # noqa: SIM905
RESTS = frozenset("eta remaining left".split())  # noqa: SIM905
MOST_OTHERS = 50
LONGEST = 1000
NEEDLES = ("poch", "ter", "tep", "atch", "pdate", "POCH", "TEP", "ITER", "Train", "TRAIN", "kimg", "oss", "E=")


@dataclass
class Words:
    """What the names and numbers of one line say."""

    epoch: float | None = None
    epochs: float | None = None
    value: float | None = None
    of: float | None = None
    is_batch: bool = False
    names: tuple[str, ...] = ()
    start: int = -1
    loss: float | None = None
    elapsed: float | None = None
    rest: float | None = None
    step_seconds: float | None = None
    average_seconds: float | None = None
    data_seconds: float | None = None
    seconds: float | None = None

    def is_report(self, line: str) -> bool:
        """Whether a position comes with a measure: a loss, a rate, a time; or is a pair that is called a step."""
        if self.loss is not None or _MEASURED.search(line):
            return True
        if self.names == ("pair",):  # a bare pair counts downloads, tests and files as well
            return False
        times = (self.elapsed, self.rest, self.step_seconds, self.average_seconds, self.seconds)
        if any(seconds is not None for seconds in times) or _RATED.search(line):
            return True
        return self.of is not None and "step=" in line


@dataclass
class UsualParser:
    """Reads lines by their words."""

    flavour: str = "python_logging"
    counter: Counter = field(default_factory=Counter)
    timer: Timer = field(default_factory=Timer)
    main: tuple[str, ...] | None = None
    seen: int = 0
    others: int = 0
    epoch: float | None = None
    epochs: float | None = None
    is_timed: bool = False
    has_whole_total: bool = False
    first_done: float | None = None

    def sight(self, line: str) -> Sighting | None:
        """What the words say of the run."""
        if "Namespace(" in line or _is_command(line):
            return self._announced(line)
        line = line[:LONGEST]
        words = words_of(line)
        if words.start < 0 or not words.is_report(line) or _prepares(line[: words.start]):
            return self._heading(line)
        if _speaks_of_validation(line) and (_VALIDATING.search(line[: words.start]) or _validates(line)):
            return Sighting("validation")
        if words.epoch is None and words.names == ("pair",):
            words.epoch, words.epochs, words.is_batch = self.epoch, self.epochs, self.epoch is not None
        return self._placed(words) if self._is_main(words) else self._closing(words)

    def _heading(self, line: str) -> Sighting | None:
        """A line that only names the epoch which begins, or that announces totals."""
        if match := _EPOCH_LINE.search(line):
            self.epoch, self.epochs = float(match[1]), float(match[2]) if match[2] else self.epochs
            return None if match[2] is None else Sighting("header", epochs=self.epochs)
        return self._announced(line)

    def _closing(self, words: Words) -> Sighting | None:
        """What an epoch took, in a log whose steps have no times of their own."""
        if self.is_timed or words.value is not None or words.epoch is None or words.seconds is None:
            return None
        index = self.counter.epochs_before(words.epoch)
        return Sighting(epoch=index, section_seconds=words.seconds, closes_epoch=True)

    def _announced(self, line: str) -> Sighting | None:
        if self.main is not None:  # what is said of totals within the training is said of something else
            return None
        header = Sighting("header")
        for match in _HEADER.finditer(line):
            if match["steps"]:
                is_whole = match["steps"][:3].lower() in ("max", "tot")
                if is_whole or not self.has_whole_total:
                    header.total, self.has_whole_total = number(match["value"]), is_whole
            else:
                header.epochs = number(match["value"])
        return header if header.total is not None or header.epochs is not None else None

    def _is_main(self, words: Words) -> bool:
        """Whether lines of this kind are those that count: steps rather than epochs, then the first kind there was."""
        if self.main == words.names:
            self.seen += 1
            return True
        is_finer = self.main is None or (words.value is not None and all(name in EPOCHS for name in self.main))
        is_coarser = self.main is not None and words.value is None and not all(name in EPOCHS for name in self.main)
        self.others += not is_coarser
        if is_finer or (self.others > MOST_OTHERS and self.seen < self.others / 10 and not is_coarser):
            self.main, self.others, self.seen = words.names, 0, 1
            self.counter, self.timer = Counter(), Timer()
            return True
        return False

    def _placed(self, words: Words) -> Sighting | None:
        sighting = Sighting(epochs=words.epochs, loss=words.loss, data_seconds=words.data_seconds)
        if words.value is not None:
            self.counter.place(sighting, words.epoch, words.value, words.of, words.is_batch)
        elif words.epoch is not None:
            if words.loss is None and words.seconds is None and words.elapsed is None:
                return None
            if self.first_done is None or words.epoch < 1:
                self.first_done = min(words.epoch, 1.0)
            sighting.epochs_done = words.epoch + 1 - self.first_done
        self._timed(sighting, words)
        self.is_timed = self.is_timed or (words.elapsed or words.step_seconds or words.seconds) is not None
        return sighting

    def _timed(self, sighting: Sighting, words: Words) -> None:
        sighting.remaining_seconds = words.rest
        sighting.average_seconds = words.average_seconds if sighting.batch is not None else None
        sighting.elapsed_seconds = words.elapsed
        sighting.step_seconds = words.step_seconds
        if words.seconds is None or words.elapsed is not None or words.step_seconds is not None:
            return
        if sighting.epochs_done is not None:
            sighting.interval_seconds = words.seconds
        else:
            self.timer.place(sighting, words.seconds)


def _validates(line: str) -> bool:
    """A line with losses of validation alone."""
    return _VALIDATING.search(line) is not None and not _TRAIN_LOSS.search(_OTHER_LOSS.sub("", line))


def _speaks_of_validation(line: str) -> bool:
    """Whether one of its words is in the line at all: patterns that look at every letter are slow."""
    lower = line.lower()
    return any(mark in lower for mark in ("val", "test", "dev", "infer", "predict"))


def words_of(line: str) -> Words:
    """The names and numbers of a line, by their last words."""
    words = Words()
    behind = 0
    for match in _NAMED.finditer(line):
        _read(words, match, line)
        if words.names == ("epoch",) and not behind:
            behind = match.end()
    if words.value is None:
        _read_pair(words, line, behind)
    _read_rates(words, line)
    return words


@lru_cache(4096)
def _names(text: str) -> tuple[str, ...]:
    return tuple(text.lower().replace("_", " ").replace("/", " ").replace("-", " ").replace(".", " ").split())


def _read(words: Words, match: re.Match[str], line: str) -> None:
    names = _names(match["name"])
    last = names[-1] if names else ""
    if last in EPOCHS or (last in SHORT and match["name"] == match["name"].upper() and "=" in match[0]):
        kind = SHORT.get(last, EPOCHS)
    elif last in STEPS or (last == "global" and "step" in names):
        kind = STEPS
    elif last in BATCHES:
        kind = BATCHES
    else:
        _read_value(words, names, match)
        return
    if NOT_POSITIONS.intersection(names) or not _COUNT.fullmatch(match["value"].rstrip(",")):
        return
    if match["unit"] or line[match.end() : match.end() + 1] == "%":
        return
    value = number(match["value"])
    if kind is EPOCHS:
        if words.epoch is None:
            words.epoch, words.epochs = value, number(match["of"]) if match["of"] else None
            _start(words, "epoch", match)
            if beside := _BESIDE.match(line, match.end()):
                words.value, words.of, words.is_batch = number(beside["value"]), number(beside["of"]), True
                words.names += ("pair",)
        return
    is_global = "global" in names or last in ("updates", "nupdates")
    if words.value is None or (is_global and words.of is None):
        words.value, words.of = value, number(match["of"]) if match["of"] else words.of if is_global else None
        words.is_batch = kind is BATCHES
        _start(words, last, match)


def _start(words: Words, name: str, match: re.Match[str]) -> None:
    words.names += (name,)
    if words.start < 0:
        words.start = match.end("name")


def _read_value(words: Words, names: tuple[str, ...], match: re.Match[str]) -> None:
    if not names:
        return
    value, last = match["value"], names[-1]
    is_clock = ":" in value
    if "loss" in names and not is_clock:
        if words.loss is None and not _VALIDATING.search(match["name"]):
            words.loss = number(value)
    elif RESTS.intersection(names):
        words.rest = _seconds(value, match)
    elif "data" in names or "reader" in names or "loading" in names:
        if not is_clock and words.data_seconds is None and last in ("time", "data", "cost", "(t)"):
            words.data_seconds = _seconds(value, match)
    elif names and (
        last in ("time", "cost", "timing", "dt", "took", "duration", "over")
        or "time" in names
        or ELAPSED.intersection(names)
    ):
        _read_time(words, names, match, is_clock)


def _read_time(words: Words, names: tuple[str, ...], match: re.Match[str], is_clock: bool) -> None:
    seconds = _seconds(match["value"], match)
    if seconds is None:
        return
    is_step = bool({"per", "iter", "iteration", "batch", "step", "dt", "timing"}.intersection(names))
    if "train" in names and names[-1] == "time" and match["note"] is None:
        words.elapsed = seconds
    elif is_step and not is_clock:
        words.step_seconds = words.step_seconds if words.step_seconds is not None else seconds
    elif is_clock or ELAPSED.intersection(names):
        words.elapsed = words.elapsed if words.elapsed is not None else seconds
    elif match["mean"] is not None:
        words.average_seconds = float(match["mean"])
        words.step_seconds = seconds
    elif words.seconds is None:
        words.seconds = seconds


def _seconds(text: str, match: re.Match[str]) -> float | None:
    if ":" in text:
        return clock_text_seconds(text)
    unit = match["unit"] or (match["note"] if match["note"] in ("ms", "s", "sec", "us") else None) or "s"
    return number(text) * UNITS.get(unit if unit in UNITS else unit[0], 1.0)


def _read_pair(words: Words, line: str, behind: int) -> None:
    """A position without a name: `[3/90][10/500]`, `[10/500]`, `10/500` at the head of a line."""
    pairs = list(_PAIR.finditer(line, behind))
    if len(pairs) >= 2 and words.epoch is None and pairs[1].start() - pairs[0].end() <= 2:
        words.epoch, words.epochs = number(pairs[0]["value"]), number(pairs[0]["of"])
        words.start = pairs[0].start() if words.start < 0 else words.start
        pairs = pairs[1:]
    match = pairs[0] if pairs else _FIRST.match(line) if words.epoch is None else None
    if match is None:
        return
    words.value, words.of, words.is_batch = number(match["value"]), number(match["of"]), words.epoch is not None
    words.names += ("pair",)
    if words.start < 0:
        words.start = match.start()
    if (
        words.epoch is None
        and pairs
        and (before := re.search(r"(?i)train\w*:? ?\[?(\d+)\]? ?$", line[: match.start()]))
    ):
        words.epoch, words.is_batch, words.start = float(before[1]), True, before.start()


def _read_rates(words: Words, line: str) -> None:
    if words.step_seconds is not None:
        return
    is_rated = any(mark in line for mark in ("/s", "/it", "/b", "/u", "/ ", "/S"))
    if is_rated and (pace := _PACE.search(line)):
        words.step_seconds = float(pace["value"]) * UNITS.get(pace["unit"] if pace["unit"] in UNITS else "s", 1.0)
    elif is_rated and (rate := _RATE.search(line) or _RATE_NAMED.search(line)) and float(rate["value"]) > 0:
        words.step_seconds = 1 / (float(rate["value"]) * (1e3 if rate["scale"] else 1.0))
    elif words.seconds is None and words.elapsed is None and "ms" in line and (bare := _BARE_MS.search(line)):
        words.step_seconds = float(bare["value"]) / 1e3


PYTHON_LOGGING = Format("python_logging", "a loop of its own", NEEDLES, UsualParser, sureness=0.15, weight=3.0)
