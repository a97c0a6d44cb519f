from dataclasses import replace

import numpy as np
import pytest

from epochcast.errors import BadInput
from epochcast.observe.history.correction_shares import shares_of
from epochcast.observe.history.fitted_model import CorrectionShares
from epochcast.observe.history.learner import learn
from epochcast.observe.history.learning_set import LearningSet
from epochcast.observe.history.seen_columns import SeenColumns


def test_who_errs_less_counts_more() -> None:
    generator = np.random.default_rng(0)
    errors = generator.normal(size=(4, 300)) * np.array([[0.5], [0.1], [0.1], [0.4]])
    common, one, other, poor = shares_of(errors)
    assert one + other > 0.85 and one == pytest.approx(other, abs=0.1) and max(common, poor) < 0.1


def test_two_that_err_alike_share_what_one_would_get() -> None:
    """And shares are those of the best linear mixture where rows are many: half to each error of its own."""
    generator = np.random.default_rng(1)
    one, other = generator.normal(size=(2, 3000)) * 0.1
    found = shares_of(np.stack([np.full(3000, 0.9), one, one, other]))
    assert found[1] == pytest.approx(found[2], abs=0.02)
    assert found[1] + found[2] == pytest.approx(0.5, abs=0.05)
    assert found.sum() == pytest.approx(1)


def test_without_rows_to_speak_of_shares_are_equal() -> None:
    found = shares_of(np.array([[0.1], [0.1], [0.1]]))
    assert found == pytest.approx([0, 0.5, 0.5], abs=0.05)


def test_a_single_row_does_not_decide() -> None:
    errors = np.random.default_rng(2).normal(size=(3, 300)) * np.array([[0.5], [0.2], [0.2]])
    errors[1, 0] = 40.0
    assert shares_of(errors)[1] > 0.35


def test_mixed_by_hand() -> None:
    """c = 1; shares .25 and .5 of 3 and 5: 1 + .25·2 + .5·4 = 3.5; of a new row 1 + .75·(4 − 1)."""
    shares = CorrectionShares((0.25, 0.5), 1.0, SeenColumns({}, {}))
    assert shares.mixed(np.array([[3.0, 3.0], [5.0, 5.0]]), np.array([False, True])) == pytest.approx([3.5, 3.25])


def test_shares_beyond_one_are_refused() -> None:
    with pytest.raises(BadInput, match="shares must be at least 0"):
        CorrectionShares((0.9, 0.9), 0.0, SeenColumns({}, {}))
    with pytest.raises(BadInput, match="shares must be at least 0"):
        CorrectionShares((float("nan"),), 0.0, SeenColumns({}, {}))


def test_a_longer_job_is_no_new_one(known: LearningSet) -> None:
    """More epochs than ever do not change the mixture: physics is proportional to them, and so is the answer."""
    jobs = known.jobs
    with_epochs = replace(jobs, numbers={**jobs.numbers, "epochs": np.linspace(1, 9, len(known))})
    told = replace(known, jobs=with_epochs, features=(*known.features, "epochs"))
    learned = learn("grey_box", told, new_columns=())
    inputs = told.inputs
    assert inputs.physics is not None and jobs.physics is not None
    times = 100 * inputs.physics.times
    longer = replace(
        inputs,
        numbers={**inputs.numbers, "epochs": 100 * inputs.numbers["epochs"]},
        physics=replace(inputs.physics, values=100 * inputs.physics.values, counts=times),
    )
    assert learned.predict(longer).mid == pytest.approx(100 * learned.predict(inputs).mid)
