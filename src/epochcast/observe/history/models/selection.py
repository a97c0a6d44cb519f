"""Which features to keep: stepwise (`stepwise.py`), sequential forward selection, or the importance in a forest.

Sequential forward selection (Whitney 1971) adds, one by one, the feature that lowers the squared error on rows
that were kept back the most, and stops where none does. Importance keeps the features that the trees of a forest gain
most by.
"""

from collections.abc import Callable, Mapping

import numpy as np

from epochcast.observe.history.job_table import Array, Integers
from epochcast.observe.history.models.stepwise import selected
from epochcast.observe.history.models.tree_models import sklearn

MOST_FORWARD, MOST_IMPORTANT = 12, 20
# The best by their correlation with what is left are tried, not all: products of columns are many.
TRIED = 20
HELD_OUT = 0.25
IMPORTANT_TREES = 30


def forward(rows: Array, target: Array) -> list[int]:
    """Places of the features, in the order in which they were added."""
    order = np.random.default_rng(0).permutation(len(target))
    held = max(1, round(HELD_OUT * len(target)))
    train, test = order[held:], order[:held]
    inside: list[int] = []
    best = float(((target[test] - target[train].mean()) ** 2).sum())
    left = target[train] - target[train].mean()
    while len(inside) < min(MOST_FORWARD, len(train) - 2):
        near = _near(rows[train], left, inside)
        errors = {place: _error(rows, target, [*inside, place], train, test) for place in near}
        place = min(errors, key=lambda place: errors[place], default=-1)
        if place < 0 or errors[place] >= best:
            break
        inside.append(place)
        best = errors[place]
        weights = _weights(rows[train][:, inside], target[train])
        left = target[train] - _with_one(rows[train][:, inside]) @ weights
    return inside


def by_importance(rows: Array, target: Array) -> list[int]:
    """Places of the features that a forest gains most by, the best first."""
    forest = sklearn("ensemble").RandomForestRegressor(n_estimators=IMPORTANT_TREES, random_state=0, n_jobs=1)
    forest.fit(rows, target)
    gains = np.asarray(forest.feature_importances_)
    most = min(MOST_IMPORTANT, len(target) // 3)
    return [int(place) for place in np.argsort(-gains, kind="stable")[:most] if gains[place] > 0]


def _near(rows: Array, left: Array, inside: list[int]) -> list[int]:
    """The features outside that go most with what is left."""
    centred = rows - rows.mean(axis=0)
    lengths = np.sqrt((centred**2).sum(axis=0))
    together = np.abs(centred.T @ left) / np.where(lengths > 0, lengths, np.inf)
    together[inside] = -1.0
    return [int(place) for place in np.argsort(-together, kind="stable")[:TRIED] if together[place] > 0]


def _error(rows: Array, target: Array, places: list[int], train: Integers, test: Integers) -> float:
    weights = _weights(rows[train][:, places], target[train])
    return float(((target[test] - _with_one(rows[test][:, places]) @ weights) ** 2).sum())


def _weights(rows: Array, target: Array) -> Array:
    return np.asarray(np.linalg.lstsq(_with_one(rows), target, rcond=1e-10)[0])


def _with_one(rows: Array) -> Array:
    return np.column_stack([rows, np.ones(len(rows))])


SELECTIONS: Mapping[str, Callable[[Array, Array], list[int]]] = {
    "stepwise": selected,
    "forward": forward,
    "importance": by_importance,
}
