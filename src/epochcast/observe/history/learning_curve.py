"""How the error falls with the number of past jobs, and how much each column matters.

A quarter of the rows is kept back and tested by models that learned from 10, 20, 40, … of the others. So one sees how
many past jobs are needed until history beats the forecast alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from epochcast.errors import EpochcastError
from epochcast.observe.history.job_table import Jobs
from epochcast.observe.history.learner import learn
from epochcast.observe.history.learning_set import LearningSet
from epochcast.observe.history.models.model_table import find_kind
from epochcast.observe.history.splits import split_of

FIRST = 10
# A size nearer to all than this adds nothing to a curve.
NEXT = 0.9
HELD_OUT = "holdout:0.25"


@dataclass(frozen=True)
class Point:
    """The mean error of a model that learned from so many jobs."""

    model: str
    jobs: int
    mape: float


def learning_curve(past: LearningSet, models: Sequence[str], seed: int = 0) -> tuple[Point, ...]:
    """Every model at every number of jobs; one that cannot be fitted with so few has no point there. Hyper-parameters
    are not tuned: the first that predict the logarithm, where a model may.
    """
    ((train, test),) = split_of(HELD_OUT, past.jobs, seed).parts
    order = np.random.default_rng(seed).permutation(train)
    held_out = past.take(test)
    points = []
    for count in sizes(len(order)):
        part = past.take(order[:count])
        for name in models:
            grid = find_kind(name).grid
            options = next((options for options in grid if options.get("log")), grid[0])
            try:
                learned = learn(name, part, candidates=(options,), new_columns=(), seed=seed)
            except EpochcastError:
                continue
            predicted = learned.predict(held_out.inputs).mid
            points.append(Point(name, count, float(np.mean(np.abs(predicted / held_out.target - 1)))))
    return tuple(points)


def sizes(most: int) -> list[int]:
    """10, 20, 40 … and all."""
    counts = []
    size = FIRST
    while size < NEXT * most:
        counts.append(size)
        size *= 2
    return [*counts, most]


def column_effects(past: LearningSet, model: str, seed: int = 0) -> Mapping[str, float]:
    """By which factor a column moves predictions, on average over the rows: the mean of |log| between a prediction and
    the one with the column's most usual value, as a factor; the largest first.
    """
    learned = learn(model, past, candidates=find_kind(model).grid[:1], new_columns=(), seed=seed)
    fitted, (jobs, _) = learned.fitted, learned.scaled(past.inputs)
    all_columns = np.log(fitted.predict(jobs))
    moved = {
        name: float(np.exp(np.mean(np.abs(all_columns - np.log(fitted.predict(_without(jobs, name)))))))
        for name in jobs.columns
    }
    return {name: moved[name] for name in sorted(moved, key=lambda name: -moved[name])}


def _without(jobs: Jobs, name: str) -> Jobs:
    """The same rows with one column at its usual value."""
    if name in jobs.numbers:
        column = jobs.numbers[name]
        values = column[~np.isnan(column)]
        usual = np.full(len(column), float(np.median(values)) if len(values) else np.nan)
        return replace(jobs, numbers={**jobs.numbers, name: usual})
    words, counts = np.unique(jobs.categories[name], return_counts=True)
    commonest = np.full(len(jobs), words[int(np.argmax(counts))])
    return replace(jobs, categories={**jobs.categories, name: commonest})
