"""Forecasts of rows that the shipped cost model was trained on, as if it had not been.

`make model` also trains nets that leave out everything a source timed (of timm, which is most of all steps, the family
of the network), and keeps their predicted/measured of every single-GPU step (`studies/accuracy/left_out.csv`). Here
these replace what the shipped forecast says of one GPU:

    seconds = exposed communication + left-out seconds of the same job on one GPU

What is fitted on other data (collectives) stays. A row of such a source whose job has no left-out step is not
independent of the training and is not used.
"""

from collections.abc import Hashable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from epochcast.measure.tables.run_table import MeasuredRun, read_runs
from epochcast.observe.history.job_table import Array
from studies.accuracy.left_out_table import LeftOutTable, read_left_out

BY_FAMILY = ("timm",)
"""Sources with so many of all steps that a net without them would know little: the family is left out instead."""


@cache
def _table() -> LeftOutTable:
    return read_left_out()


def trained_sources() -> set[str]:
    """The sources whose steps the shipped cost model was trained on."""
    return {str(name) for name in _table().source}


def computed_of(source: str, whole: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]]) -> Array:
    """Seconds on one GPU of every row's job by a net that left it out; NaN where none did. `whole` are all rows of the
    source, in the order of its table.
    """
    known = _single(source, whole)
    found = np.full(len(rows), np.nan)
    for run in read_runs([dict(row) for row in rows])[0]:
        found[run.row_index] = known.get(_key(run), np.nan)
    return found


def _single(source: str, whole: Sequence[Mapping[str, Any]]) -> dict[Hashable, float]:
    """Left-out seconds by job: the table has predicted/measured, in the order in which equal jobs were measured."""
    left = _left_out(source)
    turn: dict[Hashable, int] = {}
    found: dict[Hashable, list[float]] = {}
    for run in read_runs([dict(row) for row in whole])[0]:
        key = _key(run)
        if run.gpus > 1 or key not in left:
            continue
        place = turn[key] = turn.get(key, -1) + 1
        if place < len(left[key]):
            found.setdefault(key, []).append(left[key][place] * run.step_seconds)
    return {key: float(np.median(seconds)) for key, seconds in found.items()}


def _left_out(source: str) -> dict[Hashable, list[float]]:
    """predicted/measured of every step of the source by its job."""
    table = _table()
    ratios = table.ratios["family" if source in BY_FAMILY else "source"]
    found: dict[Hashable, list[float]] = {}
    for place in np.flatnonzero((table.source == source) & np.isfinite(ratios)):
        names = (table.device, table.model, table.precision, table.mode, table.layout, table.batch)
        found.setdefault(tuple(str(column[place]) for column in names), []).append(float(ratios[place]))
    return found


def _key(run: MeasuredRun) -> Hashable:
    recipe = run.recipe
    layout = "channels_last" if run.setting.channels_last else "nchw"
    return (run.device.name, run.model, recipe.precision_label, recipe.mode, layout, str(recipe.batch))
