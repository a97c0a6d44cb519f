"""What is installed, where the user's own files are, and how old everything is.

Versions are read from the metadata of installed packages; no framework is imported. A *problem* is something that does
not work as it should, or makes an answer unreliable; problems are listed, not raised.
"""

import gzip
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from importlib import metadata
from importlib.resources import files
from pathlib import Path
from typing import ClassVar

from epochcast.base.documents import parse_json, unzipped
from epochcast.base.record import Record
from epochcast.describe.capture.capture_cache import folder as cache_folder
from epochcast.errors import EpochcastError, install_command
from epochcast.hardware.instance import Instance
from epochcast.hardware.machines import instances
from epochcast.hardware.profile import load_profiles, profiles_folder
from epochcast.observe.store.store_opening import Look, look

JOB_FILE = "epochcast.toml"
"""Prices older than this have often changed."""
CHECKED_BYTES = 32 * 2**20
"""At most this much of the cache is read to find damaged files; the newest files first."""

# Packages that provide the same modules under another name.
_SAME_PACKAGE: Mapping[str, tuple[str, ...]] = {"tensorflow-cpu": ("tensorflow", "tensorflow-macos")}
_KERAS_BACKENDS = ("tensorflow-cpu", "torch", "jax")
# Packages of no extra of ours that are used where they are installed.
_USED_IF_THERE = ("timm", "torchvision", "lightning", "jax")

_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)\s*(?:\[(?P<extras>[^\]]*)\])?\s*(?P<wanted>[^;]*)")
# Modules of packages that are called otherwise.
_DISTRIBUTIONS = {
    "prometheus_client": "prometheus-client",
    "sklearn": "scikit-learn",
    "tensorflow": "tensorflow-cpu",
    "vl_convert": "vl-convert-python",
}
_DEVELOPERS = ("dev", "test-models")
_EXTRA = re.compile(r"""\bextra\s*==\s*['"]([\w.-]+)['"]""")
_BOUND = re.compile(r"(>=|<=|==|>|<)\s*([\d.]+)")


@dataclass(frozen=True, slots=True)
class Package(Record):
    """A package of an extra: `wanted` like ">=2.4"; `installed` is its version, None where it is not installed."""

    name: str
    wanted: str
    installed: str | None
    json_also: ClassVar[tuple[str, ...]] = ("fits",)

    @property
    def fits(self) -> bool:
        """Whether it is installed in a suitable version; bounds that cannot be read are ignored."""
        return self.installed is not None and all(
            _holds(_release(self.installed), relation, _release(bound))
            for relation, bound in _BOUND.findall(self.wanted)
        )


@dataclass(frozen=True, slots=True)
class Extra(Record):
    """A group of optional packages, as in pip install '.[NAME]'."""

    name: str
    packages: tuple[Package, ...]
    json_also: ClassVar[tuple[str, ...]] = ("install",)

    @property
    def missing(self) -> tuple[Package, ...]:
        """The packages that are not installed, or not in a suitable version."""
        return tuple(package for package in self.packages if not package.fits)

    @property
    def install(self) -> str:
        """The command that installs what is missing; empty where nothing is."""
        return install_command(self.name) if self.missing else ""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of the user's own files; `path` is None where it is turned off. The dates are those of the files."""

    what: str
    path: str | None
    files: int = 0
    size_bytes: int = 0
    oldest: str | None = None
    newest: str | None = None
    is_writable: bool = True
    damaged: tuple[str, ...] = ()
    unchecked: int = 0


@dataclass(frozen=True, slots=True)
class Prices:
    """The list of instances: their number, the first and last date of a price, how many were not looked up
    (`recalled`), and how many are old (`stale`).
    """

    instances: int
    oldest: str
    newest: str
    recalled: int
    stale: int


@dataclass(frozen=True, slots=True)
class ShippedModel:
    """A fitted model that ships with the package; `trained` is None where its file does not say when."""

    file: str
    format: int
    trained: str | None
    size_bytes: int


@dataclass(frozen=True)
class DoctorReport(Record):
    """The whole report. `other_packages` are names and versions of packages that are used where they are installed."""

    version: str
    python: str
    extras: tuple[Extra, ...]
    other_packages: Mapping[str, str]
    folders: tuple[Folder, ...]
    job_file: str | None
    store: Look
    prices: Prices
    models: tuple[ShippedModel, ...]
    blas_threads: int | None
    problems: tuple[str, ...]


def examine(version: str, folder: Path, today: date) -> DoctorReport:
    """The report for code of this version. A job file is searched in `folder` and above; ages are those of `today`."""
    extras, problems = _extras(version)
    folders = (_profiles(), _captures())
    prices = _prices(instances(), today)
    store = look()
    return DoctorReport(
        version=version,
        python=".".join(map(str, sys.version_info[:3])),
        extras=extras,
        other_packages={name: installed_version for name in _USED_IF_THERE if (installed_version := installed(name))},
        folders=folders,
        job_file=_job_file(folder),
        store=store,
        prices=prices,
        models=tuple(_shipped_models()),
        blas_threads=_blas_threads(),
        problems=(
            *problems,
            *_package_problems(extras),
            *_folder_problems(folders),
            *((store.problem,) if store.problem else ()),
            *_price_problems(prices),
        ),
    )


# ---- packages -----------------------------------------------------------------------------------


def installed(package: str) -> str | None:
    """The version of an installed package, or of one with the same modules; None where there is none."""
    for name in (package, *_SAME_PACKAGE.get(package, ())):
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return None


def _extras(version: str) -> tuple[tuple[Extra, ...], list[str]]:
    try:
        distribution = metadata.distribution("epochcast")
    except metadata.PackageNotFoundError:
        return (), ["epochcast runs from a folder and is not installed, so its extras are unknown"]
    problems = []
    if distribution.version != version:
        problems.append(f"the code is version {version}, but {distribution.version} is installed: install it again")
    return extras_of(distribution.metadata.get_all("Provides-Extra") or [], distribution.requires or []), problems


def extra_with(module: str) -> str | None:
    """The smallest of our extras for users that brings a module; None where none does."""
    extras, _ = _extras("")
    package = _DISTRIBUTIONS.get(module, module)
    having = [
        extra for extra in extras if extra.name not in _DEVELOPERS and package in {each.name for each in extra.packages}
    ]
    return min(having, key=lambda extra: len(extra.packages)).name if having else None


def extras_of(names: Iterable[str], requirements: Iterable[str]) -> tuple[Extra, ...]:
    """Extras with their packages, from the lines of a package's metadata; an extra may name others of ours."""
    wanted: dict[str, dict[str, str]] = {name: {} for name in names}
    others: list[tuple[str, str]] = []
    for line in requirements:
        extra, parts = _EXTRA.search(line), _REQUIREMENT.match(line)
        if extra is None or parts is None:
            continue
        if parts["name"] == "epochcast":
            others += [(extra[1], other.strip()) for other in (parts["extras"] or "").split(",")]
        else:
            wanted.setdefault(extra[1], {})[parts["name"]] = parts["wanted"].strip()
    for extra_name, other in others:
        wanted[extra_name] = {**wanted.get(other, {}), **wanted.get(extra_name, {})}
    return tuple(
        Extra(name, tuple(Package(package, bound, installed(package)) for package, bound in sorted(packages.items())))
        for name, packages in wanted.items()
    )


def _release(version: str) -> tuple[int, ...]:
    """(2, 13) of 2.13.0+cpu: the leading numbers, without zeros behind them."""
    numbers = [int(n) for n in re.findall(r"\d+", re.match(r"[\d.]*", version)[0])]  # type: ignore[index]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def _holds(version: tuple[int, ...], relation: str, bound: tuple[int, ...]) -> bool:
    match relation:
        case ">=":
            return version >= bound
        case "<=":
            return version <= bound
        case ">":
            return version > bound
        case "<":
            return version < bound
        case _:
            return version == bound


def _package_problems(extras: Iterable[Extra]) -> Iterator[str]:
    packages = {package.name: package for extra in reversed(list(extras)) for package in extra.packages}
    for package in packages.values():
        if package.installed is not None and ">=" in package.wanted and not package.fits:
            yield f"{package.name} {package.installed} is installed, {package.name}{package.wanted} is needed"
    if installed("keras") and not any(map(installed, _KERAS_BACKENDS)):
        yield "keras has no backend: install tensorflow, torch or jax, or use a .keras file, which needs none"


# ---- files --------------------------------------------------------------------------------------


def _profiles() -> Folder:
    return _folder("profiles", profiles_folder(), ("*.toml", "*.json"), _check_profile)


def _captures() -> Folder:
    return _folder("captured models", cache_folder(), ("*.json.gz",), _check_capture, CHECKED_BYTES)


def _folder(
    what: str,
    path: Path | None,
    patterns: Iterable[str],
    check: Callable[[Path], None],
    most_bytes: float = float("inf"),
) -> Folder:
    if path is None:
        return Folder(what, None)
    matching = [file for pattern in patterns for file in path.glob(pattern) if file.is_file()]
    stats = sorted(((file.stat(), file) for file in matching), key=lambda pair: -pair[0].st_mtime)
    damaged, unchecked, read_bytes = [], 0, 0
    for stat, file in stats:
        read_bytes += stat.st_size
        if read_bytes > most_bytes:
            unchecked += 1
            continue
        try:
            check(file)
        except (EpochcastError, OSError, EOFError, ValueError) as problem:
            damaged.append(f"{file.name}: {problem}")
    days = [date.fromtimestamp(stat.st_mtime).isoformat() for stat, _ in stats]
    return Folder(
        what=what,
        path=str(path),
        files=len(stats),
        size_bytes=sum(stat.st_size for stat, _ in stats),
        oldest=days[-1] if days else None,
        newest=days[0] if days else None,
        is_writable=_is_writable(path),
        damaged=tuple(damaged),
        unchecked=unchecked,
    )


def _check_profile(path: Path) -> None:
    if path.suffix == ".toml":
        load_profiles(path.read_text(encoding="utf-8"), path.name)
    else:
        from epochcast.predict.cost.local_file import load_local

        load_local(path)


def _check_capture(path: Path) -> None:
    parse_json(unzipped(path.read_bytes(), path.name), path.name)


def _is_writable(path: Path) -> bool:
    """Whether a file could be put there; a folder that does not exist yet would be made."""
    existing = next((folder for folder in (path, *path.absolute().parents) if folder.exists()), None)
    return existing is not None and existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)


def _folder_problems(folders: Iterable[Folder]) -> Iterator[str]:
    for folder in folders:
        yield from (f"damaged: {problem}" for problem in folder.damaged)
        if not folder.is_writable:
            yield f"{folder.what} cannot be saved: {folder.path} is not writable"


def _job_file(start: Path) -> str | None:
    start = start.absolute()
    return next((str(folder / JOB_FILE) for folder in (start, *start.parents) if (folder / JOB_FILE).is_file()), None)


# ---- what ships ---------------------------------------------------------------------------------


def _prices(rows: Iterable[Instance], today: date) -> Prices:
    listed = list(rows)
    days = sorted(row.priced_on for row in listed)
    stale = sum(row.is_stale(today) for row in listed)
    recalled = sum(not row.verified for row in listed)
    return Prices(len(listed), days[0], days[-1], recalled, stale)


def _price_problems(prices: Prices) -> Iterator[str]:
    if prices.stale:
        yield (
            f"{prices.stale} of {prices.instances} list prices are older than 90 days ({prices.oldest} to "
            f"{prices.newest}): check them before you spend money"
        )


def _shipped_models() -> Iterator[ShippedModel]:
    folder = files("epochcast.predict.cost")
    for name in ("learned.json", "layer_trees.json.gz"):
        content = folder.joinpath(name).read_bytes()
        document = json.loads(gzip.decompress(content) if name.endswith(".gz") else content)
        trained = document.get("trained") or document.get("card", {}).get("trained")
        yield ShippedModel(name, document["format"], trained, len(content))


def _blas_threads() -> int | None:
    """Threads of numpy's matrix products; None where threadpoolctl is not installed."""
    try:
        from threadpoolctl import threadpool_info
    except ModuleNotFoundError:
        return None
    import numpy as np

    del np  # loaded for its libraries
    return max((pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"), default=None)
