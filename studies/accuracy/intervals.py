"""How many intervals hold, counted on rows that did not set them.

    known device      the spread comes from the other folds of families (the device's own rows where it has a hundred)
    unseen device     the spread comes from the other devices, each left out in turn, each with the same weight
    calibrated        counted by `make model` on runs that were not given (`docs/model-card.md`)

A row holds if measured lies between predicted·low and predicted·high.
"""

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epochcast.fit.spreads import OWN_INTERVAL_RUNS, spread_of
from studies.accuracy.figures import Array
from studies.accuracy.left_out_table import LeftOutTable

WANTED = (0.85, 0.95)


def known_inside(table: LeftOutTable, split: str) -> Array:
    """1 where the interval of the other folds holds, 0 where not, NaN where the row was not scored."""
    ratios, folds = table.ratios[split], table.folds(split)
    with np.errstate(invalid="ignore"):
        logs = np.log(ratios)
    inside = np.full(len(table), np.nan)
    for fold in np.unique(folds):
        others = folds != fold
        shared = spread_of(logs[others])
        for device in np.unique(table.device):
            mine = others & (table.device == device)
            has_own = np.isfinite(logs[mine]).sum() >= OWN_INTERVAL_RUNS
            asked = ~others & (table.device == device) & np.isfinite(ratios)
            inside[asked] = _holds(ratios[asked], spread_of(logs[mine]) if has_own else shared)
    return inside


def unseen_inside(table: LeftOutTable) -> Array:
    """The same for devices: the interval of all the others."""
    ratios = table.ratios["device"]
    logs = np.log(ratios)
    inside = np.full(len(table), np.nan)
    for device in np.unique(table.device[np.isfinite(ratios)]):
        mine = table.device == device
        others = ~mine & np.isfinite(logs)
        if others.any():
            asked = mine & np.isfinite(ratios)
            inside[asked] = _holds(ratios[asked], spread_of(logs[others], table.device[others]))
    return inside


def _holds(ratios: Array, spread: tuple[float, float]) -> NDArray[np.bool_]:
    low, high = spread
    return (low * ratios <= 1) & (high * ratios >= 1)


@dataclass(frozen=True, slots=True)
class GivenRuns:
    """A device that was left out, after five of its runs were given, as the model card says."""

    device: str
    n: int
    mape: float
    median_ape: float
    holds: float


def given_runs(card: str) -> list[GivenRuns]:
    """The rows of the card's table of devices that were given five runs; none if it has no such table."""
    section = re.search(r"^## Devices never seen, .* given.*?\n(.*?)(?=^## |\Z)", card, re.MULTILINE | re.DOTALL)
    found = []
    for line in section[1].splitlines() if section else []:
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) == 5 and cells[1].isdigit():
            mape, median, holds = (float(cell.rstrip("% ")) / 100 for cell in cells[2:])
            found.append(GivenRuns(cells[0], int(cells[1]), mape, median, holds))
    return found


def verdict(holds: float) -> str:
    """In words."""
    low, high = WANTED
    return "too narrow" if holds < low else "too wide" if holds > high else "as wanted"
