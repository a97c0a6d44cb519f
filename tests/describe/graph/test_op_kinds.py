"""Every built-in operator has its formulas; an operator without one is opaque and is listed."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import epochcast as ec
from epochcast.describe.capture.inspection import inspect_graph
from epochcast.describe.capture.model import BuiltModel
from epochcast.describe.graph import ops
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph, Op, Phase
from epochcast.describe.graph.op_kinds import KIND_CLASSES, Kind, Opaque
from epochcast.describe.graph.op_work import OpClass
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.tensor import Tensor
from epochcast.describe.graph.trace import CLASSES, Trace


@dataclass(frozen=True, slots=True)
class Mystery(Kind):
    """Has no formula."""

    label: ClassVar[str] = "mystery"


def subclasses(kind: type[Kind]) -> Iterator[type[Kind]]:
    for each in kind.__subclasses__():
        yield each
        yield from subclasses(each)


def every_kind() -> set[type[Kind]]:
    """Those that have a name: a dataclass with slots is made twice, and the first one lives on without."""
    return {kind for kind in subclasses(Kind) if getattr(sys.modules.get(kind.__module__), kind.__name__, None) is kind}


def test_every_built_in_kind_is_registered_and_counted() -> None:
    shipped = {kind for kind in every_kind() if kind.__module__.startswith("epochcast.")}
    built_in = {kind for kind in KIND_CLASSES.values() if kind.__module__.startswith("epochcast.")}
    assert shipped == built_in
    assert {kind.__name__ for kind in shipped if not kind().is_counted} == {"Opaque"}
    own_class = {kind for kind in shipped if kind.op_class is not Kind.op_class}
    assert {kind.__name__ for kind in shipped - own_class if kind.runs_as is OpClass.OPAQUE} == {"Opaque"}
    assert {kind.__name__ for kind in shipped if kind.gradients is Kind.gradients} == {"Opaque"}


def test_every_module_of_operators_is_loaded() -> None:
    modules = {module.stem for module in Path(ops.__file__).parent.glob("*_op.py")}
    assert {kind.__module__.rpartition(".")[2] for kind in KIND_CLASSES.values()} >= modules


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
    mystery_ops = [op for op in trace(Mystery()).ops if isinstance(op.kind, Mystery)]
    assert [op.phase for op in mystery_ops] == [Phase.FORWARD, Phase.BACKWARD]
    assert all(op.work.read_bytes > 0 and op.work.written_bytes > 0 for op in mystery_ops)


def test_a_class_does_not_hide_that_nobody_counts_its_flops() -> None:
    @dataclass(frozen=True, slots=True)
    class Classed(Kind):
        label: ClassVar[str] = "classed"
        runs_as: ClassVar[OpClass] = OpClass.ELEMENTWISE

    x = Tensor((2, 3), name="x")
    op = Op("op", Classed(), (x,), (x,))
    assert op.op_class is OpClass.OPAQUE
    step = trace(Classed())
    assert step.opaque == ("classed",)
    assert CLASSES.index(OpClass.OPAQUE) in step.columns.op_class
