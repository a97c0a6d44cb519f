"""Coverage of the intervals, counted on rows that were not used to set them.

    known device      the spread comes from the other folds (the device's own rows of that kind where it has enough)
    unseen device     the spread comes from the other chips, each left out in turn, each with the same weight
    calibrated        counted by `make model` on runs that were not given (`docs/model-card.md`)

Steps that wait for their launches are left out: the interval of the host comes on top (`predict.cost.hosts`). A row
holds if measured lies between predicted·low^w and predicted·high^w, w being the width of the step's ops.
"""

import re
from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from epochcast.predict.cost.spreads import FORWARD, PRODUCTS, TRAINING
from studies.accuracy.figures import Array
from studies.accuracy.left_out_table import LeftOutTable
from training.spreads import (
    KNOWN_RUNS,
    cells_of,
    chips_of,
    is_known_elsewhere,
    outside_of,
    own_spread,
    shared_spread,
    spread_of,
)

WANTED = (0.85, 0.95)
GROUPS = (TRAINING, FORWARD, PRODUCTS)


def known_inside(table: LeftOutTable, split: str) -> Array:
    """1 where the interval of the other folds holds, 0 where not, NaN where the row was not scored or its device is
    not known for that kind of step without it.

    As shipped: fp32 products have a spread of their own, then kinds of step on devices with enough steps, then all
    others share one, of families and sources left out alike.
    """
    logs, folds = _typical_logs(table, split), table.folds(split)
    family, source = _typical_logs(table, "family"), _typical_logs(table, "source")
    source = np.where(is_known_elsewhere(table.device, table.kind, table.source), source, np.nan)
    groups, inside = _groups(table), np.full(len(table), np.nan)
    cells = cells_of(table.device, table.kind)
    for fold in np.unique(folds[np.isfinite(logs)]):
        others = folds != fold
        for name in GROUPS:
            group = groups == name
            asked = ~others & group & np.isfinite(logs)
            if not asked.any() or not (others & group).any():
                continue
            shared = shared_spread(family[others & group], source[others & group], cells[others & group])
            for cell in np.unique(cells[asked]):
                mine = others & (cells == cell)
                if mine.sum() >= KNOWN_RUNS:
                    own = None if name == PRODUCTS else own_spread(family[mine], table.family[mine])
                    is_asked = asked & (cells == cell)
                    inside[is_asked] = _holds(logs[is_asked], own or shared)
    return inside


def unseen_inside(table: LeftOutTable) -> Array:
    """The same for devices: the interval of all other chips, and never narrower than that of known ones."""
    logs, seen_logs = _typical_logs(table, "device"), _typical_logs(table, "family")
    inside, chips = np.full(len(table), np.nan), chips_of(table.device)
    groups = _groups(table)
    for group in (groups == name for name in GROUPS):
        for chip in np.unique(chips[np.isfinite(logs) & group]):
            is_asked = group & (chips == chip) & np.isfinite(logs)
            others = group & (chips != chip) & np.isfinite(logs)
            if others.any():
                outside = outside_of(len(np.unique(chips[others])))
                far, near = spread_of(logs[others], chips[others], outside), spread_of(seen_logs[others])
                inside[is_asked] = _holds(logs[is_asked], (min(far[0], near[0]), max(far[1], near[1])))
    return inside


def _groups(table: LeftOutTable) -> NDArray[np.str_]:
    """The group of every step, as `cost.spreads.step_group`."""
    return np.where(table.products != "", PRODUCTS, np.where(table.mode == "forward", FORWARD, TRAINING))


def _typical_logs(table: LeftOutTable, split: str) -> Array:
    """log(predicted/measured), as far off as a step of typical ops would have been."""
    with np.errstate(invalid="ignore"):
        logs = np.log(table.ratios[split]) / table.widths
    return np.asarray(np.where(table.bound == "kernels", logs, np.nan))


def _holds(logs: Array, spread: tuple[float, float]) -> NDArray[np.bool_]:
    low, high = spread
    return (log(low) + logs <= 0) & (log(high) + logs >= 0)


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
    rows = []
    for line in section[1].splitlines() if section else []:
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) == 5 and cells[1].isdigit():
            mape, median, holds = (float(cell.rstrip("% ")) / 100 for cell in cells[2:])
            rows.append(GivenRuns(cells[0], int(cells[1]), mape, median, holds))
    return rows


def verdict(holds: float) -> str:
    """The coverage in words."""
    low, high = WANTED
    return "too narrow" if holds < low else "too wide" if holds > high else "as wanted"
