"""Output for terminals that know ASCII alone: the C locale, or a stream in an encoding without our signs.

Signs of a table are replaced by one character each, so that columns stay where they are. JSON is ASCII anyway.
"""

import os
import re
import sys
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TextIO, cast

_SIGNS = str.maketrans({
    **dict.fromkeys("─━–—−‐‑", "-"),
    **dict.fromkeys("│┃", "|"),
    **dict.fromkeys("·•", "|"),
    **dict.fromkeys("×✕", "x"),
    **dict.fromkeys("µμ", "u"),
    **dict.fromkeys("▸→›", ">"),
    **dict.fromkeys("‘’", "'"),
    **dict.fromkeys("“”„", '"'),
    "±": "~",
    "\u00a0": " ",
})  # fmt: skip
_PLAIN_LOCALES = ("c", "posix")


def plain_text(text: str) -> str:
    """The text in ASCII: 1 ms … 2 ms becomes 1 ms - 2 ms, fit(…) becomes fit(...)."""
    if text.isascii():
        return text
    text = re.sub(r"(?<= )…(?= )", "-", text).replace("…", "...").translate(_SIGNS)
    return "".join(letter if letter.isascii() else _nearest(letter) for letter in text)


def _nearest(letter: str) -> str:
    """é is e; what has no such letter is a question mark."""
    return unicodedata.normalize("NFKD", letter).encode("ascii", "ignore").decode()[:1] or "?"


def wants_ascii(environment: Mapping[str, str], encoding: str | None) -> bool:
    """Whether the locale is C or POSIX, or the encoding of a stream has no sign for a multiplication.

    Python itself sets LC_CTYPE to C.UTF-8 where LANG is C, so that is no wish of the user's.
    """
    try:
        "×…─µ▸".encode(encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return True
    locale_name = environment.get("LC_ALL") or ""
    if not locale_name:
        character_type = environment.get("LC_CTYPE") or ""
        locale_name = environment.get("LANG", "") if character_type in ("", "C.UTF-8") else character_type
    return locale_name.casefold() in _PLAIN_LOCALES


class _AsciiStream:
    """A stream whose text is made plain; everything else is the stream's own."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    @property
    def encoding(self) -> str:
        """Whoever draws here need not avoid signs; they are replaced later."""
        return "utf-8"

    def write(self, text: str) -> int:
        """Write the text in ASCII."""
        return self._stream.write(plain_text(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def ascii_where_asked() -> Iterator[None]:
    """Standard output and standard error in ASCII where they, or the locale, ask for it."""
    before = sys.stdout, sys.stderr
    for name, stream in zip(("stdout", "stderr"), before, strict=True):
        if wants_ascii(os.environ, getattr(stream, "encoding", None)):
            setattr(sys, name, cast(TextIO, _AsciiStream(stream)))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
