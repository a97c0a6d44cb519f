"""One name, one thing: classes and modules can be found by searching, and the map names what exists."""

import ast
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src" / "epochcast"
MAP, GLOSSARY = ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"
MOST_MAP_LINES, MOST_TERMS = 200, 60
MOST_ROOMS = 9
# Names that say nothing of a value; it has one of its own: `match`, `row`, `report`.
EMPTY_NAMES = {"told", "found", "made", "whos", "known", "one"}
NAMED_WELL = (SRC, ROOT / "benchmarks", ROOT / "fuzz")
# Folders that the map names beside those of the package.
BESIDE = ("training/", "studies/", "benchmarks/", "fuzz/", "docs/", "tests/")


def _named_twice(places: dict[str, list[str]]) -> list[str]:
    return [f"{name}: {', '.join(sorted(homes))}" for name, homes in sorted(places.items()) if len(homes) > 1]


def test_a_class_name_is_defined_once() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in SRC.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(str(path.relative_to(SRC)))
    assert _named_twice(places) == []


def test_a_module_name_is_used_once() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in SRC.rglob("*.py"):
        if not path.name.startswith("__"):
            places[path.name].append(str(path.relative_to(SRC)))
    assert _named_twice(places) == []


def _bound_names(node: ast.AST) -> list[str | None]:
    """Names that a node gives to a value: locals, arguments, attributes, functions."""
    match node:
        case ast.Name(ctx=ast.Store()):
            return [node.id]
        case ast.Attribute(ctx=ast.Store()):
            return [node.attr]
        case ast.arg():
            return [node.arg]
        case ast.FunctionDef() | ast.ExceptHandler() | ast.MatchAs() | ast.MatchStar():
            return [node.name]
        case ast.alias():
            return [node.asname]
    return []


def test_a_value_is_named_after_what_it_is() -> None:
    offenders = [
        f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}: {name}"
        for folder in NAMED_WELL
        for path in sorted(folder.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for name in _bound_names(node)
        if name is not None and name.strip("_") in EMPTY_NAMES
    ]
    assert offenders == []


def test_the_package_has_few_rooms_and_each_says_what_it_is() -> None:
    rooms = [path for path in SRC.iterdir() if path.is_dir() and path.name != "__pycache__"]
    assert len(rooms) <= MOST_ROOMS
    assert [room.name for room in rooms if f"| `{room.name}/` |" not in MAP.read_text(encoding="utf-8")] == []


def test_the_map_is_short_and_names_what_exists() -> None:
    text = MAP.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MOST_MAP_LINES
    names = {path.name for path in ROOT.rglob("*.py") if ".venv" not in path.parts}
    paths = set(re.findall(r"`([a-z_]+(?:/[a-z_]+)*(?:/|\.py|/[a-z_]+\.py))`", text))
    assert len(paths) > 40
    gone = [
        path
        for path in sorted(paths)
        if not (
            (SRC / path).exists() or (ROOT / path).exists() or path in BESIDE or ("/" not in path and path in names)
        )
    ]
    assert gone == []


def test_the_glossary_is_short() -> None:
    text = GLOSSARY.read_text(encoding="utf-8").partition("## Glossary")[2].partition("\n## ")[0]
    terms = re.findall(r"^\| \*\*([^*]+)\*\* \|", text, re.MULTILINE)
    assert 30 <= len(terms) <= MOST_TERMS
    assert len(terms) == len(set(terms))
