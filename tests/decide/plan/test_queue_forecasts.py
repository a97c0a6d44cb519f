"""Jobs of a queue that say what they train get their seconds by our forecast."""

from pathlib import Path
from typing import Any

import pytest

from epochcast.decide.plan.queue_forecasts import with_forecasts
from epochcast.predict.forecast.forecaster import forecast_job
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.placement import place
from epochcast.predict.forecast.session import Session

TRAINED = {"model": "resnet18", "batch": 64, "dataset": "cifar10", "epochs": 10}
TYPES = [{"name": "v", "device": "V100", "gpus": 4, "dollars_per_hour": 3.0}]


@pytest.fixture(scope="module")
def session() -> Session:
    return Session()


def filled(session: Session, folder: Path, *rows: dict[str, Any], types: list[Any] = TYPES) -> Any:
    return with_forecasts({"jobs": list(rows), "node_types": types}, folder, session)


def test_seconds_are_those_of_a_forecast_for_every_number_of_gpus(session: Session, tmp_path: Path) -> None:
    (row,) = filled(session, tmp_path, {"id": "a", "deadline_seconds": 9, **TRAINED}).document["jobs"]
    assert set(row) == {"id", "deadline_seconds", "forecast_seconds"}
    assert set(row["forecast_seconds"]["V100"]) == {"1", "2", "4"}
    total = forecast_job(Job(**TRAINED), place("V100", gpus=2), session).total_seconds  # type: ignore[arg-type]
    assert total is not None
    assert row["forecast_seconds"]["V100"]["2"] == [total.low, total.mid, total.high]


def test_the_least_and_the_most_gpus_count(session: Session, tmp_path: Path) -> None:
    (row,) = filled(session, tmp_path, {"id": "a", "min_gpus": 2, "max_gpus": 2, **TRAINED}).document["jobs"]
    assert set(row["forecast_seconds"]["V100"]) == {"2"}


def test_a_job_of_the_job_file_is_asked_by_its_name(session: Session, tmp_path: Path) -> None:
    (tmp_path / "epochcast.toml").write_text(
        '[[job]]\nname = "small"\nmodel = "resnet18"\nbatch = 64\ndataset = "cifar10"\nepochs = 10\ndevice = "H100"\n',
        encoding="utf-8",
    )
    named, twice, own = filled(
        session, tmp_path, {"job": "small"}, {"job": "small", "id": "x", "epochs": 20}, {"id": "own", **TRAINED}
    ).document["jobs"]
    assert (named["id"], twice["id"]) == ("small", "x")
    assert named["forecast_seconds"] == own["forecast_seconds"]
    ratio = twice["forecast_seconds"]["V100"]["1"][1] / named["forecast_seconds"]["V100"]["1"][1]
    assert ratio == pytest.approx(2, rel=0.05)


def test_what_does_not_fit_in_memory_is_left_out_and_told(session: Session, tmp_path: Path) -> None:
    types = [*TYPES, {"name": "m", "device": "M60", "gpus": 1, "dollars_per_hour": 1.0}]
    large = {"id": "a", **TRAINED, "model": "vgg16", "dataset": "imagenet-1k", "batch": 96}
    told = filled(session, tmp_path, large, types=types)
    assert set(told.document["jobs"][0]["forecast_seconds"]) == {"V100"}
    assert len(told.notes) == 1 and "job 'a' is not planned on 1 × M60: it needs" in told.notes[0]
    nowhere = filled(session, tmp_path, {**large, "batch": 4096}, types=types)
    assert nowhere.document["jobs"] == []
    assert "job 'a': it fits nowhere; on 4 × V100: it needs" in nowhere.refused[0][1]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"model": "resnet1"}, "job 'a': no model called 'resnet1'"),
        ({"dataset": None}, "job 'a': how long it takes is not known"),
        ({"batch": "many"}, "job 'a': batch must be"),
        ({"run_seconds": {}}, "job 'a': it has run_seconds, and a model to forecast it by"),
        ({"job": "nobody"}, "job 'a': no epochcast.toml in"),
    ],
)
def test_a_job_that_cannot_be_forecast_is_refused_alone(
    session: Session, tmp_path: Path, row: dict[str, Any], message: str
) -> None:
    asked = {key: value for key, value in {"id": "a", **TRAINED, **row}.items() if value is not None}
    told = filled(session, tmp_path, asked, {"id": "b", "run_seconds": {"V100": {"1": 5}}})
    assert [row["id"] for row in told.document["jobs"]] == ["b"]
    assert message in told.refused[0][1]


def test_a_machine_of_the_catalogue_says_how_its_gpus_are_joined(session: Session, tmp_path: Path) -> None:
    types = [{"name": "p3", "instance": "p3.8xlarge", "device": "V100-SXM2-16GB", "gpus": 4, "dollars_per_hour": 12.0}]
    (row,) = filled(session, tmp_path, {"id": "a", **TRAINED}, types=types).document["jobs"]
    assert set(row["forecast_seconds"]["V100-SXM2-16GB"]) == {"1", "2", "4"}
