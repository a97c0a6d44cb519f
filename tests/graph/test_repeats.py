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
from epochcast.forecasting.strategies.cuts import segments
from epochcast.graph.build import Builder
from epochcast.graph.op import Graph
from epochcast.graph.order import Period
from epochcast.graph.recipe import Recipe
from epochcast.graph.repeats import Repeats
from epochcast.graph.serial import trace_from_json, trace_to_json
from epochcast.graph.tensor import Tensor
from epochcast.graph.trace import trace_from
from epochcast.memory.lifetimes import lifetimes

LAYERS = Repeats("model.layers", Period(2, 1, 5))
Build = Callable[[int, int], Graph]
Head = Callable[[list[Tensor]], list[Tensor]]


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
    assert (trace.few.ops, trace.few.parameters, trace.few.inputs) == (few.ops, few.parameters, few.inputs)


@pytest.mark.parametrize("name", sorted(name for name, entry in ZOO.items() if entry.few()))
def test_the_deep_networks_of_the_zoo_are_drawn_out(name: str) -> None:
    model = zoo_model(name)
    trace = model.trace(Recipe(4, optimizer="sgd"))
    assert trace.template.repeats is not None
    graph = model.graph(4)
    assert trace.parameters == graph.parameters
    assert trace.template.base[: len(graph.ops)] == graph.ops  # nothing changes beyond the few


def test_a_network_as_shallow_as_the_few_is_built() -> None:
    assert replace(ZOO["llama2_7b"], options={**ZOO["llama2_7b"].options, "layers": 6}).few() is None


def test_what_freezes_single_blocks_is_built_in_full() -> None:
    drawn, built = shallower("llama2_7b")
    recipe = Recipe(4, freeze=("model.layers.1.*",))
    assert drawn.trace(recipe) == built.trace(recipe)
    assert sum(not p.trainable for p in drawn.trace(recipe).parameters) == 9


def test_a_pattern_that_matches_nothing_is_still_refused() -> None:
    with pytest.raises(BadInput, match="matches no parameter"):
        shallower("llama2_7b")[0].trace(Recipe(4, freeze=("model.layers.10.*",)))


def chain(layers: int, batch: int, *, memory: bool = False, head_reads: Head = lambda seen: []) -> Graph:
    """Equal blocks, each reading the one before; and, as wanted, a tensor from in front of them, or a head that reads
    more than the last.
    """
    b = Builder("chain", batch)
    x = b.linear(b.input("x", (64,)), 64, name="stem")
    kept = b.relu(x, name="memory")
    seen = []
    for index in range(layers):
        with b.scope(f"model.layers.{index}"):
            x = b.linear(x, 64, name="fc")
            x = b.add(x, kept) if memory else b.relu(x)
            seen.append(x)
    for other in head_reads(seen):
        x = b.add(x, other, name="join")
    return b.finish(b.linear(x, 10, name="head"))


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


def reaching(layers: int, batch: int, *, back: Callable[[int], int]) -> Graph:
    """Equal blocks, but for the last, which reads an earlier one."""
    b = Builder("reaching", batch)
    x = b.linear(b.input("x", (64,)), 64, name="stem")
    seen = []
    for index in range(layers):
        with b.scope(f"model.layers.{index}"):
            x = b.relu(b.linear(x, 64, name="fc"))
            seen.append(x)
            if index == layers - 1:
                x = b.add(x, seen[back(layers)], name="skip")
    return b.finish(b.linear(x, 10, name="head"))


def tied(layers: int, batch: int) -> Graph:
    """The last block has the first one's weight."""
    b = Builder("tied", batch)
    x = b.linear(b.input("x", (64,)), 64, name="stem")
    for index in range(layers):
        first = b.parameters["model.layers.0.fc.weight"].tensor if index == layers - 1 else None
        with b.scope(f"model.layers.{index}"):
            x = b.relu(b.linear(x, 64, bias=False, weight=first, name="fc"))
    return b.finish(b.linear(x, 10, name="head"))


NOT_REPEATED: dict[str, Build] = {
    "no two blocks are alike": tapering,
    "the head reads all blocks": gathering,
    "the head reads one in the middle": partial(chain, head_reads=lambda seen: [seen[len(seen) // 2]]),
    "the last block reads the first": partial(reaching, back=lambda layers: 0),
    "the last block reads four blocks back": partial(reaching, back=lambda layers: layers - 5),
    "the last block has the first one's weight": tied,
}


@pytest.mark.parametrize("mode", ["training", "forward"])
@pytest.mark.parametrize("case", NOT_REPEATED)
def test_blocks_that_do_not_repeat_are_built_in_full(case: str, mode: str) -> None:
    build = NOT_REPEATED[case]
    trace = BuiltModel("net", partial(build, 11), (partial(build, 6), LAYERS)).trace(Recipe(4, mode=mode))
    assert trace.template.repeats is None


REMEMBERING = partial(chain, memory=True)
JOINING = partial(chain, head_reads=lambda seen: [seen[0]])


@pytest.mark.parametrize(("build", "mode"), [(REMEMBERING, "training"), (REMEMBERING, "forward"), (JOINING, "forward")])
def test_what_blocks_and_head_share_with_the_ends_is_drawn_out(build: Build, mode: str) -> None:
    """The memory that all blocks read forbids cuts between them: one segment has all their parameters."""
    recipe = Recipe(4, mode=mode)
    drawn = BuiltModel("net", partial(build, 11), (partial(build, 6), LAYERS)).trace(recipe)
    built = BuiltModel("net", partial(build, 11)).trace(recipe)
    assert drawn.template.repeats is not None
    assert drawn == built
    one, other = segments(drawn), segments(built)
    assert np.array_equal(one.of_entry, other.of_entry)
    assert (one.parameter_bytes, one.crossing_bytes) == (other.parameter_bytes, other.crossing_bytes)
    assert np.array_equal(lifetimes(drawn).last, lifetimes(built).last)
