import json

import pytest

from epochcast.predict.cost.cost_model import CostModel
from epochcast.predict.forecast.forecast import Forecast
from epochcast.predict.forecast.forecaster import forecast_job
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.placement import place
from epochcast.predict.forecast.session import Session
from epochcast.predict.forecast.step_explain import by_class, by_layer, explain_step


@pytest.fixture(scope="module")
def answer(per_flop: CostModel) -> Forecast:
    return forecast_job(Job("resnet18", batch=8), place("V100"), Session(per_flop))


def test_shares_sum_to_the_kernels_of_the_step(answer: Forecast) -> None:
    for shares in (by_class(answer), by_layer(answer)):
        assert sum(share.fraction for share in shares) == pytest.approx(1)
        assert sum(share.seconds for share in shares) == pytest.approx(answer.details.step.costs.mid.sum())
        assert sum(share.flops for share in shares) == answer.details.trace.columns.flops.sum()
        assert sum(share.bytes for share in shares) == answer.details.trace.columns.bytes.sum()


def test_the_heaviest_come_first(answer: Forecast) -> None:
    seconds = [share.seconds for share in by_class(answer)]
    assert seconds == sorted(seconds, reverse=True)
    assert by_class(answer)[0].name == "conv"


def test_a_layer_is_all_its_phases(answer: Forecast) -> None:
    """conv1 forward and its weight gradient, 2·118,013,952 multiply-adds of 8 samples each; no data gradient."""
    (conv1,) = [share for share in by_layer(answer) if share.name == "conv1"]
    assert conv1.flops == 2 * 2 * 118_013_952 * 8


def test_layers_are_as_many_as_asked_for(answer: Forecast) -> None:
    found = json.loads(json.dumps(explain_step(answer, layers=3).as_dict()))
    assert [len(found["by_layer"]), list(found["by_layer"][0])] == [
        3,
        ["name", "seconds", "fraction", "flops", "bytes"],
    ]
