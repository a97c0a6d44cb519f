"""Fitting one model to a table: hyper-parameters, the model itself, and how wide its intervals are.

Of a model with several corrections of physics it is also found how much each counts (`shares.py`). What
cross-validation predicted says it, without another fit.
"""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from epochcast.errors import EpochcastError
from epochcast.measure.evaluate.predicted import Progress
from epochcast.observe.history.conformal import log_scores, widths
from epochcast.observe.history.correction_shares import earned, learned_from
from epochcast.observe.history.fitted_model import CorrectionShares
from epochcast.observe.history.job_table import MISSING, NO_FORECAST, Array, Flags, Integers, Jobs, Words
from epochcast.observe.history.learning_set import LearningSet
from epochcast.observe.history.model_file import HistoryModel
from epochcast.observe.history.models.model_table import ModelKind, Options, find_kind
from epochcast.observe.history.physics_scales import on_one_scale, stand_in_scores
from epochcast.observe.history.roles import column_of
from epochcast.observe.history.seen_columns import (
    PAIR,
    SeenColumns,
    by_pair,
    numbers_of_pair,
    of_pair,
    pair_words,
)
from epochcast.observe.history.tuning import Tick, counted, fits_of, one_thread_each, tuned

# Parts into which the categories of a column are divided to see how well unseen ones are predicted.
NEW_PARTS = 3
# The share of the largest different numbers of a column that is kept back for the same.
LARGEST = 0.25
LEAST_TRAIN = 10
NEW_ROLES = ("model", "device", "batch", "gpus", "power", "depth")


def learn(
    name: str,
    past: LearningSet,
    *,
    candidates: tuple[Options, ...] = (),
    seed: int = 0,
    workers: int = 1,
    new_columns: Iterable[str] | None = None,
    tick: Tick | None = None,
    progress: Progress | None = None,
) -> HistoryModel:
    """Fit the model called `name`. Of `new_columns`, by default all, unseen values get a width of their own."""
    kind = find_kind(name)
    past, scales = on_one_scale(past)
    if progress is not None:
        tick = counted(progress, fits_of(kind, candidates))
    chosen = tuned(kind, past, candidates=candidates, seed=seed, workers=workers, tick=tick)
    wanted = _tried_columns(past.inputs, new_columns)
    with one_thread_each():
        fitted = kind.fit(past, chosen.options, seed)
        unseen = chosen.unseen
        if len(fitted.sums) > 1:
            shares, unseen = earned(past, chosen.each)
            fitted = replace(fitted, shares=shares)
        new = {column: _new_scores(kind, past, column, chosen.options, fitted.shares, seed) for column in wanted}
    if kind.needs_physics and past.jobs.physics is not None:
        without = stand_in_scores(past.target, past.jobs.physics)
        new |= {NO_FORECAST: without} if len(without) else {}
    # Intervals go by device, else by model, where the table has one.
    group_column = column_of("device", past.inputs.categories) or column_of("model", past.inputs.categories)
    groups = None if group_column is None else past.inputs.category(group_column)
    return HistoryModel(
        target_name=past.target_name,
        features=past.features,
        rows=len(past),
        error=float(np.mean(np.abs(unseen / past.target - 1))),
        options=dict(chosen.options),
        seen=SeenColumns.of(past.inputs),
        widths=widths(log_scores(past.target, unseen), groups, group_column=group_column, new=new),
        scales=scales,
        fitted=fitted,
        unseen=unseen,
    )


def _tried_columns(jobs: Jobs, wanted: Iterable[str] | None) -> list[str]:
    """Those that play a part in formulas, and what may be new by coming together; what is new in another column gets
    the widest interval of all.
    """
    columns = {name for name in jobs.columns if name in {column_of(role, jobs.columns) for role in NEW_ROLES}}
    if pair_words(jobs) is not None:
        columns |= {PAIR, *map(of_pair, numbers_of_pair(jobs))}
    return sorted(columns if wanted is None else columns & set(wanted))


def _new_scores(
    kind: ModelKind, past: LearningSet, column: str, options: Options, shares: CorrectionShares | None, seed: int
) -> Array:
    """How far predictions are off for values of a column that were kept back; empty where it has too few values."""
    scores = []
    for train, test in _held_out(past, column):
        if len(train) < LEAST_TRAIN or not len(test):
            continue
        part = past.take(train)
        try:
            fitted = kind.fit(part, options, seed)
        except EpochcastError:  # too few rows for this model
            continue
        if shares is not None:
            fitted = replace(fitted, shares=learned_from(shares.values, part))
        rows = past.take(test)
        scores.append(log_scores(rows.target, fitted.predict(rows.inputs)))
    return np.concatenate(scores) if scores else np.zeros(0)


def _held_out(past: LearningSet, name: str) -> list[tuple[Integers, Integers]]:
    """Rows to learn from and rows to test that are new to these in one respect."""
    jobs = past.inputs
    if name == PAIR:
        return [(train, _pairs_new_to(train, test, jobs)) for train, test in _without_some(_pairs(jobs))]
    column = {of_pair(column): column for column in jobs.numbers}.get(name)
    if column is not None:
        values, is_test = jobs.numbers[column], np.zeros(len(jobs), dtype=np.bool_)
        for _, mine in by_pair(jobs):
            is_test |= mine & _is_largest(values[mine], values)
        return [(np.flatnonzero(~is_test), np.flatnonzero(is_test))]
    if name in jobs.categories:
        return _without_some(jobs.categories[name])
    values = jobs.numbers[name]
    if len(np.unique(values[~np.isnan(values)])) < 3:
        return []
    is_test = _is_largest(values, values)
    return [(np.flatnonzero(~is_test), np.flatnonzero(is_test))]


def _pairs(jobs: Jobs) -> Words:
    """The network and device of every row as one word."""
    words = np.full(len(jobs), MISSING, dtype=object)
    for place, (_, mine) in enumerate(by_pair(jobs)):
        words[mine] = str(place)
    return words.astype(np.str_)


def _pairs_new_to(train: Integers, test: Integers, jobs: Jobs) -> Integers:
    """Of rows that are kept back those whose network and device are both learned from, but not together."""
    news = SeenColumns.of(jobs.take(train)).news(jobs.take(test))
    return test[[PAIR in names for names in news]]


def _without_some(words: Words) -> list[tuple[Integers, Integers]]:
    """Every category is kept back once, some at a time."""
    levels, counts = np.unique(words, return_counts=True)
    if len(levels) < 2:
        return []
    # The most frequent in turn, so that the parts are about equally large.
    part_of = {level: place % NEW_PARTS for place, level in enumerate(levels[np.argsort(-counts, kind="stable")])}
    parts = np.array([part_of[word] for word in words])
    return [(np.flatnonzero(parts != part), np.flatnonzero(parts == part)) for part in np.unique(parts)]


def _is_largest(some: Array, values: Array) -> Flags:
    """Which values are above three quarters of the different ones of some, and so at least the largest of two."""
    different = np.unique(some[~np.isnan(some)])
    if len(different) < 2:
        return np.zeros(len(values), dtype=np.bool_)
    return np.asarray(values > different[max(1, int(len(different) * (1 - LARGEST))) - 1])
