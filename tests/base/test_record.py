"""JSON of records: both ways, what is refused, and the schema."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import Enum
from typing import Any, ClassVar, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from epochcast.base.record import INLINE, Record, json_hidden, json_name, json_optional, plain, read_as
from epochcast.base.record_schema import json_schema
from epochcast.errors import BadInput, InvalidField
from epochcast.interval import Interval


class State(Enum):
    WAITING = "waiting"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Price(Record):
    dollars_per_hour: float
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Machine(Record):
    """A machine one can rent.

    More about it.
    """

    name: str
    gpus: int
    seconds: Interval
    prices: tuple[Price, ...] = ()
    tags: Mapping[str, float] | None = None
    state: State = State.WAITING
    kind: Literal["spot", "on demand"] = "on demand"
    since: date | None = None
    shape: tuple[int, int] = (1, 1)
    node_type: str = json_name("type", default="box")
    cached: int | None = json_hidden(default=None)
    _trace: Any = None

    json_also: ClassVar[tuple[str, ...]] = ("cheapest",)

    @property
    def cheapest(self) -> float | None:
        return min((price.dollars_per_hour for price in self.prices), default=None)


MACHINE = Machine(
    "p4d",
    8,
    Interval(1.0, 2.0, 3.0),
    (Price(32.77, "list"), Price(10.0)),
    {"a": 1.0},
    State.DONE,
    "spot",
    date(2026, 11, 18),
    (2, 4),
    "a100",
)


def test_fields_are_keys_and_what_follows_from_them_comes_after() -> None:
    values = MACHINE.as_dict()
    assert list(values)[-2:] == ["type", "cheapest"]
    assert values["seconds"] == {"low": 1.0, "mid": 2.0, "high": 3.0, "coverage": 0.9}
    assert values["prices"] == [
        {"dollars_per_hour": 32.77, "source": "list"},
        {"dollars_per_hour": 10.0, "source": None},
    ]
    assert values["cheapest"] == 10.0
    assert "cached" not in values and "_trace" not in values and "node_type" not in values


def test_a_record_comes_back_from_its_json() -> None:
    assert Machine.from_dict(MACHINE.as_dict()) == MACHINE


@given(st.integers(1, 9), st.lists(st.floats(0, 1e6), max_size=4), st.sampled_from(State))
def test_any_record_comes_back_from_its_json(gpus: int, prices: list[float], state: State) -> None:
    machine = Machine("m", gpus, Interval.exact(1.0), tuple(map(Price, prices)), state=state)
    assert Machine.from_dict(machine.as_dict()) == machine


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gpus": "eight"}, "gpus must be a whole number, got 'eight' (in machine)"),
        ({"gpus": True}, "gpus must be a whole number, got True (in machine)"),
        ({"gpus": None}, "gpus must be a whole number, got None (in machine)"),
        ({"color": 1}, "machine has no field 'color'; known: gpus, kind, name"),
        ({"prices": [{"dollars_per_hour": "much"}]}, "dollars_per_hour must be a number, got 'much' (in price)"),
        ({"prices": 3}, "prices must be a list, got 3"),
        ({"tags": {"a": "b"}}, "tags.a must be a number, got 'b'"),
        ({"state": "lost"}, "state must be one of waiting, done, got 'lost'"),
        ({"kind": "owned"}, "kind must be one of spot, on demand, got 'owned'"),
        ({"since": "tomorrow"}, "since must be a date such as 2026-11-18, got 'tomorrow'"),
        ({"shape": [1, 2, 3]}, "shape must be 2 values, got [1, 2, 3]"),
        ({"seconds": {"low": 2, "mid": 1, "high": 3}}, "seconds must be an interval {low, mid, high, coverage}"),
    ],
)
def test_a_wrong_value_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidField) as refused:
        Machine.from_dict({**MACHINE.as_dict(), **change})
    assert str(refused.value).startswith(message)


def test_a_missing_value_is_named() -> None:
    with pytest.raises(InvalidField, match="name must be given"):
        Machine.from_dict({"gpus": 1})


def test_what_is_no_object_is_refused() -> None:
    with pytest.raises(InvalidField, match="machine must be a JSON object"):
        Machine.from_dict([1])  # type: ignore[arg-type]


def test_a_whole_number_is_a_number_too() -> None:
    assert Price.from_dict({"dollars_per_hour": 3}) == Price(3.0)


def test_an_error_has_its_parts() -> None:
    with pytest.raises(InvalidField) as refused:
        Price.from_dict({"dollars_per_hour": None})
    assert (refused.value.record, refused.value.name) == ("price", "dollars_per_hour")


def test_what_has_no_json_form_is_an_error() -> None:
    with pytest.raises(TypeError, match="object has no JSON form"):
        plain(object())


def test_the_schema_follows_from_the_fields() -> None:
    schema = json_schema(Machine)
    assert schema["description"] == "A machine one can rent."
    assert schema["properties"]["gpus"] == {"type": "integer"}
    assert schema["properties"]["prices"] == {"type": "array", "items": {"$ref": "#/$defs/Price"}}
    assert schema["properties"]["state"] == {"enum": ["waiting", "done"]}
    assert schema["properties"]["cheapest"] == {"anyOf": [{"type": "number"}, {"type": "null"}]}
    assert set(schema["required"]) == set(MACHINE.as_dict())
    assert schema["$defs"]["Price"]["properties"]["dollars_per_hour"] == {"type": "number"}


@dataclass(frozen=True)
class Wheel:
    inches: int
    spokes: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Bicycle(Record):
    json_version: ClassVar[int | None] = 3
    json_lenient: ClassVar[bool] = True
    json_from: ClassVar[Mapping[str, str]] = {"owner": "owner_name"}

    owner: object
    wheel: str | Wheel = "28"
    _frame: "Steel | None" = None  # type: ignore[name-defined]  # noqa: F821

    @property
    def owner_name(self) -> str:
        return type(self.owner).__name__


def test_a_version_comes_first_and_another_is_refused() -> None:
    written = Bicycle(None).as_dict()
    assert written == {"version": 3, "owner": "NoneType", "wheel": "28"}
    assert Bicycle.from_dict(written) == Bicycle("NoneType")
    for version in (2, True, None):
        with pytest.raises(BadInput, match=f"bicycle: version 3 is needed, got version {version}"):
            Bicycle.from_dict({**written, "version": version})
    assert json_schema(Bicycle)["properties"]["version"] == {"const": 3}


def test_a_lenient_record_passes_over_keys_of_others() -> None:
    assert Bicycle.from_dict({"version": 3, "owner": "me", "color": "red"}) == Bicycle("me")


def test_a_property_is_written_in_the_place_of_a_field() -> None:
    assert Bicycle([1]).as_dict()["owner"] == "list"
    assert json_schema(Bicycle)["properties"]["owner"] == {"type": "string"}


def test_a_plain_dataclass_inside_is_an_object_of_its_fields() -> None:
    bicycle = Bicycle("str", Wheel(26, ((36, 0.5), (28, 1.0))))
    written = bicycle.as_dict()
    assert written["wheel"] == {"inches": 26, "spokes": [[36, 0.5], [28, 1.0]]}
    assert Bicycle.from_dict(written) == bicycle
    with pytest.raises(InvalidField, match=r"inches must be a whole number, got 'x' \(in wheel\)"):
        Bicycle.from_dict({**written, "wheel": {"inches": "x"}})
    spokes = json_schema(Bicycle)["$defs"]["Wheel"]["properties"]["spokes"]["items"]
    assert spokes["prefixItems"] == [{"type": "integer"}, {"type": "number"}]


def test_a_whole_number_may_be_written_as_a_float() -> None:
    assert Wheel(26) == read_as(Wheel, {"inches": 26.0})
    with pytest.raises(InvalidField, match=r"inches must be a whole number, got 26\.5"):
        read_as(Wheel, {"inches": 26.5})


@dataclass(frozen=True)
class Weights(Record):
    kind: ClassVar[str] = "linear"
    values: NDArray[np.float64]
    json_also: ClassVar[tuple[str, ...]] = ("kind",)


def test_an_array_is_a_list_of_numbers() -> None:
    document = Weights(np.array([[1.0, 2.0]])).as_dict()
    assert document == {"values": [[1.0, 2.0]], "kind": "linear"}
    assert Weights.from_dict(document).values.tolist() == [[1.0, 2.0]]
    with pytest.raises(InvalidField, match="values must be a list of numbers"):
        Weights.from_dict({"values": [1.0, "many"]})
    assert json_schema(Weights)["properties"]["kind"] == {"const": "linear"}


@dataclass(frozen=True, slots=True)
class Hull(Record):
    kind: ClassVar[str] = "hull"
    json_also: ClassVar[tuple[str, ...]] = ("kind",)
    size: int


@dataclass(frozen=True, slots=True)
class Wing(Record):
    kind: ClassVar[str] = "wing"
    json_also: ClassVar[tuple[str, ...]] = ("kind",)
    size: int


@dataclass(frozen=True, slots=True)
class Vehicle(Record):
    price: Price = field(metadata=INLINE)
    part: Hull | Wing
    note: str | None = json_optional(default=None)
    seats: int = 1
    json_lenient: ClassVar[bool] = True


WINGED = Vehicle(Price(3.0), Wing(2))


def test_a_kind_tells_which_record_is_read() -> None:
    assert WINGED.as_dict()["part"] == {"size": 2, "kind": "wing"}
    assert Vehicle.from_dict(WINGED.as_dict()) == WINGED
    with pytest.raises(InvalidField, match=r"part.kind must be one of hull, wing, got 'sail'"):
        Vehicle.from_dict({"part": {"kind": "sail"}})


def test_keys_of_an_inlined_record_are_keys_of_the_object() -> None:
    assert list(WINGED.as_dict()) == ["part", "seats", "dollars_per_hour", "source"]
    assert list(json_schema(Vehicle)["properties"]) == ["part", "note", "seats", "dollars_per_hour", "source"]


def test_an_optional_key_is_left_out_where_it_is_none() -> None:
    assert Vehicle(Price(3.0), Wing(2), note="used").as_dict()["note"] == "used"
    assert "note" not in WINGED.as_dict() and "note" not in json_schema(Vehicle)["required"]


def test_a_lenient_record_takes_null_as_the_default() -> None:
    assert Vehicle.from_dict({**WINGED.as_dict(), "seats": None}) == WINGED
