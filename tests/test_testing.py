from pathlib import Path
from typing import Any

import pytest

import epochcast as ec
from epochcast.testing import assert_forecast

OPTIONS: dict[str, Any] = {"device": "V100", "batch": 64, "dataset": "imagenet-1k", "epochs": 90}


def test_a_job_within_its_limits_gives_its_forecast() -> None:
    forecast = assert_forecast("resnet18", max_dollars=10_000, max_seconds=1e7, max_bytes=16e9, **OPTIONS)
    assert forecast == ec.forecast("resnet18", **OPTIONS)


def test_what_exceeds_its_limit_is_named_with_by_how_much() -> None:
    forecast = ec.forecast("resnet18", **OPTIONS)
    assert forecast.dollars is not None
    with pytest.raises(AssertionError) as failure:
        assert_forecast("resnet18", max_dollars=forecast.dollars.mid / 1.5, max_bytes=1e9, max_seconds=1e9, **OPTIONS)
    lines = str(failure.value).splitlines()
    assert lines[0] == "resnet18 on 1 × V100-SXM2-16GB, batch 64 per GPU:"
    assert lines[1].startswith("    cost $") and "50 % more than" in lines[1]
    assert lines[2].startswith("    memory ")
    assert len(lines) == 3


def test_being_sure_takes_the_high_end() -> None:
    forecast = ec.forecast("resnet18", **OPTIONS)
    assert forecast.total_seconds is not None
    between = (forecast.total_seconds.mid + forecast.total_seconds.high) / 2
    assert_forecast(ec.Job("resnet18", batch=64, dataset="imagenet-1k", epochs=90), device="V100", max_seconds=between)
    with pytest.raises(AssertionError, match="time"):
        assert_forecast("resnet18", max_seconds=between, sure=True, **OPTIONS)


def test_a_limit_on_what_is_unknown_is_refused() -> None:
    with pytest.raises(ec.BadInput, match="the cost of this job is unknown"):
        assert_forecast("resnet18", device="V100", batch=64, max_dollars=1)


def test_an_assertion_without_a_limit_is_refused() -> None:
    with pytest.raises(ec.BadInput, match="needs a limit"):
        assert_forecast("resnet18", **OPTIONS)


def test_a_job_of_the_job_file_is_asserted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "epochcast.toml").write_text('[[job]]\nname = "a"\nmodel = "resnet18"\ndevice = "V100"\nbatch = 8\n')
    monkeypatch.chdir(tmp_path)
    assert assert_forecast("job:a", max_bytes=16e9).batch_per_gpu == 8
    assert ec.testing.assert_forecast is assert_forecast
