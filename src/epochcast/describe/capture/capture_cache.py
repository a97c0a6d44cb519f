"""Captured steps cached on disk, so that a model is run on `meta` once and read in milliseconds afterwards.

A file is named by the SHA-256 of what is known before the model is made: the reference, the input size, the recipe
without its batch, the versions of Python and of the packages that build and run models, and the sources of epochcast.
Inside stands what turned out while it was made (`depends`): every file that was imported or opened from outside the
installed packages, and the variables of the environment that the user's files read. Where one of these has changed the
model is made again. It is gzipped JSON, written to a temporary file and then moved into place. A file that cannot be
read or written costs a warning. EPOCHCAST_CACHE names the folder; `off` turns it off.
"""

import gzip
import json
import os
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from epochcast.base.atomic_files import write_bytes
from epochcast.base.caching import Cache, remembered
from epochcast.base.documents import parse_json, unzipped
from epochcast.describe.capture.capture_dependencies import Depends
from epochcast.describe.capture.capture_listeners import capturing
from epochcast.describe.capture.model import Model
from epochcast.describe.capture.model_reference import CONFIGURED, ModelReference
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.serialization import graph_from_json, graph_to_json, trace_from_json, trace_to_json
from epochcast.describe.graph.trace import Trace
from epochcast.errors import EpochcastError

FORMAT = 3
"""The version of the file format. It is part of the file name, so files of other versions are never read."""
PACKAGES = ("torch", "timm", "torchvision", "transformers", "keras", "epochcast")


class CacheWarning(UserWarning):
    """A file of the cache could not be read or written; the answer does not depend on it."""


def folder() -> Path | None:
    """The folder of the cache; None where the cache is off."""
    setting = os.environ.get("EPOCHCAST_CACHE")
    if setting is not None:
        return None if setting.strip().casefold() in ("", "off", "0", "none") else Path(setting)
    from platformdirs import user_cache_path

    return user_cache_path("epochcast") / "captures"


@dataclass(eq=False)
class CachedModel:
    """A model that is loaded only if its step is not on disk. `about` is what it depends on besides the recipe,
    `host_class` the kind of host that usually launches its kernels.
    """

    name: str
    about: Mapping[str, Any]
    load: Callable[[], Model]
    host_class: str | None = None
    _traces: Cache[Recipe, Trace] = field(init=False, repr=False, default_factory=partial(Cache, 32))
    _loaded: Cache[str, Model] = field(init=False, repr=False, default_factory=partial(Cache, 1))
    _answers_depend: Cache[str, Depends] = field(init=False, repr=False, default_factory=partial(Cache, 1))

    @property
    def model(self) -> Model:
        """The model itself, loaded on first use."""
        return self._loaded.get("model", self.load)

    @property
    def is_stale(self) -> bool:
        """Whether something that its answers depended on has changed since."""
        return not self.depends.holds()

    @property
    def depends(self) -> Depends:
        """What its answers depended on so far."""
        return self._answers_depend.get("depends", Depends)

    def graph(self, batch: int) -> Graph:
        """The forward pass at a batch size."""
        graph: Graph = self._cached({"graph": batch}, graph_from_json, graph_to_json, lambda: self.model.graph(batch))
        return graph

    def trace(self, recipe: Recipe) -> Trace:
        """One step by a recipe, from disk if it is there."""
        single = recipe.at(1).eager()
        # a compiler changes no op: the key is as it was before there were any
        key = {"recipe": {name: value for name, value in asdict(single).items() if name != "compile"}}
        trace: Trace = self._traces.get(
            single,
            lambda: self._cached(key, trace_from_json, trace_to_json, lambda: self.model.trace(single)),
        )
        return trace.under(recipe)

    def _cached(
        self,
        key: Mapping[str, Any],
        decode: Callable[..., Any],
        encode: Callable[[Any], Any],
        make: Callable[[], Any],
    ) -> Any:
        """The value on disk for a key; else what `make` returns, which is then written to disk."""
        cache_folder = folder()
        if cache_folder is None:
            with capturing(self.name):
                value = make()
            self._note(self._depends)
            return value
        text = json.dumps({"format": FORMAT, **self.about, **key}, sort_keys=True, default=str)
        path = cache_folder / f"{sha256(text.encode()).hexdigest()}.json.gz"
        cached = _read(path, decode)
        if cached is not None:
            value, depends = cached
        else:
            with capturing(self.name):
                value, depends = make(), self._depends
            _write(path, {"depends": depends.as_dict(), "value": encode(value)})
        self._note(depends)
        return value

    @property
    def _depends(self) -> Depends:
        """What a model says that it depended on, or the files of its reference."""
        from epochcast.describe.capture.subprocess_capture import IsolatedModel

        model = self.model
        return model.depends if isinstance(model, IsolatedModel) else Depends.on(files_of(self.name))

    def _note(self, depends: Depends) -> None:
        self._answers_depend.clear()
        self._answers_depend.get("depends", lambda: depends)


def _read(path: Path, decode: Callable[..., Any]) -> tuple[Any, Depends] | None:
    """The value in a file and what it depends on; None where there is none, or where that has changed."""
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as problem:
        _warn_unread(path, problem)
        return None
    try:
        document = parse_json(unzipped(content, path.name), path.name)
        if not isinstance(document, dict) or "depends" not in document:
            raise ValueError("it holds no capture")
        depends = Depends.from_dict(document["depends"])
        return (decode(document.get("value")), depends) if depends.holds() else None
    except (OSError, ValueError, EpochcastError) as problem:  # damaged, or JSON but not a step
        _warn_unread(path, problem)
        return None


def _warn_unread(path: Path, problem: Exception) -> None:
    warnings.warn(f"the cached capture {path.name} is ignored: {problem}", CacheWarning, stacklevel=5)


def _write(path: Path, document: Any) -> None:
    """Write atomically: another process may read or write the same file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(document, separators=(",", ":"))
        write_bytes(path, gzip.compress(text.encode(), compresslevel=5, mtime=0))
    except OSError as problem:
        warnings.warn(f"the capture is not cached: {problem}", CacheWarning, stacklevel=4)


# ---- what a step depends on ---------------------------------------------------------------------


def about(reference: str, input_shape: tuple[int, ...] | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """Everything that determines the capture and is known beforehand, except the recipe."""
    return {
        "reference": _absolute_reference(reference),
        "input": input_shape,
        "options": {name: repr(value) for name, value in sorted(options.items())},
        "versions": {"python": sys.version, **{package: _version(package) for package in PACKAGES}},
        "ours": _epochcast_sources(),
        "imports": [] if ModelReference.of(reference).prefix else sys.path,
    }


def _absolute_reference(reference: str) -> str:
    """A reference that means the same from every folder."""
    parts = ModelReference.of(reference)
    if files_of(reference):
        return parts.with_file(os.path.abspath(parts.file))
    if parts.prefix:
        return reference
    return parts.with_file(os.path.abspath(parts.file)) if parts.script else f"{os.getcwd()}:{reference}"


def files_of(reference: str) -> tuple[Path, ...]:
    """The files that a reference names, which are read but not run."""
    parts = ModelReference.of(reference)
    if parts.prefix not in CONFIGURED:
        return ()
    name = parts.name
    path = Path(name) / "config.json" if os.path.isdir(name) else Path(name)
    return (path.absolute(),) if path.suffix == ".json" else ()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


@remembered(1)
def _epochcast_sources() -> str:
    """A digest of epochcast's own sources, which may change between two releases."""
    root = Path(__file__).parents[1]
    total = sha256()
    for path in sorted([*(root / "graph").rglob("*.py"), *(root / "capture").rglob("*.py")]):
        total.update(path.name.encode() + b"\0" + path.read_bytes())
    return total.hexdigest()
