"""Documents with something wrong in them, drawn by hypothesis: nasty values, lost and doubled parts, damaged bytes."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import strategies as st

# Stands for a list nested so deeply, in the text of a document: hypothesis itself cannot show such a value.
NESTED = "@nested:"

NUMBERS = st.one_of(
    st.sampled_from([0, -1, 1, 2, 3, 7, 10**6, 10**9, 2**31, 2**63 - 1, 2**63, 10**26, 10**400, -(10**26)]),
    st.sampled_from([0.0, -0.0, 0.5, -1.5, 1e-300, 1e300, 5e-324, float("inf"), float("-inf"), float("nan")]),
    st.integers(-10, 300),
)
WORDS = st.one_of(
    st.sampled_from(
        ["", " ", "nan", "inf", "-inf", "1e999", "1e26", "null", "x", "ten", "0", "-1", "3x", "x" * 5000, "é\u200b\x00"]
    ),
    st.sampled_from(["__class__", "../../../etc/passwd", "a:b", "-", "2030-01-01", "1,5", "٣", "²", "resnet50", "fp8"]),
    st.text(max_size=8),
)
NASTY = st.one_of(
    NUMBERS,
    WORDS,
    st.booleans(),
    st.none(),
    st.sampled_from([[], {}, [[]], [{}], {"": None}, [0], [-1, 2], ["a"], [None], {"a": {"b": []}}]),
    st.integers(1, 3000).map(lambda depth: f"{NESTED}{depth}"),
)


Path = tuple[Any, ...]


def places(value: Any, path: Path = ()) -> Iterator[Path]:
    """Where a document has values."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


def at(document: Any, path: Path) -> Any:
    """The value at a place."""
    for key in path:
        document = document[key]
    return document


def _put(document: Any, path: Path, value: Any) -> Any:
    if not path:
        return value
    at(document, path[:-1])[path[-1]] = value
    return document


@st.composite
def mutated(draw: st.DrawFn, document: Any, *, most: int = 3) -> Any:
    """The document with one to `most` changes."""
    document = copied(document)
    for _ in range(draw(st.integers(1, most))):
        all_places = list(places(document))
        path = draw(st.sampled_from(all_places))
        if not path:
            continue
        parent, key = at(document, path[:-1]), path[-1]
        match draw(st.sampled_from(["value", "value", "value", "number", "lose", "double", "other", "rename"])):
            case "value":
                _put(document, path, copied(draw(NASTY)))
            case "number":
                numbers = [p for p in all_places if isinstance(at(document, p), int | float)]
                if numbers:
                    _put(document, draw(st.sampled_from(numbers)), draw(NUMBERS))
            case "lose":
                del parent[key]
            case "double" if isinstance(parent, list):
                parent.insert(key, copied(parent[key]))
            case "other":
                _put(document, path, copied(at(document, draw(st.sampled_from(all_places)))))
            case "rename" if isinstance(parent, dict):
                parent[draw(WORDS)] = parent.pop(key)
            case _:
                pass
    return document


def copied(value: Any) -> Any:
    """A copy of plain values."""
    if isinstance(value, dict):
        return {key: copied(inner) for key, inner in value.items()}
    return [copied(inner) for inner in value] if isinstance(value, list) else value


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """The bytes with some flipped, cut, doubled or put in."""
    data = bytearray(content)
    for _ in range(draw(st.integers(1, 4))):
        if not data:
            break
        place = draw(st.integers(0, len(data) - 1))
        match draw(st.sampled_from(["flip", "flip", "cut", "lose", "insert", "double"])):
            case "flip":
                data[place] ^= 1 << draw(st.integers(0, 7))
            case "cut":
                del data[place:]
            case "lose":
                del data[place : place + draw(st.integers(1, 16))]
            case "insert":
                data[place:place] = draw(st.binary(min_size=1, max_size=8))
            case "double":
                data[place:place] = data[place : place + draw(st.integers(1, 64))]
    return bytes(data)


def text_of(document: Any) -> bytes:
    """As JSON."""
    return _with_nested(json.dumps(document)).encode(errors="surrogatepass")


def _with_nested(text: str) -> str:
    return re.sub(rf'"{NESTED}(\d+)"', lambda match: "[" * int(match[1]) + "]" * int(match[1]), text)


def toml_of(document: Any) -> bytes:
    """As TOML with inline tables, as far as it has such values."""
    if not isinstance(document, dict):
        return b"x = 1"
    text = "\n".join(f"{_key(key)} = {_toml(value)}" for key, value in document.items())
    return _with_nested(text).encode(errors="surrogatepass")


def _key(key: Any) -> str:
    return json.dumps(str(key))


def _toml(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int() | str():
            return json.dumps(value)
        case float():
            return {float("inf"): "inf", float("-inf"): "-inf"}.get(value, repr(value))
        case list():
            return "[" + ", ".join(map(_toml, value)) + "]"
        case dict():
            return "{" + ", ".join(f"{_key(key)} = {_toml(inner)}" for key, inner in value.items()) + "}"
        case _:
            return '"none"'


def document_bytes(documents: list[Any], write: Callable[[Any], bytes]) -> st.SearchStrategy[bytes]:
    """Files of a kind: mostly one with wrong values, at times one with wrong bytes."""
    wrong = st.sampled_from(documents).flatmap(mutated).map(write)
    broken = st.sampled_from([write(document) for document in documents]).flatmap(damaged)
    return st.one_of(wrong, wrong, wrong, broken)
