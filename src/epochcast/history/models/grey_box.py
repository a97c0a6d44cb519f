"""The grey box: physics says how long a job takes, history by which factor physics errs.

    log y = log(physics) + (c₁(x) + c₂(x) + c₃(x))/3

c₁ is a Gaussian process over the columns of a row (`process.py`). What history does not bear out is shrunk to nothing,
so that a row unlike all that were seen is predicted by physics times the factor that is common to all. Its trends go
on beyond what was seen only along what physics says itself (`TRENDS`): its own size, the batch, and by how much physics
expects several GPUs to be slower than one. A trend along any other number (GPUs, peak flops, layers) would be a guess.

c₂ and c₃ are extremely randomised trees (Geurts et al. 2006): a row beyond all that were seen has the factor of its
nearest. c₂ corrects the forecast, c₃ its computation alone: how much of the exchange between GPUs shows is the part of
a forecast that is wrong most often, so one of the three learns it anew. With o the forecast over its computation,

    log y = log(physics/o) + t(x)        c₃(x) = t(x) − log o

The mean of the three was better than each on most tables that it was tried on (`studies/history`). With more different
rows than a process takes, boosted trees learn what it leaves, if that was better in cross-validation.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from epochcast.errors import BadInput
from epochcast.history.design import Design, Term, design_of
from epochcast.history.fitted import Fitted, Stage
from epochcast.history.jobs import OVERHEAD, PHYSICS, Array, Jobs
from epochcast.history.learning_set import LearningSet
from epochcast.history.models import trees
from epochcast.history.models.process import MOST_ROWS, fit_process
from epochcast.history.predictors import Linear
from epochcast.history.process import Blocks
from epochcast.history.roles import GROWING

TRENDS = (PHYSICS, OVERHEAD, "batch_per_gpu", "micro_batch")
TREE_ROUNDS = 200
SHARE = 1 / 3
"""Of each of the three corrections."""


def fit_forecast_alone(known: LearningSet, _: Mapping[str, Any], __: int) -> Fitted:
    """Physics times one factor: the median of measured / physics."""
    ratios = _log_ratios(known)
    constant = Linear(np.zeros(0), float(np.median(ratios)))
    return Fitted("forecast", (Stage(Design(()), constant),), True, True, _least(known))


def fit_grey_box(known: LearningSet, options: Mapping[str, Any], seed: int) -> Fitted:
    """The mean of the three corrections. `trees` asks for boosted ones on what the process leaves, where there are more
    rows than it takes.
    """
    ratios, jobs = _log_ratios(known), known.inputs.with_physics_columns()
    design, blocks = _mixed(jobs)
    rows = design.matrix(jobs)
    has_trend = np.array([term.columns[0] in TRENDS for term in design.terms[: blocks.numbers]], dtype=np.bool_)
    process, left = fit_process(rows, ratios, blocks, has_trend, seed)
    stages = [Stage(design, process.times(SHARE))]
    if options.get("trees") and len(process.weights) >= MOST_ROWS:
        none_grows = np.zeros(rows.shape[1], dtype=np.bool_)
        grown = trees.boosting(rows, SHARE * left, none_grows, seed=seed, rounds=TREE_ROUNDS, leaves=15)
        stages.append(Stage(design, grown))
    return Fitted("grey_box", (*stages, *_nearest(jobs, ratios, seed)), True, True, _least(known))


def _nearest(jobs: Jobs, ratios: Array, seed: int) -> list[Stage]:
    """Trees upon the forecast, trees upon its computation, and what leads from the one to the other."""
    design = design_of(jobs, without=tuple(GROWING))
    rows, overheads = design.matrix(jobs), np.log(jobs.numbers[OVERHEAD])
    to_computation = Design((Term(((OVERHEAD, 1),), is_log=True),), {OVERHEAD: 1.0})
    return [
        Stage(design, trees.extra_trees(rows, SHARE * ratios, seed=seed)),
        Stage(design, trees.extra_trees(rows, SHARE * (ratios + overheads), seed=seed)),
        Stage(to_computation, Linear(np.array([-SHARE]), 0.0)),
    ]


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


def _log_ratios(known: LearningSet) -> Array:
    physics = known.jobs.physics
    if physics is None:
        raise BadInput("the grey box needs the physics of every row")
    return np.asarray(np.log(known.target / physics.values))


def _least(known: LearningSet) -> float:
    return 0.01 * float(known.target.min())
