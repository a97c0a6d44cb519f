"""The parts of an interval, fitted to errors on what was left out of the training (`predict.cost.spreads`).

    E[log(predicted/measured)²] = device(evidence, hardware) + framework + Σ_c share_c² · kernels(c)

by non-negative least squares over left-out training steps on NVIDIA's GPUs that are bound by their kernels, reweighted
by the variance found so far. Kernels of other vendors are as uncertain, their devices more. A device and kind of step
(a cell) weighs as the square root of its steps: between every step alike, which a single table would decide, and every
cell alike, which a few odd steps would. Steps of families left out and of sources left out say how far a measured
device is off: a user is a source of their own. Steps of devices left out say it of an unseen device, whose generation
others have: of a generation that nobody measured nothing is known.

Then conformal, by group: z_low and z_high are the quantiles of log(measured/predicted) ÷ √variance between which 90 %
of the left-out steps lie. n cells stand for the next one: 90 % of it needs 90 % · (1 + 1/n) of them.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from epochcast.hardware.catalogue import find_device
from epochcast.hardware.device import Device
from epochcast.predict.cost.software_setting import GENERATIONS
from epochcast.predict.cost.spreads import (
    EVIDENCE,
    KERNEL_PARTS,
    MEASURED,
    NO_TENSOR_CORES,
    OPERATORS,
    OTHER_VENDOR,
    SISTER,
    TENSOR_CORES,
    UNSEEN,
    Spreads,
)

Array = NDArray[np.float64]
Labels = NDArray[np.str_]

HARDWARE = (TENSOR_CORES, NO_TENSOR_CORES, OTHER_VENDOR)
OUTSIDE = (0.05, 0.95)
# Measured steps from which a kind of step counts as known on a device.
KNOWN_RUNS = 8
# An error beyond this is of something else than the part it is fitted to: it counts, but no more than this.
MOST_LOG_ERROR = 0.7
# No part is surer than three per cent; and a part that hardly any step depends on is taken to be as unsure as this.
LEAST_VARIANCE, USUAL_VARIANCE = 0.03**2, 0.15**2
# So many cells are as strong as what is usual.
USUAL_CELLS = 8.0
# Cells that a group needs for quantiles of its own.
LEAST_CELLS = 12
_ROUNDS = 8


@dataclass(frozen=True)
class LeftOutSteps:
    """Steps that were left out: log(predicted/measured), the shares of their kernels (KERNEL_PARTS), what was known of
    the device, its hardware, the framework, the conformal group, the cell (device and kind of step) of each, and
    whether it trains.
    """

    log_errors: Array
    shares: Array
    evidence: Labels
    hardware: Labels
    generation: Labels
    group: Labels
    cell: Labels
    trains: NDArray[np.bool_]

    def where(self, keep: NDArray[np.bool_]) -> "LeftOutSteps":
        """Some of them."""
        return LeftOutSteps(*(values[keep] for values in vars(self).values()))

    @classmethod
    def joined(cls, parts: "Sequence[LeftOutSteps]") -> "LeftOutSteps":
        """Several splits, one after another."""
        return cls(*(np.concatenate(values) for values in zip(*(vars(part).values() for part in parts), strict=True)))

    @property
    def weights(self) -> Array:
        """Cells of every kind of evidence weigh as the square root of their steps; those with few steps less."""
        cells = np.char.add(np.char.add(self.cell, "/"), self.evidence)
        _, place, count = np.unique(cells, return_inverse=True, return_counts=True)
        return np.asarray((np.sqrt(count) / np.maximum(count, KNOWN_RUNS))[place], dtype=np.float64)


def outside_of(count: int) -> tuple[float, float]:
    """The quantiles of so many chips, or cells, between which 90 % of one more are to lie."""
    tail = max(0.0, (1 - (OUTSIDE[1] - OUTSIDE[0]) * (1 + 1 / count)) / 2)
    return tail, 1 - tail


def chip_of(device: Device) -> tuple[str, str, int]:
    """The name of a board's chip, which several boards may share."""
    return device.vendor, device.generation, device.compute_units


def chips_of(names: Labels) -> Labels:
    """The chip of every device by name."""
    chips = {name: " ".join(map(str, chip_of(find_device(str(name))))) for name in np.unique(names)}
    return np.array([chips[name] for name in names])


def cells_of(names: Labels, kinds: Labels) -> Labels:
    """Device and kind of every step, as one word."""
    return np.char.add(np.char.add(names, "/"), kinds)


def weighted_quantile(values: Array, weights: Array, fraction: float) -> float:
    """The least value that so much of the weight does not exceed."""
    order = np.argsort(values)
    reached = np.cumsum(weights[order]) / weights.sum()
    return float(values[order][min(int(np.searchsorted(reached, fraction)), len(values) - 1)])


def fitted_spreads(steps: LeftOutSteps) -> Spreads:
    """Variances of parts, and the quantiles of every group."""
    devices, frameworks, kernels = _variances(steps)
    variance = _design(steps) @ np.array([*devices.values(), *frameworks.values(), *kernels.values()])
    ratios = -steps.log_errors / np.sqrt(variance)
    scales = {}
    for hardware in HARDWARE:
        for mode in ("training", "forward"):
            group = f"{hardware}, {mode}"
            scales[group] = _scale(ratios, steps, _enough(steps, hardware, mode))
    return Spreads(devices, frameworks, kernels, scales)


def _enough(steps: LeftOutSteps, hardware: str, mode: str) -> NDArray[np.bool_]:
    """The steps of a group; where it has too few cells, those of all hardware in that mode."""
    mine: NDArray[np.bool_] = steps.group == f"{hardware}, {mode}"
    if len(np.unique(steps.cell[mine])) >= LEAST_CELLS:
        return mine
    return steps.trains if mode == "training" else ~steps.trains


def _scale(ratios: Array, steps: LeftOutSteps, mine: NDArray[np.bool_]) -> tuple[float, float]:
    low, high = outside_of(max(2, len(np.unique(steps.cell[mine]))))
    weights = steps.weights[mine]
    below, above = (weighted_quantile(ratios[mine], weights, fraction) for fraction in (low, high))
    return max(0.5, -below), max(0.5, above)


DEVICE_PARTS = tuple(f"{known_by}, {hardware}" for known_by in EVIDENCE for hardware in HARDWARE)


def _design(steps: LeftOutSteps) -> Array:
    """What each part's variance is multiplied by, step by step."""
    parts = np.char.add(np.char.add(steps.evidence, ", "), steps.hardware)
    devices = np.stack([parts == part for part in DEVICE_PARTS], axis=1)
    frameworks = np.stack([steps.generation == name for name in GENERATIONS], axis=1)
    return np.concatenate([devices, frameworks, steps.shares**2], axis=1).astype(np.float64)


def _variances(steps: LeftOutSteps) -> tuple[dict[str, float], dict[str, float], dict[str, float]]:
    mine = (steps.hardware != OTHER_VENDOR) & steps.trains
    variances = _solved(steps.where(mine))
    devices = dict(zip(DEVICE_PARTS, variances.tolist(), strict=False))
    frameworks = dict(zip(GENERATIONS, variances[len(DEVICE_PARTS) :].tolist(), strict=False))
    kernels = dict(zip(KERNEL_PARTS, variances[len(DEVICE_PARTS) + len(GENERATIONS) :].tolist(), strict=True))
    devices |= _other_devices(steps.where(steps.hardware == OTHER_VENDOR), np.array(list(kernels.values())))
    return _in_order(devices), frameworks, kernels


def _solved(steps: LeftOutSteps) -> Array:
    """The variance of every part: devices, frameworks, kernels."""
    design, squares = _design(steps), _squares(steps)
    usual = np.full(design.shape[1], USUAL_VARIANCE)
    usual[len(DEVICE_PARTS) : len(DEVICE_PARTS) + len(GENERATIONS)] = LEAST_VARIANCE
    variances = usual
    for _ in range(_ROUNDS):
        weights = np.sqrt(steps.weights) / (design @ variances)
        pseudo = np.sqrt(USUAL_CELLS) / np.maximum(variances, LEAST_VARIANCE)
        rows = np.concatenate([design * weights[:, None], np.diag(pseudo)])
        target = np.concatenate([squares * weights, usual * pseudo])
        variances = np.maximum(nnls(rows, target)[0], LEAST_VARIANCE)
    return variances


def _squares(steps: LeftOutSteps) -> Array:
    return np.minimum(steps.log_errors**2, MOST_LOG_ERROR**2)


def _other_devices(steps: LeftOutSteps, kernels: Array) -> dict[str, float]:
    """What is left of the errors of other vendors' devices after that of kernels, by evidence."""
    rest = _squares(steps) - steps.shares**2 @ kernels
    variances = {}
    for known_by in EVIDENCE:
        mine = steps.evidence == known_by
        if mine.any():
            mean = float(np.average(rest[mine], weights=steps.weights[mine]))
            variances[f"{known_by}, {OTHER_VENDOR}"] = max(LEAST_VARIANCE, mean)
    return variances


def _in_order(devices: dict[str, float]) -> dict[str, float]:
    """Less evidence is never surer; a sister board is halfway from measured to operators."""
    for hardware in HARDWARE:
        measured, operators, unseen = (devices[f"{known_by}, {hardware}"] for known_by in (MEASURED, OPERATORS, UNSEEN))
        unseen = max(measured, unseen)
        operators = min(max(measured, operators), unseen)
        for known_by, variance in (
            (MEASURED, measured),
            (SISTER, (measured + operators) / 2),
            (OPERATORS, operators),
            (UNSEEN, unseen),
        ):
            devices[f"{known_by}, {hardware}"] = variance
    return devices


def known_kinds(names: Labels, kinds: Labels) -> dict[str, tuple[str, ...]]:
    """The kinds of step that are known of each device."""
    known: dict[str, list[str]] = {}
    for name, kind in sorted(set(zip(names.tolist(), kinds.tolist(), strict=True))):
        if np.sum((names == name) & (kinds == kind)) >= KNOWN_RUNS:
            known.setdefault(name, []).append(kind)
    return {name: tuple(of_device) for name, of_device in known.items()}


def has_kin(names: Labels, sources: Labels | None = None) -> NDArray[np.bool_]:
    """Whether the generation of each step's device was measured on another chip, or, with `sources`, by another
    source.
    """
    devices = {name: find_device(name) for name in np.unique(names).tolist()}
    generations = np.array([f"{devices[n].vendor} {devices[n].generation}" for n in names.tolist()])
    others = chips_of(names) if sources is None else sources
    labels: dict[str, set[str]] = {}
    for generation, label in zip(generations.tolist(), others.tolist(), strict=True):
        labels.setdefault(generation, set()).add(label)
    return np.array([len(labels[generation]) > 1 for generation in generations.tolist()])


def is_known_elsewhere(names: Labels, kinds: Labels, sources: Labels) -> NDArray[np.bool_]:
    """Whether the device of each step is known for that kind by other sources alone."""
    cells = cells_of(names, kinds)
    counts = {cell: int(np.sum(cells == cell)) for cell in np.unique(cells).tolist()}
    own: dict[tuple[str, str], int] = {}
    for pair in zip(cells.tolist(), sources.tolist(), strict=True):
        own[pair] = own.get(pair, 0) + 1
    others = [counts[c] - own[c, s] for c, s in zip(cells.tolist(), sources.tolist(), strict=True)]
    return np.array(others) >= KNOWN_RUNS


def earned(family_errors: Array, device_errors: Array, names: Labels, timed: Collection[str] = ()) -> set[str]:
    """Devices whose own measurements make forecasts better than similar devices would: only they get a profile.

    A device that was never left out is taken at its word, and so is one whose steps do not tell the two apart: its
    errors must be larger by two standard errors of the difference, step by step. Devices with many `timed` operators
    keep their profile: steps of other formats do not speak against them.
    """
    worse = set()
    for name in set(names.tolist()) - set(timed):
        both = (names == name) & np.isfinite(family_errors) & np.isfinite(device_errors)
        excess = np.abs(family_errors[both]) - np.abs(device_errors[both])
        if len(excess) > 1 and excess.mean() > 2 * excess.std(ddof=1) / np.sqrt(len(excess)):
            worse.add(name)
    return set(names.tolist()) - worse
