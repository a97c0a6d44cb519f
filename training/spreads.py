"""Conformal intervals: the factors between which nine of ten left-out measurements lie.

    low, high = the 5 % and 95 % quantiles of measured/predicted over steps that were left out of the training

Groups have their own: devices that were measured, devices that were not, kinds of step on single devices with enough
left-out steps, and networks of fp32 products. Among devices that were not measured each chip counts the same, however
many steps it has, and n chips stand for the next one: 90 % of it needs 90 % · (1 + 1/n) of them, as in conformal
prediction over n draws.
"""

import numpy as np
from numpy.typing import NDArray

from epochcast.cost.spreads import FORWARD, PRODUCTS, TRAINING
from epochcast.hardware.catalogue import find_device
from epochcast.hardware.device import Device

Array = NDArray[np.float64]

OUTSIDE = (0.05, 0.95)
# Left-out steps a device needs for an interval of its own.
OWN_INTERVAL_RUNS = 25
# Measured steps from which a kind of step counts as known on a device.
KNOWN_RUNS = 8


def outside_of(count: int) -> tuple[float, float]:
    """The quantiles of so many chips, or steps, between which nine of ten of one more are to lie."""
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
    ratios = -log_errors[is_scored]
    if labels is None:
        weights = np.ones(len(ratios))
    else:
        _, place, count = np.unique(labels[is_scored], return_inverse=True, return_counts=True)
        weights = 1.0 / count[place]
    order = np.argsort(ratios)
    reached = np.cumsum(weights[order]) / weights.sum()
    low, high = (ratios[order][min(int(np.searchsorted(reached, q)), len(ratios) - 1)] for q in outside)
    return float(min(np.exp(low), 0.999)), float(max(np.exp(high), 1.001))


def shared_spread(family_errors: Array, source_errors: Array) -> tuple[float, float]:
    """Of both kinds of error on known devices, each with the same weight."""
    splits = [errors[np.isfinite(errors)] for errors in (family_errors, source_errors)]
    labels = np.repeat(["family", "source"], [len(errors) for errors in splits])
    return spread_of(np.concatenate(splits), labels)


def group_spreads(
    family_errors: Array, source_errors: Array, device_errors: Array, names: NDArray[np.str_], groups: NDArray[np.str_]
) -> dict[str, tuple[float, float]]:
    """Of known and unseen devices by group of steps (`cost.spreads.step_group`); unseen is never narrower.

    Known devices have two kinds of error, each with the same weight: on families they were not trained on, and on
    sources they were not (`is_known_elsewhere`). A user is a source of their own.
    """
    spreads = {}
    chips = chips_of(names)
    for group in (TRAINING, FORWARD, PRODUCTS):
        mine = groups == group
        seen = shared_spread(family_errors[mine], source_errors[mine])
        is_scored = mine & np.isfinite(device_errors)
        unseen = spread_of(device_errors[mine], chips[mine], outside_of(max(1, len(np.unique(chips[is_scored])))))
        spreads[f"known{group}"] = seen
        spreads[f"unseen{group}"] = (min(seen[0], unseen[0]), max(seen[1], unseen[1]))
    return spreads


def known_kinds(
    log_errors: Array, names: NDArray[np.str_], kinds: NDArray[np.str_]
) -> dict[str, dict[str, tuple[float, float] | None]]:
    """The kinds of step that are known of each device, with an interval of their own where enough were left out."""
    known: dict[str, dict[str, tuple[float, float] | None]] = {}
    for name, kind in sorted(set(zip(names.tolist(), kinds.tolist(), strict=True))):
        errors = log_errors[(names == name) & (kinds == kind)]
        steps = int(np.isfinite(errors).sum())
        if steps >= KNOWN_RUNS:
            known.setdefault(name, {})[kind] = (
                spread_of(errors, outside=outside_of(steps)) if steps >= OWN_INTERVAL_RUNS else None
            )
    return known


def is_known_elsewhere(
    names: NDArray[np.str_], kinds: NDArray[np.str_], sources: NDArray[np.str_]
) -> NDArray[np.bool_]:
    """Whether the device of each step is known for that kind by other sources alone."""
    cells = np.char.add(np.char.add(names, "/"), kinds)
    counts = {cell: int(np.sum(cells == cell)) for cell in np.unique(cells).tolist()}
    own: dict[tuple[str, str], int] = {}
    for pair in zip(cells.tolist(), sources.tolist(), strict=True):
        own[pair] = own.get(pair, 0) + 1
    others = [counts[c] - own[c, s] for c, s in zip(cells.tolist(), sources.tolist(), strict=True)]
    return np.array(others) >= KNOWN_RUNS


def earned(family_errors: Array, device_errors: Array, names: NDArray[np.str_]) -> set[str]:
    """Devices whose own measurements make forecasts better than similar devices would: only they get a profile.

    A device that was never left out is taken at its word.
    """
    better = set()
    for name in np.unique(names).tolist():
        both = (names == name) & np.isfinite(family_errors) & np.isfinite(device_errors)
        own, others = np.abs(family_errors[both]), np.abs(device_errors[both])
        if not both.any() or own.mean() <= others.mean():
            better.add(name)
    return better
