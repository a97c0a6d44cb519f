"""How much each correction of physics counts in rows like those learned from: what it has earned in cross-validation.

With e_k the errors of correction k, as logarithms, on rows that it had not seen, and e_0 those of the one factor that
is common to all,

    minimise Σ_rows (Σ_k s_k·e_k)² + n₀·σ²·Σ_k (s_k − p_k)²        s_k ≥ 0, Σ_k s_k = 1

σ² is the mean square of all errors; p are equal shares of the corrections, and none of the common factor, and count as
n₀ rows do. So one that errs more, or errs with another, gets less, and where past jobs tell no more than the common
factor, that is what counts.
"""

import numpy as np

from epochcast.errors import BadInput
from epochcast.observe.history.fitted_model import CorrectionShares
from epochcast.observe.history.job_table import Array
from epochcast.observe.history.learning_set import LearningSet
from epochcast.observe.history.roles import GROWING
from epochcast.observe.history.seen_columns import SeenColumns

# Of 3, 10 and 30, the first had the smallest errors at random on the sources that `studies/history` names as looked at.
PRIOR_ROWS = 3.0
# An error beyond this, as a logarithm, counts as this: single rows do not decide.
MOST_ERROR = 1.0
# How strictly the shares sum to 1, beside the errors.
STRICT = 1e3


def earned(past: LearningSet, each: Array) -> tuple[CorrectionShares, Array]:
    """The shares of a model's sums upon physics, by what each said of rows that it had not seen; and what the mixture
    says of these rows.
    """
    base, target = _base(past), np.log(past.target)
    sums, common = np.log(each) - base, float(np.median(target - base))
    fractions = shares_of(np.vstack([np.full(len(base), common), sums]) + base - target)
    shares = learned_from(tuple(map(float, fractions[1:])), past)
    return shares, np.exp(base + shares.mixed(sums, np.zeros(len(base), dtype=np.bool_)))


def learned_from(values: tuple[float, ...], past: LearningSet) -> CorrectionShares:
    """Shares of a model of these rows. That there is more of what only makes a job longer makes no row new, nor does
    what comes together in it for the first time.
    """
    jobs = past.inputs
    seen = SeenColumns.of(jobs.only([name for name in jobs.columns if name not in GROWING]), has_pairs=False)
    return CorrectionShares(values, float(np.median(np.log(past.target) - _base(past))), seen)


def _base(past: LearningSet) -> Array:
    if past.jobs.physics is None:
        raise BadInput("shares are those of corrections of physics, which every row needs")
    return np.log(past.jobs.physics.values)


def shares_of(errors: Array) -> Array:
    """s for lines of errors, of which the first is that of the common factor."""
    from scipy.optimize import nnls

    clipped = np.clip(errors, -MOST_ERROR, MOST_ERROR)
    prior = np.full(len(errors), 1 / (len(errors) - 1))
    prior[0] = 0.0
    square = float((clipped**2).mean()) + 1e-12
    pull, sure = np.sqrt(PRIOR_ROWS * square), STRICT * np.sqrt(errors.shape[1] * square)
    left = np.vstack([clipped.T, pull * np.eye(len(errors)), np.full((1, len(errors)), sure)])
    right = np.concatenate([np.zeros(errors.shape[1]), pull * prior, [sure]])
    weights, _ = nnls(left, right)
    return np.asarray(weights / weights.sum())
