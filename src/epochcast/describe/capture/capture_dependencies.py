"""What a capture depends on outside epochcast: files that were read, names beside them, variables of the environment.

A file is known by a *mark*: the digest of its content; of an installed package or a large file its size and when it was
written; `absent` where it was looked for in vain. Variables are kept as digests, so that no secret is written down.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from epochcast.base.record import Record

ABSENT = "absent"
# Files above this are known by their size and date: nobody reads gigabytes of weights to look a forecast up.
MOST_READ_BYTES = 16 * 2**20


@dataclass(frozen=True, slots=True)
class Depends(Record):
    """Marks of files by path, digests of what folders can import by path, digests of variables by name."""

    files: Mapping[str, str] = field(default_factory=dict)
    folders: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def on(cls, files: Iterable[Path] = (), folders: Iterable[Path] = (), names: Iterable[str] = ()) -> "Depends":
        """On these, as they are now."""
        return cls(
            {str(path): content_mark(path) for path in files},
            {str(path): importable_mark(path) for path in folders},
            {name: variable_mark(name) for name in names},
        )

    def holds(self) -> bool:
        """Whether everything is as it was."""
        return (
            all(variable_mark(name) == mark for name, mark in self.environment.items())
            and all(importable_mark(Path(path)) == mark for path, mark in self.folders.items())
            and all(_has_mark(Path(path), mark) for path, mark in self.files.items())
        )


def content_mark(path: Path) -> str:
    """The mark of a file by its content."""
    try:
        if path.stat().st_size > MOST_READ_BYTES:
            return date_mark(path)
        return f"sha256:{sha256(path.read_bytes()).hexdigest()}"
    except (OSError, ValueError):
        return ABSENT


def date_mark(path: Path) -> str:
    """The mark of a file by its size and date, without reading it."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return ABSENT
    return f"date:{status.st_mtime_ns}:{status.st_size}"


def _has_mark(path: Path, mark: str) -> bool:
    return mark == date_mark(path) or mark == content_mark(path)


def importable_mark(folder: Path) -> str:
    """A digest of the names a folder can import: a new `helpers.py` may stand before an installed `helpers`."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(
                entry.name
                for entry in entries
                if entry.name.endswith(".py") or Path(entry.path, "__init__.py").is_file()
            )
    except OSError:
        return ABSENT
    return sha256("\0".join(names).encode(errors="surrogateescape")).hexdigest()


def variable_mark(name: str) -> str:
    """A digest of a variable of the environment."""
    value = os.environ.get(name)
    return ABSENT if value is None else sha256(value.encode(errors="surrogateescape")).hexdigest()
