from dataclasses import replace
from math import prod

import pytest

from epochcast.observe.history.learner import learn
from epochcast.observe.history.learning_set import LearningSet
from epochcast.observe.history.prediction_explain import explained


@pytest.mark.parametrize("name", ["ridge", "grey_box"])
def test_factors_multiply_to_the_prediction_and_name_what_moved_it(name: str, known: LearningSet) -> None:
    model = learn(name, known, candidates=({"penalty": 1e-4, "log": True},))
    row = 8  # the small network, of which physics says too much, at batch 128
    found = explained(model, known.inputs, row)
    assert found.usual * prod(found.factors.values()) == pytest.approx(found.predicted)
    assert found.predicted == pytest.approx(model.fitted.predict(known.inputs)[row])
    if name == "ridge":
        assert found.factors["batch_per_gpu"] > 2 and found.factors["gpus"] == pytest.approx(1, abs=0.05)
    else:
        assert "physics (the forecast)" in list(found.factors)[:2]
        assert found.factors["model"] < 1.0


def test_an_explanation_is_the_same_for_the_same_seed(known: LearningSet) -> None:
    model = learn("ridge", known)
    alone = replace(known.inputs.take([3]))
    assert explained(model, alone, 0, seed=1) == explained(model, alone, 0, seed=1)
