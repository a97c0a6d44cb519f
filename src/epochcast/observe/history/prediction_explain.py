"""Why one row is predicted as it is: which columns moved it, and by which factor.

A row is compared with the usual one (the median of every number, the most frequent category of every column). Columns
are set from the usual value to the row's own, in all orders at once on average (Shapley 1953, over random orders drawn
with a seed): the factors of all columns multiply to predicted / usual.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from epochcast.base.record import Record
from epochcast.observe.history.job_table import Array, Jobs, Physics
from epochcast.observe.history.model_file import HistoryModel

ORDERS = 40
PHYSICS_STEP = "physics (the forecast)"


@dataclass(frozen=True)
class Explanation(Record):
    """`factors` by column, the largest change first; usual · Π factors = predicted."""

    usual: float
    predicted: float
    factors: Mapping[str, float]


def explained(model: HistoryModel, jobs: Jobs, row: int, seed: int = 0) -> Explanation:
    """Of one row of `jobs`, against the usual row among them or, where it is alone, of those learned from."""
    jobs, _ = model.scaled(jobs)
    job = jobs.take([row])
    base = usual_row(model, jobs)
    names = [name for name in model.features if name in jobs.columns]
    if model.fitted.has_physics:
        names.append(PHYSICS_STEP)
    generator = np.random.default_rng(seed)
    orders = [generator.permutation(len(names)).tolist() for _ in range(ORDERS)]
    stages = [
        _mixed(base, job, [names[place] for place in order[:count]])
        for order in orders
        for count in range(len(names) + 1)
    ]
    logs = np.log(model.fitted.predict(_stacked(stages))).reshape(ORDERS, len(names) + 1)
    moved = dict.fromkeys(names, 0.0)
    for order, values in zip(orders, logs, strict=True):
        for place, change in zip(order, np.diff(values), strict=True):
            moved[names[place]] += float(change) / ORDERS
    ranked = sorted(moved, key=lambda name: -abs(moved[name]))
    return Explanation(
        float(np.exp(logs[0, 0])), float(np.exp(logs[0, -1])), {name: float(np.exp(moved[name])) for name in ranked}
    )


def usual_row(model: HistoryModel, jobs: Jobs) -> Jobs:
    """The middle of what was learned from: the middle of each range in logarithms, the first category by name where the
    table at hand does not tell which is the most frequent.
    """
    seen = model.seen
    numbers = {name: np.array([_middle(jobs.number(name), seen.ranges[name])]) for name in seen.ranges}
    words = {name: np.array([_commonest(jobs, name, seen.levels[name])]) for name in seen.levels}
    physics = None
    if jobs.physics is not None:
        p = jobs.physics
        counts = np.ones(len(jobs)) if p.counts is None else p.counts
        physics = Physics(_geometric(p.values), p.kinds[:1], np.ones(1), _geometric(counts))
    return Jobs(numbers, words, physics)


def _geometric(values: Array) -> Array:
    """Their geometric mean, as one row."""
    return np.asarray(np.exp(np.mean(np.log(values), keepdims=True)))


def _middle(values: Array, ends: tuple[float, float]) -> float:
    present = values[~np.isnan(values)]
    if len(present) > 1:
        return float(np.median(present))
    low, high = ends
    return float(np.sqrt(low * high)) if low > 0 else (low + high) / 2


def _commonest(jobs: Jobs, name: str, levels: tuple[str, ...]) -> str:
    words: list[str] = [word for word in jobs.category(name).tolist() if word in levels]
    if len(jobs) > 1 and words:
        return max(sorted(set(words)), key=words.count)
    return min(levels, default="")


def _mixed(base: Jobs, job: Jobs, names: Sequence[str]) -> Jobs:
    """The usual row with these columns of the row itself."""
    wanted = set(names)
    numbers = {
        name: job.numbers[name] if name in wanted and name in job.numbers else value
        for name, value in base.numbers.items()
    }
    words = {
        name: job.category(name) if name in wanted and name in job.columns else value
        for name, value in base.categories.items()
    }
    physics = job.physics if PHYSICS_STEP in wanted else base.physics
    return replace(base, numbers=numbers, categories=words, physics=physics)


def _stacked(parts: Sequence[Jobs]) -> Jobs:
    """All as one table."""
    first = parts[0]
    physics = None
    if first.physics is not None:
        each = [part.physics for part in parts if part.physics is not None]
        overheads = [np.ones(1) if p.overheads is None else p.overheads for p in each]
        counts = [np.ones(1) if p.counts is None else p.counts for p in each]
        physics = Physics(
            np.concatenate([p.values for p in each]),
            np.concatenate([p.kinds for p in each]),
            np.concatenate(overheads),
            np.concatenate(counts),
        )
    return Jobs(
        {name: np.concatenate([part.numbers[name] for part in parts]) for name in first.numbers},
        {name: np.concatenate([part.categories[name] for part in parts]) for name in first.categories},
        physics,
    )
