"""A step of few blocks drawn out is the step of many, to the last op, storage and segment."""

from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial

import numpy as np
import pytest
from tests.graph.deep import KINDS, RECIPES, shallower

from epochcast.capture.model import BuiltModel
from epochcast.capture.zoo import ZOO, zoo_model
from epochcast.errors import BadInput
from epochcast.graph.build import Builder
from epochcast.graph.op import Graph
from epochcast.graph.order import Period
from epochcast.graph.recipe import Recipe
from epochcast.graph.repeats import Repeats
from epochcast.graph.serial import trace_from_json, trace_to_json
from epochcast.graph.trace import trace_from

LAYERS = Repeats("model.layers", Period(2, 1, 5))


def test_names_move_by_their_numbers() -> None:
    name = "grad:model.layers.3.norm+model.layers.3.add.backward"
    assert LAYERS.moved(name, 4) == "grad:model.layers.7.norm+model.layers.7.add.backward"
    assert LAYERS.moved("model.layers.12.o_proj", -2) == "model.layers.10.o_proj"
    assert LAYERS.moved("model.norm.1", 4) == "model.norm.1"
    assert (LAYERS.block(name), LAYERS.block("lm_head.weight")) == (3, -1)


def test_names_there_and_back() -> None:
    few = [f"model.layers.{n}.w" for n in range(5)]
    many = [f"model.layers.{n}.w" for n in range(10)]
    assert sorted(LAYERS.many_names([*few, "head"])) == sorted([*many, "head"])
    assert LAYERS.few_names([*many, "head"]) == (*few, "head")


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: f"{recipe.precision}-{recipe.mode}")
def test_the_step_is_the_one_that_is_built_in_full(name: str, recipe: Recipe) -> None:
    drawn, built = (model.trace(recipe) for model in shallower(name))
    assert drawn.template.repeats is not None
    assert drawn.ops == built.ops
    assert drawn.template.growths == built.template.growths
    assert (drawn.parameters, drawn.inputs, drawn.layers) == (built.parameters, built.inputs, built.layers)
    assert drawn.template.names == tuple(op.name for op in built.ops)
    for column in fields(drawn.columns):
        assert np.array_equal(getattr(drawn.columns, column.name), getattr(built.columns, column.name)), column.name


def test_a_drawn_step_equals_the_built_one_and_survives_json() -> None:
    drawn, built = (model.trace(RECIPES[0]) for model in shallower("gpt2"))
    assert drawn == built
    assert hash(drawn.template) == hash(built.template)
    assert trace_from_json(trace_to_json(drawn)) == drawn
    assert drawn.template != drawn.template.undrawn


def test_the_few_can_be_had_again() -> None:
    drawn, _ = shallower("llama2_7b")
    trace = drawn.trace(RECIPES[0])
    assert drawn.shallow is not None
    few = trace_from(drawn.shallow[0], RECIPES[0])
    assert trace.few is not None
    assert (trace.few.ops, trace.few.parameters, trace.few.inputs) == (few.ops, few.parameters, few.inputs)


@pytest.mark.parametrize("name", sorted(name for name, entry in ZOO.items() if entry.few()))
def test_the_deep_networks_of_the_zoo_are_drawn_out(name: str) -> None:
    model = zoo_model(name)
    trace = model.trace(Recipe(4, optimizer="sgd"))
    assert trace.template.repeats is not None
    graph = model.graph(4)
    assert trace.parameters == graph.parameters
    assert trace.template.names[: len(graph.ops)] == tuple(op.name for op in graph.ops)


def test_a_network_as_shallow_as_the_few_is_built() -> None:
    assert replace(ZOO["llama2_7b"], options={**ZOO["llama2_7b"].options, "layers": 6}).few() is None


def test_what_freezes_single_blocks_is_built_in_full() -> None:
    drawn, built = shallower("llama2_7b")
    recipe = Recipe(4, freeze=("model.layers.1.*",))
    assert drawn.trace(recipe).template.repeats is None
    assert drawn.trace(recipe).parameters == built.trace(recipe).parameters


def test_a_pattern_that_matches_nothing_is_still_refused() -> None:
    with pytest.raises(BadInput, match="matches no parameter"):
        shallower("llama2_7b")[0].trace(Recipe(4, freeze=("model.layers.10.*",)))


def tapering(layers: int, batch: int) -> Graph:
    """Blocks of which each is narrower than the one before: no two are alike."""
    b = Builder("tapering", batch)
    x = b.input("x", (64,))
    for index in range(layers):
        with b.scope(f"model.layers.{index}"):
            x = b.relu(b.linear(x, 64 - index, name="fc"))
    return b.finish(b.linear(x, 10, name="head"))


def gathering(layers: int, batch: int) -> Graph:
    """Equal blocks, all of which the last layer reads."""
    b = Builder("gathering", batch)
    x = b.input("x", (64,))
    seen = []
    for index in range(layers):
        with b.scope(f"model.layers.{index}"):
            x = b.relu(b.linear(x, 64, name="fc"))
            seen.append(x)
    return b.finish(b.linear(b.concatenate(seen), 10, name="head"))


def reaching_back(layers: int, batch: int) -> Graph:
    """Equal blocks that all read what the first made."""
    b = Builder("reaching_back", batch)
    x = first = b.linear(b.input("x", (64,)), 64, name="stem")
    for index in range(layers):
        with b.scope(f"model.layers.{index}"):
            x = b.add(b.linear(x, 64, name="fc"), first)
            first = x if index == 0 else first
    return b.finish(b.linear(x, 10, name="head"))


@pytest.mark.parametrize("mode", ["training", "forward"])
@pytest.mark.parametrize("build", [tapering, gathering, reaching_back])
def test_blocks_that_do_not_repeat_are_built_in_full(build: Callable[[int, int], Graph], mode: str) -> None:
    whole = partial(build, 10)
    trace = BuiltModel("net", whole, (partial(build, 5), LAYERS)).trace(Recipe(4, mode=mode))
    assert trace.template.repeats is None
    assert trace.ops == BuiltModel("net", whole).trace(Recipe(4, mode=mode)).ops
