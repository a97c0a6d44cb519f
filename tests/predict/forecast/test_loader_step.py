"""Loaders whose speed nobody said: where their workers count, and what the step waits for them."""

from io import StringIO
from typing import Any

import pytest

import epochcast as ec
from epochcast.predict.forecast.assumed import DECODE_SECONDS
from epochcast.predict.forecast.session import Session

SESSION = Session()
FAST: dict[str, Any] = {"device": "H100", "batch": 256, "precision": "amp", "session": SESSION}


def limits(answer: ec.Forecast) -> list[str]:
    return [note for note in answer.warnings if note.startswith("Data loading")]


def waiting(answer: ec.Forecast) -> float:
    assert answer.step_parts is not None
    return answer.step_parts.exposed_input


def test_workers_that_are_said_bound_a_step_on_images() -> None:
    alone = ec.forecast("resnet50", **FAST)
    answer = ec.forecast("resnet50", workers=2, **FAST)
    assert answer.step_seconds.mid == pytest.approx(256 * DECODE_SECONDS / 2)
    assert waiting(answer) == pytest.approx(answer.step_seconds.mid - alone.step_seconds.mid)
    (note,) = limits(answer)
    assert "2 workers per GPU load 444 images/s" in note and "(`workers` " in note and "4.5 ms per image" in note
    assert waiting(alone) == 0 and limits(alone)[0].startswith("Data loading may limit")


def test_the_usual_workers_of_a_named_data_set_bound_its_step() -> None:
    alone = ec.forecast("resnet50", **FAST)
    answer = ec.forecast("resnet50", dataset="imagenet-1k", **FAST)
    assert answer.step_seconds.mid == pytest.approx(256 * DECODE_SECONDS / 4)
    assert answer.assumed["workers"] == 4
    assert "4 workers per GPU load 889 images/s" in limits(answer)[0]
    assert answer.step_seconds.low == alone.step_seconds.low  # who has enough workers does not wait
    assert answer.step_seconds.high >= 1.35 * answer.step_seconds.mid
    assert answer.uncertainty[0].part == "input"


def test_workers_are_not_assumed_where_they_change_nothing() -> None:
    enough = ec.forecast("resnet50", dataset="imagenet-1k", workers=24, cpus=64, **FAST)
    assert waiting(enough) == 0 and not limits(enough) and "workers" not in enough.assumed
    slow = ec.forecast("resnet152", device="T4", batch=16, dataset="imagenet-1k", session=SESSION)
    assert waiting(slow) == 0 and not limits(slow) and "workers" not in slow.assumed
    assert slow.step_seconds == ec.forecast("resnet152", device="T4", batch=16, session=SESSION).step_seconds


def test_a_step_that_may_wait_says_what_its_interval_assumes() -> None:
    """4 workers load 889 images/s, a V100 takes 817: slower ones would not do."""
    options: dict[str, Any] = {"device": "V100", "batch": 64, "precision": "amp", "session": SESSION}
    alone, answer = (ec.forecast("resnet50", dataset=name, **options) for name in (None, "imagenet-1k"))
    assert waiting(answer) == 0 and answer.assumed["workers"] == 4
    assert (answer.step_seconds.low, answer.step_seconds.mid) == (alone.step_seconds.low, alone.step_seconds.mid)
    assert answer.step_seconds.high > alone.step_seconds.high


def test_synthetic_data_small_images_and_keras_wait_for_no_assumed_workers() -> None:
    for options in ({}, {"samples": 10_000}, {"dataset": "cifar10"}):
        assert waiting(ec.forecast("resnet50", **options, **FAST)) == 0
    # tf.data reads with all processors
    assert waiting(ec.forecast("resnet50", dataset="imagenet-1k", framework="tensorflow", **FAST)) == 0


def test_a_plan_assumes_enough_workers() -> None:
    options: dict[str, Any] = {"dataset": "imagenet-1k", "batch": 256, "precision": "amp", "session": SESSION}
    (row, *_) = ec.scaling("resnet50", gpus=(1,), device="H100", **options).rows
    alone = ec.forecast("resnet50", **FAST)
    assert row.forecast.step_seconds == alone.step_seconds


def test_texts_and_small_images_wait_for_no_workers() -> None:
    for model in ("gpt2", "mnist_cnn"):
        options: dict[str, Any] = {"device": "H100", "batch": 8, "session": SESSION}
        answer = ec.forecast(model, workers=1, **options)
        assert answer.step_seconds == ec.forecast(model, **options).step_seconds
        assert any(note.startswith("`workers` 1 changes nothing here") for note in answer.warnings)


def test_a_measured_step_has_waited_for_its_data() -> None:
    for workers in (2, None):
        options: dict[str, Any] = {"dataset": "imagenet-1k", "workers": workers}
        answer = ec.forecast("resnet50", **options, step_seconds="100ms@256", **FAST)
        assert answer.step_seconds.mid == pytest.approx(0.1, rel=0.01)


def test_the_step_of_the_gpu_alone_is_the_second_line() -> None:
    from rich.console import Console

    from epochcast.surfaces.render.forecast_table import forecast

    console = Console(width=120, record=True, file=StringIO())
    console.print(forecast(ec.forecast("resnet50", workers=2, **FAST)))
    lines = [line.split() for line in console.export_text().splitlines()]
    place = next(number for number, words in enumerate(lines) if words[:1] == ["step"])
    assert lines[place + 1][:2] == ["GPU", "alone"]
