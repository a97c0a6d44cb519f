"""Rows that a server would not take, in a file on this machine until it does: also when the training was killed.

    FOLDER/SERVER-….jsonl
    {"epochcast_spool": 1, "url": "http://…"}
    {"epochcast_track": 1, "job": "mine", …}                     what the attempt starts with, as in a recording
    {"ec": "train", "step": 12, …, "number": 3}

A file belongs to the process that has its lock. The lock of a process that is killed is free again, and the next
training that reports to the same server sends what the file has. Rows may be sent twice that way; a server keeps a row
once. Only the user may read the files, which have no token in them.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from epochcast.errors import BadInput
from epochcast.observe.recording.recorded_rows import HEAD, AttemptStart, RecordedRow

# Another folder; "off" keeps nothing on the disk.
VARIABLE = "EPOCHCAST_SPOOL"
# Of one attempt: nine hours of the most that a run records, which it does at its beginning alone.
MOST_FILE_BYTES = 64 * 2**20
# Of all attempts on the machine together.
MOST_FOLDER_BYTES = 256 * 2**20
_LONGEST_LINE = 2**20


@dataclass(frozen=True, slots=True)
class SpooledRows:
    """The first rows of a spool, those of one attempt."""

    start: AttemptStart
    rows: Sequence[RecordedRow]
    end_byte: int


def spool_folder() -> Path | None:
    """Where spools are; None where there are to be none."""
    named = os.environ.get(VARIABLE, "").strip()
    if named == "off":
        return None
    if named:
        return Path(named)
    from platformdirs import user_data_path

    return user_data_path("epochcast") / "spool"


class ReportSpool:
    """One file, opened when the first row comes. To be used by one thread."""

    def __init__(self, folder: Path | None, url: str) -> None:
        self.folder, self.url = folder, url
        self.path: Path | None = None
        self.waiting = 0
        self._file: FileIO | None = None  # for writing, and for the lock
        self._first_byte = 0
        self._read_start: AttemptStart | None = None
        self._written_start: AttemptStart | None = None

    def add(self, start: AttemptStart, rows: Sequence[RecordedRow]) -> int:
        """Keep rows; gives how many were taken: none where there is no disk or no room."""
        try:
            file = self._opened()
            if file is None:
                return 0
            lead = b"" if start == self._written_start else _line(start.as_dict())
            lines = b"".join(_line({**row.as_dict(start), "number": row.number}) for row in rows)
            end = file.seek(0, os.SEEK_END)
            if end + len(lead) + len(lines) > MOST_FILE_BYTES:
                return 0
            try:
                if file.write(lead + lines) < len(lead) + len(lines):
                    raise OSError("the disk is full")
            except OSError:
                file.truncate(end)
                raise
        except OSError:
            return 0
        self._written_start = start
        self.waiting += len(rows)
        return len(rows)

    def first(self, most: int) -> SpooledRows | None:
        """The first rows, at most so many; None where there are none."""
        if self.path is None or not self.waiting:
            return None
        rows: list[RecordedRow] = []
        end = self._first_byte
        with self.path.open("rb") as file:
            file.seek(end)
            while len(rows) < most and (line := file.readline(_LONGEST_LINE)):
                if line.startswith(HEAD.encode()):
                    if rows:
                        break
                    self._read_start = AttemptStart.from_dict(json.loads(line))
                elif self._read_start is not None and (row := _row(line, self._read_start)) is not None:
                    rows.append(row)
                end += len(line)
                self._first_byte = self._first_byte if rows else end
        if not rows or self._read_start is None:  # what is left is damaged
            self._remove_file()
            return None
        return SpooledRows(self._read_start, rows, end)

    def remove(self, sent: SpooledRows) -> None:
        """Rows have arrived; a file with nothing in it is removed."""
        self._first_byte = sent.end_byte
        self.waiting -= len(sent.rows)
        if self.waiting <= 0:
            self._remove_file()

    def close(self) -> None:
        """Leave what waits to another process."""
        if self._file is not None:
            self._file.close()
        self._file = None

    def left_behind(self) -> Iterator["ReportSpool"]:
        """Spools for the same server of processes that are no more; each to be closed."""
        if self.folder is None or not self.folder.is_dir():
            return
        for path in sorted(self.folder.glob(f"{_key(self.url)}-*.jsonl")):
            taken_over = ReportSpool(self.folder, self.url)
            if path != self.path and taken_over.take_over(path):
                yield taken_over

    def take_over(self, path: Path) -> bool:
        """Go on with a file that nobody holds; false where somebody does."""
        try:
            held = path.open("r+b", buffering=0)
        except OSError:
            return False
        if not _locked(held) or not path.exists():
            held.close()
            return False
        self.path, self._file = path, held
        with path.open("rb") as file:
            self._first_byte = len(file.readline(_LONGEST_LINE))
            self.waiting = sum(not line.startswith(HEAD.encode()) for line in file)
        if not self.waiting:
            self._remove_file()
        return self.waiting > 0

    def _opened(self) -> FileIO | None:
        if self._file is not None or self.folder is None:
            return self._file
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if sum(file.stat().st_size for file in self.folder.iterdir()) > MOST_FOLDER_BYTES:
            return None
        path = self.folder / f"{_key(self.url)}-{os.getpid()}-{os.urandom(4).hex()}.jsonl"
        file = FileIO(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600), "r+")
        if not _locked(file):
            file.close()
            return None
        self._first_byte = file.write(_line({"epochcast_spool": 1, "url": self.url}))
        self.path, self._file, self._written_start = path, file, None
        return file

    def _remove_file(self) -> None:
        if self.path is not None:
            with suppress(OSError):
                self.path.unlink()
        self.close()
        self.path, self.waiting, self._written_start = None, 0, None


def _key(url: str) -> str:
    return hashlib.sha256(url.encode()).hexdigest()[:16]


def _line(document: object) -> bytes:
    return (json.dumps(document) + "\n").encode()


def _row(line: bytes, start: AttemptStart) -> RecordedRow | None:
    """The row of a line; None for what a full disk or a power cut left of one."""
    try:
        return RecordedRow.from_dict(json.loads(line), start)
    except (ValueError, AttributeError, BadInput):
        return None


def _locked(file: FileIO) -> bool:
    """Whether the file is ours now. Where there are no such locks, nobody takes over what others left."""
    try:
        import fcntl
    except ModuleNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
