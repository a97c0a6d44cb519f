"""Rows into a file of JSON lines, appended to by one attempt after the other.

A batch is written by one call and not synced to the disk: killing the training loses nothing that was written, a power
cut what the system had not yet put on the disk. The file is opened anew for each batch, so that one that was rotated
or moved away, or a disk that went and came back, is found again.
"""

import json
import os
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from epochcast.errors import BadInput
from epochcast.observe.recording.recorded_rows import HEAD, AttemptStart, RecordedRow


class FileSink:
    """Appends to one file. What a full disk cut in the middle of a line is finished before anything else."""

    def __init__(self, path: Path, *, continues: bool = True) -> None:
        """A training that does not continue one before moves the file of one that has ended out of the way."""
        self.path = path.absolute()  # the training may change its folder
        self.name = str(path)
        self._rest = b""
        self._written_start: AttemptStart | None = None
        _refuse_others(path)
        if not continues:
            _move_ended(self.path)

    def send(self, start: AttemptStart, rows: Sequence[RecordedRow]) -> int:
        """Append; where the disk fills up, as many as went in."""
        if not self.path.parent.exists():
            self.path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
        try:
            return self._append(file, start, rows)
        finally:
            os.close(file)

    def _append(self, file: int, start: AttemptStart, rows: Sequence[RecordedRow]) -> int:
        size = os.fstat(file).st_size
        is_written = start == self._written_start and size > 0
        lead = self._rest
        if not lead and size > 0 and _last_byte(file, size) != b"\n":
            lead = b"\n"  # an attempt before was cut off in the middle of its last line
        lead += b"" if is_written else (json.dumps(start.as_dict()) + "\n").encode()
        lines = [row.line(start).encode() for row in rows]
        written = os.write(file, lead + b"".join(lines))
        if written < len(lead):
            self._rest = lead[written:]
            self._written_start = start  # what is left of the head is in the rest
            return 0
        self._rest, self._written_start = b"", start
        written -= len(lead)
        for place, line in enumerate(lines):
            if written < len(line):
                self._rest = line[written:] if written else b""
                return place + (1 if written else 0)
            written -= len(line)
        return len(lines)


def _move_ended(path: Path) -> None:
    """`mine.jsonl` to `mine.1.jsonl`, or the next free number. What cannot be moved is appended to."""
    try:
        if not path.is_file():
            return
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 4096))
            last = file.read(4096).rstrip().rpartition(b"\n")[2]
        if last.startswith(b'{"ec": "end"'):
            free = (path.with_suffix(f".{number}{path.suffix}") for number in count(1))
            path.rename(next(place for place in free if not place.exists()))
    except OSError:
        return


def _last_byte(file: int, size: int) -> bytes:
    os.lseek(file, size - 1, os.SEEK_SET)
    return os.read(file, 1)


def _refuse_others(path: Path) -> None:
    """A file that somebody else wrote is not appended to. One that cannot be read now is judged when it can."""
    try:
        if not path.is_file():
            return
        with path.open("rb") as file:
            head = file.read(len(HEAD))
    except OSError:
        return
    if head and head != HEAD.encode():
        raise BadInput(f"{path} exists and is not a recording of epochcast; give another file as `to`")
