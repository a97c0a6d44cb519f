"""Values that are measured, drawn or the machine's own, replaced by placeholders of their type.

A path names keys from the top: `rows[].seconds`, `[0].at_seconds` of the first in a list. A question mark at
its end allows a value of any type, or no such key. Any other path that leads nowhere is an error, so that no mask
outlives its key.

>>> masked({"seconds": 0.25, "rows": [{"id": "x7", "n": 3}]}, ["seconds", "rows[].id", "host?"])
{'seconds': '<number>', 'rows': [{'id': '<text>', 'n': 3}], 'host': '<any>'}
>>> masked({"n": 1}, ["m"])
Traceback (most recent call last):
  ...
LookupError: no value at m
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

EACH = "[]"
PLACEHOLDERS: Mapping[type, str] = {
    bool: "<true or false>",
    int: "<integer>",
    float: "<number>",
    str: "<text>",
    list: "<list>",
    dict: "<object>",
    type(None): "<null>",
}
ANY = "<any>"


def masked(value: Any, paths: Iterable[str]) -> Any:
    """The same JSON with placeholders at the paths."""
    for path in paths:
        value, masks = _masked_at(value, re.findall(r"\[\]|[^.\[\]?]+", path), path.endswith("?"))
        if not masks:
            raise LookupError(f"no value at {path}")
    return value


def _masked_at(value: Any, path: Sequence[str], may_lack: bool) -> tuple[Any, int]:
    """The value with placeholders, and how many."""
    if not path:
        return ANY if may_lack else PLACEHOLDERS[type(value)], 1
    head, *rest = path
    if head == EACH and isinstance(value, list):
        pairs = [_masked_at(inner, rest, may_lack) for inner in value]
        return [inner for inner, _ in pairs], sum(masks for _, masks in pairs)
    if head.isdecimal() and isinstance(value, list):
        inner, masks = _masked_at(value[int(head)], rest, may_lack)
        return [*value[: int(head)], inner, *value[int(head) + 1 :]], masks
    if isinstance(value, dict) and (head in value or (may_lack and not rest)):
        inner, masks = _masked_at(value.get(head), rest, may_lack)
        return {**value, head: inner}, masks
    return value, 0
