"""TensorBoard event files without TensorFlow: records with checksums, and the few protobuf fields that hold scalars.

A record is: length (8 bytes, little endian), masked CRC-32C of the length, the data, masked CRC-32C of the data. The
data is an `Event`: wall_time (1, double), step (2, int64), summary (5); a `Summary` repeats values (1) with tag (1) and
simple_value (2, float), or tensor (8) in files of TensorFlow 2 and others like it: a `TensorProto` with dtype (1),
tensor_content (4), float_val (5), double_val (6).
"""

import struct
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

LONGEST_RECORD_BYTES = 1 << 28
_HEADER_BYTES, _FRAME_BYTES = 12, 16
MOST_LENGTHS = 4096
_POLYNOMIAL = 0x82F63B78
_DT_FLOAT, _DT_DOUBLE = 1, 2


def _table() -> tuple[int, ...]:
    rows = []
    for row in range(256):
        for _ in range(8):
            row = (row >> 1) ^ (_POLYNOMIAL if row & 1 else 0)
        rows.append(row)
    return tuple(rows)


_TABLE = _table()


def masked_crc32c(data: bytes) -> int:
    """CRC-32C (Castagnoli), rotated and shifted as the record format wants it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ _TABLE[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Scalar:
    """One value of one curve."""

    tag: str
    step: int
    wall_seconds: float
    value: float


def is_event_file(head: bytes) -> bool:
    """Whether a file begins with a record: its length fits its checksum."""
    return len(head) >= _HEADER_BYTES and _length(head) is not None


def _length(head: bytes) -> int | None:
    length, crc = struct.unpack_from("<QI", head)
    return int(length) if masked_crc32c(head[:8]) == crc else None


class EventReader:
    """Reads scalars from the bytes of an event file as they arrive.

    A record whose data does not fit its checksum is left out and counted. Where a length does not fit (the file was
    overwritten in the middle), the next place at which one does is searched for.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._skip = 0
        self._lengths: dict[bytes, int | None] = {}
        self.broken = 0

    def feed(self, data: bytes) -> list[Scalar]:
        """The scalars of the records that are now complete."""
        records = self.framed(data)
        return [scalar for start in records.starts for scalar in self.scalars(records, start)]

    def framed(self, data: bytes) -> "Records":
        """The records that are now complete, found by their lengths alone."""
        rest = self._rest + data if self._rest else data
        position, size, lengths = min(self._skip, len(rest)), len(rest), self._lengths
        self._skip -= position
        starts: list[int] = []
        while not self._skip:
            head = rest[position : position + _HEADER_BYTES]
            length = lengths.get(head)
            if length is None:
                if len(head) < _HEADER_BYTES:
                    break
                length = self._checked(head)
                if length is None:
                    self.broken += 1
                    position = _next_place(rest, position + 1)
                    continue
            end = position + _FRAME_BYTES + length
            if end > size:
                if length > LONGEST_RECORD_BYTES:  # an image or a graph that nobody asks for
                    self._skip, position = end - size, size
                break
            starts.append(position)
            position = end
        self._rest = rest[position:]
        return Records(rest, starts)

    def scalars(self, records: "Records", start: int) -> list[Scalar]:
        """The scalars of the record that begins at this place, if its data fits its checksum."""
        length = self._lengths.get(records.data[start : start + _HEADER_BYTES]) or 0
        end = start + _HEADER_BYTES + length
        event = records.data[start + _HEADER_BYTES : end]
        # Checksums of long records (images, graphs) would take longer than all scalars of a run together.
        if length < 4096 and masked_crc32c(event) != struct.unpack_from("<I", records.data, end)[0]:
            self.broken += 1
            return []
        return list(_scalars(event))

    def _checked(self, head: bytes) -> int | None:
        """The length at the head of a record, None where its checksum does not fit; few lengths come ever again."""
        if head not in self._lengths:
            if len(self._lengths) >= MOST_LENGTHS:
                self._lengths.clear()
            self._lengths[head] = _length(head)
        return self._lengths[head]


@dataclass(frozen=True, slots=True)
class Records:
    """Bytes, and where the records in them begin."""

    data: bytes
    starts: list[int]

    def holding(self, needle: bytes) -> list[int]:
        """How manieth records hold these bytes."""
        indices: list[int] = []
        starts, index = self.starts, 0
        place = self.data.find(needle)
        while place >= 0 and starts:
            index = bisect_right(starts, place, index) - 1
            if index >= 0:
                indices.append(index)
            index += 1
            if index >= len(starts):
                break
            place = self.data.find(needle, starts[index])
        return indices


def _next_place(data: bytes, position: int) -> int:
    """The next place at which a record may begin: a length below 4 GB has four zeros in its upper bytes."""
    zeros = data.find(b"\0\0\0\0", position + 4)
    return zeros - 4 if zeros >= 0 else max(position, len(data) - _HEADER_BYTES + 1)


def _fields(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """(field, wire type, value) of a protobuf message; stops where it is cut."""
    position, size = 0, len(data)
    while position < size:
        key, position = varint(data, position)
        field, wire = key >> 3, key & 7
        if wire == 0:
            number, position = varint(data, position)
            yield field, wire, number
            continue
        if wire == 2:
            length, position = varint(data, position)
        elif wire in (1, 5):
            length = 8 if wire == 1 else 4
        else:
            return
        if position + length > size:
            return
        yield field, wire, data[position : position + length]
        position += length


def varint(data: bytes, position: int) -> tuple[int, int]:
    """(number, place behind it) of a number of seven bits per byte."""
    value = shift = 0
    while position < len(data) and shift < 70:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            break
        shift += 7
    return value, position


def _scalars(event: bytes) -> Iterator[Scalar]:
    wall_seconds, step, summary = 0.0, 0, None
    for field, wire, value in _fields(event):
        if field == 1 and wire == 1 and isinstance(value, bytes):
            wall_seconds = struct.unpack("<d", value)[0]
        elif field == 2 and isinstance(value, int):
            step = value - (1 << 64) if value >> 63 else value
        elif field == 5 and isinstance(value, bytes):
            summary = value
    if summary is None:
        return
    for field, _, value in _fields(summary):
        if field == 1 and isinstance(value, bytes):
            tag, number = _value(value)
            if number is not None:
                yield Scalar(tag, step, wall_seconds, number)


def _value(data: bytes) -> tuple[str, float | None]:
    tag, number = "", None
    for field, wire, value in _fields(data):
        if not isinstance(value, bytes):
            continue
        if field == 1:
            tag = value.decode("utf-8", "replace")
        elif field == 2 and wire == 5:
            number = struct.unpack("<f", value)[0]
        elif field == 8:
            number = _tensor(value)
    return tag, number


def _tensor(data: bytes) -> float | None:
    """A tensor of one float or double; others (images, histograms, texts) are no scalars."""
    kind = 0
    for field, _, value in _fields(data):
        if field == 1 and isinstance(value, int):
            kind = value
        elif field in (4, 5, 6) and isinstance(value, bytes):
            form = {(4, _DT_FLOAT): "<f", (4, _DT_DOUBLE): "<d"}.get((field, kind), "<f" if field == 5 else "<d")
            if field != 4 or kind in (_DT_FLOAT, _DT_DOUBLE):
                return float(struct.unpack(form, value)[0]) if len(value) == struct.calcsize(form) else None
    return None
