"""The grey box: physics says how long a job takes, history by which factor physics errs.

    log y = log(physics) + a mixture of c₁(x), c₂(x), c₃(x), c₄(x)

c₁ is a Gaussian process over the columns of a row (`process.py`). What history does not bear out is shrunk to nothing,
so that a row unlike all that were seen is predicted by physics times the factor that is common to all.

c₂ are extremely randomised trees (Geurts et al. 2006): a row beyond all that were seen has the factor of its nearest.
c₃ are such trees, too, and c₄ boosted ones (Ke et al. 2017), upon the computation of the forecast alone: how much of
the exchange between GPUs shows is the part of a forecast that is wrong most often, so two of the four learn it anew.
With o the forecast over its computation,

    log y = log(physics/o) + t(x)        c₃(x) = t(x) − log o

None follows a trend beyond what was seen: slopes along the forecast, the batch or the exchange were tried, and erred
more on most tables. A row that is like those learned from gets of each correction the share that it has earned in
cross-validation (`shares.py`); of a row beyond them the middle of the four counts, as much as all four do together.
That was better there than the mean, than shares earned on rows kept back, and than a regression on the parts of the
forecast (`studies/history`).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from epochcast.errors import BadInput
from epochcast.observe.history.design import Design, Term, design_of
from epochcast.observe.history.fitted_model import FittedModel, Stage
from epochcast.observe.history.gaussian_process import Blocks
from epochcast.observe.history.job_table import OVERHEAD, Array, Jobs
from epochcast.observe.history.learning_set import LearningSet
from epochcast.observe.history.models import tree_models as trees
from epochcast.observe.history.models.process_fit import fit_process
from epochcast.observe.history.predictors import Linear
from epochcast.observe.history.roles import GROWING

ROUNDS, LEAVES = 200, 15
"""Of the boosted trees."""


def fit_forecast_alone(past: LearningSet, _: Mapping[str, Any], __: int) -> FittedModel:
    """Physics times one factor: the median of measured / physics."""
    ratios = _log_ratios(past)
    constant = Linear(np.zeros(0), float(np.median(ratios)))
    return FittedModel("forecast", ((Stage(Design(()), constant),),), True, True, _least(past))


def fit_grey_box(past: LearningSet, _: Mapping[str, Any], seed: int) -> FittedModel:
    """The four corrections; who learns gives them their shares."""
    ratios, jobs = _log_ratios(past), past.inputs.with_physics_columns()
    mixed, blocks = _mixed(jobs)
    process = Stage(mixed, fit_process(mixed.matrix(jobs), ratios, blocks, seed))
    design = design_of(jobs, without=tuple(GROWING))
    rows, of_computation = design.matrix(jobs), ratios + np.log(jobs.numbers[OVERHEAD])
    to_computation = Stage(Design((Term(((OVERHEAD, 1),), is_log=True),), {OVERHEAD: 1.0}), Linear(-np.ones(1), 0.0))
    none_grows = np.zeros(rows.shape[1], dtype=np.bool_)
    boosted = trees.boosting(rows, of_computation, none_grows, seed=seed, rounds=ROUNDS, leaves=LEAVES)
    corrections = (
        (process,),
        (Stage(design, trees.extra_trees(rows, ratios, seed=seed)),),
        (Stage(design, trees.extra_trees(rows, of_computation, seed=seed)), to_computation),
        (Stage(design, boosted), to_computation),
    )
    return FittedModel("grey_box", corrections, True, True, _least(past))


def _mixed(jobs: Jobs) -> tuple[Design, Blocks]:
    """Logarithms of numbers, then the indicators of each category, empty cells being a category of their own. Left out:
    what only says how many steps there are (physics is proportional to it, so that more never takes less), and
    the global batch where it is batch times GPUs.
    """
    without = set(GROWING)
    if {"batch_per_gpu", "gpus"} <= set(jobs.numbers):
        without.add("global_batch")
    numbers = design_of(jobs.only(tuple(jobs.numbers)), logs=True, without=tuple(without))
    terms = [term for term in numbers.terms if not term.is_missing]
    groups = []
    for name, words in jobs.categories.items():
        levels = sorted(set(words.tolist()))
        terms += [Term(((name, 1),), level=level) for level in levels]
        groups.append(len(levels))
    fills = {name: value for name, value in numbers.fills.items() if name not in without}
    return Design(tuple(terms), fills), Blocks(len(terms) - sum(groups), tuple(groups))


def _log_ratios(past: LearningSet) -> Array:
    physics = past.jobs.physics
    if physics is None:
        raise BadInput("the grey box needs the physics of every row")
    return np.asarray(np.log(past.target / physics.values))


def _least(past: LearningSet) -> float:
    return 0.01 * float(past.target.min())
