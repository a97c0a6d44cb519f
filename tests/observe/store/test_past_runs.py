"""What past runs say of a new one."""

from math import exp, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcast.interval import Interval
from epochcast.observe.runs.run_prior import Past
from epochcast.observe.runs.standing import ShownPace, Standing
from epochcast.observe.store.past_runs import NORMAL_90, PastGroup, expected_ratio, past_of, usual_errors
from epochcast.observe.store.store import Store
from epochcast.observe.store.store_rows import RunPlace
from epochcast.observe.store.stored_run import standing_columns
from epochcast.predict.forecast.forecast import Forecast
from epochcast.predict.forecast.job import Job

JOB = Job("resnet50", batch=64, epochs=90)
HERE = RunPlace("V100")
ONE_RUN = usual_errors()["run"]


def add_run(store: Store, ratio: float, job: Job = JOB, place: RunPlace = HERE, steps: float = 1000.0) -> None:
    """A run that took `ratio` times its forecast."""
    run = store.open_run(job=job, place=place)
    store.add_forecast(Forecast("m", "V100", step_seconds=Interval(0.09, 0.1, 0.12)), run_id=run.id)
    pace = 0.1 * ratio
    standing = Standing(
        *(steps, 90 * steps, "the log", pace),
        remaining_seconds=Interval.exact(89 * steps * pace),
        elapsed_seconds=5 + 1.1 * pace * steps,
        shown=ShownPace(pace, start_seconds=5.0, executed_steps=steps),
    )
    store.note(run.id, **standing_columns(standing))


def test_three_runs_that_were_slower_say_so(store: Store) -> None:
    for ratio in (1.03, 1.04, 1.05):
        add_run(store, ratio)
    past = past_of(store, JOB.as_dict(), HERE)
    assert past is not None
    assert past.sentence == "your last 3 runs of this job were 4 % slower than forecast"
    assert past.ratio.mid == pytest.approx(1.04, rel=1e-4)
    assert past.pause_fraction == pytest.approx(0.1)
    assert past.start_seconds == 5.0


def test_more_epochs_are_the_same_job_and_another_batch_is_a_similar_one(store: Store) -> None:
    add_run(store, 1.1, Job("resnet50", batch=64, epochs=1))
    add_run(store, 2.0, Job("resnet50", batch=32))
    add_run(store, 2.0, JOB, RunPlace("V100", gpus=4))
    past = past_of(store, JOB.as_dict(), HERE)
    assert past is not None and (past.same, past.similar) == (1, 2)
    assert 1.1 < past.ratio.mid < 1.25  # the similar ones weigh little


def test_other_models_other_devices_and_runs_that_just_began_say_nothing(store: Store) -> None:
    add_run(store, 2.0, Job("alexnet", batch=64))
    add_run(store, 2.0, place=RunPlace("A100"))
    add_run(store, 2.0, steps=5.0)
    store.open_run("no forecast", job=JOB, place=HERE)
    assert past_of(store, JOB.as_dict(), HERE) is None
    assert past_of(store, JOB.as_dict(), RunPlace()) is None


def test_a_run_says_nothing_of_itself(store: Store) -> None:
    add_run(store, 2.0)
    assert past_of(store, JOB.as_dict(), HERE, but=store.runs()[0].id) is None


def test_one_run_by_hand() -> None:
    """Its spread is the usual one; so is that of the run to come: error² = 2s²."""
    ratio = expected_ratio([PastGroup(True, (log(1.2),))])
    assert ratio.mid == pytest.approx(1.2)
    assert ratio.high / ratio.mid == pytest.approx(exp(NORMAL_90 * ONE_RUN * 2**0.5))


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=8), st.lists(st.floats(-1, 1), min_size=1, max_size=8))
def test_the_width_is_never_zero_and_runs_of_the_same_job_weigh_more(same: list[float], similar: list[float]) -> None:
    both = expected_ratio([PastGroup(True, tuple(same)), PastGroup(False, tuple(similar))])
    assert both.high > both.mid * 1.01
    if len(same) >= len(similar):
        mine, theirs = sum(same) / len(same), sum(similar) / len(similar)
        assert abs(log(both.mid) - mine) <= abs(log(both.mid) - theirs) + 1e-9


@pytest.mark.parametrize(
    ("ratio", "same", "similar", "sentence"),
    [
        (1.001, 1, 0, "your last run of this job was as fast as forecast"),
        (0.8, 2, 5, "your last 2 runs of this job were 20 % faster than forecast"),
        (1.5, 0, 1, "your last run like this one was 50 % slower than forecast"),
    ],
)
def test_it_is_told_in_words(ratio: float, same: int, similar: int, sentence: str) -> None:
    assert Past(Interval.around(ratio, 1.1), same, similar).sentence == sentence
