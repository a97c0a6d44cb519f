"""Which files the user's code imports and opens, and which variables it reads, seen from inside its process.

Python reports every file it opens (PEP 578); what compiled libraries open by themselves is not seen. Of the environment
only what the user's own files read counts: libraries look at hundreds of variables. Nothing here can be taken back, so
it is used only in a process that ends with its capture (`apart_host`).
"""

import os
import site
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from epochcast.describe.capture.capture_dependencies import Depends, date_mark

# A factory that opens more files than this reads a data set, not sources.
MOST_FILES = 4000
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC
_NOT_FILES = ("/proc/", "/sys/", "/dev/")
_COMPILED = (".pyc", ".so")


def _folder(path: str) -> str:
    return f"{os.path.realpath(path)}{os.sep}"


def package_folders() -> tuple[str, ...]:
    """Where installed packages and epochcast itself live."""
    paths = {sysconfig.get_paths()[name] for name in ("purelib", "platlib")}
    epochcast = str(Path(__file__).parents[2])
    return tuple(map(_folder, {*paths, *site.getsitepackages(), site.getusersitepackages(), epochcast}))


def standard_folders() -> tuple[str, ...]:
    """Where Python's own library lives; installed packages may be below it."""
    return tuple({_folder(sysconfig.get_paths()[name]) for name in ("stdlib", "platstdlib")})


class ImportWatch:
    """Records what is opened and looked at from when it is made."""

    def __init__(self) -> None:
        self._packages, self._standard = package_folders(), standard_folders()
        self._epochcast = _folder(str(Path(__file__).parents[2]))
        self._is_users_file: dict[str, bool | None] = {}
        self._opened: dict[str, None] = {}
        self._written: set[str] = set()
        self._variables: dict[str, None] = {}
        _WatchedEnvironment.watch = self
        os.environ.__class__ = _WatchedEnvironment
        sys.addaudithook(self._audit)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event != "open" or not isinstance(arguments[0], str | bytes) or len(self._opened) > MOST_FILES:
            return
        path = os.path.abspath(os.fsdecode(arguments[0]))
        if isinstance(arguments[2], int) and arguments[2] & _WRITES:
            self._written.add(path)
        elif path not in self._opened and self._is_user_file(path):
            self._opened.setdefault(path)

    def look(self, name: str) -> None:
        """A variable was looked at."""
        if self._is_user(sys._getframe(2)):
            self._variables.setdefault(name)

    def _is_user(self, frame: FrameType | None) -> bool:
        """Whether the nearest caller outside Python's own library is the user's file."""
        while frame is not None:
            file = frame.f_code.co_filename
            if file not in self._is_users_file:
                self._is_users_file[file] = None if self._is_standard(file) else self._is_user_file(file)
            answer = self._is_users_file[file]
            if answer is not None:
                return answer
            frame = frame.f_back
        return False

    def _is_standard(self, file: str) -> bool:
        real = os.path.realpath(file)
        return file.startswith("<") or (real.startswith(self._standard) and not real.startswith(self._packages))

    def _is_user_file(self, path: str) -> bool:
        if path.endswith(_COMPILED):
            return False
        real = os.path.realpath(path)
        outside = (*self._packages, *self._standard, *_NOT_FILES)
        return not (real.startswith(outside) or real.endswith(_COMPILED))

    def _modules(self) -> Iterator[str]:
        for module in list(sys.modules.values()):
            file = getattr(module, "__file__", None)
            if isinstance(file, str):
                yield os.path.abspath(file)

    def seen(self, roots: tuple[Path, ...]) -> Depends:
        """Everything so far; `roots` are the folders that are imported from first."""
        modules = list(self._modules())
        files = {path for path in (*modules, *self._opened) if self._is_user_file(path) and path not in self._written}
        depends = Depends.on((Path(path) for path in files if not Path(path).is_dir()), roots, self._variables)
        packages = {path: date_mark(Path(path)) for path in modules if self._begins_package(path)}
        uncounted = {"": "more than can be watched"} if len(self._opened) > MOST_FILES else {}  # never holds
        return Depends({**packages, **depends.files, **uncounted}, depends.folders, depends.environment)

    def _begins_package(self, path: str) -> bool:
        """Whether it is the first file of an installed package: it is written anew with each version."""
        real = os.path.realpath(path)
        folder = next((folder for folder in self._packages if real.startswith(folder)), None)
        if folder is None or folder == self._epochcast:
            return False
        parts = real.removeprefix(folder).split(os.sep)
        return len(parts) == 1 or (len(parts) == 2 and parts[1] == "__init__.py")


class _WatchedEnvironment(os._Environ):  # type: ignore[type-arg]
    """`os.environ` that tells which of its variables are looked at."""

    watch: ImportWatch

    def __getitem__(self, name: Any) -> Any:
        if isinstance(name, str):
            self.watch.look(name)
        return super().__getitem__(name)
