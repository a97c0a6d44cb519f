"""Bytes of a log, as they come, into whole lines: redrawn bars, colours, junk and endless lines included."""

import re

# No training line is longer; what follows in one line is left unread, so that memory stays flat.
LONGEST_LINE_BYTES = 1 << 16

_COLOUR = re.compile(rb"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_MOST_CODES = 24
_REDRAWN = re.compile(rb"\x08+")
_OBJECTS = bytes.maketrans(b"{}\n\r", b"\n\n  ")

# A JSON document: an array of objects, an object on lines of its own, or a Hugging Face trainer's state in one line.
_DOCUMENT = re.compile(rb'\s*(?:\[\s*\{\s*"|\{\s*\n\s*"|\{"best_(?:metric|global_step|model_checkpoint)")')
_HEAD_BYTES = 64


class LineSplitter:
    """Cuts a stream into blocks of whole lines. A redrawn line (`\\r`, backspaces) counts as a line of its own.

    The objects of a JSON document count as lines: whatever stands between two braces.
    """

    def __init__(self) -> None:
        self._rest = b""
        self.is_document: bool | None = None

    def feed(self, data: bytes) -> bytes:
        """The whole lines that are now there, separated by newlines."""
        data = self._rest + data
        if self.is_document is None:
            head = data.lstrip()
            if not head or (head[:1] in (b"[", b"{") and len(head) < _HEAD_BYTES):
                self._rest = data
                return b""
            self.is_document = _DOCUMENT.match(data) is not None
        end = max(data.rfind(b"{"), data.rfind(b"}")) if self.is_document else _last_end(data)
        return self._cut(data, end)

    def close(self) -> bytes:
        """The last line, which nothing ended."""
        if self.is_document is None:
            self.is_document = _DOCUMENT.match(self._rest) is not None
        rest, self._rest = self._rest, b""
        return self._clean(rest)

    def _cut(self, data: bytes, end: int) -> bytes:
        lines, rest = data[: end + 1], data[end + 1 :]
        self._rest = rest[:LONGEST_LINE_BYTES]
        return self._clean(lines)

    def _clean(self, block: bytes) -> bytes:
        if b"\0" in block:  # a file that was truncated while its writer went on begins with as many as it had bytes
            block = block.replace(b"\0", b"")
        if b"\x1b" in block:
            block = _uncoloured(block)
        if self.is_document:
            return block.translate(_OBJECTS)
        if b"\r" in block:
            block = block.replace(b"\r", b"\n")
        if b"\x08" in block:
            block = _REDRAWN.sub(b"\n", block)
        return block


def _uncoloured(block: bytes) -> bytes:
    """Most blocks have a few codes many times: these are replaced one by one, which is quicker than a pattern."""
    for _ in range(_MOST_CODES):
        match = _COLOUR.search(block)
        if match is None:
            return block
        block = block.replace(match[0], b"")
    return _COLOUR.sub(b"", block)


def _last_end(data: bytes) -> int:
    return max(data.rfind(b"\n"), data.rfind(b"\r"))
