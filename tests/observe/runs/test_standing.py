"""The one record of a run: made by the tracker, kept in the database, shown everywhere."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

import epochcast as ec
from epochcast.base.record_schema import json_schema
from epochcast.interval import Interval
from epochcast.observe.runs.early_stopping import StoppingRule, StoppingWatch
from epochcast.observe.runs.report import Report
from epochcast.observe.runs.standing import MOST_MOMENTS, Moment, Standing
from epochcast.observe.runs.tracker import Tracker
from epochcast.observe.store.store_opening import open_store
from epochcast.observe.store.stored_run import StoredRun, standing_columns


def slowed() -> Tracker:
    """A run of two ranks that slows down, with a price and early stopping."""
    forecast = ec.forecast(ec.Job("resnet18", batch=32, samples=320_000), device="V100", config=None)
    tracker = Tracker(total=10_000, forecast=forecast, stopping=StoppingWatch(StoppingRule(4)))
    clock = 0.1
    for step in range(0, 6001, 10):
        clock += 5.0 if step <= 3000 else 8.0
        for rank in range(2):
            tracker.add(Report(step, clock, rank=rank, step_seconds=0.5 if step <= 3000 or rank else 0.8))
    assert tracker.stopping is not None
    tracker.stopping.add(0.5)
    return tracker


def test_a_standing_comes_back_from_its_json() -> None:
    standing = slowed().standing(datetime(2026, 11, 18, 9, tzinfo=UTC))
    assert standing.drift is not None and standing.rank_drifts and standing.early_stopping is not None
    assert standing.dollars_in_all is not None and standing.shown is not None and standing.finish_at is not None
    assert Standing.from_dict(json.loads(json.dumps(standing.as_dict()))) == standing


def test_the_schema_names_every_key() -> None:
    standing = slowed().standing()
    assert set(json_schema(Standing)["properties"]) == set(standing.as_dict())


# What epochcast 0.1.0 wrote into `runs.progress`; the interval and other numbers are those of a short run.
BEFORE = {
    **{"log": "train.log", "format": "tqdm", "format_confidence": 0.9, "unread_fraction": 0.0, "job": None},
    **{"step": 50, "total_steps": 100, "total_told_by": "the log", "fraction": 0.5, "step_seconds": 2.0},
    "remaining_seconds": {"low": 90.0, "mid": 100.0, "high": 120.0, "coverage": 0.9},
    **{"elapsed_seconds": 100.0, "start_seconds": 0.0, "down_seconds": 0.0, "pause_seconds": 0.0, "restarts": 0},
    **{"log_remaining_seconds": None, "forecast_step_seconds": None, "against_forecast": None},
    **{"prior_told_by": None, "prior_weight": 0.0, "dollars_so_far": None, "dollars_in_all": None},
    **{"drift": None, "rank_drifts": [], "reasons": ["input-bound"], "seen_at": "2026-11-17T10:00:00+00:00"},
    **{"finish_at": "2026-11-17T10:01:40+00:00", "fan": [[10.0, 190.0, 200.0, 220.0]], "report_seconds": 2.0},
    "shown": {"step_seconds": 2.0, "start_seconds": 0.0, "executed_steps": 49.0},
}


def test_a_standing_of_the_version_before_is_read(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "store.db")) as store:
        run = store.open_run("old")
        store.note(run.id, progress=BEFORE, step=50.0)
        standing = store.run("old").standing
        assert standing is not None and standing.remaining_seconds == Interval(90.0, 100.0, 120.0)
        assert standing.fan == ((10.0, 190.0, 200.0, 220.0),) and standing.reasons == ("input-bound",)
        assert store.run("old").as_dict()["finish_at"] == "2026-11-17T10:01:40+00:00"


@pytest.mark.parametrize("progress", [{}, {"step": 3.0}, {**BEFORE, "remaining_seconds": "soon"}])
def test_what_is_not_a_whole_standing_is_none(progress: dict[str, object]) -> None:
    assert Standing.stored(progress) is None


def test_an_untimed_run_of_the_version_before_is_read() -> None:
    standing = Standing.stored({**BEFORE, "shown": {}})
    assert standing is not None and standing.shown is None


def test_the_cost_of_a_run_is_stored_and_shown(tmp_path: Path) -> None:
    tracker = slowed()
    standing = tracker.standing(datetime.now().astimezone())
    with open_store(str(tmp_path / "store.db")) as store:
        StoredRun(store, store.open_run("mine")).write(standing, 1e9)
        run = store.run("mine")
    assert run.standing == standing and standing_columns(standing)["progress"] == run.progress
    assert standing.dollars_in_all is not None
    assert run.as_dict()["dollars"] == standing.dollars_in_all.as_dict()
    assert run.as_dict()["drift"] == run.drift.as_dict() if run.drift else False


def test_a_fan_is_thinned_and_keeps_its_last_moment() -> None:
    tracker = Tracker(total=10_000)
    fan: tuple[Moment, ...] = ()
    for step in range(0, 3000, 10):
        tracker.add(Report(step, 0.5 * step + 0.1))
        if step > 20:
            fan = tracker.standing().with_moment(fan)
    assert len(fan) <= MOST_MOMENTS and fan[-1][0] == tracker.history.elapsed_seconds
