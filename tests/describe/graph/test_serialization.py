import json
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.op import Gradient, Op, Phase
from epochcast.describe.graph.op_kinds import KIND_CLASSES, Conv, Elementwise, Kind, Matmul
from epochcast.describe.graph.rebatch import Template
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.serialization import (
    graph_from_json,
    graph_to_json,
    ops_from_json,
    ops_to_json,
    recipe_from_json,
    recipe_to_json,
    template_from_json,
    template_to_json,
    trace_from_json,
    trace_to_json,
)
from epochcast.describe.graph.tensor import DType, Relation, Tensor
from epochcast.errors import BadInput


def through_text(value: object) -> Any:
    """What a file would give back."""
    return json.loads(json.dumps(value, allow_nan=False))


def attribute(default: object) -> st.SearchStrategy[Any]:
    if isinstance(default, bool):
        return st.booleans()
    if isinstance(default, int):
        return st.integers(0, 9)
    if isinstance(default, tuple):
        return st.lists(st.integers(0, 9), max_size=3).map(tuple)
    return st.text(max_size=5)


def kinds_of(kind: type[Kind]) -> st.SearchStrategy[Kind]:
    return st.builds(kind, **{f.name: attribute(f.default) for f in fields(kind)})


kinds = st.one_of([kinds_of(kind) for kind in KIND_CLASSES.values()])
sizes = st.lists(st.integers(0, 9), max_size=4).map(tuple)
texts = st.text(max_size=3)
relations = st.builds(Relation, texts, texts, texts, texts, texts, texts, st.booleans())
tensors = st.builds(Tensor, sizes, st.sampled_from(DType), texts, relations)
operands = st.lists(tensors, max_size=3).map(tuple)
ops = st.builds(
    Op, st.text(max_size=5), kinds, operands, operands, operands, st.sampled_from(Phase), st.text(max_size=5),
    st.sampled_from(Gradient), st.booleans(),
)  # fmt: skip


@st.composite
def templates(draw: st.DrawFn) -> Template:
    base = tuple(draw(st.lists(ops, max_size=4)))

    def side(of: tuple[Tensor, ...]) -> Any:
        pair = st.tuples(st.integers(-3, 9), st.integers(3, 5)) | st.tuples(st.integers(0, 9), st.just(0))
        return tuple(draw(st.none() | st.tuples(*[pair] * len(t.shape))) for t in of)

    grown = [draw(st.booleans()) for _ in base]
    growths = tuple(
        (side(op.inputs), side(op.outputs), side(op.weights)) if g else None for op, g in zip(base, grown, strict=True)
    )
    return Template(base, growths)


@given(st.lists(ops, max_size=5).map(tuple))
def test_ops_come_back_equal(made: tuple[Op, ...]) -> None:
    assert ops_from_json(through_text(ops_to_json(made))) == made


@given(templates())
def test_templates_come_back_equal(template: Template) -> None:
    assert template_from_json(through_text(template_to_json(template))) == template


def test_a_graph_comes_back_equal() -> None:
    graph = zoo_model("resnet18").graph(3)
    assert graph_from_json(through_text(graph_to_json(graph))) == graph


@pytest.mark.parametrize("precision", ["fp32", "amp_fp16"])
def test_a_trace_comes_back_equal_and_still_rebatches(precision: str) -> None:
    trace = zoo_model("resnet18").trace(Recipe(8, "adam", precision, freeze=("layer1*",)))
    back = trace_from_json(through_text(trace_to_json(trace)))
    assert back == trace
    assert back.rebatch(17).ops == trace.rebatch(17).ops


def test_what_repeats_is_written_once() -> None:
    x = Tensor((2, 3), name="x")
    twice = [Op(f"relu{i}", Elementwise("relu"), (x,), (x,)) for i in range(2)]
    assert ops_to_json(twice) == {
        "tensors": [["x", [2, 3]]],
        "kinds": [["elementwise", {"function": "relu"}]],
        "ops": [["relu0", 0, [0], [0]], ["relu1", 0, [0], [0]]],
    }


def test_a_resnet_50_step_is_a_file_of_moderate_size() -> None:
    text = json.dumps(trace_to_json(zoo_model("resnet50").trace(Recipe(8))))
    assert len(text) < 250_000


def document() -> dict[str, Any]:
    x, w = Tensor((2, 3), name="x"), Tensor((4, 3), name="w")
    y = Tensor((2, 4), name="y")
    conv = Op("conv", Conv(), (x,), (y,), (w,))
    return ops_to_json([Op("fc", Matmul(transpose_b=True), (x,), (y,), (w,)), conv])


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["ops", 1, 2], [7], r"ops document.ops\[1\].inputs: no tensor 7; the table has 3"),
        (["ops", 1, 2], 0, r"ops\[1\].inputs must be a list of indices"),
        (["ops", 1, 1], True, r"ops\[1\]: no kind True; the table has 2"),
        (["ops", 0], ["fc"], r"ops\[0\] must be a list of 4 to 9 entries, got \['fc'\]"),
        (["tensors", 2, 1], [2, -4], r"tensors\[2\] must begin with a name and a shape"),
        (["kinds", 1, 0], "convolve", r"kinds\[1\]: no operator called 'convolve'; known: attention, "),
        (
            ["kinds", 0, 1],
            {"bias": 1},
            r"kinds\[0\] \(matmul\) has no attribute 'bias'; known: grouped, transpose_a, transpose_b",
        ),
        (["kinds", 0, 1], {"transpose_a": 1}, r"\(matmul\).transpose_a must be true or false, got 1"),
        (["tensors"], {}, r"ops document.tensors must be a list, got {}"),
    ],
)
def test_a_broken_document_is_refused_by_its_place(path: list[Any], value: object, message: str) -> None:
    broken = document()
    at: Any = broken
    broken["kinds"][1] = ["conv", {}]
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    with pytest.raises(BadInput, match=message):
        ops_from_json(broken)


def test_a_missing_table_is_named() -> None:
    with pytest.raises(BadInput, match="ops document has no 'kinds'"):
        ops_from_json({"tensors": [], "ops": []})


def test_a_graph_that_reads_what_is_never_made_is_refused() -> None:
    broken = graph_to_json(zoo_model("resnet18").graph(2))
    broken["inputs"] = []
    with pytest.raises(BadInput, match="graph: resnet18: op 'conv1/out' reads 'image' before it is made"):
        graph_from_json(broken)


def test_an_unknown_optimizer_in_a_recipe_is_refused() -> None:
    broken = trace_to_json(zoo_model("resnet18").trace(Recipe(2)))
    broken["recipe"]["optimizer"] = "adamm"
    with pytest.raises(BadInput, match=r"trace\.recipe: no optimizer called 'adamm'"):
        trace_from_json(broken)


@pytest.mark.parametrize("checkpointing", [True, "selective", "operators", "half"])
def test_a_way_of_checkpointing_comes_back(checkpointing: bool | str) -> None:
    recipe = Recipe(1, checkpointing=checkpointing)
    assert recipe_from_json(recipe_to_json(recipe)) == recipe
