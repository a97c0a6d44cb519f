"""The deviations of a Gaussian process, found by the marginal likelihood (Rasmussen & Williams 2006, chapter 5).

They are searched on at most `SEARCH_ROWS` rows and pulled towards a prior that wants them small, so that what history
does not bear out is shrunk to nothing; at most `MOST_ROWS` rows are kept to predict with.
"""

import numpy as np

from epochcast.history.jobs import Array, Flags
from epochcast.history.process import LEAST, Blocks, Deviations, Process, covariance
from epochcast.history.scaling import Scaling

SEARCH_ROWS, MOST_ROWS = 400, 2500
PRIOR_WEIGHT = 0.5
MOST = 6.0


def fit_process(rows: Array, target: Array, blocks: Blocks, has_trend: Flags, seed: int) -> tuple[Process, Array]:
    """The process, and what it leaves of every row when the other rows predict it (left out one by one)."""
    scaling = _scaling(rows, blocks)
    scaled = scaling.scaled(rows)
    generator = np.random.default_rng(seed)
    centre = float(np.median(target))
    about = target - centre
    few = generator.permutation(len(rows))[:SEARCH_ROWS]
    found = Deviations(_searched(scaled[few], about[few], blocks, has_trend), blocks)
    kept = np.sort(generator.permutation(len(rows))[:MOST_ROWS])
    matrix = covariance(scaled[kept], scaled[kept], found)
    matrix[np.diag_indices_from(matrix)] += found.noise + 1e-8
    inverse = np.linalg.inv(matrix)
    weights = inverse @ about[kept]
    process = Process(scaling, blocks, found.values, scaled[kept], weights, centre)
    left = np.zeros(len(rows))
    left[kept] = weights / inverse.diagonal()
    others = np.setdiff1d(np.arange(len(rows)), kept)
    if len(others):
        left[others] = target[others] - process.values(rows[others])
    return process, left


def _scaling(rows: Array, blocks: Blocks) -> Scaling:
    """Numbers standardised, indicators as they are."""
    whole = Scaling.of(rows)
    is_number = np.arange(rows.shape[1]) < blocks.numbers
    return Scaling(np.where(is_number, whole.mean, 0.0), np.where(is_number, whole.scale, 1.0))


def _searched(rows: Array, target: Array, blocks: Blocks, has_trend: Flags) -> Array:
    """The deviations with the largest marginal likelihood, pulled towards the prior."""
    from scipy.optimize import minimize

    begin = Deviations.prior(blocks, has_trend)
    begin[2] = np.log(max(1e-5, 0.1 * float(np.var(target))))
    same = [rows[:, part] @ rows[:, part].T for part in blocks.slices()]
    products = [np.outer(rows[:, j], rows[:, j]) for j in range(blocks.numbers)]
    squares = [(rows[:, j][:, None] - rows[:, j][None, :]) ** 2 for j in range(blocks.numbers)]

    def loss(values: Array) -> tuple[float, Array]:
        return _negative_likelihood(values, begin, blocks, target, (same, products, squares))

    bounds = [(LEAST, LEAST if low == LEAST else MOST) for low in begin]
    found = minimize(loss, begin, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 40})
    return np.asarray(found.x, dtype=np.float64)


def _negative_likelihood(
    values: Array, prior: Array, blocks: Blocks, target: Array, pairs: tuple[list[Array], list[Array], list[Array]]
) -> tuple[float, Array]:
    """−log p(target) and its slopes (5.8, 5.9 there), plus the pull towards the prior."""
    same, products, squares = pairs
    d = Deviations(values, blocks)
    exponent = np.zeros((len(target), len(target)))
    for difference, one in zip(d.differences, same, strict=True):
        exponent += difference * (1 - one)
    for length, one in zip(d.lengths, squares, strict=True):
        exponent += 0.5 * length * one
    local = d.local * np.exp(-exponent)
    matrix = d.common + local
    for effect, one in zip(d.effects, same, strict=True):
        matrix = matrix + effect * one
    for slope, one in zip(d.slopes, products, strict=True):
        matrix = matrix + slope * one
    matrix[np.diag_indices_from(matrix)] += d.noise + 1e-8
    try:
        lower = np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return 1e12, np.zeros(len(values))
    inverse = np.linalg.inv(matrix)
    weights = inverse @ target
    pull = values - prior
    value = (
        0.5 * float(target @ weights) + float(np.log(lower.diagonal()).sum()) + 0.5 * PRIOR_WEIGHT * float(pull @ pull)
    )
    gap = inverse - np.outer(weights, weights)  # slope = ½ Σ gap·dK
    by_local = gap * local
    slopes = [0.5 * d.common * gap.sum(), 0.5 * by_local.sum(), 0.5 * d.noise * np.trace(gap)]
    slopes += [0.5 * effect * (gap * one).sum() for effect, one in zip(d.effects, same, strict=True)]
    slopes += [-0.5 * v * (by_local * (1 - one)).sum() for v, one in zip(d.differences, same, strict=True)]
    slopes += [0.5 * slope * (gap * one).sum() for slope, one in zip(d.slopes, products, strict=True)]
    slopes += [-0.25 * w * (by_local * one).sum() for w, one in zip(d.lengths, squares, strict=True)]
    return value, np.array(slopes) + PRIOR_WEIGHT * pull
