"""Answers whose JSON is read from what they hold: each key has the path of an attribute.

An answer holds the job, its forecasts and its offers; its JSON has single values of them. A class lists them once, and
`as_dict` and `json_schema` follow:

    >>> from dataclasses import dataclass
    >>> from epochcast.interval import Interval
    >>> @dataclass(frozen=True)
    ... class Stay(AnswerRecord):
    ...     dollars: Interval
    ...     interval: Interval | None = None
    ...     json_paths: ClassVar[Mapping[str, str]] = paths("dollars", price="dollars.mid", longest="interval.high")
    >>> Stay(Interval(1.0, 2.0, 4.0)).as_dict()["price"], Stay(Interval(1.0, 2.0, 4.0)).as_dict()["longest"]
    (2.0, None)
    >>> Stay.json_schema()["properties"]["longest"]
    {'anyOf': [{'type': 'number'}, {'type': 'null'}]}
"""

from collections.abc import Mapping
from inspect import get_annotations
from types import NoneType, UnionType
from typing import Any, ClassVar, Union, get_args, get_origin, get_type_hints

from epochcast.base.record import Record, described, plain, schema_of


def paths(*names: str, **others: str) -> Mapping[str, str]:
    """Attributes by their own names, and others by the path that a key has."""
    return {**{name: name for name in names}, **others}


class AnswerRecord(Record):
    """Base of frozen dataclasses whose JSON has values of what they hold."""

    __slots__ = ()

    json_paths: ClassVar[Mapping[str, str]] = {}
    """The path of each key, such as `offer.instance.name`. A None on the way gives null."""
    json_optional: ClassVar[tuple[str, ...]] = ()
    """Keys that are left out where they are null."""
    json_merged: ClassVar[tuple[str, ...]] = ()
    """Attributes that are mappings, whose keys stand beside the others."""

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: plain values by name."""
        values = {key: plain(_value(self, path)) for key, path in self.json_paths.items()}
        shown = {key: value for key, value in values.items() if value is not None or key not in self.json_optional}
        return shown | {key: value for name in self.json_merged for key, value in plain(getattr(self, name)).items()}

    @classmethod
    def object_schema(cls, definitions: dict[str, Any]) -> dict[str, Any]:
        """The schema without `$defs`; records inside it are added to `definitions`."""
        properties = {key: schema_of(_hint(cls, path), definitions) for key, path in cls.json_paths.items()}
        return described(cls, properties, (key for key in properties if key not in cls.json_optional))


def _value(owner: object, path: str) -> Any:
    for name in path.split("."):
        owner = getattr(owner, name)
        if owner is None:
            return None
    return owner


def _hint(owner: Any, path: str) -> Any:
    """The type at the end of a path; Any where a name in it is imported for type checkers alone."""
    kind, is_optional = owner, False
    for name in path.split("."):
        kind = _attribute_type(kind, name)
        if get_origin(kind) in (Union, UnionType) and NoneType in get_args(kind):
            is_optional = True
            others = [each for each in get_args(kind) if each is not NoneType]
            kind = others[0] if len(others) == 1 else Any
    return kind | None if is_optional and kind is not Any else kind


def _attribute_type(kind: Any, name: str) -> Any:
    if not isinstance(kind, type):
        return Any
    member = getattr(kind, name, None)
    compute = getattr(member, "fget", None) or getattr(member, "_compute", None)
    try:
        return get_type_hints(compute).get("return", Any) if compute else get_type_hints(kind).get(name, Any)
    except NameError:
        hint = get_annotations(compute).get("return") if compute else get_annotations(kind).get(name)
        return Any if hint is None or isinstance(hint, str) else hint
