"""Storages of a step that was drawn out are those of the step that was built in full."""

import numpy as np
import pytest
from tests.graph.deep import KINDS, RECIPES, shallower

from epochcast.graph.recipe import Recipe
from epochcast.memory.lifetimes import Lifetimes, lifetimes
from epochcast.memory.peak import peak_memory


def assert_same(one: Lifetimes, other: Lifetimes) -> None:
    assert one.names == other.names
    for numbers in ("roles", "fixed_bytes", "sample_bytes", "born", "last"):
        assert np.array_equal(getattr(one, numbers), getattr(other, numbers)), numbers
    assert (one.ops, one.keeps_gradients) == (other.ops, other.keeps_gradients)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: f"{recipe.precision}-{recipe.mode}")
def test_storages_are_born_and_die_where_they_do_in_full(name: str, recipe: Recipe) -> None:
    drawn, built = (model.trace(recipe) for model in shallower(name))
    assert drawn.template.repeats is not None
    assert_same(lifetimes(drawn), lifetimes(built))
    assert_same(lifetimes(drawn, sums_in_place=False), lifetimes(built, sums_in_place=False))
    assert_same(lifetimes(drawn, set_to_none=False), lifetimes(built, set_to_none=False))


def test_a_gradient_passed_on_in_place_lives_to_the_first_block() -> None:
    """Nothing but low-rank updates is trained: the residual's gradient is one storage from the head to the front."""
    drawn, built = (model.trace(Recipe(4, lora=8, precision="bf16")) for model in shallower("gpt2"))
    lives = lifetimes(drawn)
    residual = lives.names.index("grad:transformer.h.9.add/out1")
    assert drawn.layers[drawn.entries[lives.last[residual]]].startswith("transformer.h.0.")
    assert_same(lives, lifetimes(built))


def test_the_peak_is_the_same() -> None:
    drawn, built = (model.trace(RECIPES[0]) for model in shallower("llama2_7b"))
    one, other = peak_memory(drawn), peak_memory(built)
    assert (one.bytes, one.breakdown, one.peak_op) == (other.bytes, other.breakdown, other.peak_op)
    assert (one.timeline.names, one.timeline.phases) == (other.timeline.names, other.timeline.phases)
