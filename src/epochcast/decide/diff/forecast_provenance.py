"""Who made a forecast: the version of epochcast, and a digest of the numbers it forecasts with.

Two forecasts can be compared only where both are equal; else a difference may be of epochcast and not of the job.
"""

from dataclasses import dataclass
from hashlib import blake2b
from importlib import import_module
from importlib.resources import files
from importlib.resources.abc import Traversable

from epochcast.base.caching import remembered

_PACKAGES = ("epochcast.predict.cost", "epochcast.predict.comm", "epochcast.predict.memory", "epochcast.hardware")
_ENDINGS = (".toml", ".json", ".txt")


@dataclass(frozen=True, slots=True)
class Provenance:
    """The version, and the digest of the shipped tables and models (prices included)."""

    version: str
    model: str

    def __str__(self) -> str:
        return f"epochcast {self.version} (model {self.model})"


@remembered(1)
def own_provenance() -> Provenance:
    """This epochcast."""
    digest = blake2b(digest_size=6)
    for package in _PACKAGES:
        for file in sorted(_files(files(package)), key=lambda file: file.name):
            digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return Provenance(str(import_module("epochcast").__version__), digest.hexdigest())


def _files(folder: Traversable) -> list[Traversable]:
    return [file for file in folder.iterdir() if file.is_file() and file.name.endswith(_ENDINGS)]
