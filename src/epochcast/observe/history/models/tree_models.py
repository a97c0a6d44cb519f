"""Decision tree, random forest (Breiman 2001), extremely randomised trees (Geurts et al. 2006) and gradient boosting
(LightGBM, Ke et al. 2017).

All but the third take "never falls" for the features of more epochs and more samples, so that predictions are monotone
in them.
"""

from typing import Any

import numpy as np

from epochcast.errors import MissingExtra
from epochcast.observe.history.job_table import Array, Flags
from epochcast.observe.history.predictors import Trees
from epochcast.predict.cost.tree_dump import flattened, of_sklearn

MOST_LEAVES = 1000
"""Of a tree that splits at random."""


def decision_tree(rows: Array, target: Array, growing: Flags, *, seed: int, max_depth: int | None = 13) -> Trees:
    """One tree."""
    tree = sklearn("tree").DecisionTreeRegressor(max_depth=max_depth, random_state=seed, monotonic_cst=_signs(growing))
    tree.fit(rows, target)
    return Trees.of(of_sklearn(_names(rows), [tree.tree_]), is_single=True)


def random_forest(rows: Array, target: Array, growing: Flags, *, seed: int, trees: int = 300) -> Trees:
    """The mean of many trees, each of a sample of the rows."""
    forest = sklearn("ensemble").RandomForestRegressor(
        n_estimators=trees, random_state=seed, monotonic_cst=_signs(growing), n_jobs=1
    )
    forest.fit(rows, target)
    return Trees.of(of_sklearn(_names(rows), [tree.tree_ for tree in forest.estimators_]), is_single=True)


def extra_trees(rows: Array, target: Array, *, seed: int, trees: int = 60) -> Trees:
    """The mean of trees that split at random thresholds: smoother than a forest between rows, and beyond them it stays
    at the last. Leaves hold a thousandth of the rows, so that a file stays small.
    """
    forest = sklearn("ensemble").ExtraTreesRegressor(
        n_estimators=trees, min_samples_leaf=max(1, len(target) // MOST_LEAVES), random_state=seed, n_jobs=1
    )
    forest.fit(rows, target)
    return Trees.of(of_sklearn(_names(rows), [tree.tree_ for tree in forest.estimators_]), is_single=True)


def boosting(
    rows: Array, target: Array, growing: Flags, *, seed: int, rounds: int = 300, leaves: int = 31, **options: Any
) -> Trees:
    """Trees that correct each other, from the mean on."""
    try:
        import lightgbm
    except (ModuleNotFoundError, OSError):  # OSError: its system library is missing
        raise MissingExtra("history", "lightgbm") from None
    base = float(np.mean(target))
    parameters = {
        "objective": "regression",
        "num_leaves": leaves,
        "learning_rate": 0.05,
        "min_data_in_leaf": max(1, min(5, len(target) // 20)),
        "min_data_in_bin": 1,
        "boost_from_average": False,
        "use_missing": False,
        "seed": seed,
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": 1,
        "verbosity": -1,
        "monotone_constraints": growing.astype(int).tolist(),
        **options,
    }
    data = lightgbm.Dataset(rows, target - base, feature_name=_names(rows), free_raw_data=True)
    booster = lightgbm.train(parameters, data, num_boost_round=rounds)
    return Trees.of(flattened(booster.dump_model()), base)


def _signs(growing: Flags) -> Any:
    return growing.astype(np.int64) if growing.any() else None


def _names(rows: Array) -> list[str]:
    return [f"x{place}" for place in range(rows.shape[1])]


def sklearn(module: str) -> Any:
    """A module of scikit-learn, or an error that names the extra to install."""
    from importlib import import_module

    try:
        return import_module(f"sklearn.{module}")
    except ModuleNotFoundError:
        raise MissingExtra("history", "scikit-learn") from None
