"""Coverage, width and score of the intervals, on rows that were not used to set them.

    known device      the spreads are fitted to the other folds of families, or to the other sources
    unseen device     the spreads are fitted to the other chips
    calibrated        counted by `make model` on runs that were not given (`docs/accuracy/model-card.md`)

Steps that wait for their launches are left out: the interval of the host comes on top (`predict.cost.hosts`). The score
is the interval score of log(measured/predicted), less is better:

    score = (high - low) + 2/α · (how far outside)      α = 10 %
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epochcast.hardware.catalogue import find_device
from epochcast.interval import COVERAGE
from epochcast.predict.cost.software_setting import GENERATIONS, SoftwareSetting
from epochcast.predict.cost.spreads import KERNEL_PARTS, MEASURED, OPERATORS, UNSEEN, Spreads, hardware_group
from studies.accuracy.figures import Array
from studies.accuracy.left_out_table import LeftOutTable
from training.spreads import KNOWN_RUNS, LeftOutSteps, cells_of, chips_of, fitted_spreads, is_known_elsewhere

WANTED = (0.85, 0.95)
# Ages are written with two decimals: the first age of a generation may be rounded down.
_AGE_ROUNDING = 0.005


@dataclass(frozen=True)
class ScoredIntervals:
    """Logarithms of measured/predicted and of both ends by step; NaN where a step has no interval of this split."""

    logs: Array
    low: Array
    high: Array

    @property
    def inside(self) -> Array:
        """1 where the interval holds, 0 where not."""
        holds = ((self.low <= self.logs) & (self.logs <= self.high)).astype(np.float64)
        return np.where(np.isfinite(self.low), holds, np.nan)

    @property
    def median_width(self) -> float:
        """high ÷ low of the middle step."""
        return float(np.exp(np.nanmedian(self.high - self.low)))

    @property
    def score(self) -> float:
        """The mean interval score."""
        outside = np.maximum(self.low - self.logs, 0) + np.maximum(self.logs - self.high, 0)
        return float(np.nanmean(self.high - self.low + 2 / (1 - COVERAGE) * outside))


def scored_intervals(table: LeftOutTable) -> dict[str, ScoredIntervals]:
    """By split, as shipped: one fit to the left-out steps of all splits, but without the fold that is scored."""
    chips = np.unique(chips_of(table.device), return_inverse=True)[1]
    folds = {"family": table.folds("family"), "device": chips, "source": table.folds("source")}
    steps, is_scored = _left_out_steps(table), _is_scored(table)
    by_split = {}
    for split, fold in folds.items():
        low, high = np.full(len(table), np.nan), np.full(len(table), np.nan)
        for place in np.unique(fold[is_scored[split]]):
            mine = is_scored[split] & (fold == place)
            others = [steps[s].where(is_scored[s] & (fold != place)) for s in folds]
            if any(len(part.cell) for part in others):
                low[mine], high[mine] = _ends(fitted_spreads(LeftOutSteps.joined(others)), steps[split].where(mine))
        by_split[split] = ScoredIntervals(-steps[split].log_errors, low, high)
    return by_split


def _is_scored(table: LeftOutTable) -> Mapping[str, NDArray[np.bool_]]:
    """Kernel-bound steps that were left out; by source only those whose device others measured in that kind."""
    elsewhere = is_known_elsewhere(table.device, table.kind, table.source)
    is_kernels = table.bound == "kernels"
    return {
        split: is_kernels & np.isfinite(ratios) & (elsewhere | (split != "source"))
        for split, ratios in table.ratios.items()
    }


def _left_out_steps(table: LeftOutTable) -> dict[str, LeftOutSteps]:
    """Every step by every split, with what was known of its device then."""
    cells = cells_of(table.device, table.kind)
    _, place, runs = np.unique(cells, return_inverse=True, return_counts=True)
    known_by = {
        "family": np.where(runs[place] >= KNOWN_RUNS, MEASURED, OPERATORS),
        "source": np.full(len(table), MEASURED),
        "device": np.full(len(table), UNSEEN),
    }
    groups = {name: hardware_group(find_device(name)) for name in np.unique(table.device).tolist()}
    hardware = np.array([groups[name] for name in table.device.tolist()])
    trains = np.char.endswith(table.kind, "-training")
    modes = np.where(trains, ", training", ", forward")
    settings = [
        SoftwareSetting(framework=framework, framework_age=float(age) + _AGE_ROUNDING)
        for framework, age in zip(table.framework.tolist(), table.age.tolist(), strict=True)
    ]
    generation = np.array([GENERATIONS[setting.generation] for setting in settings])
    return {
        split: LeftOutSteps(
            np.log(table.ratios[split]),
            table.shares,
            evidence,
            hardware,
            generation,
            np.char.add(hardware, modes),
            cells,
            trains,
        )
        for split, evidence in known_by.items()
    }


def _ends(spreads: Spreads, steps: LeftOutSteps) -> tuple[Array, Array]:
    """Logarithms of low and high of every step."""
    parts = zip(steps.evidence.tolist(), steps.hardware.tolist(), strict=True)
    devices = np.array([spreads.devices[f"{evidence}, {hardware}"] for evidence, hardware in parts])
    frameworks = np.array([spreads.frameworks[generation] for generation in steps.generation.tolist()])
    kernels = steps.shares**2 @ np.array([spreads.kernels[part] for part in KERNEL_PARTS])
    below, above = np.array([spreads.scales[group] for group in steps.group.tolist()]).reshape(-1, 2).T
    deviation = np.sqrt(devices + frameworks + kernels)
    return -below * deviation, above * deviation


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
