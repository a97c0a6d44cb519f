"""Peers on the very steps of `left_out.csv`, in the same run: what needs no fit on every step, what does on the same
folds of families as ours, per source, device, precision, mode and layout.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from epochcast.predict.cost.cost_models import find_cost_model
from studies.accuracy.figures import Array
from studies.accuracy.left_out_table import LeftOutTable
from training.examples import Example
from training.peers import STEP_PEERS

Places = NDArray[np.int64]

UNFITTED = ("roofline", "paleo")
PEERS = (*UNFITTED, *STEP_PEERS)
# Fewer steps of a group in the other folds than this cannot carry the coefficients of the fitted peers.
FEWEST_TRAINED = 60


def peer_ratios(steps: Sequence[Example], table: LeftOutTable) -> dict[str, Array]:
    """predicted/measured of every step by every peer; NaN where a fitted one had too few steps to learn from."""
    ratios = {name: _unfitted(name, steps) for name in UNFITTED}
    seconds = np.array([step.seconds for step in steps])
    for name, (features, make) in STEP_PEERS.items():
        inputs = np.stack([features(step.columns) for step in steps])
        ratios[name] = np.full(len(steps), np.nan)
        for fitted_on, left_out in _parts(table):
            answer = make().fit(inputs[fitted_on], seconds[fitted_on]).seconds(inputs[left_out])
            ratios[name][left_out] = answer / seconds[left_out]
    return ratios


def _unfitted(name: str, steps: Sequence[Example]) -> Array:
    model = find_cost_model(name)
    return np.array([model.costs(s.columns, s.device, s.setting).mid.sum() / s.seconds for s in steps])


def _parts(table: LeftOutTable) -> list[tuple[Places, Places]]:
    """For every group and fold of families: the steps of the other folds, and those of this one."""
    groups, folds = np.array(table.groups()), table.folds("family")
    pairs = [
        (_places((groups == group) & (folds != fold)), _places((groups == group) & (folds == fold)))
        for group in np.unique(groups)
        for fold in np.unique(folds)
    ]
    return [(others, left_out) for others, left_out in pairs if len(others) >= FEWEST_TRAINED and len(left_out)]


def _places(where: NDArray[np.bool_]) -> Places:
    return np.flatnonzero(where).astype(np.int64)
