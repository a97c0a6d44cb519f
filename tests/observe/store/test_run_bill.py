"""Bills of runs whose reports are written by hand."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import epochcast as ec
from epochcast.errors import BadInput
from epochcast.observe.runs.report import Report
from epochcast.observe.runs.tracker import Tracker
from epochcast.observe.store.run_bill import RunBill, bill_of, optional_bill
from epochcast.observe.store.store_opening import open_store
from epochcast.predict.forecast.forecast import Forecast

STEPS = 1000


def forecast() -> Forecast:
    """1,000 steps at $36 per hour: one cent per second."""
    answer = ec.forecast("resnet18", device="V100", batch=50, samples=50_000, epochs=1)
    return replace(answer, dollars_per_hour=36.0, price_source="lambda box")


def billed(tmp_path: Path, reports: Sequence[Report], paid: float | None = None) -> RunBill:
    expected = forecast()
    with open_store(str(tmp_path / "store.db")) as store:
        run = store.open_run("r")
        store.add_forecast(expected, run_id=run.id)
        standing = Tracker(total=STEPS, forecast=expected).add_all(reports).standing()
        store.note(run.id, progress=standing.as_dict())
        return bill_of(store, store.run("r"), paid)


def course(pace: float, begin: int = 0, end: int = STEPS, clock: float = 0.0, attempt: int = 0) -> list[Report]:
    return [
        Report(step=float(step), attempt=attempt, clock_seconds=clock + pace * (step - begin))
        for step in range(begin, end + 1, 10)
    ]


def test_a_run_as_forecast_has_no_difference_of_pace(tmp_path: Path) -> None:
    pace = forecast().step_seconds.mid
    answer = billed(tmp_path, course(pace))
    assert answer.tracked_dollars == pytest.approx(answer.billed_dollars) == pytest.approx(STEPS * pace * 0.01)
    large = {part.cause for part in answer.parts if abs(part.fraction) > 0.02}
    assert large <= {"start-up, validation and pauses"}


def test_slower_steps_are_named_with_their_share(tmp_path: Path) -> None:
    pace = forecast().step_seconds.mid
    answer = billed(tmp_path, course(1.5 * pace))
    (slower,) = [part for part in answer.parts if part.cause == "slower steps"]
    assert slower.dollars == pytest.approx(0.5 * STEPS * pace * 0.01, rel=0.02)
    assert "% by slower steps" in answer.sentence


def test_a_restart_is_named_and_the_time_between_attempts_is_billed(tmp_path: Path) -> None:
    pace = forecast().step_seconds.mid
    first = course(pace, end=600)
    second = course(pace, begin=400, clock=600 * pace + 100.0, attempt=1)
    answer = billed(tmp_path, [*first, *second])
    assert answer.restarts == 1
    (repeated,) = [part for part in answer.parts if part.cause == "1 restart"]
    assert repeated.seconds == pytest.approx(200 * pace, rel=0.1)
    assert "% by 1 restart" in answer.sentence
    assert answer.billed_dollars - answer.tracked_dollars == pytest.approx(1.0, rel=0.1)


def test_the_parts_are_the_whole_difference(tmp_path: Path) -> None:
    pace = forecast().step_seconds.mid
    answer = billed(tmp_path, [*course(1.2 * pace, end=500), *course(pace, 300, 1000, 900 * pace, 1)])
    assert sum(part.dollars for part in answer.parts) == pytest.approx(answer.tracked_dollars - answer.expected_dollars)


def test_a_run_that_goes_on_is_compared_with_what_is_done(tmp_path: Path) -> None:
    pace = forecast().step_seconds.mid
    answer = billed(tmp_path, course(pace, end=500), paid=5.0)
    assert answer.fraction == 0.5
    assert answer.expected_dollars == pytest.approx(answer.forecast_dollars.mid / 2)
    assert answer.sentence.startswith("$5.00 paid of $") and "for the 50 % that is done" in answer.sentence


def test_a_run_without_a_forecast_or_a_price_has_no_bill(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "store.db")) as store:
        run = store.open_run("r")
        with pytest.raises(BadInput, match="there is no forecast of it; track it with --job"):
            bill_of(store, run)
        store.add_forecast(replace(forecast(), dollars_per_hour=None, price_source=None), run_id=run.id)
        with pytest.raises(BadInput, match="its forecast has no price or no length"):
            bill_of(store, run)
        store.add_forecast(forecast(), run_id=run.id)
        with pytest.raises(BadInput, match="it has no timed reports yet"):
            bill_of(store, run)
        assert optional_bill(store, run) is None
