"""Every table that must know a kind knows it; a kind that nobody counts is opaque and is listed."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

import epochcast as ec
from epochcast.describe.capture.inspection import inspect_graph
from epochcast.describe.capture.model import BuiltModel
from epochcast.describe.graph.backward import gradients
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph, Op, Phase
from epochcast.describe.graph.op_kinds import KIND_CLASSES, Kind, Opaque
from epochcast.describe.graph.op_work import OpClass, class_rule, flops, op_class, work
from epochcast.describe.graph.receptive import field_after
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.tensor import Tensor
from epochcast.describe.graph.trace import CLASSES, Trace

# Formulas without a default that would do for any kind. Bytes, kernels and the shape as a product have one (every
# operand once, one kernel, a column), what is kept beside a result too (nothing), and a kernel that cannot be measured
# is refused by name.
TABLES: dict[str, Any] = {"flops": flops, "class": class_rule, "gradients": gradients, "receptive field": field_after}


@dataclass(frozen=True, slots=True)
class Mystery(Kind):
    """Defined here alone: no table knows it."""

    label: ClassVar[str] = "mystery"


def subclasses(kind: type[Kind]) -> Iterator[type[Kind]]:
    for each in kind.__subclasses__():
        yield each
        yield from subclasses(each)


def every_kind() -> set[type[Kind]]:
    """Those that have a name: a dataclass with slots is made twice, and the first one lives on without."""
    return {kind for kind in subclasses(Kind) if vars(sys.modules[kind.__module__]).get(kind.__name__) is kind}


def missing(kind: type[Kind]) -> set[str]:
    """The tables that do not know a kind."""
    bases = set(kind.__mro__) - {Kind, object}
    lacking = {name for name, table in TABLES.items() if not bases & set(table.registry)}
    return lacking | ({"KIND_CLASSES"} if KIND_CLASSES.get(kind.label) is not kind else set())


def test_every_table_knows_every_kind() -> None:
    shipped = {kind for kind in every_kind() if kind.__module__.startswith("epochcast.")}
    assert {kind.__name__: missing(kind) for kind in shipped if missing(kind)} == {}
    assert shipped == set(KIND_CLASSES.values())


def test_a_kind_that_was_only_defined_is_missing_everywhere() -> None:
    assert Mystery in every_kind()
    assert missing(Mystery) == {*TABLES, "KIND_CLASSES"}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_that_learns_a_kind_is_no_longer_missing(name: str) -> None:
    @dataclass(frozen=True, slots=True)
    class Learnt(Kind):
        label: ClassVar[str] = "learnt"

    TABLES[name].register(Learnt, lambda *_: 0)
    assert missing(Learnt) == {*TABLES, "KIND_CLASSES"} - {name}


# ---- a kind that nobody counts ------------------------------------------------------------------


def network(kind: Kind) -> BuiltModel:
    def build(batch: int) -> Graph:
        b = Builder("net", batch)
        x = b.linear(b.input("x", (64,)), 64, name="first")
        (y,) = b.op(kind, [x], [x.shape], name="odd")
        return b.finish(b.linear(y, 10, name="last"))

    return BuiltModel("net", build)


def trace(kind: Kind) -> Trace:
    return network(kind).trace(Recipe(8))


def test_it_is_listed_and_warned_about() -> None:
    assert trace(Mystery()).opaque == ("mystery",)
    answer: dict[str, Any] = ec.forecast(network(Mystery()), device="V100", batch=8).as_dict()
    assert answer["opaque_ops"] == ["mystery"]
    assert any("estimated by the bytes moved" in warning for warning in answer["warnings"])
    assert inspect_graph(network(Mystery())).opaque_ops == ("mystery",)


def test_it_costs_what_an_opaque_op_costs_forward_and_backward() -> None:
    mystery, opaque = (ec.forecast(network(kind), device="V100", batch=8) for kind in (Mystery(), Opaque()))
    assert mystery.step_parts == opaque.step_parts
    ops = [op for op in trace(Mystery()).ops if isinstance(op.kind, Mystery)]
    assert [op.phase for op in ops] == [Phase.FORWARD, Phase.BACKWARD]
    assert all(work(op).read_bytes > 0 and work(op).written_bytes > 0 for op in ops)


def test_a_class_does_not_hide_that_nobody_counts_its_flops() -> None:
    @dataclass(frozen=True, slots=True)
    class Classed(Kind):
        label: ClassVar[str] = "classed"

    class_rule.register(Classed, lambda kind, op: OpClass.ELEMENTWISE)
    x = Tensor((2, 3), name="x")
    op = Op("op", Classed(), (x,), (x,))
    assert op_class(op.kind, op) is OpClass.OPAQUE
    step = trace(Classed())
    assert step.opaque == ("classed",)
    assert CLASSES.index(OpClass.OPAQUE) in step.columns.op_class
