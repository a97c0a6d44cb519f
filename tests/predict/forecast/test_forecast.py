import json
import pickle
from dataclasses import replace

import pytest
from tests.contract import FORECAST_KEYS

import epochcast as ec
from epochcast.base.record_schema import json_schema
from epochcast.errors import BadInput
from epochcast.interval import Interval
from epochcast.predict.forecast.forecast import Forecast

STEP = Interval(0.09, 0.1, 0.12)


@pytest.fixture(scope="module")
def answer() -> Forecast:
    return ec.forecast("resnet18", device="V100", batch=8, gpus=4, dataset="cifar10", epochs=2, precision="amp")


def test_the_dictionary_keeps_the_contract_and_is_json(answer: Forecast) -> None:
    written = json.loads(json.dumps(answer.as_dict(), allow_nan=False))
    assert set(written) >= {"version", *FORECAST_KEYS}
    assert sum(written["step_parts"].values()) == pytest.approx(written["step_seconds"]["mid"])
    assert written["parameters"] == 11_689_512
    assert written["flops_per_sample"] == pytest.approx(3 * 3.63e9, rel=0.03)  # three passes of 1.81 G multiply-adds


def test_a_forecast_comes_back_from_json_and_from_a_pickle(answer: Forecast) -> None:
    assert Forecast.from_dict(json.loads(json.dumps(answer.as_dict()))) == answer
    assert pickle.loads(pickle.dumps(answer)) == answer
    assert {answer, pickle.loads(pickle.dumps(answer))} == {answer}


def test_the_same_question_has_an_equal_answer_and_another_has_not(answer: Forecast) -> None:
    again = ec.forecast("resnet18", device="V100", batch=8, gpus=4, dataset="cifar10", epochs=2, precision="amp")
    assert again == answer
    assert replace(answer, gpus=8) != answer


def test_a_forecast_can_be_written_by_hand() -> None:
    own = Forecast(
        "own", "V100", STEP, batch_per_gpu=64, replicas=2, total_seconds=STEP.scaled(1000), memory_verdict="fits"
    )
    assert (own.global_batch, own.samples_per_second) == (128, 1280.0)
    assert own.dollars is None
    dollars = replace(own, dollars_per_hour=36.0).dollars
    assert dollars is not None and dollars.mid == pytest.approx(1.0)  # 100 s at a cent a second
    assert Forecast.from_dict(own.as_dict()) == own
    assert repr(own) == "Forecast(own on 1 × V100, batch 64: step 100 ms (90 ms … 120 ms))"


def test_details_are_there_for_who_asked_and_not_for_who_reads(answer: Forecast) -> None:
    assert answer.details.trace.name == "resnet18"
    assert answer.details.timeline is not None
    assert answer.details.remedies() == ()  # it fits
    with pytest.raises(BadInput, match="this forecast was read back and has only its numbers"):
        _ = Forecast.from_dict(answer.as_dict()).details


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "forecast: version 1 is needed, got version 2"),
        ({"version": None}, "forecast: version 1 is needed, got version None"),
        ({"step_seconds": 3}, r"step_seconds must be an interval \{low, mid, high, coverage\}"),
        (
            {"step_seconds": {"low": 3, "mid": 2, "high": 1}},
            "with low <= mid <= high, got",
        ),
        ({"gpus": 0}, "gpus must be at least 1, got 0"),
    ],
)
def test_what_is_no_forecast_is_refused(answer: Forecast, change: dict[str, object], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Forecast.from_dict({**answer.as_dict(), **change})


def test_a_forecast_without_its_step_is_refused(answer: Forecast) -> None:
    written = answer.as_dict()
    del written["step_seconds"]
    with pytest.raises(BadInput, match="step_seconds must be given"):
        Forecast.from_dict(written)


def test_the_schema_describes_the_json_exactly(answer: Forecast) -> None:
    schema = json_schema(Forecast)
    assert list(schema["properties"]) == schema["required"] == list(answer.as_dict())
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator.check_schema(schema)
    strict = {**schema, "additionalProperties": False}
    for forecast in (answer, Forecast("own", "V100", STEP)):
        jsonschema.validate(json.loads(json.dumps(forecast.as_dict())), strict)
    wrong = {"version": 2, "gpus": "4", "step_seconds": None, "color": "red", "step_parts": {}}
    for name, value in wrong.items():
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**answer.as_dict(), name: value}, strict)


def test_a_forecast_with_keys_of_others_is_read(answer: Forecast) -> None:
    assert Forecast.from_dict({**answer.as_dict(), "would_fit": [], "explain": {}}) == answer


def test_a_forecast_written_by_hand_may_say_whether_it_fits() -> None:
    own = {"version": 1, "model": "own", "device": "V100", "step_seconds": STEP.as_dict()}
    verdicts = [Forecast.from_dict({**own, "fits": fits}).memory_verdict for fits in (True, False, None)]
    assert verdicts == ["fits", "does not fit", None]
