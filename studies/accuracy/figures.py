"""Errors of one group of rows: what every table of the page, and the gate, is made of.

ratio = predicted / measured      APE = |ratio - 1|      bias = median ratio - 1
holds = fraction of rows whose measured time lies in the interval that is meant to hold 90 %
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SEPARATOR = " · "


@dataclass(frozen=True, slots=True)
class Figure:
    """One group under one split; no figures where no row could be forecast. `failed` rows could not be."""

    split: str
    group: str
    n: int
    mape: float | None
    median_ape: float | None
    bias: float | None
    holds: float | None = None
    failed: int = 0


def figure(split: str, group: str, ratios: Array, inside: Array | None = None, failed: int = 0) -> Figure:
    """The figures of some rows; NaN ratios were not scored, NaN `inside` has no interval."""
    scored = np.isfinite(ratios)
    if not scored.any():
        return Figure(split, group, 0, None, None, None, None, failed)
    ape = np.abs(ratios[scored] - 1)
    is_inside = None if inside is None else inside[scored][np.isfinite(inside[scored])]
    holds = None if is_inside is None or not len(is_inside) else float(is_inside.mean())
    bias = float(np.median(ratios[scored]) - 1)
    return Figure(split, group, int(scored.sum()), float(ape.mean()), float(np.median(ape)), bias, holds, failed)


def by_group(split: str, labels: Sequence[str], ratios: Array, inside: Array | None = None) -> list[Figure]:
    """The figures of every label that has a scored row; the worst first."""
    names: NDArray[np.str_] = np.array(labels)
    all_figures = [
        figure(split, str(name), ratios[names == name], None if inside is None else inside[names == name])
        for name in np.unique(names)
    ]
    return worst_first(f for f in all_figures if f.n)


def worst_first(all_figures: Iterable[Figure]) -> list[Figure]:
    """By MAPE, the largest first; groups without one at the end."""
    return sorted(all_figures, key=lambda f: (-(f.mape if f.mape is not None else -1.0), f.group))
