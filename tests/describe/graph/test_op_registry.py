"""Operators of the user: registered once, found by their label and by the names that frameworks call them."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

import epochcast as ec
from epochcast.describe.capture.model import BuiltModel
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph, Kind, Op
from epochcast.describe.graph.op_registry import KIND_CLASSES, kind_class, registered_class
from epochcast.describe.graph.op_work import OpClass
from epochcast.describe.graph.ops.opaque_op import Opaque, kind_named
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.serialization import trace_from_json, trace_to_json

pytestmark = pytest.mark.usefixtures("restored_operators")


@dataclass(frozen=True)
class Scan(Kind):
    """A selective scan."""

    label: ClassVar[str] = "scan"
    runs_as: ClassVar[OpClass] = OpClass.ELEMENTWISE
    targets: ClassVar[tuple[str, ...]] = ("lab::scan",)
    states: int = 16
    decay: float = 0.5
    axes: tuple[int, ...] = (1,)

    def flops(self, op: Op) -> int:
        """Six for every state; more than twice that in backward."""
        return (14 if op.is_gradient else 6) * self.states * op.output.elements


def network() -> BuiltModel:
    def build(batch: int) -> Graph:
        b = Builder("net", batch)
        x = b.linear(b.input("x", (64,)), 32, name="first")
        (y,) = b.opaque("lab::scan", [x], [x.shape])
        return b.finish(b.linear(y, 10, name="last"))

    return BuiltModel("net", build)


def test_a_registered_operator_counts_in_a_forecast() -> None:
    before = ec.forecast(network(), device="V100", batch=8)
    assert before.opaque_ops == ("lab::scan",)
    assert ec.register_op(Scan) is Scan
    trace = network().trace(Recipe(8))
    assert trace.opaque == ()
    scans = [op for op in trace.ops if isinstance(op.kind, Scan)]
    assert [op.work.flops for op in scans] == [6 * 16 * 8 * 32, 14 * 16 * 8 * 32]
    assert {op.op_class for op in scans} == {OpClass.ELEMENTWISE}
    after = ec.forecast(network(), device="V100", batch=8)
    assert after.opaque_ops == () and after.step_seconds != before.step_seconds


def test_a_trace_with_it_is_written_and_read() -> None:
    ec.register_op(Scan)
    trace = network().trace(Recipe(8))
    assert trace_from_json(trace_to_json(trace)) == trace


def test_attributes_come_from_the_call() -> None:
    ec.register_op(Scan)
    values = {"states": 4, "decay": 1, "axes": [0, 2], "x": object(), "other": 3}
    assert kind_named("lab::scan", values) == Scan(4, 1.0, (0, 2))
    assert kind_named("lab::scan", {"states": None}) == Scan()
    assert kind_named("lab::other", values) == Opaque("lab::other")
    with pytest.raises(ec.BadInput, match=r"lab::scan: states must be a whole number, got 'many'"):
        kind_named("lab::scan", {"states": "many"})


def test_defining_the_class_again_replaces_it() -> None:
    ec.register_op(Scan)

    @dataclass(frozen=True)
    class Again(Kind):
        label: ClassVar[str] = "scan"
        targets: ClassVar[tuple[str, ...]] = ("lab::new_scan",)

    Again.__qualname__ = "Scan"
    ec.register_op(Again)
    assert kind_class("scan") is registered_class("lab::new_scan") is Again
    assert registered_class("lab::scan") is None


def test_two_operators_cannot_share_a_name() -> None:
    ec.register_op(Scan)

    @dataclass(frozen=True)
    class Matrix(Kind):
        label: ClassVar[str] = "matmul"

    @dataclass(frozen=True)
    class Other(Kind):
        label: ClassVar[str] = "other"
        targets: ClassVar[tuple[str, ...]] = ("lab::scan",)

    with pytest.raises(ec.BadInput, match=r"operator 'matmul' is already registered, by epochcast.*Matmul"):
        ec.register_op(Matrix)
    with pytest.raises(ec.BadInput, match=r"operator 'lab::scan' is already registered, by .*Scan"):
        ec.register_op(Other)
    assert "other" not in KIND_CLASSES


def test_what_is_no_operator_is_refused() -> None:
    class Undecorated(Kind):
        label = "undecorated"

    @dataclass(frozen=True)
    class Unnamed(Kind):
        pass

    @dataclass(frozen=True)
    class NoDefault(Kind):
        label: ClassVar[str] = "no default"
        states: int

    @dataclass(frozen=True)
    class OneTarget(Kind):
        label: ClassVar[str] = "one target"
        targets: ClassVar[str] = "lab::scan"  # type: ignore[assignment]

    for kind, message in {
        int: "inherits epochcast.Kind",
        Undecorated: "put @dataclass",
        Unnamed: "label of its own",
        NoDefault: "states needs a default",
        OneTarget: "tuple of names",
    }.items():
        with pytest.raises(ec.BadInput, match=message):
            ec.register_op(kind)


def test_files_of_operators_are_loaded_when_a_name_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "lab_operators.py"
    file.write_text(
        "from dataclasses import dataclass\nimport epochcast as ec\n\n"
        "@ec.register_op\n@dataclass(frozen=True)\n"
        'class Blend(ec.Kind):\n    label = "blend"\n    targets = ("lab::blend",)\n'
    )
    monkeypatch.setenv("EPOCHCAST_OPERATORS", f" {file}, ")
    kind = registered_class("lab::blend")
    assert kind is not None and kind is kind_class("blend")
    with pytest.raises(ec.BadInput, match=r"no operator called 'missing'; known: .*EPOCHCAST_OPERATORS"):
        kind_class("missing")  # and the file is not run twice
    file.write_text("1 / 0")
    monkeypatch.setenv("EPOCHCAST_OPERATORS", str(tmp_path / "absent.py"))
    with pytest.raises(ec.BadInput, match=r"EPOCHCAST_OPERATORS: .*absent\.py cannot be imported"):
        kind_class("missing")
