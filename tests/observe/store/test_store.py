"""What is written comes back, once, on both databases."""

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest

from epochcast.errors import BadInput, UnknownName
from epochcast.interval import Interval
from epochcast.observe.runs.report import Report
from epochcast.observe.store.row_values import RunFilter
from epochcast.observe.store.store import Store
from epochcast.observe.store.store_errors import StoreError
from epochcast.observe.store.store_rows import Attempt, RunPlace, StoredMeasurement
from epochcast.predict.forecast.forecast import Forecast
from epochcast.predict.forecast.job import Job

STEP = Interval(0.09, 0.1, 0.12)


def reports(count: int, attempt: int = 0) -> list[Report]:
    return [Report(step=float(step), attempt=attempt, clock_seconds=0.1 * step) for step in range(count)]


def test_observations_come_back_to_the_last_digit_and_in_order(store: Store) -> None:
    run = store.open_run("r")
    rows = [
        Report(0.1 + 0.2, 1e-9, "validation", 1, 3, 0.1, 1 / 3, -1e300, 0.7, 1e15, 90, 5004.0, 12.5, 7),
        Report(2.0, loss=math.inf),
        Report(1.0, rank=0),
        Report(1.0),
    ]
    store.record(run.id, rows)
    assert list(store.observations(run.id)) == [rows[3], rows[2], rows[1], rows[0]]


def test_a_loss_that_is_not_a_number_stays_one(store: Store) -> None:
    run = store.open_run("r")
    store.record(run.id, [Report(1.0, loss=math.nan), Report(2.0)])
    found = [row.loss for row in store.observations(run.id)]
    assert found[0] is not None and math.isnan(found[0]) and found[1] is None


def test_a_report_counts_once_however_often_it_is_sent(opened: Callable[[], Store]) -> None:
    store = opened()
    run = store.open_run("r")
    assert store.record(run.id, reports(10)) == 10
    assert opened().record(run.id, [*reports(15), *reports(3)]) == 5
    assert [row.step for row in store.observations(run.id)] == list(range(15))


def test_step_rank_attempt_and_phase_tell_reports_apart(store: Store) -> None:
    run = store.open_run("r")
    one = Report(5.0)
    others = [
        replace_row(one, step=5.5),
        replace_row(one, rank=0),
        replace_row(one, attempt=1),
        replace_row(one, phase="validation"),
    ]
    assert store.record(run.id, [one, *others]) == 5


def replace_row(row: Report, **changed: object) -> Report:
    return row._replace(**changed)  # type: ignore[arg-type]


def test_one_batch_may_be_of_many_runs(store: Store) -> None:
    first, second = store.open_run("a"), store.open_run("b")
    assert store.record_all({first.id: reports(3), second.id: reports(4)}) == 7
    assert (store.count_observations(first.id), store.count_observations()) == (3, 7)


def test_a_batch_with_a_bad_report_leaves_nothing(store: Store) -> None:
    run = store.open_run("r")
    with pytest.raises(BadInput, match="step must be at least 0, got -1"):
        store.record(run.id, [*reports(3), Report(-1.0)])
    with pytest.raises(BadInput, match="clock_seconds of step 1 must be a finite number"):
        store.record(run.id, [*reports(3), Report(1.0, clock_seconds=math.nan)])
    assert store.count_observations() == 0


def test_reports_of_no_run_are_refused(store: Store) -> None:
    with pytest.raises(StoreError, match="refuses a row"):
        store.record(12345, reports(2))


def test_a_run_is_found_again_by_its_name_and_its_key(opened: Callable[[], Store]) -> None:
    run = opened().open_run("ResNet, dritter Versuch ✓", place=RunPlace("V100", 4, 2, "node7", {"rack": [1, 2.5]}))
    again = opened()
    assert again.open_run(run.name) == run == again.run(run.key) == again.run(run.name)
    with pytest.raises(UnknownName, match="no run called 'other'; known: ResNet"):
        again.run("other")


def test_runs_without_a_name_are_different_runs(store: Store) -> None:
    assert store.open_run().name != store.open_run().name


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "x" * 201, "nul\0"])
def test_a_name_that_cannot_be_typed_is_refused(store: Store, name: str) -> None:
    with pytest.raises(BadInput, match="a run's name has 1 to 200 printable characters"):
        store.open_run(name)


def test_text_of_any_kind_is_kept_within_its_bound(store: Store) -> None:
    run = store.open_run("r", source="\0\ud800" + "x" * 5000, place=RunPlace("d" * 300))
    assert run.source is not None and run.place.device is not None
    assert (len(run.source), len(run.place.device)) == (1000, 200) and run.source.startswith("?xx")


def test_the_last_step_is_that_of_the_last_attempt(store: Store) -> None:
    run = store.open_run("r")
    store.record(run.id, [*reports(100), Report(50.0, attempt=1, total_steps=200)])
    store.record(run.id, reports(100))
    found = store.run("r")
    assert (found.step, found.total_steps, found.fraction) == (50.0, 200.0, 0.25)


def test_attempts_follow_from_reports_and_can_be_told(store: Store) -> None:
    run = store.open_run("r")
    store.record(run.id, [*reports(2), *reports(2, attempt=1)])
    store.put_attempt(Attempt(run.id, 1, "failed", engine="slurm", engine_id="17_3", exit_code=137))
    store.put_attempt(Attempt(run.id, 2, "queued"))
    found = store.attempts(run.id)
    assert [(one.attempt, one.state, one.engine_id) for one in found] == [
        (0, "running", None),
        (1, "failed", "17_3"),
        (2, "queued", None),
    ]


def test_a_job_is_kept_once_and_comes_back_whole(store: Store) -> None:
    job = Job("resnet50", batch=64, precision="amp", dataset="imagenet-1k", epochs=90, freeze=("layer1.*",))
    first, other = store.add_job(job), store.add_job(replace(job, batch=32))
    assert store.add_job(Job.from_dict(job.as_dict())) == first != other
    assert Job.from_dict(store.job(first).job) == job
    assert [kept.id for kept in store.jobs("resnet50")] == [first, other]


def test_a_forecast_comes_back_whole_and_stands_beside_its_run(store: Store) -> None:
    run = store.open_run("r", job=Job("resnet50", batch=64))
    forecast = Forecast("resnet50", "V100", batch_per_gpu=64, step_seconds=STEP, total_seconds=STEP.scaled(1e6 / 3))
    store.add_forecast(forecast, run_id=run.id, job_id=run.job_id)
    store.note(run.id, step_seconds=0.11, state="ended")
    [kept] = store.forecasts(run_id=run.id)
    assert Forecast.from_dict(kept.forecast) == forecast
    assert store.run("r").against_forecast == pytest.approx(1.1)


def test_runs_are_listed_newest_first_and_by_what_is_asked(store: Store) -> None:
    for number, state in enumerate(["ended", "running", "failed"]):
        job = Job("resnet50" if number else "alexnet", batch=8)
        store.open_run(
            f"r{number}", job=job, job_name="mine", state=state, place=RunPlace("V100" if number else "A100")
        )

    def named(wanted: RunFilter) -> list[str]:
        return [run.name for run in store.runs(wanted)]

    assert named(RunFilter()) == ["r2", "r1", "r0"]
    assert named(RunFilter(states=("ended", "failed"))) == ["r2", "r0"]
    assert named(RunFilter(model="resnet50", device="V100", job_name="mine")) == ["r2", "r1"]
    assert named(RunFilter(most=1, before_id=store.run("r2").id)) == ["r1"]
    assert named(RunFilter(seen_after_seconds=9e9)) == []


def test_a_deleted_run_takes_what_was_seen_of_it_along(store: Store) -> None:
    run = store.open_run("r", job=Job("resnet50", batch=64))
    store.record(run.id, reports(5))
    store.add_forecast(Forecast("m", "V100", step_seconds=STEP), run_id=run.id)
    store.delete_run(run.id)
    assert (store.runs(), store.count_observations(), store.forecasts(), store.attempts(run.id)) == ([], 0, [], [])


def test_measurements_are_kept_once_per_machine_and_key(store: Store) -> None:
    rows = [StoredMeasurement("m1", f"k{n}", "op", {"seconds": 0.1 * n}, {"cpu": "x"}) for n in range(3)]
    assert (store.add_measurements(rows), store.add_measurements(rows)) == (3, 0)
    assert store.measurements("op") == rows and store.measurements("model") == []


def test_a_state_that_is_none_names_those_that_are(store: Store) -> None:
    with pytest.raises(UnknownName, match="no state of a run called 'done'; known: ended, failed, queued"):
        store.open_run("r", state="done")


@pytest.mark.parametrize("count", [0, 1, 9, 10, 11, 12, 95, 1000])
def test_timed_steps_are_thinned_evenly_and_the_newest_is_there(store: Store, count: int) -> None:
    run = store.open_run("long")
    rows = [Report(float(step), step_seconds=0.1) for step in range(count)]
    untimed = [Report(0.0, phase="validation"), Report(count + 1.0), Report(5.0, phase="end")]
    store.record(run.id, [*rows, *untimed])
    store.record(store.open_run("other").id, [Report(5000.0, step_seconds=9.0)])
    found = [row.step for row in store.thinned(run.id, 10)]
    assert len(found) <= 10 and found == sorted(found)
    assert found == [float(step) for step in range(count)] if count <= 10 else found[-1] == count - 1
    gaps = [after - before for before, after in pairwise(found)]
    assert count <= 10 or max(gaps) <= count / 9 + 1
