"""Following logs that grow: rotated, truncated, packed, not there yet."""

import os
import time
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from epochcast.observe.logs.log_reader import CHUNK_BYTES, GZIP_MARK, LogReader
from epochcast.observe.runs.report import Report

# zlib's word for a gzip heading around the stream.
_GZIP_WINDOW = 31


@dataclass
class ArrivalClock:
    """The clock of a log that writes no times: when its lines came, counted from the first look."""

    is_needed: bool | None = None
    first_seconds: float = 0.0

    def timed(self, seen: list[Report]) -> list[Report]:
        """The same reports; where nothing times them the last has this moment, and when the others came is lost."""
        trained = [report for report in seen if report.phase == "train"]
        if self.is_needed is None and trained:
            self.is_needed = all(report.clock_seconds is None and report.step_seconds is None for report in trained)
            if self.is_needed:
                self.first_seconds = time.monotonic()
                return [trained[-1]._replace(clock_seconds=0.0)]
        if not self.is_needed or not seen:
            return seen
        now = time.monotonic() - self.first_seconds
        return [*(report._replace(clock_seconds=None) for report in seen[:-1]), seen[-1]._replace(clock_seconds=now)]


class LogFollower:
    """One growing file. It stays open between looks, so that what was written last before a rotation is read as well.

    A file that was replaced (another inode) or that became shorter is read from its start: by the same reader, so that
    the run continues in a new attempt or where it was.
    """

    def __init__(self, path: str | Path, format: str | None = None, pattern: str | None = None) -> None:
        self.path = Path(path)
        self.reader = LogReader(format, pattern)
        self._arrival = ArrivalClock()
        self._source: BinaryIO | None = None
        self._unpack: zlib._Decompress | None = None
        self._is_begun = False

    def look(self) -> list[Report]:
        """What is new since the last look; nothing where the file is away."""
        reports = self._rest() if self._source is not None else []
        if self._is_replaced():
            self.close()
        if self._source is None:
            try:
                self._source = self.path.open("rb")
            except OSError:
                return self._arrival.timed(reports + self.reader.flush())
            reports += self._rest()
        return self._arrival.timed(reports + self.reader.flush())

    @property
    def reported_at_seconds(self) -> float:
        """When the file was last written; now where it is away."""
        try:
            return self.path.stat().st_mtime
        except OSError:
            return time.time()

    def close(self) -> None:
        """Let go of the file."""
        if self._source is not None:
            self._source.close()
        self._source, self._unpack, self._is_begun = None, None, False

    def _is_replaced(self) -> bool:
        """Whether the path now leads to another file; one that is away for a moment is still the old one."""
        if self._source is None:
            return False
        try:
            on_disk, opened = os.stat(self.path), os.fstat(self._source.fileno())
        except OSError:
            return False
        return (on_disk.st_ino, on_disk.st_dev) != (opened.st_ino, opened.st_dev)

    def _rest(self) -> list[Report]:
        assert self._source is not None
        reports: list[Report] = []
        try:
            if os.fstat(self._source.fileno()).st_size < self._source.tell():
                self._source.seek(0)
                self._unpack, self._is_begun = None, False
            while chunk := self._source.read(CHUNK_BYTES):
                reports += self.reader.feed(self._plain(chunk))
        except OSError:
            self.close()
        return reports

    def _plain(self, chunk: bytes) -> bytes:
        if not self._is_begun:
            self._is_begun = True
            self._unpack = zlib.decompressobj(_GZIP_WINDOW) if chunk.startswith(GZIP_MARK) else None
        if self._unpack is None:
            return chunk
        try:
            return self._unpack.decompress(chunk)
        except zlib.error:
            return b""
