"""Two sets of answers compared: what is equal, what moved, what is missing.

An answer is flattened to its values by path: `rows[0].step_seconds.mid`. Numbers are equal within a relative tolerance
(and 1e-15, the rounding of a sum that is zero). Texts of notes and messages may be reworded and are counted apart;
every other text, a verdict or the name of an offer, is part of the answer. A list that is longer or shorter moved. A
new key is no difference.

Keys that were renamed on purpose are listed in a TOML file, for all answers or for those of one chapter:

    [all]
    dollars_in_all = "dollars"          # anywhere
    dollars_low = "dollars.low"         # a flat key that became nested
    "rows[].allreduce" = "rows[].algorithm"
    old_key = ""                        # no longer given
    [track]
    "$.log" = "$.path"                  # at the top only
"""

import json
import math
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.answers.questions import BAD_INPUT

# Keys whose texts are sentences for people, in lists of them too.
NOTES = frozenset(
    {"warnings", "warning", "notes", "note", "why", "reason", "reasons", "message", "help", "text", "description"}
    | {
        "narrow_by",
        "sentence",
        "certainty",
        "critical_batch_source",
        "title",
        "summary",
        "problem",
        "problems",
        "source",
        "assumed_because",
        "detail",
    }
)
ROUNDING = 1e-15
MOST_LISTED = 40
LENGTH = "length"

Part = str | int
Path_ = tuple[Part, ...]


@dataclass(frozen=True)
class Difference:
    """A value that is not the same, by its path. `size` is relative, infinite where the values are not both numbers."""

    path: str
    before: Any
    after: Any
    size: float


@dataclass
class Comparison:
    """What differs between two answers to one question."""

    moved: list[Difference] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    texts: list[Difference] = field(default_factory=list)

    @property
    def is_equal(self) -> bool:
        return not self.moved and not self.missing


@dataclass(frozen=True)
class Renaming:
    """`old` anywhere in a path, or only at the top, is now `new`; nothing where the key is no longer given."""

    old: tuple[str, ...]
    new: tuple[str, ...]
    only_at_top: bool = False

    def apply(self, path: Path_) -> Path_ | None:
        """The path under its new name; None where it is no longer given."""
        places = range(1) if self.only_at_top else range(len(path) - len(self.old) + 1)
        for place in places:
            piece = path[place : place + len(self.old)]
            if len(piece) == len(self.old) and all(map(_matches, piece, self.old)):
                if not self.new:
                    return None
                indices = iter([part for part in piece if isinstance(part, int)])
                new = tuple(next(indices, 0) if part == "[]" else part for part in self.new)
                return (*path[:place], *new, *path[place + len(self.old) :])
        return path


def _matches(part: Part, pattern: str) -> bool:
    return isinstance(part, int) if pattern == "[]" else part == pattern


def read_renamings(path: Path) -> dict[str, list[Renaming]]:
    """Renamings by chapter; those under `all` hold for every chapter."""
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    return {chapter: [renaming(*pair) for pair in table.items()] for chapter, table in tables.items()}


def renaming(old: str, new: str) -> Renaming:
    """`"rows[].a"`, `"b.low"`; `$.` in front means at the top only."""
    return Renaming(_pattern(old), _pattern(new), old.startswith("$."))


def _pattern(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"\[\]|[^.\[\]]+", text.removeprefix("$.")))


def compare(before: Any, after: Any, renamings: Sequence[Renaming] = (), tolerance: float = 1e-9) -> Comparison:
    """Compare two JSON values."""
    old, new = dict(_renamed(_values(before), renamings)), dict(_values(after))
    comparison = Comparison()
    for path, value in old.items():
        if path not in new:
            if not _is_note(path):
                comparison.missing.append(_spelled(path))
        elif (size := _difference(value, new[path], tolerance)) > 0:
            difference = Difference(_spelled(path), value, new[path], size)
            (comparison.texts if _is_note(path) else comparison.moved).append(difference)
    comparison.added.extend(_spelled(path) for path in new.keys() - old.keys() if not _is_note(path))
    return comparison


def _values(value: Any, path: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    match value:
        case dict() if value:
            for key, inner in value.items():
                yield from _values(inner, (*path, str(key)))
        case list():
            yield (*path, LENGTH), len(value)
            for index, inner in enumerate(value):
                yield from _values(inner, (*path, index))
        case _:
            yield path, value


def _renamed(values: Iterator[tuple[Path_, Any]], renamings: Sequence[Renaming]) -> Iterator[tuple[Path_, Any]]:
    for path, value in values:
        renamed: Path_ | None = path
        for rule in renamings:
            renamed = None if renamed is None else rule.apply(renamed)
        if renamed is not None:
            yield renamed, value


def _is_note(path: Path_) -> bool:
    return any(part in NOTES for part in path)


def _difference(before: Any, after: Any, tolerance: float) -> float:
    """0 where two values count as equal."""
    if _is_number(before) and _is_number(after):
        if math.isclose(before, after, rel_tol=tolerance, abs_tol=ROUNDING):
            return 0.0
        return float(abs(after - before) / max(abs(before), abs(after)))
    return 0.0 if type(before) is type(after) and before == after else math.inf


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _spelled(path: Path_) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


def compare_files(
    before: Path, after: Path, renamed: Path | None = None, *, texts: bool = False, tolerance: float = 1e-9
) -> int:
    """Print a table by chapter and what moved; 1 where something moved or is missing."""
    renamings = read_renamings(renamed) if renamed else {}
    old, new = _read(before), _read(after)
    compared = {name: _compare_rows(row, new.get(name), renamings, tolerance) for name, row in old.items()}
    _print_table(old, compared)
    _print_differences(old, new, compared, texts)
    if extra := sorted(new.keys() - old.keys()):
        print(f"{len(extra)} answers only in {after.name}, such as {', '.join(extra[:5])}")
    return int(any(not each.is_equal or (texts and each.texts) for each in compared.values()))


def _read(path: Path) -> dict[str, dict[str, Any]]:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {row["id"]: row for row in rows}


def _compare_rows(
    before: Mapping[str, Any],
    after: Mapping[str, Any] | None,
    renamings: Mapping[str, list[Renaming]],
    tolerance: float,
) -> Comparison:
    if after is None:
        return Comparison(missing=["the whole answer"])
    used = [*renamings.get("all", []), *renamings.get(before["chapter"], [])]
    comparison = compare(before["answer"], after["answer"], used, tolerance)
    if before["exit_code"] != after["exit_code"]:
        comparison.moved.insert(0, Difference("exit code", before["exit_code"], after["exit_code"], math.inf))
    if before["message"] != after["message"]:
        comparison.texts.append(Difference("message", before["message"], after["message"], math.inf))
    return comparison


def _print_table(rows: Mapping[str, Mapping[str, Any]], compared: Mapping[str, Comparison]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("command", "questions", "equal", "moved", "missing", "texts", "largest difference")
    chapters = list(dict.fromkeys(row["chapter"] for row in rows.values()))
    for chapter in sorted(chapters, key=lambda name: name == BAD_INPUT):  # apart, at the end
        comparisons = [compared[name] for name, row in rows.items() if row["chapter"] == chapter]
        moved = [difference for comparison in comparisons for difference in comparison.moved]
        largest = max(moved, key=lambda difference: difference.size, default=None)
        counts = (
            len(comparisons),
            _count(comparisons, "is_equal"),
            _count(comparisons, "moved"),
            _count(comparisons, "missing"),
            _count(comparisons, "texts"),
        )
        table.add_row(chapter, *map(str, counts), "" if largest is None else f"{largest.size:.2g} {largest.path}")
    Console(width=120, highlight=False).print(table)


def _count(comparisons: Sequence[Comparison], attribute: str) -> int:
    return sum(bool(getattr(comparison, attribute)) for comparison in comparisons)


def _print_differences(
    old: Mapping[str, Mapping[str, Any]],
    new: Mapping[str, Mapping[str, Any]],
    compared: Mapping[str, Comparison],
    texts: bool,
) -> None:
    lines = []
    for name, comparison in compared.items():
        if name in new and old[name]["argv"] != new[name]["argv"]:
            lines.append(f"{name}: asked as {' '.join(old[name]['argv'])!r}, then as {' '.join(new[name]['argv'])!r}")
        shown = sorted(comparison.moved, key=lambda difference: -difference.size)[:3] + (
            comparison.texts if texts else []
        )
        lines += [f"{name}: {each.path} was {each.before!r}, is {each.after!r} ({each.size:.2g})" for each in shown]
        lines += [f"{name}: {path} is missing" for path in comparison.missing[:3]]
    for line in lines[:MOST_LISTED]:
        print(line[:400])
    if len(lines) > MOST_LISTED:
        print(f"and {len(lines) - MOST_LISTED} more")
    _print_counted("reworded", Counter(re.sub(r"\[\d+\]", "[]", t.path) for c in compared.values() for t in c.texts))
    _print_counted("new keys", Counter(re.sub(r"\[\d+\]", "[]", path) for c in compared.values() for path in c.added))


def _print_counted(title: str, paths: Counter[str]) -> None:
    if paths:
        print(f"{title}: {', '.join(f'{path} ({count})' for path, count in paths.most_common(20))}")
