"""Files that are written whole or not at all: beside their place first, then moved over it in one step."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new file to write, with the ending of `path`; it takes the place of `path` where nothing went wrong."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=path.suffix)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _umask() -> int:
    """The process' mask of permissions, which can only be read by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def write_text(path: Path, content: str) -> None:
    """Write a text file in UTF-8."""
    write_bytes(path, content.encode())
