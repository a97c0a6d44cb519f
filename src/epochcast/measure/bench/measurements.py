"""The measurement file: JSON lines, appended to and never rewritten.

Two kinds of lines. A *machine* describes where measurements were made, once, before the first of them:

    {"kind": "machine", "machine": ID, "facts": {"cpu": …, "device": …, "driver": …, "torch": …, "threads": …}}

Every other line is one *measurement*, the answer to one question:

    kind          op | model | loader | collective | layer
    key           a short name of the question; a machine has each key once, which is how a campaign resumes
    machine       ID of the machine that was measured
    question      what was measured, in full. By kind:
                    op          {"device", "ops"}: `ops` is a document of describe/graph/serialization.py
                    (`ops_from_json`): the ops
                                that were timed together, nearly always one
                    model       {"device", "backend", "model", "input", "recipe", "data", "part", "repetition"}:
                                recipe as `recipe_from_json` reads it; part `step`, or `loader` where only that ran;
                                details.reference and .input_shape are what a forecast of it is asked for
                    layer       {"device", "way", "layer"}: way is `network` or `report`, layer as layers.py says
                    loader, collective    as their modules say
    seconds       median over the repeats of one execution; null where it failed
    low_seconds   the tenth percentile: the time without disturbance
    spread        (third quartile − first) / median
    repeats       executions behind these figures
    peak_bytes    most bytes allocated on the device at once; null where they are not counted
    failed        why there are no seconds: "out of memory: …", "unsupported: …"; null where there are
    details       everything else: date, threads, steal_fraction (of the processor, taken by other guests),
                  processor_seconds (of the measuring process per execution, all its threads; with one thread, less
                  than seconds where other programs wanted the same core), …

Every line is written completely and synchronised to disk before the next measurement. Of a file whose last line is
incomplete (a kill, a full disk), the complete lines are read, with a warning; an appender removes the rest.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar

from epochcast.base.documents import parse_json
from epochcast.base.record import Record
from epochcast.errors import BadInput, EpochcastError, UnknownName

MEASUREMENT_KINDS = ("op", "model", "loader", "collective", "layer")
MACHINE = "machine"
MOST_SECONDS = 1e9
"""Nothing was measured for longer."""
_FIRST_LINE = f'{{"kind":"{MACHINE}","machine":"'.encode()


@dataclass(frozen=True)
class MeasuredMachine:
    """Where measurements are made: an ID, and the facts it stands for (`fingerprint.machine` finds them)."""

    id: str
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Measurement(Record):
    """One measurement; the module's docstring says what each field means."""

    kind: str
    key: str
    machine: MeasuredMachine
    question: Mapping[str, Any]
    seconds: float | None = None
    low_seconds: float | None = None
    spread: float | None = None
    repeats: int = 0
    peak_bytes: int | None = None
    failed: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    json_from: ClassVar[Mapping[str, str]] = {"machine": "machine_id"}

    def __post_init__(self) -> None:
        if self.kind not in MEASUREMENT_KINDS:
            raise UnknownName("kind of measurement", self.kind, MEASUREMENT_KINDS)
        if not self.key:
            raise BadInput("a measurement needs a key")
        if (self.seconds is None) != (self.failed is not None):
            raise BadInput(f"{self.key}: a measurement has either seconds or a reason why it failed")
        for name in ("seconds", "low_seconds"):
            value = getattr(self, name)
            if value is not None and not 0 < value < MOST_SECONDS:
                raise BadInput(f"{self.key}: {name} must be positive, got {value}")

    @property
    def machine_id(self) -> str:
        """What a line of the file says of the machine."""
        return self.machine.id


@dataclass(frozen=True)
class Measurements:
    """The content of a file. `whole_bytes` is the length of its complete lines; `warnings` say what was left out."""

    rows: tuple[Measurement, ...]
    machines: Mapping[str, MeasuredMachine]
    whole_bytes: int = 0
    warnings: tuple[str, ...] = ()

    def of(self, kind: str) -> tuple[Measurement, ...]:
        """The rows of one kind, failed ones included."""
        return tuple(row for row in self.rows if row.kind == kind)

    def keys(self, machine: MeasuredMachine) -> frozenset[str]:
        """The keys that this machine has measured."""
        return frozenset(row.key for row in self.rows if row.machine.id == machine.id)


def read(path: Path) -> Measurements:
    """All complete lines of a file. Raises for a complete line that is wrong, with its number."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise BadInput(f"no measurement file {str(path)!r}") from None
    whole_bytes = content.rfind(b"\n") + 1
    warnings = []
    if whole_bytes < len(content):
        warnings.append(f"{path.name} has an incomplete last row; the complete rows before it are used")
    machines: dict[str, MeasuredMachine] = {}
    rows: dict[tuple[str, str], Measurement] = {}
    for number, line in enumerate(content[:whole_bytes].splitlines(), start=1):
        location = f"{path.name}, line {number}"
        document = _document(line, location)
        if document.get("kind") == MACHINE:
            facts = document.get("facts") or {}
            if not isinstance(facts, dict):
                raise BadInput(f"{location}: facts must be an object, got {facts!r}")
            machine = MeasuredMachine(_text(document, "machine", location), facts)
            machines.setdefault(machine.id, machine)
            continue
        row = _measurement(document, machines, location)
        if rows.setdefault((row.machine.id, row.key), row) is not row:
            warnings.append(f"{location}: {row.key!r} was measured before on the same machine; the first row is used")
    return Measurements(tuple(rows.values()), machines, whole_bytes, tuple(warnings))


def is_measurements(path: Path) -> bool:
    """Whether a file begins like a measurement file."""
    return path.stat().st_size > len(_FIRST_LINE) and _may_be_ours(path)


class Appender:
    """An open measurement file, to which one process appends row by row.

    `before` is the content of the file when it was opened.
    """

    def __init__(self, path: Path) -> None:
        if not path.parent.is_dir():
            raise BadInput(f"cannot write {path.name}: no folder {str(path.parent)!r}")
        if path.is_dir():
            raise BadInput(f"cannot write measurements to {str(path)!r}: it is a folder")
        try:
            self._file = path.open("ab")
        except OSError as error:
            raise BadInput(f"cannot write measurements to {str(path)!r}: {error.strerror}") from None
        try:
            _lock(self._file.fileno(), path)
            self.before = read(path)
            if not self.before.whole_bytes and path.stat().st_size > 0 and not _may_be_ours(path):
                raise BadInput(f"{path.name} is no measurement file, and it is not written to; name another file")
            self._file.truncate(self.before.whole_bytes)
        except BaseException:
            self._file.close()
            raise
        self._machines = set(self.before.machines)

    def append(self, row: Measurement) -> None:
        """Write one row, after its machine where that is not in the file yet; it is on disk when this returns."""
        lines = [row.as_dict()]
        if row.machine.id not in self._machines:
            lines.insert(0, {"kind": MACHINE, "machine": row.machine.id, "facts": dict(row.machine.facts)})
        text = "".join(json.dumps(line, allow_nan=False, separators=(",", ":")) + "\n" for line in lines)
        self._file.write(text.encode())
        self._file.flush()
        os.fsync(self._file.fileno())
        self._machines.add(row.machine.id)

    def close(self) -> None:
        """Close the file and release its lock."""
        self._file.close()

    def __enter__(self) -> "Appender":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _may_be_ours(path: Path) -> bool:
    """Whether a file without a complete line is the beginning of our first one: what a kill leaves."""
    with path.open("rb") as stream:
        begin = stream.read(len(_FIRST_LINE))
    return _FIRST_LINE.startswith(begin)


def _lock(handle: int, path: Path) -> None:
    """Lock the file against a second appender, where the system has such locks."""
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise BadInput(f"another process is measuring into {path.name}; wait for it or write to another file") from None


def _document(line: bytes, location: str) -> Mapping[str, Any]:
    document = parse_json(line, location)
    if not isinstance(document, dict):
        raise BadInput(f"{location} must be a JSON object, got {type(document).__name__}")
    return document


def _measurement(document: Mapping[str, Any], machines: Mapping[str, MeasuredMachine], location: str) -> Measurement:
    names = set(Measurement.__dataclass_fields__)
    unknown = sorted(set(document) - names)
    if unknown:
        raise BadInput(f"{location}: {UnknownName('key', unknown[0], names)}")
    machine = _text(document, "machine", location)
    if machine not in machines:
        raise BadInput(f"{location}: machine {machine!r} is not described on a line before it")
    for key in ("question", "details"):
        if not isinstance(document.get(key, {}), dict):
            raise BadInput(f"{location}: {key} must be an object, got {document[key]!r}")
    for key in ("seconds", "low_seconds", "spread", "repeats", "peak_bytes"):
        if not isinstance(document.get(key), int | float | None) or isinstance(document.get(key), bool):
            raise BadInput(f"{location}: {key} must be a number or null, got {document[key]!r}")
    for key in ("kind", "key", *(["failed"] if document.get("failed") is not None else [])):
        _text(document, key, location)
    if not isinstance(document.get("question"), dict):
        raise BadInput(f"{location} has no question")
    try:
        return Measurement(**{**document, "machine": machines[machine]})
    except EpochcastError as error:
        raise BadInput(f"{location}: {error}") from None


def _text(document: Mapping[str, Any], key: str, location: str) -> str:
    value = document.get(key)
    if not isinstance(value, str):
        raise BadInput(f"{location}: {key} must be text, got {value!r}")
    return value
