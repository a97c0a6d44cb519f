"""The JSON schema (2020-12) of a record follows from its fields.

>>> from dataclasses import dataclass
>>> from typing import ClassVar
>>> from epochcast.base.record import paths
>>> @dataclass(frozen=True)
... class Stay(Record):
...     pause: Interval | None = None
...     json_paths: ClassVar[Mapping[str, str]] = paths(longest="pause.high")
>>> json_schema(Stay)["properties"]["longest"]
{'anyOf': [{'type': 'number'}, {'type': 'null'}]}
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from enum import Enum
from inspect import get_annotations
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from epochcast.base.record import VERSION, Record, field_types, shape_of
from epochcast.interval import Interval

_SCHEMAS: Mapping[Any, dict[str, Any]] = {
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    bool: {"type": "boolean"},
    NoneType: {"type": "null"},
    datetime: {"type": "string", "format": "date-time"},
    date: {"type": "string", "format": "date"},
    Interval: {
        "type": "object",
        "properties": {end: {"type": "number"} for end in ("low", "mid", "high", "coverage")},
        "required": ["low", "mid", "high", "coverage"],
    },
}


def json_schema(cls: type[Record]) -> dict[str, Any]:
    """The schema of a record's object; records inside it are under `$defs`."""
    definitions: dict[str, Any] = {}
    schema = object_schema(cls, definitions)
    return {**schema, "$defs": definitions} if definitions else schema


def object_schema(cls: type, definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of a record or plain dataclass without `$defs`; records inside it are added to `definitions`."""
    shape = shape_of(cls)
    properties: dict[str, Any] = {}
    if issubclass(cls, Record) and cls.json_version is not None:
        properties[VERSION] = {"const": cls.json_version}
    for key, text in shape.sources.items():
        path = text.split(".")
        constant = _constant(cls, path)
        properties[key] = type_schema(_path_type(cls, path), definitions) if constant is None else {"const": constant}
    for kind in shape.inlined.values():
        properties |= object_schema(kind, definitions)["properties"]
    required = [key for key in properties if key not in shape.optional]
    about = (cls.__doc__ or "").strip().split("\n")[0]
    return {"type": "object", "description": about, "properties": properties, "required": required}


def type_schema(hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of a type; records inside it are added to `definitions`."""
    if hint in _SCHEMAS:
        return _SCHEMAS[hint]
    inner = get_args(hint)
    match get_origin(hint):
        case origin if origin in (Union, UnionType):
            return {"anyOf": [type_schema(kind, definitions) for kind in inner]}
        case origin if origin in (tuple, list, Sequence, set, frozenset):
            return _array_schema(inner, definitions)
        case origin if origin in (Mapping, dict):
            return {"type": "object", "additionalProperties": type_schema(inner[1], definitions)}
        case origin if origin is Literal:
            return {"enum": list(inner)}
    if isinstance(hint, type) and issubclass(hint, Enum):
        return {"enum": [member.value for member in hint]}
    if is_dataclass(hint) and isinstance(hint, type):
        if hint.__name__ not in definitions:
            definitions[hint.__name__] = {}
            definitions[hint.__name__] = object_schema(hint, definitions)
        return {"$ref": f"#/$defs/{hint.__name__}"}
    return {}


def _array_schema(inner: tuple[Any, ...], definitions: dict[str, Any]) -> dict[str, Any]:
    """Of a sequence of one kind, or of a tuple that has a kind for each place."""
    if len(inner) > 1 and inner[-1] is not Ellipsis:
        each = [type_schema(kind, definitions) for kind in inner]
        return {"type": "array", "prefixItems": each, "minItems": len(each), "maxItems": len(each)}
    return {"type": "array", "items": type_schema(inner[0], definitions)} if inner else {"type": "array"}


def _constant(cls: type, path: Sequence[str]) -> Any:
    """The value of a key that is the same in every record: that of a class variable."""
    is_field = path[0] in {item.name for item in fields(cls)}
    member = None if is_field or len(path) > 1 else getattr(cls, path[0])
    return None if _computation(member) else member


def _path_type(cls: Any, path: Sequence[str]) -> Any:
    """The type at the end of a path; Any where a name in it is imported for type checkers alone."""
    kind, is_optional = cls, False
    for name in path:
        is_optional |= get_origin(kind) in (Union, UnionType)
        kind = _attribute_type(_without_none(kind), name)
    return _without_none(kind) | None if is_optional and kind is not Any else kind


def _without_none(kind: Any) -> Any:
    """The one type that is not None; Any where there are several."""
    if get_origin(kind) not in (Union, UnionType) or NoneType not in get_args(kind):
        return kind
    others = [each for each in get_args(kind) if each is not NoneType]
    return others[0] if len(others) == 1 else Any


def _attribute_type(kind: Any, name: str) -> Any:
    if not isinstance(kind, type):
        return Any
    if is_dataclass(kind) and name in shape_of(kind).fields:
        return field_types(kind)[name]
    compute = _computation(getattr(kind, name, None))
    try:
        return get_type_hints(compute).get("return", Any) if compute else get_type_hints(kind).get(name, Any)
    except NameError:
        hint = get_annotations(compute).get("return") if compute else get_annotations(kind).get(name)
        return Any if hint is None or isinstance(hint, str) else hint


def _computation(member: Any) -> Any:
    """The function of a property, of either kind."""
    return getattr(member, "fget", None) or getattr(member, "_compute", None)
