"""Files of settings as tables: JSON, YAML, TOML, lines of NAME=value, read within bounds and never run.

YAML is read by the safe loader. Anchors may be used, as far as what they stand for stays small.
"""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from epochcast.errors import BadInput, MissingExtra

MOST_BYTES = 1_000_000
"""A larger file is no config."""
MOST_NODES = 50_000
"""Values of a YAML file, those that an anchor repeats counted each time."""


def read_text(file: Path) -> str:
    """The text of a file of settings."""
    with file.open("rb") as stream:
        content = stream.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise BadInput(f"{file.name} has more than {MOST_BYTES:,} bytes: too large for a settings file")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadInput(f"{file.name} is not text in UTF-8") from None


def document_of(file: Path, text: str) -> Mapping[str, Any]:
    """The table in a file, by its ending or its first character."""
    suffix = file.suffix.casefold()
    if suffix == ".toml":
        document = _from_toml(file.name, text)
    elif suffix in (".json", ".jsonc") or text.lstrip()[:1] in ("{", "["):
        document = _from_json(file.name, text)
    else:
        document = _from_yaml(file.name, text)
    if not isinstance(document, Mapping) or not all(isinstance(key, str) for key in document):
        raise BadInput(f"{file.name} is not a settings file: it has no table of names and values")
    return document


def _from_toml(name: str, text: str) -> Any:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadInput(f"{name} is not TOML: {str(error).splitlines()[0]}") from None


def _from_json(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        line = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        raise BadInput(f"{name} is not JSON{line}") from None


def _from_yaml(name: str, text: str) -> Any:
    try:
        import yaml
    except ModuleNotFoundError:
        raise MissingExtra("yaml", "PyYAML") from None
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            return {}
        if _size(node, {}) > MOST_NODES:
            raise BadInput(f"{name}: its aliases (*name) stand for more than {MOST_NODES:,} values; write them out")
        return loader.construct_document(node)
    except yaml.composer.ComposerError as error:
        raise BadInput(f"{name} is not YAML{_place(error)}: {_alias_problem(error)}") from None
    except yaml.YAMLError as error:
        raise BadInput(f"{name} is not YAML{_place(error)}") from None
    except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"{name} is not YAML") from None


def _place(error: Any) -> str:
    mark = getattr(error, "problem_mark", None)
    return f" (line {mark.line + 1})" if mark is not None else ""


def _alias_problem(error: Any) -> str:
    """An alias without its anchor is the usual one."""
    problem = str(getattr(error, "problem", "") or "")
    if "undefined alias" in problem:
        return f"no anchor for the alias *{problem.rpartition(' ')[2].strip(chr(39))}; write the value out"
    return problem or "more than one document"


def _size(node: Any, sizes: dict[Any, int]) -> int:
    """Values below a node, those behind an alias counted each time; one that contains itself has no end."""
    if node in sizes:
        return sizes[node]
    sizes[node] = MOST_NODES + 1  # while it is counted: found again, it contains itself
    total = 1
    if isinstance(node.value, list):
        for child in node.value:
            total += sum(_size(each, sizes) for each in (child if isinstance(child, tuple) else (child,)))
    sizes[node] = total
    return total
