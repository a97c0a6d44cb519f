"""Phases known beforehand: steps that take longer from some step on, because sequences, images or batches grow.

A log shows such a change when it comes, never before. Who trains knows the schedule: `0:1,500:2,1000:3` says that steps
take twice as long from step 500 on, three times from step 1,000 on, against those at first; `0:1,33%:2` counts in parts
of the whole. What was seen is divided by what its phase takes, what is left multiplied: past and future are counted in
steps of the first kind.

>>> phases = Phases.parse("0:1,50%:3")
>>> phases.work(100.0, 25.0, 75.0)
100.0
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf

import numpy as np

from epochcast.errors import BadInput


@dataclass(frozen=True, slots=True)
class Phases:
    """Where phases begin (steps, or parts of the whole where `is_part`), and what a step takes in each."""

    begins: tuple[float, ...]
    is_part: tuple[bool, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.begins or self.begins[0] != 0:
            raise BadInput("`phases` begin at step 0, like 0:1,500:2")
        if not all(0 < weight < inf for weight in self.weights):
            raise BadInput("what a step takes in `phases` must be a number above 0, like 500:2")

    @staticmethod
    def parse(text: str) -> "Phases":
        """`BEGIN:WEIGHT,…`, where BEGIN is a step or a percentage of all."""
        begins, parts, weights = [], [], []
        for item in text.split(","):
            begin, _, weight = item.strip().partition(":")
            try:
                begins.append(float(begin.removesuffix("%")) / (100 if begin.endswith("%") else 1))
                weights.append(float(weight))
            except ValueError:
                raise BadInput(f"`phases` are written like 0:1,500:2,80%:3, got {item.strip()!r}") from None
            parts.append(begin.endswith("%"))
        return Phases(tuple(begins), tuple(parts), tuple(weights))

    def work(self, total_steps: float, begin: float, end: float) -> float:
        """Steps from `begin` to `end`, counted in steps of weight 1."""
        low, high = self._done(total_steps, np.array([begin, end]))
        return float(high - low)

    def weigh(self, total_steps: float, begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """What a step takes, on average, in each span."""
        done = self._done(total_steps, ends) - self._done(total_steps, begins)
        return np.asarray(done / np.maximum(ends - begins, 1e-12))

    def _done(self, total_steps: float, steps: np.ndarray) -> np.ndarray:
        places = self._places(total_steps)
        ends = [*places[1:], inf]
        parts = [
            weight * np.clip(np.minimum(steps, end) - begin, 0.0, None)
            for begin, end, weight in zip(places, ends, self.weights, strict=True)
        ]
        return np.asarray(np.sum(parts, axis=0))

    def _places(self, total_steps: float) -> Sequence[float]:
        places = [b * total_steps if part else b for b, part in zip(self.begins, self.is_part, strict=True)]
        if any(after <= before for before, after in pairwise(places)):
            raise BadInput(f"`phases` must begin one after the other; of {total_steps:g} steps they begin at {places}")
        return places
