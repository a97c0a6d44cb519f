"""What a check found, kept in a file from run to run as long as no source of epochcast or of the study has changed."""

import json
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

import epochcast
from studies.laws.jobs import Case
from training.examples import scratch

Lines = Mapping[str, list[str]]
_SUFFIXES = (".py", ".toml", ".json", ".npz", ".txt", ".csv", ".gz")


class Kept:
    """Lines by law of groups of cases: one JSON object per line, appended when a group is done."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: dict[str, dict[str, list[str]]] = {}
        if path.exists():
            entries = map(json.loads, path.read_text(encoding="utf-8").splitlines())
            self._known = {entry["key"]: entry["lines"] for entry in entries}

    @classmethod
    def of_this_code(cls) -> "Kept":
        """The file for epochcast and the study as they are now, with the numbers that are shipped."""
        folders = Path(epochcast.__file__).parent, Path(__file__).parent
        total = sha256()
        for path in sorted(p for folder in folders for p in folder.rglob("*") if p.suffix in _SUFFIXES):
            total.update(path.name.encode() + b"\0" + path.read_bytes())
        folder = scratch()
        folder.mkdir(parents=True, exist_ok=True)
        return cls(folder / f"laws-{total.hexdigest()[:16]}.jsonl")

    def get(self, part: str, cases: Sequence[Case], check: Callable[[], Lines]) -> Lines:
        """What was found of these cases, or what `check` finds now."""
        key = sha256("\n".join([part, *map(str, cases)]).encode()).hexdigest()
        if key not in self._known:
            lines = {law: list(found) for law, found in check().items()}
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"key": key, "lines": lines}) + "\n")
            self._known[key] = lines
        return self._known[key]
