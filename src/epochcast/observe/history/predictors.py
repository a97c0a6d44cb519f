"""What is left of a fitted model: a function of features, evaluated with numpy alone and written as text.

linear   b + Σ w_i·x_i
forest   Σ_trees leaf(x)                                  (`predict.cost.tree_ensembles`)
kernel   b + Σ_j a_j·exp(−γ·|z − z_j|²)                   support vectors z_j, z = (x − mean)/scale
layers   W_n·relu(… relu(W_1·z + b_1) …) + b_n            z as above
"""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import ClassVar

import numpy as np

from epochcast.base.record import Record, json_name
from epochcast.observe.history.gaussian_process import HistoryProcess
from epochcast.observe.history.job_table import Array, Integers
from epochcast.observe.history.standardize import Standardization, check_finite
from epochcast.predict.cost.tree_ensembles import Forest

# Pairs of rows and support vectors that are held at once.
BLOCK_PAIRS = 2_000_000


@dataclass(frozen=True)
class Linear(Record):
    """b + Σ w_i·x_i."""

    kind: ClassVar[str] = "linear"
    json_also: ClassVar[tuple[str, ...]] = ("kind",)
    weights: Array
    intercept: float

    def __post_init__(self) -> None:
        check_finite("linear", self.weights, np.array([self.intercept]))

    def values(self, rows: Array) -> Array:
        """Of every row."""
        return np.asarray(rows @ self.weights + self.intercept)


@dataclass(frozen=True)
class Trees(Record):
    """A sum of trees, plus `base`: the nodes of each tree in preorder, as `Forest` has them, and where trees begin.

    `split` is the feature of a node, -1 for a leaf. scikit-learn compares in single precision: `is_single`.
    """

    kind: ClassVar[str] = "forest"
    json_also: ClassVar[tuple[str, ...]] = ("kind",)
    features: tuple[str, ...]
    roots: Integers
    split: Integers
    number: Array
    base: float = 0.0
    is_single: bool = json_name("single", default=False)
    _forest: Forest = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        nodes = list(zip(self.split.tolist(), self.number.tolist(), strict=True))
        trees = [nodes[start:end] for start, end in pairwise([*self.roots.tolist(), len(nodes)])]
        object.__setattr__(self, "_forest", Forest.from_preorder(self.features, trees))

    @classmethod
    def of(cls, forest: Forest, base: float = 0.0, *, is_single: bool = False) -> "Trees":
        """The predictor of a forest."""
        return cls(forest.features, forest.roots, forest.feature, forest.number, base, is_single)

    def values(self, rows: Array) -> Array:
        """Of every row."""
        compared = rows.astype(np.float32).astype(np.float64) if self.is_single else rows
        return np.asarray(self.base + self._forest.values(compared))


@dataclass(frozen=True)
class RadialKernel(Record):
    """Support vectors under a radial basis function."""

    kind: ClassVar[str] = "kernel"
    json_also: ClassVar[tuple[str, ...]] = ("kind",)
    scaling: Standardization
    vectors: Array
    weights: Array
    intercept: float
    gamma: float

    def __post_init__(self) -> None:
        shape = len(self.weights), len(self.scaling.mean)  # without support vectors, JSON has an empty list
        object.__setattr__(self, "vectors", self.vectors.reshape(shape))
        check_finite("kernel", self.vectors, self.weights, np.array([self.intercept, self.gamma]))

    def values(self, rows: Array) -> Array:
        """Of every row."""
        scaled = self.scaling.scaled(rows)
        block = max(1, BLOCK_PAIRS // max(1, len(self.vectors)))
        parts = [self._block(scaled[start : start + block]) for start in range(0, len(scaled), block)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def _block(self, rows: Array) -> Array:
        squares = (rows**2).sum(axis=1)[:, None] + (self.vectors**2).sum(axis=1)[None, :] - 2 * rows @ self.vectors.T
        return np.asarray(np.exp(-self.gamma * np.maximum(squares, 0.0)) @ self.weights + self.intercept)


@dataclass(frozen=True)
class Layers(Record):
    """Dense layers with relu between them."""

    kind: ClassVar[str] = "layers"
    json_also: ClassVar[tuple[str, ...]] = ("kind",)
    scaling: Standardization
    weights: tuple[Array, ...]
    biases: tuple[Array, ...]

    def __post_init__(self) -> None:
        check_finite("layers", *self.weights, *self.biases)

    def values(self, rows: Array) -> Array:
        """Of every row."""
        state = self.scaling.scaled(rows)
        for place, (weights, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            state = state @ weights + bias
            if place + 1 < len(self.weights):
                state = np.maximum(state, 0.0)
        return np.asarray(state[:, 0])


Predictor = Linear | Trees | RadialKernel | Layers | HistoryProcess
"""A function of the rows of a matrix of features; a file names their `kind`."""
