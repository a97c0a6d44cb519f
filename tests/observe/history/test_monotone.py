"""More epochs and more samples never take less time, whatever the rows say."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from tests.every import every

from epochcast.observe.history.job_table import Jobs
from epochcast.observe.history.job_table_reader import as_jobs, read_frame
from epochcast.observe.history.learning_set import LearningSet, learning_set
from epochcast.observe.history.models.model_table import MODELS, Options, find_kind
from epochcast.observe.history.physics import physics_of

NOT_BOUND = ("svr", "net")
"""Models that nothing keeps from falling; the documentation names them."""
ASKED = {"epochs": (1, 2, 3, 5, 8, 20, 100), "samples": (100, 500, 1000, 3000, 5000, 9000, 50_000)}
CANDIDATES = [(name, options) for name, kind in MODELS.items() if name not in NOT_BOUND for options in kind.grid]


def rows(falls: str) -> list[dict[str, Any]]:
    """Jobs of a team where, by chance or by mistake, more of `falls` took less time, steeply."""
    generator = np.random.default_rng(7)
    found = []
    for _ in range(80):
        batch, gpus = int(generator.choice([8, 16, 32])), int(generator.choice([1, 2, 4]))
        job: dict[str, Any] = {"network": str(generator.choice(["ours", "theirs"])), "batch": batch, "num_gpus": gpus}
        job |= {"samples": int(generator.integers(500, 5000)), "epochs": int(generator.integers(1, 9))}
        job |= {"temperature": float(generator.normal())}
        seconds = job["samples"] * job["epochs"] / (batch * gpus) / float(job[falls]) ** 3
        found.append({**job, "total_seconds": 1e6 * seconds * float(np.exp(generator.normal(0, 0.5)))})
    return found


def inputs(told: list[dict[str, Any]], known: LearningSet) -> Jobs:
    frame = read_frame(told)
    return replace(as_jobs(frame).only(known.features), physics=physics_of(frame, "total_seconds"))


@cache
def asked(column: str) -> tuple[LearningSet, list[Jobs]]:
    """What was learned from, and the same rows with more and more of a column."""
    told = rows(falls=column)
    frame = read_frame(told)
    known = learning_set(frame, "total_seconds", physics=physics_of(frame, "total_seconds"))
    return known, [inputs([{**row, column: value} for row in told], known) for value in ASKED[column]]


@every("column", ASKED)
@every(("name", "options"), CANDIDATES)
def test_more_work_never_takes_less_time(name: str, options: Options, column: str) -> None:
    known, more_and_more = asked(column)
    few = {"trees": 10} if name == "random_forest" else {}
    fitted = find_kind(name).fit(known, {**options, **few}, 0)
    predicted = np.array([fitted.predict(jobs) for jobs in more_and_more])
    assert (np.diff(predicted, axis=0) >= -1e-9 * predicted[1:]).all()


@pytest.mark.parametrize("name", NOT_BOUND)
def test_what_is_not_bound_does_fall(name: str) -> None:
    """So that the documentation names the right models, and these rows can tell."""
    told = rows(falls="epochs")
    known = learning_set(read_frame(told), "total_seconds")
    fitted = find_kind(name).fit(known, {}, 0)
    few, many = (fitted.predict(inputs([{**row, "epochs": n} for row in told], known)) for n in (1, 8))
    assert (many < few).any()


def test_the_first_epoch_tells_of_more_epochs_and_history_does_not_turn_it_round() -> None:
    told = [{**row, "first_epoch_seconds": 10.0 + place % 7} for place, row in enumerate(rows(falls="epochs"))]
    frame = read_frame(told)
    known = learning_set(frame, "total_seconds", physics=physics_of(frame, "total_seconds"))
    fitted = find_kind("grey_box").fit(known, {}, 0)
    few, many = (fitted.predict(inputs([{**row, "epochs": n} for row in told], known)) for n in (2, 6))
    assert many == pytest.approx(3 * few)
