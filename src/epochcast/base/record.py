"""One declaration, every form: the JSON of an answer, both ways, follows from the fields; so does its schema
(`base/record_schema.py`).

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
no key where they are None. Where a field takes several records, each with a constant `kind` in its
`json_also`, that key tells which one to read.

An answer holds the job, its forecasts and its offers; its JSON has single values of them. Its class lists the path of
each key in `json_paths`, in place of the fields. Such a record is written and never read.

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
    >>> @dataclass(frozen=True)
    ... class Stay(Record):
    ...     dollars: Interval
    ...     pause: Interval | None = None
    ...     json_paths: ClassVar[Mapping[str, str]] = paths("dollars", price="dollars.mid", longest="pause.high")
    >>> Stay(Interval(1.0, 2.0, 4.0)).as_dict()["price"], Stay(Interval(1.0, 2.0, 4.0)).as_dict()["longest"]
    (2.0, None)
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from datetime import date, datetime
from enum import Enum
from operator import attrgetter
from re import sub
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, Self, TypeVar, Union, get_args, get_origin, get_type_hints

from epochcast.base.caching import remembered
from epochcast.errors import BadInput, InvalidField, UnknownField
from epochcast.interval import Interval

Kind = TypeVar("Kind")

MOST_RECORDS, MOST_TYPES = 1_000, 4_000
"""Kinds of records whose fields are kept, and types of fields; there are a few hundred."""

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
    """A dataclass field that has no key where it is None; `name` is the key if it is not the field's name."""
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
    json_paths: ClassVar[Mapping[str, str]] = {}
    """The path of each key, such as `offer.instance.name`, in place of the fields. A None on the way gives null."""
    json_omitted: ClassVar[tuple[str, ...]] = ()
    """Keys of `json_paths` that are left out where they are null."""
    json_merged: ClassVar[tuple[str, ...]] = ()
    """Attributes that are mappings, whose keys are keys of the object itself."""

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: plain values by name."""
        shape = shape_of(type(self))
        values = {key: plain(get(self)) for key, get in shape.getters}
        for key in shape.optional:
            if values[key] is None:
                del values[key]
        for name in shape.merged:
            values |= plain(getattr(self, name))
        return values if self.json_version is None else {VERSION: self.json_version, **values}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The record of a JSON object. Unknown keys are refused by name; derived values are worked out again."""
        return read_as(cls, values)


def paths(*names: str, **others: str) -> Mapping[str, str]:
    """For `json_paths`: attributes by their own names, and others by the path that a key has."""
    return {**{name: name for name in names}, **others}


def read_as(cls: type[Kind], values: Mapping[str, Any]) -> Kind:
    """The record, or plain dataclass, of a JSON object."""
    shape, is_lenient = shape_of(cls), issubclass(cls, Record) and cls.json_lenient
    _check_keys(cls, values)
    arguments = {}
    for name, key, hint, kinds, is_required in _typed_fields(cls):
        value = values.get(key, MISSING)
        if type(value) in kinds:  # most are
            arguments[name] = value
        elif value is not MISSING and not (is_lenient and value is None and not is_required):
            arguments[name] = _typed(cls, key, hint, value)
        elif is_required:
            raise InvalidField(_words(cls), key, None, "given")
    for name, kind in shape.inlined.items():
        arguments[name] = read_as(kind, {key: values[key] for key in shape_of(kind).keys & values.keys()})
    return cls(**arguments)


def _check_keys(cls: type, values: Mapping[str, Any]) -> None:
    if type(values) is not dict and not isinstance(values, Mapping):
        raise InvalidField(_words(cls), _words(cls), values, "a JSON object")
    if issubclass(cls, Record):
        if cls.json_version is not None:
            version = values.get(VERSION)
            if version is True or version != cls.json_version:
                raise BadInput(f"{_words(cls)}: version {cls.json_version} is needed, got version {version!r}")
        if cls.json_lenient:
            return
    shape = shape_of(cls)
    for key in values:
        if key not in shape.keys:
            raise UnknownField(_words(cls), key, values[key], list(shape.fields.values()))


def record_fields(cls: type) -> tuple[str, ...]:
    """Names of the fields that the JSON form has."""
    return tuple(shape_of(cls).fields)


_PLAIN = frozenset((bool, int, float, str, NoneType))


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    if type(value) in _PLAIN or isinstance(value, int | float | str):  # most are the former
        return value
    match value:
        case Record() | Interval():
            return value.as_dict()
        case Enum():
            return value.value
        case datetime() | date():
            return value.isoformat()
        case Mapping():
            return {str(plain(key)): plain(inner) for key, inner in value.items()}
        case _ if isinstance(value, Sequence | set | frozenset):
            return [plain(inner) for inner in value]
        case _ if is_dataclass(value):
            return {key: plain(getattr(value, name)) for name, key in shape_of(type(value)).fields.items()}
        case _ if hasattr(value, "tolist"):  # a number or an array of numpy
            return value.tolist()
    raise TypeError(f"{type(value).__name__} has no JSON form")


@dataclass(frozen=True, slots=True)
class RecordShape:
    """The keys of a class's JSON form. `fields` has the key of each field's name, and is empty where the class has
    `json_paths`; `sources` the path of each key but the version; `keys` every key that may be read.
    """

    fields: Mapping[str, str]
    sources: Mapping[str, str]
    keys: frozenset[str] = frozenset()
    optional: tuple[str, ...] = ()
    inlined: Mapping[str, type[Record]] = field(default_factory=dict)
    merged: tuple[str, ...] = ()
    getters: tuple[tuple[str, Callable[[Any], Any]], ...] = field(init=False)
    """What reads the value of each key from a record."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "getters", tuple((key, _getter(path)) for key, path in self.sources.items()))


@remembered(MOST_RECORDS)
def shape_of(cls: type) -> RecordShape:
    """The shape of a record or of a plain dataclass."""
    if issubclass(cls, Record) and cls.json_paths:
        return RecordShape({}, cls.json_paths, optional=cls.json_omitted, merged=cls.json_merged)
    keys = _field_keys(cls)
    if not issubclass(cls, Record):
        return RecordShape(keys, {key: name for name, key in keys.items()}, frozenset(keys.values()))
    items = fields(cls)  # type: ignore[arg-type]
    inlined = {item.name: get_type_hints(cls)[item.name] for item in items if _INLINE in item.metadata}
    shown = {**{key: cls.json_from.get(name, name) for name, key in keys.items()}, **paths(*cls.json_also)}
    version = () if cls.json_version is None else (VERSION,)
    return RecordShape(
        keys,
        shown,
        frozenset((*shown, *version)).union(*(shape_of(kind).keys for kind in inlined.values())),
        tuple(keys[item.name] for item in items if _OPTIONAL in item.metadata),
        inlined,
        (*inlined, *cls.json_merged),
    )


def _field_keys(cls: type) -> Mapping[str, str]:
    """The keys of the fields that the JSON form has, by name."""
    keys = {item.name: item.metadata.get(_NAME, item.name) for item in fields(cls)}
    return {name: key for name, key in keys.items() if key is not None and not name.startswith("_")}


def _getter(path: str) -> Callable[[Any], Any]:
    """What follows a path; it gives None where something on the way is None."""
    if "." not in path:
        return attrgetter(path)
    names = path.split(".")

    def get(owner: Any) -> Any:
        for name in names:
            owner = getattr(owner, name)
            if owner is None:
                return None
        return owner

    return get


@remembered(MOST_RECORDS)
def _typed_fields(cls: type) -> tuple[tuple[str, str, Any, tuple[Any, ...], bool], ...]:
    """Name, key, type and its kinds of each field that is read, and whether it has no default."""
    keys, hints = shape_of(cls).fields, field_types(cls)
    items = [item for item in fields(cls) if item.name in keys]
    return tuple(
        (item.name, keys[item.name], hints[item.name], _kinds(hints[item.name]), _is_required(item)) for item in items
    )


@remembered(MOST_RECORDS)
def _by_kind(kinds: tuple[Any, ...]) -> Mapping[str, type[Record]]:
    """Records that one field takes, by the `kind` that each writes."""
    records = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Record)]
    return {kind.kind: kind for kind in records if "kind" in kind.json_also}  # type: ignore[attr-defined]


@remembered(MOST_RECORDS)
def field_types(cls: type) -> Mapping[str, Any]:
    """Types of the fields that the JSON form has; the annotations of others may name what only type checkers import."""
    annotations = {item.name: item.type for item in fields(cls) if item.name in shape_of(cls).fields}
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


@remembered(MOST_TYPES)
def _kinds(hint: Any) -> tuple[Any, ...]:
    """The types that a field takes: several where it is a union."""
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _typed(cls: type, key: str, hint: Any, value: Any) -> Any:
    """A value out of JSON in the type of its field."""
    kinds = _kinds(hint)
    if type(value) in kinds:
        return value
    if type(value) is int and kinds[0] is float:
        return float(value)
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
    return " or ".join(_wanted_kind(kind) for kind in _kinds(hint) if kind is not NoneType)


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
