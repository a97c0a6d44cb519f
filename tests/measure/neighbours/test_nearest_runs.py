"""Measured public runs nearest to a job, from the table that ships."""

from collections import Counter

import pytest

import epochcast as ec
from epochcast.hardware.catalogue import find_device
from epochcast.measure.neighbours.nearest_runs import neighbours
from epochcast.measure.neighbours.public_runs import address_of, public_runs

SESSION = ec.Session()


def test_every_row_has_a_source_a_device_and_a_time() -> None:
    for run in public_runs():
        assert run.address.startswith("github.com/")
        find_device(run.cells["device"], run.number("device_memory_bytes"), run.cells["source"])
        assert (run.number("step_seconds") or 0) > 0
        assert run.parameters > 0 and run.flops_per_sample > 0


def test_an_address_is_that_of_the_list_or_of_the_thread() -> None:
    assert address_of("timm") == "github.com/huggingface/pytorch-image-models"
    assert address_of("bmaltais/kohya_ss#3332") == "github.com/bmaltais/kohya_ss/issues/3332"
    assert address_of("pytorch/ao torchao/optim/README.md") == "github.com/pytorch/ao"
    assert address_of("my own notes") is None


def test_the_table_covers_devices_and_networks() -> None:
    runs = public_runs()
    assert 200 <= len(runs) <= 400
    assert len({run.cells["device"] for run in runs}) >= 40
    assert len({run.cells["model"] for run in runs}) >= 60
    assert {"RTX 4090", "L40S", "RTX 3090"} <= {run.cells["device"] for run in runs}
    assert max(Counter(run.cells["source"] for run in runs).values()) < len(runs) / 2


def test_the_nearest_first_with_what_was_measured_and_forecast() -> None:
    forecast = ec.forecast("resnet50", device="V100", batch=64, session=SESSION)
    nearest = neighbours(forecast, most=3)
    assert len(nearest) == 3
    assert [each.distance for each in nearest] == sorted(each.distance for each in nearest)
    for each in nearest:
        assert each.ratio == pytest.approx(each.measured_seconds / each.forecast_seconds.mid)
        assert each.source.startswith("github.com/")
    assert "resnet" in nearest[0].model.casefold().replace("-", "")


def test_a_language_model_has_language_models_beside_it() -> None:
    forecast = ec.forecast("bert_base", device="A100", batch=16, precision="amp_fp16", session=SESSION)
    kinds = {run.cells["model"]: run.cells["fed"] for run in public_runs()}
    assert {kinds[each.model] for each in neighbours(forecast, most=2)} == {"text"}
