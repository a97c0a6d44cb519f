"""`epochcast.lock`: the last accepted forecast of every job, beside `epochcast.toml`.

A comparison with it needs neither the network nor the code of the base. It is JSON, sorted and one line per number, so
that a change of it can be read in a review; the tables of layers and kernels are what names the layers responsible and
says how sure a change is. A lock that another version of epochcast or another cost model wrote still shows the
difference, but a limit is not checked against it: the difference would be of the model, not of the code.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from epochcast.base.atomic_files import write_text
from epochcast.base.documents import parse_json, read_text
from epochcast.decide.diff.diff_side import Side
from epochcast.decide.diff.forecast_provenance import Provenance, own_provenance
from epochcast.errors import BadInput, UnknownName

FILE = "epochcast.lock"
FORMAT = 1
MOST_BYTES = 64_000_000


@dataclass(frozen=True)
class Locked:
    """One job as it was accepted, and who forecast it."""

    side: Side
    provenance: Provenance

    @property
    def is_ours(self) -> bool:
        """Whether this epochcast would have made it."""
        return self.provenance == own_provenance()


@dataclass(frozen=True)
class Lock:
    """The accepted jobs by name."""

    jobs: Mapping[str, Locked] = field(default_factory=dict, hash=False)

    def job(self, name: str, path: Path) -> Locked:
        """The one of that name."""
        if name not in self.jobs:
            raise UnknownName(f"accepted job in {path.name}", name, self.jobs)
        return self.jobs[name]

    def accepting(self, sides: Mapping[str, Side]) -> "Lock":
        """With these jobs as they are now; others stay."""
        return Lock({**self.jobs, **{name: Locked(side, own_provenance()) for name, side in sides.items()}})

    def text(self) -> str:
        """The file."""
        jobs = {name: _job(locked) for name, locked in sorted(self.jobs.items())}
        document = json.dumps({"format": FORMAT, "jobs": jobs}, indent=1, ensure_ascii=False)
        return f"{document}\n"

    def write(self, path: Path) -> None:
        """Write the file whole."""
        write_text(path, self.text())


def read_lock(path: Path) -> Lock:
    """The lock of a file."""
    if not path.is_file():
        raise BadInput(f"no {path.name} in {path.parent}; `epochcast diff --lock --accept` writes one")
    document = parse_json(read_text(path, MOST_BYTES), path.name)
    if not isinstance(document, dict) or not isinstance(document.get("jobs"), dict):
        raise BadInput(f"{path.name} is no lock of epochcast; `epochcast diff --lock --accept` writes one")
    if document.get("format") != FORMAT:
        raise BadInput(
            f"{path.name} has format {document.get('format')!r}, this epochcast reads {FORMAT}; "
            "renew it with: epochcast diff --lock --accept"
        )
    return Lock({name: _locked(path, name, values) for name, values in document["jobs"].items()})


def _job(locked: Locked) -> dict[str, Any]:
    side = locked.side
    return {
        "epochcast": locked.provenance.version,
        "model": locked.provenance.model,
        "name": side.name,
        "is_known": side.is_known,
        "notes": list(side.notes),
        "forecast": side.forecast.as_dict(),
        "layers": [f"{layer.signature} {layer.seconds:.6g} {layer.name}" for layer in side.layers],
        "kernels": [f"{signature} {seconds:.6g}" for signature, seconds in sorted(side.kernels.items())],
    }


def _locked(path: Path, name: str, values: Any) -> Locked:
    try:
        layers = [line.split(" ", 2) for line in values["layers"]]
        kernels = [line.split() for line in values["kernels"]]
        side = Side.from_dict(
            {
                **values,
                "layers": [{"name": n, "seconds": float(s), "signature": signature} for signature, s, n in layers],
                "kernels": {signature: float(seconds) for signature, seconds in kernels},
            }
        )
        return Locked(side, Provenance(str(values["epochcast"]), str(values["model"])))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadInput(f"{path.name}: job {name!r} is damaged ({error}); renew it with --accept") from None
