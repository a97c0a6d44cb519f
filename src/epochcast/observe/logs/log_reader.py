"""Reading logs: bytes in, observations out, as a stream that keeps little in memory.

`LogReader` takes bytes as they come; `read_log` reads a whole file, plain or gzip.
"""

import codecs
import gzip
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from epochcast.errors import BadInput
from epochcast.observe.logs import line_sampling as sampling
from epochcast.observe.logs.event_curves import CurveReader
from epochcast.observe.logs.event_files import is_event_file
from epochcast.observe.logs.format_recognition import Recogniser, Recognition, sight
from epochcast.observe.logs.formats.format_rule import Format, Parser
from epochcast.observe.logs.formats.format_table import FORMATS, find_format
from epochcast.observe.logs.formats.plain_loops import pattern_format
from epochcast.observe.logs.formats.sighting import Sighting
from epochcast.observe.logs.line_allowance import Gaps
from epochcast.observe.logs.log_lines import LONGEST_LINE_BYTES, LineSplitter
from epochcast.observe.logs.run_course import Course
from epochcast.observe.logs.time_stamps import Stamps
from epochcast.observe.runs.report import Report

CHUNK_BYTES = 1 << 20
FIRST_CHUNK_BYTES = 1 << 16  # most logs are recognised by these; comparing formats is slower than reading one

# Training lines without any time stamp after which none is looked for.
UNSTAMPED_LINES = 32

_RECORD_HEAD_BYTES = 12
GZIP_MARK = b"\x1f\x8b"

_RANK = re.compile(
    r"""\[? (?:rank|Rank|RANK|default) [ :=_]* (?P<named>\d{1,5}) [\]:,| ]
    |   \[ \d+ , (?P<tagged>\d{1,5}) \] <std(?:out|err)>
    |   (?P<labelled>\d{1,5}) : \s+ \[? (?: \d{4}-\d\d-\d\d | [IWE]\d{4}\s )
    """,
    re.VERBOSE,
)
_RANK_BEGINS = frozenset("[rRd0123456789")


class LogReader:
    """Turns the bytes of a log into observations. `format` is a known name, `pattern` your own regular expression."""

    def __init__(
        self, format: str | None = None, pattern: str | None = None, recogniser: Recogniser | None = None
    ) -> None:
        if format is not None and pattern is not None:
            raise BadInput("give `format` or `pattern`, not both")
        self._splitter = LineSplitter()
        self._recogniser: Recogniser | None = None
        self._curves: CurveReader | None = None
        self._parser: Parser | None = None
        self._needles: tuple[bytes, ...] = ()
        self._recognition: Recognition | None = None
        self._course = Course()
        self._stamps = Stamps()
        self._reports = self._lines = 0
        self._sampler: sampling.Sampler | None = None
        self._gaps: Gaps | None = None
        self._new_reports: list[Report] = []
        self._unstamped = 0
        self._is_dated = False
        self._cost = 1.0
        self._head: bytes | None = b""
        self._wide: codecs.IncrementalDecoder | None = None
        self.bytes_read = 0
        self.pattern = pattern
        if format is None and pattern is None:
            self._recogniser = recogniser or Recogniser()
        else:
            chosen = find_format(format) if format is not None else pattern_format(str(pattern))
            self._choose(chosen, Recognition(chosen.name, chosen.framework, 1.0, 0))

    @property
    def recognition(self) -> Recognition | None:
        """The format and how sure it is; None until it is recognised."""
        parser = self._parser if self._sampler is None else self._sampler.parser
        if self._recognition is None or parser is None:
            return self._recognition
        return replace(self._recognition, name=parser.flavour)

    @property
    def started_at_seconds(self) -> float | None:
        """Seconds since 1970 at which the clock of the observations is 0; None where the log writes no full dates."""
        is_dated = self._is_dated or self._stamps.is_dated or self._curves is not None
        return self._course.clock.origin_seconds if is_dated else None

    @property
    def passed_bytes(self) -> int:
        """Bytes of a long log that were not looked at, because it has too much to tell (`allowance`)."""
        return 0 if self._gaps is None else self._gaps.passed_bytes

    @property
    def unread_fraction(self) -> float:
        """The share of the log that was not looked at."""
        return self.passed_bytes / max(self.bytes_read, 1)

    @property
    def format(self) -> str | None:
        """The name of the format that was recognised; None so far."""
        return None if self.recognition is None else self.recognition.name

    def feed(self, data: bytes) -> list[Report]:
        """The observations of the lines that these bytes complete."""
        self.bytes_read += len(data)
        if self._head is not None:
            data = self._head + data
            if len(data) < _RECORD_HEAD_BYTES:
                self._head = data
                return []
            self._begin(data)
        if self._curves is not None:
            return self._placed(self._curves.feed(data))
        if self._wide is not None:
            data = self._wide.decode(data).encode()
        return self._block(self._splitter.feed(data))

    def flush(self) -> list[Report]:
        """Decide now by little, a line that nobody else prints or three of common shapes, and give what waited."""
        if self._curves is not None:
            return self._placed(self._curves.settle())
        is_enough = self._recogniser is not None and self._recogniser.has_some_evidence
        return self._decide() if is_enough else []

    def close(self) -> list[Report]:
        """The observations of a last line that nothing ended."""
        reports: list[Report] = []
        if self._head is not None:
            head = self._head
            self._begin(head)
            reports += self._block(self._splitter.feed(head))
        if self._curves is None:
            reports += self._block(self._splitter.close())
        reports += self.flush()
        return reports + (self._decide() if self._recogniser is not None else [])

    def _begin(self, head: bytes) -> None:
        self._head = None
        if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):  # what Windows' shells redirect
            self._wide = codecs.getincrementaldecoder("utf-16")("replace")
        if is_event_file(head) and self._recogniser is not None:
            self._curves = CurveReader()
            self._recogniser = None
            self._recognition = Recognition("tfevents", "TensorBoard", 1.0, 0)

    def _choose(self, chosen: Format, recognition: Recognition) -> None:
        self._parser = chosen.parser()
        self._is_dated, self._cost = chosen.is_dated, chosen.weight
        self._needles = tuple(needle.encode() for needle in chosen.needles)
        self._recognition = recognition
        self._recogniser = None

    def _block(self, block: bytes) -> list[Report]:
        if not block:
            return []
        if self._recogniser is None:
            return self._read(block)
        start = prepared = 0
        while start < len(block):
            end = block.find(b"\n", start)
            end = len(block) if end < 0 else end
            if end >= prepared:
                prepared = end + FIRST_CHUNK_BYTES
                self._recogniser.prepare(block[start:prepared])
            if end > start and self._recogniser.read(block[start : min(end, start + LONGEST_LINE_BYTES)]):
                return self._decide() + self._read(block[end + 1 :])
            start = end + 1
        return []

    def _decide(self) -> list[Report]:
        """Read the lines again that were kept while formats were compared."""
        assert self._recogniser is not None
        decided = self._recogniser.decide()
        if decided is None:
            return []
        lines = self._recogniser.lines_read
        self._choose(*decided)
        assert self._parser is not None
        return self._placed([seen for line in lines if (seen := self._sighting(self._parser, line)) is not None])

    def _read(self, block: bytes) -> list[Report]:
        """All lines of the first reports, then a sample (`sampling`)."""
        self._new_reports = []
        if self._sampler is None:
            block = self._read_all(block)
        if self._sampler is not None and block:
            self._sampler.read(block)
        return self._new_reports

    def _read_all(self, block: bytes) -> bytes:
        """What is left of the block once enough reports were read."""
        if self._parser is None:
            return b""
        for start, end in candidate_lines(block, self._needles):
            sighting = self._sighting(self._parser, block[start : min(end, start + LONGEST_LINE_BYTES)])
            self._lines += 1
            if sighting is not None:
                self._place(sighting)
                self._reports += sighting.phase == "train"
            if self._reports >= sampling.EXACT_REPORTS or self._lines >= sampling.EXACT_LINES:
                self._gaps = Gaps(self._course.clock)
                words = _any_of(self._needles)
                self._sampler = sampling.Sampler(words, self._parser, self._sighting, self._place, self._gaps)
                self._sampler.allowance.weight = self._cost
                return block[end + 1 :]
        return b""

    def _place(self, sighting: Sighting) -> None:
        if (seen := self._course.place(sighting)) is not None:
            self._new_reports.append(seen if self._gaps is None else self._gaps.close(seen))

    def _sighting(self, parser: Parser, data: bytes | str) -> Sighting | None:
        line = data if isinstance(data, str) else data.decode("utf-8", "replace")
        sighting = sight(parser, line)
        if sighting is not None and sighting.rank is None:
            sighting.rank = rank_of(line)
        if sighting is not None and sighting.stamp_seconds is None and self._unstamped < UNSTAMPED_LINES:
            self._stamp(sighting, line)
        return sighting

    def _stamp(self, sighting: Sighting, line: str) -> None:
        sighting.stamp_seconds = self._stamps.seconds(line)
        if sighting.stamp_seconds is not None:
            self._unstamped = -1_000_000_000
        elif sighting.phase == "train":
            self._unstamped += 1

    def _placed(self, sightings: list[Sighting]) -> list[Report]:
        return [seen for sighting in sightings if (seen := self._course.place(sighting)) is not None]


def _any_of(needles: tuple[bytes, ...]) -> re.Pattern[bytes]:
    return re.compile(b"|".join(re.escape(needle) for needle in needles))


def candidate_lines(block: bytes, needles: tuple[bytes, ...]) -> list[tuple[int, int]]:
    """(start, end) of the lines that hold one of the needles, in order."""
    if b"" in needles:
        needles = (b"",)
    spans: dict[int, int] = {}
    size = len(block)
    for needle in needles:
        position = block.find(needle)
        while 0 <= position < size:
            start = block.rfind(b"\n", 0, position) + 1
            end = spans.get(start)
            if end is None:
                end = block.find(b"\n", position)
                end = size if end < 0 else end
                spans[start] = end
            position = block.find(needle, end + 1)
    return sorted(spans.items())


@dataclass(frozen=True, slots=True)
class Log:
    """A log that was read to its end."""

    path: Path
    recognition: Recognition
    reports: tuple[Report, ...]
    started_at_seconds: float | None


def read_log(path: str | Path, format: str | None = None, pattern: str | None = None) -> Log:
    """Read a whole log, plain or gzip: its format and its reports. A file without training lines is refused.

    `format` names the log's format, `pattern` is a regular expression with groups like (?P<step>…)
    [default: recognised].

    >>> import tempfile, epochcast as ec
    >>> with tempfile.NamedTemporaryFile("w", suffix=".log") as file:
    ...     for n in range(40):
    ...         size = file.write(f"Epoch: [0][{n}/40]\\tTime 0.500 (0.500)\\tLoss 0.4 (0.4)\\n")
    ...     file.flush()
    ...     log = ec.read_log(file.name)
    >>> log.recognition.name, len(log.reports), log.reports[-1].step
    ('pytorch_imagenet', 40, 40.0)
    """
    reader = LogReader(format, pattern)
    reports = [seen for part in stream(path, reader, format) for seen in part]
    assert reader.recognition is not None  # a file that nobody recognises has no training lines
    return Log(Path(path), reader.recognition, tuple(reports), reader.started_at_seconds)


def stream(path: str | Path, reader: LogReader, format: str | None = None) -> Iterator[list[Report]]:
    """The same, part by part, so that a file of any size can be read; refused at its end where nothing trains."""
    place = Path(path)
    has_training = False
    try:
        with _opened(place) as source:
            size = FIRST_CHUNK_BYTES
            while chunk := source.read(size):
                part = reader.feed(chunk)
                has_training = has_training or any(seen.phase == "train" for seen in part)
                yield part
                size = CHUNK_BYTES
    except (OSError, EOFError) as error:
        if not has_training:
            raise BadInput(f"cannot read {place}: {getattr(error, 'strerror', None) or error}") from error
    part = reader.close()
    if not (has_training or any(seen.phase == "train" for seen in part)) or reader.recognition is None:
        raise NoTraining(place, reader.bytes_read, reader.pattern, format)
    yield part


def _opened(place: Path) -> AbstractContextManager[BinaryIO | gzip.GzipFile]:
    with place.open("rb") as plain:
        is_packed = plain.read(2) == GZIP_MARK
    return gzip.open(place, "rb") if is_packed else place.open("rb")


class NoTraining(BadInput):
    """A log in which no line reports training."""

    def __init__(self, path: Path, size_bytes: int, pattern: str | None = None, format: str | None = None) -> None:
        if size_bytes == 0:
            super().__init__(f"{path} is empty; nothing to track yet")
            return
        if pattern is not None and format is None:
            super().__init__(f"{path} has no line that matches `pattern` {pattern!r}")
            return
        looked = (
            f"the format {format!r}" if format else f"{len(FORMATS)} formats (Caffe, Keras, tqdm, PyTorch, mmengine, …)"
        )
        super().__init__(
            f"{path} has no line that reports training; looked for {looked}. "
            "Give `pattern`, a regular expression with named groups such as (?P<step>…) and (?P<total>…)"
        )


def rank_of(line: str) -> int | None:
    """The rank of the process that wrote a line, where a launcher says so at its beginning; None where none does.

    `[rank1]:` (PyTorch), `[default1]:` (torchrun --tee), `[1,1]<stdout>:` (mpirun --tag-output), `1: ` before a date
    (srun --label), `Rank 1:`. A bare number before anything else may be a step and is left alone.

    >>> rank_of("[rank3]: step 10/100 loss 0.2"), rank_of("3: 2026-11-17 08:00:00 step 10/100"), rank_of("3: loss 0.2")
    (3, 3, None)
    """
    if line[:1] not in _RANK_BEGINS:
        return None
    prefix = _RANK.match(line)
    return None if prefix is None else int(prefix[prefix.lastgroup or 0])
