"""The deviations of a Gaussian process, found by the marginal likelihood (Rasmussen & Williams 2006, chapter 5).

They are searched on at most `SEARCH_ROWS` rows and pulled towards a prior that wants them small, so that what history
does not bear out is shrunk to nothing; at most `MOST_ROWS` rows are kept to predict with.

Equal rows are one row, with the mean of their targets and the noise of that mean. That changes no prediction and no
likelihood: with n_i equal rows of mean m_i, and squares S about these means,

    log p(y) = log N(m; 0, K + diag(σ²/n_i)) − ½ Σ (n_i − 1)·log σ² − S/(2σ²) + constant
"""

from dataclasses import dataclass

import numpy as np

from epochcast.observe.history.gaussian_process import LEAST, Blocks, Deviations, HistoryProcess, covariance
from epochcast.observe.history.job_table import Array, Integers
from epochcast.observe.history.standardize import Standardization

SEARCH_ROWS, MOST_ROWS = 400, 1000
PRIOR_WEIGHT = 0.5
MOST = 6.0


@dataclass(frozen=True)
class Repeated:
    """Different rows: the mean of the targets of each, how often it was, and the squares about its mean."""

    rows: Array
    means: Array
    counts: Array
    squares: Array

    def take(self, places: Integers) -> "Repeated":
        """These of them."""
        return Repeated(self.rows[places], self.means[places], self.counts[places], self.squares[places])


def repeated(rows: Array, target: Array) -> Repeated:
    """Equal rows as one."""
    different, places, counts = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    places = places.reshape(-1)
    means = np.bincount(places, target) / counts
    squares = np.asarray(np.bincount(places, (target - means[places]) ** 2), dtype=np.float64)
    return Repeated(different, means, counts.astype(np.float64), squares)


def fit_process(rows: Array, target: Array, blocks: Blocks, seed: int) -> HistoryProcess:
    """The process of these rows."""
    scaling = _scaling(rows, blocks)
    generator = np.random.default_rng(seed)
    centre = float(np.median(target))
    different = repeated(scaling.scaled(rows), target - centre)
    few = generator.permutation(len(different.rows))[:SEARCH_ROWS]
    deviations = Deviations(_searched(different.take(few), blocks), blocks)
    spread = different.take(_spread(different.rows[:, blocks.numbers :], MOST_ROWS, generator))
    matrix = covariance(spread.rows, spread.rows, deviations)
    matrix[np.diag_indices_from(matrix)] += deviations.noise / spread.counts + 1e-8
    weights = np.asarray(np.linalg.solve(matrix, spread.means), dtype=np.float64)
    return HistoryProcess.of(scaling, deviations, spread.rows, weights, centre)


def _spread(categories: Array, most: int, generator: np.random.Generator) -> Integers:
    """At most so many rows, at random, from each combination of categories in turn: rare ones are kept."""
    order = generator.permutation(len(categories))
    if len(order) <= most:
        return np.sort(order)
    combination = np.unique(categories[order], axis=0, return_inverse=True)[1].reshape(-1)
    by_combination = np.argsort(combination, kind="stable")
    first = np.concatenate([[0], np.flatnonzero(np.diff(combination[by_combination])) + 1])
    sizes = np.diff([*first, len(order)])
    turn = np.zeros(len(order), dtype=np.int64)
    turn[by_combination] = np.arange(len(order)) - np.repeat(first, sizes)
    return np.sort(order[np.argsort(turn, kind="stable")[:most]])


def _scaling(rows: Array, blocks: Blocks) -> Standardization:
    """Numbers standardised, indicators as they are."""
    scaling = Standardization.of(rows)
    is_number = np.arange(rows.shape[1]) < blocks.numbers
    return Standardization(np.where(is_number, scaling.mean, 0.0), np.where(is_number, scaling.scale, 1.0))


def _searched(different: Repeated, blocks: Blocks) -> Array:
    """The deviations with the largest marginal likelihood, pulled towards the prior."""
    from scipy.optimize import minimize

    rows = different.rows
    begin = Deviations.prior(blocks)
    begin[2] = np.log(max(1e-5, 0.1 * _variance(different)))
    same = [rows[:, part] @ rows[:, part].T for part in blocks.slices()]
    squares = [(rows[:, j][:, None] - rows[:, j][None, :]) ** 2 for j in range(blocks.numbers)]

    def loss(values: Array) -> tuple[float, Array]:
        return _negative_likelihood(values, begin, blocks, different, (same, squares))

    bounds = [(LEAST, MOST)] * len(begin)
    result = minimize(loss, begin, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 40})
    return np.asarray(result.x, dtype=np.float64)


def _variance(different: Repeated) -> float:
    """Of all targets."""
    total = different.counts.sum()
    mean = float(different.counts @ different.means) / total
    return float((different.squares.sum() + different.counts @ (different.means - mean) ** 2) / total)


def _negative_likelihood(
    values: Array,
    prior: Array,
    blocks: Blocks,
    different: Repeated,
    pairs: tuple[list[Array], list[Array]],
) -> tuple[float, Array]:
    """−log p(target) and its slopes (5.8, 5.9 there), plus the pull towards the prior."""
    same, squares = pairs
    target, counts = different.means, different.counts
    again, within = float((counts - 1).sum()), float(different.squares.sum())
    d = Deviations(values, blocks)
    exponent = np.zeros((len(target), len(target)))
    for difference, is_same in zip(d.differences, same, strict=True):
        exponent += difference * (1 - is_same)
    for length, square in zip(d.lengths, squares, strict=True):
        exponent += 0.5 * length * square
    local = d.local * np.exp(-exponent)
    matrix = d.common + local
    for effect, is_same in zip(d.effects, same, strict=True):
        matrix = matrix + effect * is_same
    matrix[np.diag_indices_from(matrix)] += d.noise / counts + 1e-8
    try:
        lower = np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return 1e12, np.zeros(len(values))
    inverse = np.linalg.inv(matrix)
    weights = inverse @ target
    pull = values - prior
    value = (
        0.5 * float(target @ weights)
        + float(np.log(lower.diagonal()).sum())
        + 0.5 * (again * float(np.log(d.noise)) + within / d.noise)
        + 0.5 * PRIOR_WEIGHT * float(pull @ pull)
    )
    gap = inverse - np.outer(weights, weights)  # slope = ½ Σ gap·dK
    by_local = gap * local
    by_noise = 0.5 * (d.noise * float((gap.diagonal() / counts).sum()) + again - within / d.noise)
    slopes = [0.5 * d.common * gap.sum(), 0.5 * by_local.sum(), by_noise]
    slopes += [0.5 * effect * (gap * is_same).sum() for effect, is_same in zip(d.effects, same, strict=True)]
    slopes += [-0.5 * v * (by_local * (1 - is_same)).sum() for v, is_same in zip(d.differences, same, strict=True)]
    slopes += [-0.25 * w * (by_local * square).sum() for w, square in zip(d.lengths, squares, strict=True)]
    return value, np.array(slopes) + PRIOR_WEIGHT * pull
