from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import epochcast as ec
from epochcast.errors import BadInput
from epochcast.observe.history import history_verbs as verbs
from epochcast.observe.history.job_table import Physics
from epochcast.observe.history.learner import learn
from epochcast.observe.history.learning_set import LearningSet
from epochcast.observe.history.model_file import HistoryModel, model_in
from epochcast.observe.history.physics import FORECAST, ROOFLINE, SIZES
from epochcast.observe.history.physics_scales import Scales

BATCHES = (4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)


def past(model: str) -> pl.DataFrame:
    """0.4 ms for a sample, whatever the batch."""
    return pl.DataFrame([{"model": model, "device": "V100", "batch": b, "step_seconds": 4e-4 * b} for b in BATCHES])


@pytest.fixture(scope="module")
def of_zoo() -> HistoryModel:
    return verbs.fit(past("alexnet"), "step_seconds")


def test_a_network_that_nobody_can_build_is_answered_on_the_scale_of_those_that_can(of_zoo: HistoryModel) -> None:
    asked = pl.DataFrame({"model": ["ours", "alexnet"], "device": ["V100", "V100"], "batch": [32, 32]})
    answer = verbs.predict(of_zoo, asked, explain=(0,))
    p = answer.predictions
    assert p.mid[0] == pytest.approx(4e-4 * 32, rel=0.5) and p.mid[1] == pytest.approx(4e-4 * 32, rel=0.1)
    assert "forecast" in p.news[0] and "forecast" not in p.news[1]
    assert p.high[0] / p.low[0] > p.high[1] / p.low[1]
    assert any("cannot be forecast" in warning for warning in answer.warnings)
    assert answer.explanations is not None
    assert answer.explanations[0].predicted == pytest.approx(p.mid[0])


def test_the_scales_are_in_the_file(of_zoo: HistoryModel) -> None:
    again = model_in(of_zoo.as_dict(), "history.json")
    asked = pl.DataFrame({"model": ["ours"], "device": ["V100"], "batch": [32]})
    assert verbs.predict(again, asked).predictions.mid == pytest.approx(verbs.predict(of_zoo, asked).predictions.mid)


def test_a_forecast_after_a_past_without_any_is_in_seconds() -> None:
    model = verbs.fit(past("ours"), "step_seconds")
    answer = verbs.predict(model, pl.DataFrame({"model": ["alexnet"], "device": ["V100"], "batch": [32]}))
    told = ec.forecast("alexnet", device="V100", batch=32).step_seconds.mid
    assert told / 3 < answer.predictions.mid[0] < told * 3 and "forecast" in answer.predictions.news[0]


def test_kinds_by_hand() -> None:
    """Targets are 2 × the forecast and 10 × the sizes: sizes of 3 stand for a forecast of 15."""
    values = np.array([1.0, 2.0, 4.0])
    learned = Physics(values, np.full(3, FORECAST), stand_ins={SIZES: values / 5, ROOFLINE: np.full(3, np.nan)})
    scales = Scales.of(2 * values, learned)
    asked = Physics(np.array([3.0, 7.0]), np.array([SIZES, FORECAST]))
    found, is_new = scales.applied(asked)
    assert found.values == pytest.approx([15.0, 7.0]) and is_new.tolist() == [True, False]
    assert set(found.kinds) == {FORECAST}


def test_a_roofline_that_nobody_learned_is_answered_by_sizes() -> None:
    values = np.array([1.0, 2.0, 4.0])
    learned = Physics(values, np.full(3, FORECAST), stand_ins={SIZES: values / 5, ROOFLINE: np.full(3, np.nan)})
    asked = Physics(np.array([1e-9]), np.array([ROOFLINE]), stand_ins={SIZES: np.array([3.0])})
    assert Scales.of(2 * values, learned).applied(asked)[0].values == pytest.approx([15.0])


def test_sizes_that_say_less_than_nothing_are_one_number() -> None:
    """Networks of 2 to 4 s, whatever their batch: their median, for every step of a row."""
    values, target = np.array([1e-9, 1e-6, 1e-3]), np.array([2.0, 3.0, 4.0])
    scales = Scales.of(target, Physics(values, np.full(3, SIZES)))
    asked = Physics(np.array([1e-1, 1e-1]), np.full(2, SIZES), counts=np.array([1.0, 10.0]))
    assert scales.is_flat and scales.applied(asked)[0].values == pytest.approx([1.0, 10.0])
    assert scales.offsets[SIZES] == pytest.approx(np.log(3.0))


def test_sizes_that_go_with_time_count() -> None:
    values = np.array([1e-9, 1e-6, 1e-3])
    scales = Scales.of(3 * values, Physics(values, np.full(3, SIZES)))
    asked = Physics(np.array([1e-1]), np.full(1, SIZES))
    assert not scales.is_flat and scales.applied(asked)[0].values == pytest.approx([1e-1])


def test_scales_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(BadInput, match="scales of physics"):
        Scales(offsets={SIZES: float("nan")})


def test_a_table_of_two_kinds_is_learned_on_one_scale(known: LearningSet) -> None:
    """Half of the rows say sizes, a billion times smaller than seconds: no row is predicted worse for it."""
    physics = known.jobs.physics
    assert physics is not None
    is_sizes = np.arange(len(known)) % 2 == 0
    values = np.where(is_sizes, 1e-9 * physics.values, physics.values)
    kinds = np.where(is_sizes, SIZES, FORECAST)
    mixed = replace(known, jobs=replace(known.jobs, physics=Physics(values, kinds)))
    one, two = (learn("grey_box", each, new_columns=()) for each in (known, mixed))
    assert two.error < 1.5 * one.error + 0.02
    assert two.predict(mixed.inputs).mid == pytest.approx(known.target, rel=0.3)
