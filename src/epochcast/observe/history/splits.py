"""How a table is divided into rows to learn from and rows to test on. A split is named as it is written:

random, random:10          every row is tested once, in 5 or 10 parts
holdout, holdout:0.3       a fifth, or three tenths, at random
time, time:submitted_at    what came after the first four fifths
batch>64, gpus>4           learned up to the threshold, tested above it; also power (of the device), depth, or the
power>80%                  name of a column; a percentage is that share of the different values
batch>60%:model+device     that share of those of each model on each device: of every such group the largest are tested
without:device             every device is left out once
without:device=V100        that one
deeper                     of every family the deepest network
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from epochcast.errors import BadInput, UnknownName
from epochcast.measure.tables.run_network import family_of
from epochcast.observe.history.job_table import MISSING, Array, Integers, Jobs, Words
from epochcast.observe.history.learning_set import is_time
from epochcast.observe.history.roles import ROLES, column_of

FOLDS, HELD_OUT, EARLIEST = 5, 0.2, 0.8
LEAST_TEST = 1
_THRESHOLD = re.compile(r"(\w+)\s*>\s*([0-9.eE+-]+)(%?)(?::([\w+]+))?")


@dataclass(frozen=True)
class Split:
    """Pairs of rows to learn from and rows to test on. `is_outside`: the test lies outside of what was learned from."""

    name: str
    parts: tuple[tuple[Integers, Integers], ...]
    is_outside: bool

    def __post_init__(self) -> None:
        if not self.parts or any(len(train) == 0 or len(test) < LEAST_TEST for train, test in self.parts):
            raise BadInput(f"the split {self.name} leaves no rows to learn from, or none to test on")


def split_of(name: str, jobs: Jobs, seed: int = 0) -> Split:
    """The split that is written so."""
    words = name.strip()
    threshold = _THRESHOLD.fullmatch(words)
    if threshold:
        column, number, share, within = threshold.groups()
        if within:
            return _above_within(words, jobs, column, _fraction(words, number, share), within.split("+"))
        return _above(words, jobs, column, number, bool(share))
    kind, _, rest = words.partition(":")
    match kind:
        case "random":
            return _random(words, len(jobs), _count(rest), seed)
        case "holdout":
            return _holdout(words, len(jobs), _share(rest), seed)
        case "time":
            return _in_time(words, jobs, rest)
        case "without":
            return _without(words, jobs, rest)
        case "deeper":
            return _deeper(words, jobs)
    raise UnknownName("split", words, ["random", "holdout", "time", "batch>64", "gpus>4", "without:device", "deeper"])


def folds_of(count: int, folds: int, seed: int) -> list[tuple[Integers, Integers]]:
    """Every row is tested once."""
    order = np.random.default_rng(seed).permutation(count)
    parts = np.array_split(order, min(folds, count))
    return [(np.sort(np.setdiff1d(order, part)), np.sort(part)) for part in parts if len(part)]


def _random(name: str, count: int, folds: int, seed: int) -> Split:
    return Split(name, tuple(folds_of(count, folds, seed)), False)


def _holdout(name: str, count: int, share: float, seed: int) -> Split:
    order = np.random.default_rng(seed).permutation(count)
    held = max(1, round(share * count))
    return Split(name, ((np.sort(order[held:]), np.sort(order[:held])),), False)


def _in_time(name: str, jobs: Jobs, column: str) -> Split:
    when = times_of(jobs, column)
    order = np.argsort(when, kind="stable")
    cut = max(1, round(EARLIEST * len(order)))
    return Split(name, ((np.sort(order[:cut]), np.sort(order[cut:])),), False)


def times_of(jobs: Jobs, column: str = "") -> Array:
    """When each job ran: a column of numbers, or of dates in ISO 8601."""
    names = [column] if column else [name for name in jobs.columns if is_time(name)]
    if not names:
        raise BadInput("no column says when a job ran; name it, like time:submitted_at")
    if names[0] not in jobs.columns:
        raise UnknownName("column", names[0], jobs.columns)
    if names[0] in jobs.numbers:
        when = jobs.numbers[names[0]]
    else:
        when = _dates(jobs.categories[names[0]], names[0])
    if np.isnan(when).any():
        raise BadInput(f"{int(np.isnan(when).sum()):,} rows have no {names[0]}")
    return when


def _dates(words: Words, column: str) -> Array:
    try:
        return np.array([np.datetime64(word.replace("Z", ""), "s").astype(float) for word in words.tolist()])
    except ValueError:
        raise BadInput(f"{column} is no column of times: dates are written like 2026-01-31T12:00:00") from None


def numbers_called(name: str, jobs: Jobs) -> Array:
    """A column of numbers by its part in a formula (batch, gpus, power, depth) or by its own name."""
    if name == "depth":
        return depths_of(jobs)
    column = column_of(name, jobs.numbers) if name in ROLES else name
    if column is None or column not in jobs.numbers:
        names = {*(role for role in ROLES if column_of(role, jobs.numbers)), *jobs.numbers}
        raise UnknownName("column of numbers", name, names)
    return jobs.numbers[column]


def _above(name: str, jobs: Jobs, column: str, number: str, is_share: bool) -> Split:
    values = numbers_called(column, jobs)
    levels = np.unique(values[~np.isnan(values)])
    try:
        threshold = float(number)
    except ValueError:
        raise BadInput(f"{name!r} has no threshold; write it like {column}>64") from None
    if is_share:
        threshold = float(levels[min(len(levels) - 1, int(len(levels) * threshold / 100))]) if len(levels) else np.nan
    below, above = np.flatnonzero(values <= threshold), np.flatnonzero(values > threshold)
    if not len(below) or not len(above):
        span = f"{levels[0]:g} to {levels[-1]:g}" if len(levels) else "empty"
        raise BadInput(f"the split {name} leaves nothing on one side: {column} is {span}")
    return Split(name, ((below, above),), True)


def _above_within(name: str, jobs: Jobs, column: str, fraction: float, within: Sequence[str]) -> Split:
    """Of every group of rows that are equal in some columns, and have two values of `column` or more, the largest."""
    values = numbers_called(column, jobs)
    words = [jobs.category(_called(group, jobs, "column to group by")) for group in within]
    groups = np.unique(np.column_stack(words), axis=0, return_inverse=True)[1].reshape(-1)
    is_test = np.zeros(len(jobs), dtype=np.bool_)
    for group in range(groups.max() + 1 if len(groups) else 0):
        mine = (groups == group) & ~np.isnan(values)
        levels = np.unique(values[mine])
        if len(levels) > 1:
            is_test |= mine & (values > levels[min(len(levels) - 2, int(len(levels) * fraction))])
    if not is_test.any():
        raise BadInput(f"the split {name} leaves nothing to test: {column} is the same in every group")
    return Split(name, ((np.flatnonzero(~is_test), np.flatnonzero(is_test)),), True)


def _fraction(name: str, number: str, share: str) -> float:
    try:
        percent = float(number) if share else np.nan
    except ValueError:
        percent = np.nan
    if not 0 <= percent < 100:
        raise BadInput(f"{name!r} needs a share of the values of each group, like batch>60%:model+device")
    return percent / 100


def _called(column: str, jobs: Jobs, sort: str) -> str:
    """A column by its part in a formula, or by its own name."""
    name = (column_of(column, jobs.columns) or column) if column in ROLES else column
    if name not in jobs.columns:
        raise UnknownName(sort, name, jobs.columns)
    return name


def _without(name: str, jobs: Jobs, rest: str) -> Split:
    column, _, level = rest.partition("=")
    column = column if column == "family" else _called(column, jobs, "column to leave values of out")
    words = families_of(jobs) if column == "family" and column not in jobs.columns else jobs.category(column)
    levels = [level] if level else [str(word) for word in np.unique(words) if word != MISSING]
    if level and level not in set(words.tolist()):
        raise UnknownName(f"value of {column}", level, set(words.tolist()))
    parts = [(np.flatnonzero(words != left_out), np.flatnonzero(words == left_out)) for left_out in levels]
    if len(levels) == len(np.unique(words)) == 1:
        raise BadInput(f"{column} has one value; there is nothing to learn from without it")
    return Split(name, tuple(parts), True)


def families_of(jobs: Jobs) -> Words:
    """The family of every row's model."""
    return np.array([family_of(word) if word != MISSING else MISSING for word in jobs.category("model").tolist()])


def depths_of(jobs: Jobs) -> Array:
    """Layers by their column; else the number in a model's name (resnet50 → 50)."""
    column = column_of("depth", jobs.numbers)
    if column is not None:
        return jobs.numbers[column]
    matches = [re.search(r"(?<![\d.])(\d{1,4})(?!\d)", word) for word in jobs.category("model").tolist()]
    return np.array([np.nan if match is None else float(match[1]) for match in matches])


def _deeper(name: str, jobs: Jobs) -> Split:
    """Families with at least three depths: the deepest is tested, everything else is learned from."""
    depths, families = depths_of(jobs), families_of(jobs)
    is_test = np.zeros(len(jobs), dtype=np.bool_)
    for family in np.unique(families):
        mine = (families == family) & ~np.isnan(depths)
        if family != MISSING and len(np.unique(depths[mine])) >= 3:
            is_test |= mine & (depths == depths[mine].max())
    if not is_test.any():
        raise BadInput("no family of networks has three depths; deeper needs names like resnet50, or a column layers")
    return Split(name, ((np.flatnonzero(~is_test), np.flatnonzero(is_test)),), True)


def _count(text: str) -> int:
    if text and not (text.isdecimal() and int(text) >= 2):
        raise BadInput(f"a random split has at least 2 parts, got {text!r}")
    return int(text) if text else FOLDS


def _share(text: str) -> float:
    try:
        share = float(text) if text else HELD_OUT
    except ValueError:
        share = 0.0
    if not 0 < share < 1:
        raise BadInput(f"the held-out share must be between 0 and 1, got {text!r}")
    return share


def default_splits(jobs: Jobs) -> Sequence[str]:
    """What `compare` does when nobody says: random parts, and the extrapolations that the table allows."""
    wanted = ["random", "batch>60%", "gpus>50%", "power>60%", "deeper"]
    names = []
    for name in wanted:
        try:
            split = split_of(name, jobs)
        except (BadInput, UnknownName):
            continue
        train, test = split.parts[0]
        if not split.is_outside or (len(train) >= 20 and len(test) >= 5):
            names.append(name)
    return names
