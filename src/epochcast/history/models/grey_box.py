"""The grey box: physics says how long a job takes, history by which factor physics errs.

    log y = log(physics) + c(x)

c is small where history says little: a ridge regression on the categories and logarithms of a row (effects that history
does not bear out are shrunk towards none), then boosted trees on what that leaves. Where a row lies outside of what was
seen, effects of unseen categories are none, so that a prediction follows physics.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from epochcast.errors import BadInput
from epochcast.history.design import Design, design_of
from epochcast.history.fitted import Fitted, Stage
from epochcast.history.jobs import Array, Jobs
from epochcast.history.learning_set import LearningSet
from epochcast.history.models import linear, trees
from epochcast.history.predictors import Linear
from epochcast.history.roles import GROWING

PHYSICS_KIND = "physics_kind"
PHYSICS = "physics"


def fit_forecast_alone(known: LearningSet, _: Mapping[str, Any], __: int) -> Fitted:
    """Physics times one factor: the median of measured / physics."""
    ratios = _log_ratios(known)
    constant = Linear(np.zeros(0), float(np.median(ratios)))
    return Fitted("forecast", (Stage(Design(()), constant),), True, True, _least(known))


def fit_grey_box(known: LearningSet, options: Mapping[str, Any], seed: int) -> Fitted:
    """Shrunk effects, then trees."""
    ratios, jobs = _log_ratios(known), known.inputs
    effects = design_of(jobs, logs=True, without=tuple(GROWING))
    none_grows = np.zeros(len(effects.terms), dtype=np.bool_)
    shrunk = linear.ridge(effects.matrix(jobs), ratios, float(options.get("penalty", 0.01)), none_grows)
    stages = [Stage(effects, shrunk)]
    left = ratios - stages[0].values(jobs)
    rounds = int(options.get("rounds", 200))
    if rounds and len(known) >= 20:
        grown = trees.boosting(effects.matrix(jobs), left, none_grows, seed=seed, rounds=rounds, leaves=15)
        stages.append(Stage(effects, grown))
    return Fitted("grey_box", tuple(stages), True, True, _least(known))


def _log_ratios(known: LearningSet) -> Array:
    physics = known.jobs.physics
    if physics is None:
        raise BadInput("the grey box needs the physics of every row")
    return np.asarray(np.log(known.target / physics.values))


def _least(known: LearningSet) -> float:
    return 0.01 * float(known.target.min())


def with_physics_columns(jobs: Jobs) -> Jobs:
    """With the kind of physics and its value as columns, for corrections that depend on them."""
    if jobs.physics is None:
        return jobs
    return replace(
        jobs,
        numbers={**jobs.numbers, PHYSICS: jobs.physics.values},
        categories={**jobs.categories, PHYSICS_KIND: jobs.physics.kinds},
    )
