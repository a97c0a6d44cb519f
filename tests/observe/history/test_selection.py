import numpy as np
import pytest

from epochcast.observe.history.models.selection import SELECTIONS


@pytest.mark.parametrize("name", SELECTIONS)
def test_every_selection_finds_the_features_that_matter(name: str) -> None:
    generator = np.random.default_rng(4)
    rows = generator.normal(size=(200, 15))
    target = 4 * rows[:, 3] - 3 * rows[:, 9] + 0.1 * generator.normal(size=200)
    assert {3, 9} == set(SELECTIONS[name](rows, target)[:2])
