from typing import Any

import pytest

from epochcast.describe.graph.recipe import Recipe
from epochcast.errors import BadInput, UnknownName


def test_names_are_kept_in_one_spelling() -> None:
    recipe = Recipe(8, optimizer="SGD-Momentum", precision="AMP")
    assert (recipe.optimizer, recipe.precision) == ("momentum", "amp_fp16")
    assert recipe == Recipe(8, optimizer="momentum", precision="amp_fp16")


def test_another_batch_is_the_same_recipe() -> None:
    assert Recipe(8, optimizer="adam").at(16) == Recipe(16, optimizer="adam")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch": 0}, "batch must be at least 1, got 0"),
        ({"batch": -4}, "batch must be at least 1, got -4"),
        ({"accumulate": 0}, "`accumulate` must be at least 1, got 0"),
    ],
)
def test_a_count_below_one_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Recipe(**{"batch": 8, **options})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"optimizer": "shampoo"}, "no optimizer called 'shampoo'; nothing near"),
        ({"precision": "int4"}, "no precision called 'int4'"),
        ({"mode": "inference"}, "no mode called 'inference'; known: forward, forward_backward, training"),
        ({"attention": "sparse"}, "no attention called 'sparse'; known: eager, flash"),
        ({"update_style": "fast"}, "no update style called 'fast'; known: foreach, fused, loop"),
    ],
)
def test_an_unknown_name_lists_the_known_ones(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UnknownName, match=message):
        Recipe(8, **options)
