"""Captured steps cached on disk, so that a model is run on `meta` once and read in milliseconds afterwards.

A file is named by the SHA-256 of everything the step depends on: the reference, the input size, the recipe without its
batch, the files the reference points at (and the sources beside them), the versions of the packages that build and run
the model, and the sources of epochcast. It holds gzipped JSON. It is written to a temporary file and then moved into
place. A file that cannot be read is ignored, with a warning. EPOCHCAST_CACHE names the folder; `off` turns it off.
"""

import gzip
import json
import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from epochcast.atomic import write_bytes
from epochcast.caching import Cache, remembered
from epochcast.capture.model import Model
from epochcast.documents import parse_json, unzipped
from epochcast.errors import BadInput
from epochcast.graph.op import Graph
from epochcast.graph.recipe import Recipe
from epochcast.graph.serial import graph_from_json, graph_to_json, trace_from_json, trace_to_json
from epochcast.graph.trace import Trace

FORMAT = 2
"""The version of the file format. It is part of the file name, so files of other versions are never read."""
PACKAGES = ("torch", "timm", "torchvision", "transformers", "epochcast")
SOURCE_ENDINGS = (".py", ".json", ".yaml", ".yml", ".toml")
MOST_SOURCES = 400
"""A folder with more source files than this is not read, and models from it are not cached."""


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
    """A model that is loaded only if its step is not on disk. `about` is what it depends on besides the recipe."""

    name: str
    about: Mapping[str, Any]
    load: Callable[[], Model]
    _traces: Cache[Recipe, Trace] = field(init=False, repr=False, default_factory=partial(Cache, 32))
    _loaded: Cache[str, Model] = field(init=False, repr=False, default_factory=partial(Cache, 1))

    @property
    def model(self) -> Model:
        """The model itself, loaded on first use."""
        return self._loaded.get("model", self.load)

    def graph(self, batch: int) -> Graph:
        """The forward pass at a batch size."""
        key = {**self.about, "graph": batch}
        graph: Graph = _cached(key, graph_from_json, graph_to_json, lambda: self.model.graph(batch))
        return graph

    def trace(self, recipe: Recipe) -> Trace:
        """One step by a recipe, from disk if it is there."""
        single = recipe.at(1).eager()
        # a compiler changes no op: the key is as it was before there were any
        key = {**self.about, "recipe": {name: value for name, value in asdict(single).items() if name != "compile"}}
        trace: Trace = self._traces.get(
            single,
            lambda: _cached(key, trace_from_json, trace_to_json, lambda: self.model.trace(single)),
        )
        return trace.under(recipe)


def _cached(
    key: Mapping[str, Any], decode: Callable[..., Any], encode: Callable[[Any], Any], make: Callable[[], Any]
) -> Any:
    """The value on disk for a key; else what `make` returns, which is then written to disk."""
    cache_folder = folder()
    if cache_folder is None or key.get("sources") == "many":
        return make()
    text = json.dumps({"format": FORMAT, **key}, sort_keys=True, default=str)
    path = cache_folder / f"{sha256(text.encode()).hexdigest()}.json.gz"
    value = _read(path, decode)
    if value is None:
        value = make()
        _write(path, encode(value))
    return value


def _read(path: Path, decode: Callable[..., Any]) -> Any:
    if not path.exists():
        return None
    try:
        return decode(parse_json(unzipped(path.read_bytes(), path.name), path.name))
    except (OSError, BadInput) as problem:  # BadInput: damaged, or no step
        warnings.warn(f"the cached capture {path.name} is ignored: {problem}", CacheWarning, stacklevel=4)
        return None


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
    """Everything that determines the capture, except the recipe."""
    return {
        "reference": reference,
        "input": input_shape,
        "options": {name: repr(value) for name, value in sorted(options.items())},
        "versions": {package: _version(package) for package in PACKAGES},
        "ours": _own_sources(),
        "sources": _sources_behind(reference),
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


@remembered(1)
def _own_sources() -> str:
    """A digest of epochcast's own sources, which may change between two releases."""
    root = Path(__file__).parents[1]
    return _digest(
        [*(root / "graph").glob("*.py"), *(root / "capture").glob("*.py"), *(root / "capture/torch").glob("*.py")]
    )


def _sources_behind(reference: str) -> str:
    """A digest of the files a reference runs or reads; "many" where there are too many to read."""
    place, _, _ = reference.rpartition(":")
    family, _, name = reference.partition(":")
    if family in ("timm", "torchvision"):
        return ""
    if family == "hf":
        path = Path(name)
        return _digest([path]) if path.suffix == ".json" and path.is_file() else ""
    if place.endswith(".py"):
        return _tree(Path(place).resolve().parent)
    return _package_sources(place.partition(".")[0]) if place else ""


def _package_sources(name: str) -> str:
    """A digest of a package in the working directory, which an import would find first, or of an installed one."""
    local_package = Path.cwd() / name
    if local_package.is_dir():
        return _tree(local_package)
    if local_package.with_suffix(".py").is_file():
        return _tree(Path.cwd())
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        return ""
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        return ""
    return _tree(Path(spec.origin).parent) if spec.submodule_search_locations else _digest([Path(spec.origin)])


def _tree(root: Path) -> str:
    paths = []
    for path in root.rglob("*"):
        if path.suffix in SOURCE_ENDINGS and path.is_file():
            paths.append(path)
        if len(paths) > MOST_SOURCES:
            return "many"
    return _digest(paths)


def _digest(paths: Iterable[Path]) -> str:
    total = sha256()
    for path in sorted(paths):
        total.update(path.name.encode() + b"\0" + path.read_bytes())
    return total.hexdigest()
