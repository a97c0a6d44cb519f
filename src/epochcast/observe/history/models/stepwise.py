"""Stepwise selection of features (Draper & Smith, Applied Regression Analysis, chapter 15).

Of all features that are out, the one with the smallest p-value of its partial F-test enters, if that is below
`p_enter`; then the one that is in with the largest p-value leaves, if that is above `p_remove`. This is repeated until
nothing changes. With residual r of a candidate on the features that are in, and residual e of the target:

    F = ((r·e)²/(r·r)) / (RSS'/(n − k − 2)),   RSS' = |e|² − (r·e)²/(r·r)        (1 and n − k − 2 degrees of freedom)
"""

import numpy as np

from epochcast.observe.history.job_table import Array

P_ENTER, P_REMOVE = 0.05, 0.10
# A candidate of which less than this (share of its length) is not explained by the features that are in adds nothing.
LEAST_NEW = 1e-6
MOST_FEATURES = 60


def selected(rows: Array, target: Array, p_enter: float = P_ENTER, p_remove: float = P_REMOVE) -> list[int]:
    """The places of the features that stay, in the order in which they entered."""
    centred = rows - rows.mean(axis=0)
    lengths = np.sqrt((centred**2).sum(axis=0))
    usable = lengths > 1e-12 * np.maximum(1.0, np.abs(rows).max(axis=0))
    scaled = np.where(usable, centred / np.where(lengths > 0, lengths, 1.0), 0.0)
    centred_target = target - target.mean()
    inside: list[int] = []
    seen: set[frozenset[int]] = set()
    most = min(MOST_FEATURES, len(target) - 3)
    while len(inside) < most:
        place, p_value = _best_outside(scaled, centred_target, inside, usable)
        if place is None or p_value >= p_enter:
            break
        inside.append(place)
        _drop_useless(scaled, centred_target, inside, p_remove)
        if frozenset(inside) in seen:  # p_enter and p_remove may disagree by rounding
            break
        seen.add(frozenset(inside))
    return inside


def _best_outside(rows: Array, target: Array, inside: list[int], usable: Array) -> tuple[int | None, float]:
    """The candidate with the smallest p-value."""
    basis = np.linalg.qr(rows[:, inside])[0] if inside else np.zeros((len(target), 0))
    left = target - basis @ (basis.T @ target)
    new = rows - basis @ (basis.T @ rows)
    squares = (new**2).sum(axis=0)
    outside = usable & (squares > LEAST_NEW)
    outside[inside] = False
    if not outside.any():
        return None, 1.0
    gained = np.where(outside, (new.T @ left) ** 2 / np.where(outside, squares, 1.0), -1.0)
    place = int(np.argmax(gained))
    return place, _p_value(gained[place], float(left @ left), len(target) - len(inside) - 2)


def _p_value(gained: float, total: float, freedom: int) -> float:
    """Of the partial F-test of one feature."""
    from scipy.stats import f

    rest = max(total - gained, 1e-300)
    return float(f.sf(gained / (rest / max(1, freedom)), 1, max(1, freedom)))


def p_values(rows: Array, target: Array) -> Array:
    """Of every feature when all are in, the intercept with them."""
    centred, about = rows - rows.mean(axis=0), target - target.mean()
    freedom = len(target) - rows.shape[1] - 1
    inverse = np.linalg.pinv(centred.T @ centred)
    weights = inverse @ centred.T @ about
    rest = about - centred @ weights
    variance = float(rest @ rest) / max(1, freedom)
    from scipy.stats import t

    errors = np.sqrt(np.maximum(inverse.diagonal() * variance, 1e-300))
    return np.asarray(2 * t.sf(np.abs(weights) / errors, max(1, freedom)))


def _drop_useless(rows: Array, target: Array, inside: list[int], p_remove: float) -> None:
    """Take out the feature with the largest p-value, as long as that is above the bound."""
    while len(inside) > 1:
        p_of_terms = p_values(rows[:, inside], target)
        worst = int(np.argmax(p_of_terms))
        if p_of_terms[worst] <= p_remove:
            return
        del inside[worst]
