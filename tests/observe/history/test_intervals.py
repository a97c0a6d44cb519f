import numpy as np
import pytest

from epochcast.errors import BadInput
from epochcast.observe.history.conformal import Widths, log_scores, quantile, widths
from epochcast.observe.history.job_table import Jobs
from epochcast.observe.history.job_table_reader import read_frame
from epochcast.observe.history.learner import learn
from epochcast.observe.history.learning_set import LearningSet, learning_set
from epochcast.observe.history.seen_columns import SeenColumns


def test_the_quantile_by_hand() -> None:
    """⌈(19 + 1)·0.9⌉ = 18: the 18th smallest of 19."""
    assert quantile(np.arange(1.0, 20.0)) == 18.0


def test_too_few_scores_give_more_than_the_largest() -> None:
    assert quantile(np.array([1.0, 2.0])) > 2.0
    with pytest.raises(BadInput):
        quantile(np.zeros(0))


def test_nine_of_ten_new_rows_lie_inside() -> None:
    generator = np.random.default_rng(0)
    inside = [
        float((np.abs(generator.normal(size=200)) <= quantile(np.abs(generator.normal(size=60)))).mean())
        for _ in range(200)
    ]
    assert np.mean(inside) == pytest.approx(0.9, abs=0.015)


def test_a_group_with_enough_rows_has_a_width_of_its_own() -> None:
    scores = np.concatenate([np.full(40, 0.1), np.full(40, 0.5), np.full(3, 2.0)])
    groups = np.array(["calm"] * 40 + ["wild"] * 40 + ["rare"] * 3)
    found = widths(scores, groups)
    assert found.groups == {"calm": 0.1, "wild": 0.5}
    assert found.of(["calm", "wild", "rare"], [(), (), ()]).tolist() == [0.1, 0.5, found.overall]


def test_what_is_new_is_never_surer_than_what_is_known() -> None:
    found = Widths(0.2, {"calm": 0.1}, {"device": 0.6})
    known, new, untried = found.of(["calm"] * 3, [(), ("device",), ("model",)])
    assert known < new < untried


def test_an_unseen_category_has_a_wider_interval(known: LearningSet) -> None:
    model = learn("grey_box", known)
    jobs = known.inputs.take([0, 1])
    changed = {**jobs.categories, "device": np.array([jobs.categories["device"][0], "unheard of"])}
    from dataclasses import replace

    found = model.predict(replace(jobs, categories=changed))
    ratio = found.high / found.low
    assert ratio[1] > ratio[0]
    assert found.news == [(), ("device",)]


def test_a_number_beyond_those_seen_is_new(known: LearningSet) -> None:
    seen = SeenColumns.of(known.inputs)
    from dataclasses import replace

    jobs = known.inputs.take([0, 0])
    changed = replace(jobs, numbers={**jobs.numbers, "batch_per_gpu": np.array([128.0, 1000.0])})
    assert seen.news(changed) == [(), ("batch_per_gpu",)]


def test_scores_are_ratios() -> None:
    assert log_scores(np.array([2.0, 0.5]), np.array([1.0, 1.0])).tolist() == pytest.approx([np.log(2)] * 2)


@pytest.mark.parametrize("count", [25, 60, 137])
def test_widths_by_group_are_those_of_crepes(count: int) -> None:
    from crepes import ConformalRegressor

    generator = np.random.default_rng(count)
    errors = generator.normal(size=2 * count) * np.repeat([1.0, 3.0], count)
    groups = np.repeat(["calm", "wild"], count)
    oracle = ConformalRegressor().fit(errors, bins=groups)
    theirs = oracle.predict_int(np.zeros(2), bins=np.array(["calm", "wild"]), confidence=0.9)[:, 1]
    ours = [quantile(np.abs(errors[groups == name])) for name in ("calm", "wild")]
    assert ours == pytest.approx(theirs.tolist())


def test_a_network_on_a_device_on_which_it_never_ran_is_new() -> None:
    learned = Jobs(
        {"batch_per_gpu": np.array([8.0, 64.0, 8.0, 16.0])},
        {"model": np.array(["a", "a", "b", "b"]), "device": np.array(["V100", "T4", "V100", "V100"])},
    )
    asked = Jobs(
        {"batch_per_gpu": np.array([8.0, 64.0, 16.0, 8.0, 8.0])},
        {"model": np.array(["b", "b", "a", "a", "c"]), "device": np.array(["T4", "V100", "V100", "V100", "T4"])},
    )
    of_batch = "batch_per_gpu of this model on this device"
    seen = SeenColumns.of(learned)
    assert seen.news(asked) == [("model on this device",), (of_batch,), (of_batch,), (), ("model",)]
    assert SeenColumns.from_dict(seen.as_dict()) == seen
    assert not seen.is_new(asked.take([])).any() and seen.news(asked.take([])) == []
    assert SeenColumns.of(learned, has_pairs=False).news(asked)[:3] == [(), (), ()]


def test_a_respect_that_could_not_be_tried_is_as_wide_as_it_was_for_others() -> None:
    found = widths(np.full(100, 0.01), new={"device": np.zeros(0), "gpus": np.zeros(0), "batch": np.full(50, 0.2)})
    assert found.new == pytest.approx({"device": 0.8, "gpus": 0.72, "batch": 0.2})


def test_a_second_device_after_a_past_of_one_is_told_with_a_wide_interval() -> None:
    rows = [{"device": "ours", "batch_per_gpu": b, "step_seconds": 0.001 * b} for b in range(8, 40)]
    model = learn("ridge", learning_set(read_frame(rows), "step_seconds", columns=["device", "batch_per_gpu"]))
    asked = Jobs({"batch_per_gpu": np.array([16.0, 16.0])}, {"device": np.array(["ours", "theirs"])})
    p = model.predict(asked)
    assert p.high[0] / p.low[0] < 1.2 and p.high[1] / p.low[1] > 4
