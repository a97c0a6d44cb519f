"""One declaration, every form: the JSON of an answer, both ways, and its JSON schema follow from the fields.

An answer, a request or a row is a frozen dataclass that inherits `Record`. Its JSON object has

    every field by its name, unless its metadata has another name (`json_name("…")`) or hides it (`json_hidden()`);
    then the properties named in `json_also`: values that follow from the fields and are worked out again on reading.

Fields are numbers, texts, booleans, dates, enums, arrays, mappings and sequences of these, or records; `X | None` is
null. A plain dataclass inside a record is an object of its fields. An `Interval` is always an object {low, mid, high,
coverage}. Fields whose name begins with an underscore are hidden.

A record that is kept in files has a `json_version`: the first key of its object, and the only version that is read.
`json_lenient` records pass over keys they do not know, and over null where a field has a default. `json_from` names
properties that stand for a field in the JSON form, where the field holds what JSON cannot (a live model).

The keys of a record in a field with the metadata `INLINE` are keys of the object around it. `json_optional` fields have
no key where they are None or empty. Where a field takes several records, each with a constant `kind` in its
`json_also`, that key tells which one to read.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, slots=True)
    ... class Batch(Record):
    ...     samples: int
    ...     gpus: int = 1
    ...     json_also: ClassVar[tuple[str, ...]] = ("in_all",)
    ...
    ...     @property
    ...     def in_all(self) -> int:
    ...         return self.samples * self.gpus
    >>> Batch(8, gpus=2).as_dict()
    {'samples': 8, 'gpus': 2, 'in_all': 16}
    >>> Batch.from_dict({"samples": 8, "in_all": 99})
    Batch(samples=8, gpus=1)
    >>> Batch.from_dict({"samples": "many"})
    Traceback (most recent call last):
      ...
    epochcast.errors.InvalidField: samples must be a whole number, got 'many' (in batch)
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, field, fields, is_dataclass
from datetime import date, datetime
from enum import Enum
from re import sub
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, Self, TypeVar, Union, get_args, get_origin, get_type_hints

from epochcast.base.caching import remembered
from epochcast.errors import BadInput, InvalidField, UnknownField
from epochcast.interval import Interval

Kind = TypeVar("Kind")

MOST_RECORDS = 1_000
"""Kinds of records whose fields are kept; there are a few hundred."""

VERSION = "version"
"""The key of `json_version`."""

_NAME, _INLINE, _OPTIONAL = "json_name", "json_inline", "json_optional"


def json_key(name: str | None) -> Mapping[str, str | None]:
    """The metadata of a field whose JSON key is not its name; None hides it. For `dataclasses.field`, where a field
    without a default follows.
    """
    return {_NAME: name}


HIDDEN: Mapping[str, Any] = json_key(None)
"""Metadata of a field that is no part of the JSON form."""
INLINE: Mapping[str, Any] = {**HIDDEN, _INLINE: True}
"""Metadata of a field with a record whose keys are keys of the object around it."""


def json_name(name: str, **properties: Any) -> Any:
    """A dataclass field whose JSON key is not its name; `properties` are those of `dataclasses.field`."""
    return field(metadata=json_key(name), **properties)


def json_hidden(**properties: Any) -> Any:
    """A dataclass field that is no part of the JSON form; `properties` are those of `dataclasses.field`."""
    return field(metadata=HIDDEN, **properties)


def json_optional(name: str | None = None, **properties: Any) -> Any:
    """A dataclass field that has no key where it is None or empty; `name` is the key if it is not the field's name."""
    key = {} if name is None else json_key(name)
    return field(metadata={**key, _OPTIONAL: True}, **properties)


class Record:
    """Base of frozen dataclasses whose JSON follows from their fields."""

    __slots__ = ()

    json_also: ClassVar[tuple[str, ...]] = ()
    """Properties that the JSON form has besides the fields."""
    json_from: ClassVar[Mapping[str, str]] = {}
    """Properties by the name of the field in whose place they are written; reading sets the field."""
    json_version: ClassVar[int | None] = None
    """Version of the JSON form; a reader refuses any other."""
    json_lenient: ClassVar[bool] = False
    """Whether reading passes over unknown keys, and over null where a field has a default."""

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: plain values by name."""
        values = {key: plain(getattr(self, name)) for key, name in _sources(type(self))}
        for key in _optional_keys(type(self)):
            if values[key] is None or values[key] in ("", [], {}):
                del values[key]
        for name in _inlined(type(self)):
            values |= getattr(self, name).as_dict()
        return values if self.json_version is None else {VERSION: self.json_version, **values}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The record of a JSON object. Unknown keys are refused by name; derived values are worked out again."""
        return read_as(cls, values)

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """JSON schema (2020-12) of the object; records inside it are under `$defs`."""
        definitions: dict[str, Any] = {}
        schema = cls.object_schema(definitions)
        return {**schema, "$defs": definitions} if definitions else schema

    @classmethod
    def object_schema(cls, definitions: dict[str, Any]) -> dict[str, Any]:
        """The schema without `$defs`; records inside it are added to `definitions`."""
        properties: dict[str, Any] = {} if cls.json_version is None else {VERSION: {"const": cls.json_version}}
        for key, name in _sources(cls):
            is_constant = name not in _names(cls) and not isinstance(getattr(cls, name), property)
            properties[key] = {"const": getattr(cls, name)} if is_constant else schema_of(_type(cls, name), definitions)
        for kind in _inlined(cls).values():
            properties |= kind.object_schema(definitions)["properties"]
        return described(cls, properties, (key for key in properties if key not in _optional_keys(cls)))


def read_as(cls: type[Kind], values: Mapping[str, Any]) -> Kind:
    """The record, or plain dataclass, of a JSON object."""
    if not isinstance(values, Mapping):
        raise InvalidField(_words(cls), _words(cls), values, "a JSON object")
    is_lenient = issubclass(cls, Record) and cls.json_lenient
    if issubclass(cls, Record):
        _check_version(cls, values)
    unknown = () if is_lenient else [key for key in values if key not in _all_keys(cls)]
    for key in unknown:
        raise UnknownField(_words(cls), key, values[key], [key for _, key in _keys(cls)])
    hints, arguments = _hints(cls), {}
    for item, key in _items(cls):
        if key in values and not (is_lenient and values[key] is None and not _is_required(item)):
            arguments[item.name] = _typed(cls, key, hints[item.name], values[key])
        elif _is_required(item):
            raise InvalidField(_words(cls), key, None, "given")
    for name, kind in _inlined(cls).items():
        arguments[name] = read_as(kind, {key: values[key] for key in _all_keys(kind) & values.keys()})
    return cls(**arguments)


def _check_version(cls: type[Record], values: Mapping[str, Any]) -> None:
    version = values.get(VERSION)
    if cls.json_version is not None and (version is True or version != cls.json_version):
        raise BadInput(f"{_words(cls)}: version {cls.json_version} is needed, got version {version!r}")


def record_fields(cls: type) -> tuple[str, ...]:
    """Names of the fields that the JSON form has."""
    return tuple(name for name, _ in _keys(cls))


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    match value:
        case Record() | Interval():
            return value.as_dict()
        case bool() | int() | float() | str() | None:
            return value
        case Enum():
            return value.value
        case datetime() | date():
            return value.isoformat()
        case Mapping():
            return {str(plain(key)): plain(inner) for key, inner in value.items()}
        case _ if isinstance(value, Sequence | set | frozenset):
            return [plain(inner) for inner in value]
        case _ if is_dataclass(value):
            return {key: plain(getattr(value, name)) for name, key in _keys(type(value))}
        case _ if hasattr(value, "tolist"):  # a number or an array of numpy
            return value.tolist()
    raise TypeError(f"{type(value).__name__} has no JSON form")


@remembered(MOST_RECORDS)
def _items(cls: type) -> tuple[tuple[Field[Any], str], ...]:
    """The fields that the JSON form has, each with its key."""
    named = ((item, item.metadata.get(_NAME, item.name)) for item in fields(cls))
    return tuple((item, key) for item, key in named if key is not None and not item.name.startswith("_"))


@remembered(MOST_RECORDS)
def _keys(cls: type) -> tuple[tuple[str, str], ...]:
    return tuple((item.name, key) for item, key in _items(cls))


@remembered(MOST_RECORDS)
def _sources(cls: type[Record]) -> tuple[tuple[str, str], ...]:
    """Every key but the version, with the attribute that it shows."""
    of_fields = tuple((key, cls.json_from.get(name, name)) for name, key in _keys(cls))
    return (*of_fields, *((name, name) for name in cls.json_also))


@remembered(MOST_RECORDS)
def _optional_keys(cls: type) -> tuple[str, ...]:
    return tuple(key for item, key in _items(cls) if _OPTIONAL in item.metadata)


@remembered(MOST_RECORDS)
def _inlined(cls: type) -> Mapping[str, type[Record]]:
    """Fields whose records have their keys in the object itself."""
    names = [item.name for item in fields(cls) if _INLINE in item.metadata]
    return {name: get_type_hints(cls)[name] for name in names}


@remembered(MOST_RECORDS)
def _all_keys(cls: type) -> frozenset[str]:
    """Every key that the JSON object may have."""
    keys = {key for _, key in _keys(cls)}
    if issubclass(cls, Record):
        keys.update(cls.json_also, *(_all_keys(kind) for kind in _inlined(cls).values()))
        keys |= set() if cls.json_version is None else {VERSION}
    return frozenset(keys)


@remembered(MOST_RECORDS)
def _by_kind(kinds: tuple[Any, ...]) -> Mapping[str, type[Record]]:
    """Records that one field takes, by the `kind` that each writes."""
    records = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Record)]
    return {kind.kind: kind for kind in records if "kind" in kind.json_also}  # type: ignore[attr-defined]


@remembered(MOST_RECORDS)
def _hints(cls: type) -> Mapping[str, Any]:
    """Types of the fields that the JSON form has; the annotations of others may name what only type checkers import."""
    annotations = {item.name: item.type for item, _ in _items(cls)}
    return get_type_hints(type(cls.__name__, (), {"__annotations__": annotations, "__module__": cls.__module__}))


def _is_required(item: Field[Any]) -> bool:
    return item.default is MISSING and item.default_factory is MISSING


def _words(cls: type) -> str:
    """ObservationRow: "observation row"."""
    return sub(r"(?<=[a-z])(?=[A-Z])", " ", cls.__name__).lower()


_WANTED: Mapping[Any, str] = {
    int: "a whole number",
    float: "a number",
    str: "text",
    bool: "true or false",
    Interval: "an interval {low, mid, high, coverage} with low <= mid <= high",
}


def _typed(cls: type, key: str, hint: Any, value: Any) -> Any:
    """A value out of JSON in the type of its field."""
    if type(value) is hint:  # most are
        return value
    kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    if value is None:
        if NoneType in kinds or hint is Any:
            return None
        raise InvalidField(_words(cls), key, value, _wanted(hint))
    if isinstance(value, Mapping) and (by_kind := _by_kind(kinds)):
        if value.get("kind") not in by_kind:
            raise InvalidField(_words(cls), f"{key}.kind", value.get("kind"), "one of " + ", ".join(by_kind))
        return by_kind[value["kind"]].from_dict(value)
    refused: InvalidField | None = None
    for kind in (kind for kind in kinds if kind is not NoneType):
        try:
            return _of_kind(cls, key, kind, value)
        except InvalidField as error:
            # what is wrong inside a nested record says more than that the record is wrong
            refused = error if refused is None or error.record != _words(cls) else refused
    raise refused if refused is not None and len(kinds) <= 2 else InvalidField(_words(cls), key, value, _wanted(hint))


def _of_kind(cls: type, key: str, kind: Any, value: Any) -> Any:
    origin = get_origin(kind)
    if kind is Any or kind is object:
        return value
    if origin in (tuple, list, Sequence) and isinstance(value, list | tuple):
        return _sequence(cls, key, kind, value)
    if origin in (Mapping, dict) and isinstance(value, Mapping):
        inner = get_args(kind)[1]
        return {name: _typed(cls, f"{key}.{name}", inner, item) for name, item in value.items()}
    if origin is Literal and value in get_args(kind):
        return value
    if hasattr(origin, "tolist") and isinstance(value, list):
        return _array(cls, key, kind, value)
    if isinstance(kind, type) and origin is None:
        return _scalar(cls, key, kind, value)
    raise InvalidField(_words(cls), key, value, _wanted(kind))


def _sequence(cls: type, key: str, kind: Any, value: Sequence[Any]) -> Any:
    inner = get_args(kind)
    each = inner[:1] * len(value) if len(inner) == 1 or inner[-1] is Ellipsis else inner
    if len(each) != len(value):
        raise InvalidField(_words(cls), key, value, f"{len(each)} values")
    items = [_typed(cls, f"{key}[{place}]", kind_of_item, value[place]) for place, kind_of_item in enumerate(each)]
    return items if get_origin(kind) is list else tuple(items)


def _scalar(cls: type, key: str, kind: type, value: Any) -> Any:
    if isinstance(value, Mapping) and is_dataclass(kind):
        return _object(cls, key, kind, value)
    if kind is float and type(value) is int:
        return float(value)
    if kind is int and type(value) is float and value.is_integer():  # JSON has one kind of number
        return int(value)
    try:
        if issubclass(kind, Enum):
            return kind(value)
        if issubclass(kind, date) and isinstance(value, str):
            return kind.fromisoformat(value)
    except ValueError:
        raise InvalidField(_words(cls), key, value, _wanted(kind)) from None
    if isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
        return value
    raise InvalidField(_words(cls), key, value, _wanted(kind))


def _array(cls: type, key: str, kind: Any, value: list[Any]) -> Any:
    import numpy as np

    try:
        numbers = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidField(_words(cls), key, value, "a list of numbers") from None
    if np.float64 in get_args(get_args(kind)[1]):  # NDArray[np.float64]
        return numbers
    if not (numbers == np.trunc(numbers)).all():
        raise InvalidField(_words(cls), key, value, "a list of whole numbers")
    return numbers.astype(np.int64)


def _object(cls: type, key: str, kind: type, value: Mapping[str, Any]) -> Any:
    if issubclass(kind, Record):
        return kind.from_dict(value)
    if kind is not Interval:
        return read_as(kind, value)
    try:
        return Interval(**value)
    except (TypeError, ValueError):
        raise InvalidField(_words(cls), key, value, _WANTED[Interval]) from None


def _wanted(hint: Any) -> str:
    """What a field of this type takes, in words."""
    kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return " or ".join(_wanted_kind(kind) for kind in kinds if kind is not NoneType)


def _wanted_kind(kind: Any) -> str:
    if kind in _WANTED:
        return _WANTED[kind]
    match get_origin(kind):
        case origin if origin in (tuple, list, Sequence):
            return "a list"
        case origin if origin in (Mapping, dict):
            return "a JSON object"
        case origin if origin is Literal:
            return "one of " + ", ".join(map(str, get_args(kind)))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return "one of " + ", ".join(str(member.value) for member in kind)
    if kind in (date, datetime):
        return "a date such as 2026-11-18" if kind is date else "a time such as 2026-11-18T09:00:00"
    return "a JSON object" if isinstance(kind, type) else "a value"


# JSON schema

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


def described(cls: type, properties: Mapping[str, Any], required: Iterable[str]) -> dict[str, Any]:
    """The schema of an object, with the first line of its class's docstring."""
    about = (cls.__doc__ or "").strip().split("\n")[0]
    return {"type": "object", "description": about, "properties": dict(properties), "required": list(required)}


def _object_schema(cls: type, definitions: dict[str, Any]) -> dict[str, Any]:
    if issubclass(cls, Record):
        return cls.object_schema(definitions)
    hints = _hints(cls)
    properties = {key: schema_of(hints[name], definitions) for name, key in _keys(cls)}
    return described(cls, properties, properties)


def _names(cls: type[Record]) -> set[str]:
    return {item.name for item in fields(cls)}  # type: ignore[arg-type]


def _type(cls: type[Record], name: str) -> Any:
    """The type of a field or of a property."""
    return _hints(cls)[name] if name in _names(cls) else get_type_hints(getattr(cls, name).fget).get("return", Any)


def schema_of(hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of a type; records inside it are added to `definitions`."""
    if hint in _SCHEMAS:
        return _SCHEMAS[hint]
    inner = get_args(hint)
    match get_origin(hint):
        case origin if origin in (Union, UnionType):
            return {"anyOf": [schema_of(kind, definitions) for kind in inner]}
        case origin if origin in (tuple, list, Sequence, set, frozenset):
            return _array_schema(inner, definitions)
        case origin if origin in (Mapping, dict):
            return {"type": "object", "additionalProperties": schema_of(inner[1], definitions)}
        case origin if origin is Literal:
            return {"enum": list(inner)}
    if isinstance(hint, type) and issubclass(hint, Enum):
        return {"enum": [member.value for member in hint]}
    if is_dataclass(hint) and isinstance(hint, type):
        if hint.__name__ not in definitions:
            definitions[hint.__name__] = {}
            definitions[hint.__name__] = _object_schema(hint, definitions)
        return {"$ref": f"#/$defs/{hint.__name__}"}
    return {}


def _array_schema(inner: tuple[Any, ...], definitions: dict[str, Any]) -> dict[str, Any]:
    """Of a sequence of one kind, or of a tuple that has a kind for each place."""
    if len(inner) > 1 and inner[-1] is not Ellipsis:
        each = [schema_of(kind, definitions) for kind in inner]
        return {"type": "array", "prefixItems": each, "minItems": len(each), "maxItems": len(each)}
    return {"type": "array", "items": schema_of(inner[0], definitions)} if inner else {"type": "array"}
