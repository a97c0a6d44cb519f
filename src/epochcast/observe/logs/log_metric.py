"""The values of one named metric in a log, whatever wrote it: `val_loss: 0.3`, `"val_loss": 0.3`, `val_loss=0.3`, CSV.

A progress bar repeats its metrics with every drawing; there a value counts once until it changes.
"""

import gzip
import os
import re
from pathlib import Path

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|nan|inf"
# A line of megabytes is no report; what lies before its last piece is let go.
MOST_LINE_BYTES = 1 << 20
CHUNK_BYTES = 1 << 20


class MetricReader:
    """Reads a file from where it was left at the look before; one that was replaced or cut is read from its start."""

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name
        written = rf"(?<![\w/.-])[\"']?{re.escape(name)}[\"']?\s*(?:[:=]|\s)\s*[\"']?({_NUMBER})(?![\w.])"
        self._pattern = re.compile(written, re.IGNORECASE)
        self._position = 0
        self._identity: int | None = None
        self._rest = b""
        self._column: int | None = None
        self._drawn: float | None = None

    def read(self) -> list[float]:
        """What is new since the last look."""
        values: list[float] = []
        try:
            with self.path.open("rb") as plain:
                if plain.read(2) == b"\x1f\x8b":
                    return self._unpacked()
                self._seek(plain.fileno())
                plain.seek(self._position)
                while chunk := plain.read(CHUNK_BYTES):
                    self._position += len(chunk)
                    values += self.feed(chunk)
        except FileNotFoundError:
            pass  # between rotation and the first line of the new file
        return values

    def feed(self, data: bytes) -> list[float]:
        """The values on the lines that `data` ends."""
        *lines, self._rest = (self._rest + data).replace(b"\r", b"\n").split(b"\n")
        self._rest = self._rest[-MOST_LINE_BYTES:]
        return [value for line in lines if (value := self._value(line.decode(errors="replace"))) is not None]

    def _seek(self, descriptor: int) -> None:
        status = os.fstat(descriptor)
        if self._identity not in (None, status.st_ino) or status.st_size < self._position:
            self._position, self._rest = 0, b""
        self._identity = status.st_ino

    def _unpacked(self) -> list[float]:
        """A packed log has ended: all of it at the first look, nothing after."""
        if self._position:
            return []
        self._position = 1
        values: list[float] = []
        with gzip.open(self.path, "rb") as source:
            while chunk := source.read(CHUNK_BYTES):
                values += self.feed(chunk)
        return values

    def _value(self, line: str) -> float | None:
        if self._column is not None and (value := self._of_row(line)) is not None:
            return value
        match = self._pattern.search(line)
        if match is None:
            cells = [cell.strip().strip("\"'") for cell in line.split(",")]
            if len(cells) > 1 and self.name in cells:
                self._column = cells.index(self.name)
            return None
        value = float(match[1])
        is_drawn = "%|" in line
        if is_drawn and value == self._drawn:
            return None
        self._drawn = value
        return value

    def _of_row(self, line: str) -> float | None:
        cells = line.split(",")
        try:
            return float(cells[self._column or 0])
        except (ValueError, IndexError):
            return None
