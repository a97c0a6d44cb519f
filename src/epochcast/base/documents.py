"""JSON and TOML that anybody may have written: bounded in size and depth, every fault one line with the file's name.

What reads them may recurse, and tomllib takes the square of a key's length: both are checked here.
"""

import gzip
import json
import re
import tomllib
import zlib
from pathlib import Path
from typing import Any

from epochcast.base.bounds import MOST_DOCUMENT_BYTES, MOST_KEY_PARTS, MOST_NESTING
from epochcast.errors import BadInput

_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
# A key with too many parts, where keys stand: at the beginning of a line, in brackets, after a comma.
_DOTTED = re.compile(rf"(?:^|[\[{{,])[ \t]*+(?:{_PART}[ \t]*+\.[ \t]*+){{{MOST_KEY_PARTS}}}", re.MULTILINE)


def read_text(path: Path, most_bytes: int = MOST_DOCUMENT_BYTES) -> str:
    """The text of a file in UTF-8."""
    try:
        with path.open("rb") as stream:
            content = stream.read(most_bytes + 1)
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror or error}") from None
    if len(content) > most_bytes:
        raise BadInput(f"{path.name} has more than {most_bytes:,} bytes, too many for such a file")
    return decoded(content, path.name)


def decoded(content: bytes, file: str) -> str:
    """The text of bytes in UTF-8, with or without a mark."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadInput(f"{file} is not text in UTF-8") from None


def parse_json(text: str | bytes, file: str) -> Any:
    """The value of a JSON text."""
    content = text.encode(errors="surrogatepass") if isinstance(text, str) else text
    words = decoded(content, file)
    try:
        value = json.loads(words)
    except json.JSONDecodeError as error:
        raise BadInput(f"{file} is not JSON: {error.msg} (at line {error.lineno}, column {error.colno})") from None
    except ValueError:  # a whole number of thousands of digits
        raise BadInput(f"{file} has a number with too many digits") from None
    except RecursionError:
        raise _too_deep(file) from None
    if content.count(b"[") + content.count(b"{") > MOST_NESTING and _is_deep(value):
        raise _too_deep(file)
    return value


def parse_toml(text: str, file: str) -> dict[str, Any]:
    """The table of a TOML text."""
    if _DOTTED.search(text):
        raise BadInput(f"{file} has a key of more than {MOST_KEY_PARTS} parts with dots between them")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{file} is not TOML: {error}") from None
    except RecursionError:
        raise _too_deep(file) from None
    except ValueError as error:  # a date that is none, or a whole number of thousands of digits
        raise BadInput(f"{file} is not TOML: {str(error).partition(';')[0]}") from None


def unzipped(content: bytes, file: str, most_bytes: int = MOST_DOCUMENT_BYTES) -> bytes:
    """What gzip packed, as far as it is no larger than a document may be."""
    try:
        with gzip.GzipFile(fileobj=_stream(content)) as stream:
            unpacked = stream.read(most_bytes + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise BadInput(f"{file} is no gzip file, or it is damaged: {error}") from None
    if len(unpacked) > most_bytes:
        raise BadInput(f"{file} has more than {most_bytes:,} bytes when it is unpacked")
    return unpacked


def _stream(content: bytes) -> Any:
    from io import BytesIO

    return BytesIO(content)


def _too_deep(file: str) -> BadInput:
    return BadInput(f"{file} is nested more than {MOST_NESTING} levels deep")


def _is_deep(value: Any) -> bool:
    """Whether lists and objects are nested too deeply, level by level: whatever reads them may recurse."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(MOST_NESTING):
        inner = [v for outer in level for v in (outer.values() if isinstance(outer, dict) else outer)]
        level = [v for v in inner if isinstance(v, dict | list)]
        if not level:
            return False
    return True
