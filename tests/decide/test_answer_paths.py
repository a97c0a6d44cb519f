"""The JSON of answers and its schema follow from one list of paths."""

from typing import Any

import pytest

import epochcast as ec
from epochcast import api
from epochcast.base.record import Record
from epochcast.base.record_schema import json_schema

JOB: dict[str, Any] = {"samples": 60_000, "epochs": 2}


def answers() -> list[Record]:
    place: dict[str, Any] = {"device": "T4", "batch": 32}
    return [
        ec.plan("mnist_cnn", **JOB, batch=256, gpus=[1], clouds=["aws"], devices=["T4"], spot=0.1, objective="knee"),
        ec.plan("mnist_cnn", **JOB, batch=10**6, gpus=[1], clouds=["aws"], devices=["T4"]),
        ec.scaling("mnist_cnn", **JOB, **place, gpus=[1, 2]),
        ec.advise("mnist_cnn", **JOB, device="T4", most_batch=16, with_thesis=True, cpus=4, loader_seconds=0.001),
        ec.diff("mnist_cnn", "alexnet", **JOB, **place, time_increase=0.05),
    ]


def test_answers_keep_their_schemas() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    for answer in answers():
        schema = json_schema(type(answer))
        jsonschema.Draft202012Validator.check_schema(schema)
        jsonschema.validate(answer.as_dict(), schema)


def test_an_unknown_type_on_a_path_is_any_value() -> None:
    unknown = [
        key
        for kind in (api.Plan, api.Scaling, api.Advice, api.Diff)
        for key, schema in json_schema(kind)["properties"].items()
        if schema == {}
    ]
    assert set(unknown) <= {"max_batch"}  # of a class that writes its own JSON
