"""Gaussian process regression (Rasmussen & Williams 2006, chapter 2) on a few hundred points, with numpy alone.

    k(x, x') = c² + g²·[same kind] + s²·M(d)·(1 if same kind else ρ),     d² = Σ ((x_i − x'_i)/l_i)²
    M(d) = (1 + √5·d + 5d²/3)·e^(−√5·d)                                    (Matérn 5/2)

A kind is a small number that separates points which have no distance: the directions of an op. The mean of the prior
is zero, so that far from every point the answer is zero with the width of the prior.
"""

from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from epochcast.base.caching import Cache, Derived, derived_property

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

# Added to the diagonal, relative to it, so that duplicate points do no harm.
JITTER = 1e-9


MOST_DEVIATION = 100.0
"""Of a logarithm."""


@dataclass(frozen=True)
class CostKernel:
    """`lengths` of every feature, standard deviations of the parts of k and of the noise, ρ between kinds."""

    lengths: Array
    signal: float
    common: float
    offset: float
    correlation: float
    noise: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.lengths).all() and (self.lengths > 0).all()):
            raise ValueError("a kernel needs lengths above zero")
        deviations = (self.signal, self.common, self.offset, self.noise)
        if not 0 <= self.correlation <= 1 or not all(0 <= deviation < MOST_DEVIATION for deviation in deviations):
            raise ValueError("a kernel needs a correlation between 0 and 1 and no negative or huge deviation")

    def between(self, a: Array, a_kinds: Integers, b: Array, b_kinds: Integers) -> Array:
        """k of every pair, without noise."""
        root = self.roots(a, b)
        same = a_kinds[:, None] == b_kinds[None, :]
        matern = (1 + root + root**2 / 3) * np.exp(-root)
        result: Array = (
            self.common**2 + self.offset**2 * same + self.signal**2 * matern * np.where(same, 1.0, self.correlation)
        )
        return result

    def roots(self, a: Array, b: Array) -> Array:
        """√5·d of every pair."""
        a, b = a / self.lengths, b / self.lengths
        squares = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1)[None, :] - 2 * a @ b.T
        roots: Array = np.sqrt(5 * np.maximum(squares, 0.0))
        return roots

    @property
    def prior_deviation(self) -> float:
        """The standard deviation of a point before any data."""
        return float(np.sqrt(self.common**2 + self.offset**2 + self.signal**2))


@dataclass(frozen=True)
class CostProcess:
    """Points with values under a kernel; `noises` are the deviations of the single points."""

    kernel: CostKernel
    points: Array
    kinds: Integers
    values: Array
    noises: Array
    derived: Derived = field(init=False, compare=False, repr=False, default_factory=partial(Cache, 2))

    @derived_property
    def _inverse(self) -> Array:
        covariance = self.kernel.between(self.points, self.kinds, self.points, self.kinds)
        covariance[np.diag_indices_from(covariance)] += self.noises**2 + JITTER * covariance.diagonal()
        return np.asarray(np.linalg.inv(covariance), dtype=np.float64)

    @derived_property
    def _weights(self) -> Array:
        weights: Array = self._inverse @ self.values
        return weights

    def answers(self, points: Array, kinds: Integers) -> tuple[Array, Array]:
        """Mean and standard deviation (without noise) at new points."""
        prior = self.kernel.prior_deviation**2
        if not len(self.values):
            return np.zeros(len(points)), np.full(len(points), np.sqrt(prior))
        across = self.kernel.between(points, kinds, self.points, self.kinds)
        explained = np.einsum("ij,jk,ik->i", across, self._inverse, across, optimize=True)
        return across @ self._weights, np.sqrt(np.maximum(prior - explained, 1e-6 * prior))

    def left_out(self) -> tuple[Array, Array]:
        """Error of each point when the others predict it (value − mean), and its deviation with noise (5.12 there)."""
        precision = self._inverse.diagonal()
        return self._weights / precision, 1 / np.sqrt(precision)

    def log_likelihood(self) -> float:
        """log p(values); the higher the better the kernel fits."""
        _, log_determinant = np.linalg.slogdet(self._inverse)
        fit = float(self.values @ self._weights)
        return 0.5 * float(log_determinant) - 0.5 * fit - 0.5 * len(self.values) * float(np.log(2 * np.pi))

    def slopes(self) -> Array:
        """Of the log likelihood (5.9 there): along the logarithms of lengths, signal, common, offset and the kernel's
        own noise, and along the correlation.
        """
        kernel, points = self.kernel, self.points
        surplus = 0.5 * (np.outer(self._weights, self._weights) - self._inverse)
        same = self.kinds[:, None] == self.kinds[None, :]
        root = kernel.roots(points, points)
        matern = kernel.signal**2 * (1 + root + root**2 / 3) * np.exp(-root)
        related = np.where(same, 1.0, kernel.correlation)
        pulls = surplus * related * kernel.signal**2 * (5 / 3) * (1 + root) * np.exp(-root)
        # Σ_ab g_ab·(x_a − x_b)² = 2·Σ_a (Σ_b g_ab)·x_a² − 2·xᵀ·g·x, for every feature at once.
        apart = 2 * pulls.sum(axis=1) @ points**2 - 2 * np.einsum("ai,ab,bi->i", points, pulls, points, optimize=True)
        others = [
            2 * float((surplus * matern * related).sum()),
            2 * kernel.common**2 * float(surplus.sum()),
            2 * kernel.offset**2 * float((surplus * same).sum()),
            2 * kernel.noise**2 * float(surplus.trace()),
            float((surplus * matern * ~same).sum()),
        ]
        return np.concatenate([apart / kernel.lengths**2, others])
