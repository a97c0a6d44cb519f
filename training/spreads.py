"""Conformal intervals: the factors between which 90 % of the left-out measurements lie.

    low, high = the 5 % and 95 % quantiles of measured/predicted over steps that were left out of the training

Groups have their own: devices that were measured, devices that were not, kinds of step on single devices with enough
left-out steps, and networks of fp32 products. Among devices that were not measured each chip counts the same, however
many steps it has, and n chips stand for the next one: 90 % of it needs 90 % · (1 + 1/n) of them, as in conformal
prediction over n draws.
"""

import numpy as np
from numpy.typing import NDArray

from epochcast.hardware.catalogue import find_device
from epochcast.hardware.device import Device
from epochcast.predict.cost.spreads import FORWARD, PRODUCTS, TRAINING

Array = NDArray[np.float64]

OUTSIDE = (0.05, 0.95)
# Left-out steps, and families of networks among them, that a device needs for an interval of its own.
OWN_INTERVAL_RUNS, OWN_INTERVAL_FAMILIES = 25, 20
# Measured steps from which a kind of step counts as known on a device.
KNOWN_RUNS = 8


def outside_of(count: int) -> tuple[float, float]:
    """The quantiles of so many chips, or steps, between which 90 % of one more are to lie."""
    tail = max(0.0, (1 - (OUTSIDE[1] - OUTSIDE[0]) * (1 + 1 / count)) / 2)
    return tail, 1 - tail


def chip_of(device: Device) -> tuple[str, str, int]:
    """The name of a board's chip, which several boards may share."""
    return device.vendor, device.generation, device.compute_units


def chips_of(names: NDArray[np.str_]) -> NDArray[np.str_]:
    """The chip of every device by name."""
    chips = {name: " ".join(map(str, chip_of(find_device(str(name))))) for name in np.unique(names)}
    return np.array([chips[name] for name in names])


def spread_of(
    log_errors: Array, labels: NDArray[np.str_] | None = None, outside: tuple[float, float] = OUTSIDE
) -> tuple[float, float]:
    """Factors low < 1 < high of the middle, from log(predicted/measured); every label has the same weight."""
    is_scored = np.isfinite(log_errors)
    weights = np.ones(is_scored.sum()) if labels is None else _alike(labels[is_scored])
    return _weighted_spread(log_errors[is_scored], weights, outside)


def shared_spread(family_errors: Array, source_errors: Array, cells: NDArray[np.str_]) -> tuple[float, float]:
    """Of both kinds of error on known devices, each with the same weight.

    Among families left out every cell (a device and a kind of step, `cells_of`) counts the same: nobody asks for the
    device that was measured most, as often as it was measured.
    """
    is_family, is_source = np.isfinite(family_errors), np.isfinite(source_errors)
    weights = [_alike(cells[is_family]), np.full(is_source.sum(), 1 / max(1, is_source.sum()))]
    errors = np.concatenate([family_errors[is_family], source_errors[is_source]])
    return _weighted_spread(errors, np.concatenate(weights), OUTSIDE)


def _alike(labels: NDArray[np.str_]) -> Array:
    """Weights that sum to one, every label's to the same."""
    names, place, count = np.unique(labels, return_inverse=True, return_counts=True)
    return np.asarray(1.0 / count[place] / max(1, len(names)), dtype=np.float64)


def _weighted_spread(log_errors: Array, weights: Array, outside: tuple[float, float]) -> tuple[float, float]:
    ratios = -log_errors
    order = np.argsort(ratios)
    reached = np.cumsum(weights[order]) / weights.sum()
    low, high = (ratios[order][min(int(np.searchsorted(reached, q)), len(ratios) - 1)] for q in outside)
    return float(min(np.exp(low), 0.999)), float(max(np.exp(high), 1.001))


def cells_of(names: NDArray[np.str_], kinds: NDArray[np.str_]) -> NDArray[np.str_]:
    """Device and kind of every step, as one word."""
    return np.char.add(np.char.add(names, "/"), kinds)


def group_spreads(
    family_errors: Array,
    source_errors: Array,
    device_errors: Array,
    names: NDArray[np.str_],
    kinds: NDArray[np.str_],
    groups: NDArray[np.str_],
) -> dict[str, tuple[float, float]]:
    """Of known and unseen devices by group of steps (`cost.spreads.step_group`); unseen is never narrower.

    Known devices have two kinds of error, each with the same weight: on families they were not trained on, and on
    sources they were not (`is_known_elsewhere`). A user is a source of their own.
    """
    spreads = {}
    chips, cells = chips_of(names), cells_of(names, kinds)
    for group in (TRAINING, FORWARD, PRODUCTS):
        mine = groups == group
        seen = shared_spread(family_errors[mine], source_errors[mine], cells[mine])
        is_scored = mine & np.isfinite(device_errors)
        unseen = spread_of(device_errors[mine], chips[mine], outside_of(max(1, len(np.unique(chips[is_scored])))))
        spreads[f"known{group}"] = seen
        spreads[f"unseen{group}"] = (min(seen[0], unseen[0]), max(seen[1], unseen[1]))
    return spreads


def own_spread(log_errors: Array, families: NDArray[np.str_]) -> tuple[float, float] | None:
    """The interval of one kind of step on one device, if enough steps of enough families were left out.

    Every family counts the same, and n of them stand for the next one: networks of a family are alike, and the user's
    is of another.
    """
    is_scored = np.isfinite(log_errors)
    count = len(np.unique(families[is_scored]))
    if is_scored.sum() < OWN_INTERVAL_RUNS or count < OWN_INTERVAL_FAMILIES:
        return None
    return spread_of(log_errors, families, outside_of(count))


def known_kinds(
    log_errors: Array, names: NDArray[np.str_], kinds: NDArray[np.str_], families: NDArray[np.str_]
) -> dict[str, dict[str, tuple[float, float] | None]]:
    """The kinds of step that are known of each device, with an interval of their own where enough were left out."""
    known: dict[str, dict[str, tuple[float, float] | None]] = {}
    for name, kind in sorted(set(zip(names.tolist(), kinds.tolist(), strict=True))):
        mine = (names == name) & (kinds == kind)
        if np.isfinite(log_errors[mine]).sum() >= KNOWN_RUNS:
            known.setdefault(name, {})[kind] = own_spread(log_errors[mine], families[mine])
    return known


def is_known_elsewhere(
    names: NDArray[np.str_], kinds: NDArray[np.str_], sources: NDArray[np.str_]
) -> NDArray[np.bool_]:
    """Whether the device of each step is known for that kind by other sources alone."""
    cells = cells_of(names, kinds)
    counts = {cell: int(np.sum(cells == cell)) for cell in np.unique(cells).tolist()}
    own: dict[tuple[str, str], int] = {}
    for pair in zip(cells.tolist(), sources.tolist(), strict=True):
        own[pair] = own.get(pair, 0) + 1
    others = [counts[c] - own[c, s] for c, s in zip(cells.tolist(), sources.tolist(), strict=True)]
    return np.array(others) >= KNOWN_RUNS


def earned(family_errors: Array, device_errors: Array, names: NDArray[np.str_]) -> set[str]:
    """Devices whose own measurements make forecasts better than similar devices would: only they get a profile.

    A device that was never left out is taken at its word, and so is one whose steps do not tell the two apart: its
    errors must be larger by two standard errors of the difference, step by step.
    """
    worse = set()
    for name in np.unique(names).tolist():
        both = (names == name) & np.isfinite(family_errors) & np.isfinite(device_errors)
        excess = np.abs(family_errors[both]) - np.abs(device_errors[both])
        if len(excess) > 1 and excess.mean() > 2 * excess.std(ddof=1) / np.sqrt(len(excess)):
            worse.add(name)
    return set(names.tolist()) - worse
