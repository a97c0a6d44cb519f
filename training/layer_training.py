"""Training a `LayersModel`: coefficients, trees on their residuals, intervals.

    c(setup)   = argmin_{c ≥ 0} Σ ((Σ c_t·term_t − t) / t^0.75)²   large rows count, but not alone
    trees      ≈ log(t / base), weighted by t^0.4                  between a relative and an absolute error
    interval   = 5 % and 95 % quantiles of log(t / mid)            on rows not trained on, by setup, direction, size

Coefficients by non-negative least squares, trees by LightGBM, quantiles as conformal prediction takes them. Seeds are
fixed and one thread is used, so that the same data give the same file.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epochcast.errors import MissingExtra
from epochcast.hardware.device import Device
from epochcast.interval import COVERAGE
from epochcast.measure.evaluate.layer_table import LayerTable
from epochcast.predict.cost.layer_terms import FEATURES, TERMS, age, features, terms
from epochcast.predict.cost.layers_model import LayersModel, Setup, size_groups
from epochcast.predict.cost.single_layer import LAYER_KINDS
from epochcast.predict.cost.tree_dump import flattened
from epochcast.predict.cost.tree_ensembles import Forest
from training.forests import rounded
from training.layer_file import VALUE_STEP

Array = NDArray[np.float64]

COEFFICIENT_POWER = 0.75
TREE_POWER = 0.4
# Fewer rows than this do not get an interval of their own.
LEAST_GROUP_ROWS = 40
# Until rows that were not trained on say better.
PRIOR_WIDTHS = (-0.3, 0.3)


@dataclass(frozen=True)
class Growth:
    """How many trees of what size, from which part of the rows."""

    rounds: int = 850
    leaves: int = 127
    learning_rate: float = 0.075
    row_fraction: float = 1.0
    seed: int = 0


FULL: Mapping[str, Growth] = {"conv2d": Growth(), "dense": Growth(rounds=250, leaves=31, learning_rate=0.1)}
"""What is shipped."""
LIGHT: Mapping[str, Growth] = {
    "conv2d": Growth(rounds=150, leaves=63, row_fraction=0.4, learning_rate=0.15),
    "dense": Growth(rounds=80, leaves=31, row_fraction=0.2, learning_rate=0.15),
}
"""For leaving out one GPU after another, six times."""


def train(tables: Sequence[LayerTable], growth: Mapping[str, Growth] = FULL) -> LayersModel:
    """A model from measured rows. Tables of one kind are pooled; their setups differ by GPU and stack."""
    setups: list[Setup] = []
    forests: dict[str, Forest] = {}
    for kind in LAYER_KINDS:
        mine = [table for table in tables if table.rows.kind == kind]
        if not mine:
            continue
        groups = _groups(mine)
        fitted = [
            Setup(
                kind,
                device.name,
                device.generation,
                stack,
                place,
                len(table.rows),
                coefficients(table, device),
                {"all": PRIOR_WIDTHS},
            )
            for place, (device, stack, table) in enumerate(groups)
        ]
        forests[kind] = _trees(fitted, groups, growth[kind])
        setups += fitted
    return LayersModel(tuple(setups), forests, dict.fromkeys(forests, (-0.5, 0.5)), {})


Group = tuple[Device, str, LayerTable]


def _groups(tables: Iterable[LayerTable]) -> list[Group]:
    """Setups in the order of their generation, so that a split on their position separates old from new."""
    groups = [
        (device, stack, table.at(mine & table.is_measured))
        for table in tables
        for device, stack, mine in table.setups()
    ]
    return sorted(groups, key=lambda g: (age(g[0].generation), g[0].name, g[1]))


def coefficients(table: LayerTable, device: Device) -> Array:
    """How far from the data sheet each term runs on one setup."""
    try:
        from scipy.optimize import nnls
    except ImportError:
        raise MissingExtra("fit", "scipy") from None
    weight = table.seconds**-COEFFICIENT_POWER
    matrix = terms(table.rows, device) * weight[:, None]
    # Columns of one size, or the solver stops short of the small ones.
    scale = np.maximum(np.linalg.norm(matrix, axis=0), 1e-30)
    solution: Array = nnls(matrix / scale, table.seconds * weight, maxiter=100 * len(TERMS))[0] / scale
    return np.array([float(f"{c:.6g}") for c in solution])


def _trees(setups: Sequence[Setup], groups: Sequence[Group], growth: Growth) -> Forest:
    try:
        import lightgbm
    except ImportError:
        raise MissingExtra("fit", "lightgbm") from None
    feature_rows, ratio, weight = [], [], []
    for setup, (device, _, table) in zip(setups, groups, strict=True):
        base = setup.base_seconds(table.rows, device)
        feature_rows.append(features(table.rows, device, setup.place, setup.generation, base).astype(np.float32))
        ratio.append(np.log(table.seconds / base))
        weight.append(table.seconds**TREE_POWER)
    rows, target, weights = np.concatenate(feature_rows), np.concatenate(ratio), np.concatenate(weight)
    chosen = np.random.default_rng(growth.seed).random(len(rows)) < growth.row_fraction
    options: dict[str, Any] = {
        "objective": "l2",
        "learning_rate": growth.learning_rate,
        "num_leaves": growth.leaves,
        "max_depth": 12,
        "min_data_in_leaf": 20,
        "feature_fraction": 0.5,
        "bagging_fraction": 0.8,
        "bagging_freq": 1,
        "max_bin": 127,
        "num_threads": 1,
        "deterministic": True,
        "force_row_wise": True,
        "seed": growth.seed,
        "verbose": -1,
    }
    data = lightgbm.Dataset(
        rows[chosen],
        target[chosen],
        weight=weights[chosen] / weights[chosen].mean(),
        feature_name=list(FEATURES),
        params=options,
    )
    booster = lightgbm.train(options, data, growth.rounds)
    return rounded(flattened(booster.dump_model()), VALUE_STEP, digits=7)


def with_intervals(model: LayersModel, tables: Sequence[LayerTable]) -> LayersModel:
    """Widths from rows the model was not trained on; a group with few rows uses its setup's."""
    widths: dict[tuple[str, str, str], dict[str, tuple[float, float]]] = {}
    for device, stack, table in _groups(tables):
        answer = model.answer(table.rows, device, stack)
        ratio, groups = np.log(table.seconds / answer.mid), size_groups(table.rows, answer.mid)
        group_quantiles = {"all": quantiles(ratio)}
        for group in sorted(set(groups.tolist())):
            mine = ratio[groups == group]
            if len(mine) >= LEAST_GROUP_ROWS:
                group_quantiles[group] = quantiles(mine)
        widths[table.rows.kind, device.name, stack] = group_quantiles
    setups = tuple(replace(s, widths=widths.get((s.kind, s.device, s.stack), s.widths)) for s in model.setups)
    return replace(model, setups=setups)


def quantiles(ratios: Array) -> tuple[float, float]:
    """Conformal ends: the ⌈(n+1)·q⌉-th of n ratios on each side (Vovk et al. 2005); they always hold 0."""
    ordered, n = np.sort(ratios), len(ratios)
    tail = (1 - COVERAGE) / 2
    low = ordered[max(0, int(np.floor((n + 1) * tail + 1e-9)) - 1)]  # 1e-9 against rounding
    high = ordered[min(n - 1, int(np.ceil((n + 1) * (1 - tail) - 1e-9)) - 1)]
    return min(0.0, float(low)), max(0.0, float(high))
