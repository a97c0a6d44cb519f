"""Jobs of a queue that say what they train get their seconds by our forecast."""

from pathlib import Path
from typing import Any

import pytest

from epochcast.decide.plan.queue_forecasts import QUEUE_JOB_OPTIONS
from epochcast.predict.forecast.forecaster import forecast_job
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.placement import place
from epochcast.predict.forecast.session import Session
from epochcast.queues import with_forecasts
from epochcast.schedule.queue_document import QueueDocument, QueueJobRow, parse_queue, row_of
from epochcast.schedule.workload_jobs import GpuChoice

TRAINED = {"model": "resnet18", "batch": 64, "dataset": "cifar10", "epochs": 10}
TYPES = [{"name": "v", "device": "V100", "gpus": 4, "dollars_per_hour": 3.0}]


@pytest.fixture(scope="module")
def session() -> Session:
    return Session()


def filled(
    session: Session, folder: Path, *rows: dict[str, Any], types: list[Any] = TYPES
) -> tuple[QueueDocument, tuple[str, ...]]:
    document = parse_queue({"jobs": list(rows), "node_types": types}, QUEUE_JOB_OPTIONS)
    return with_forecasts(document, folder, session)


def gpus_of(row: QueueJobRow, device: str) -> set[int]:
    return {choice.gpus for choice in row.forecast_seconds or {} if choice.device == device}


def test_seconds_are_those_of_a_forecast_for_every_number_of_gpus(session: Session, tmp_path: Path) -> None:
    (row,) = filled(session, tmp_path, {"id": "a", "deadline_seconds": 9, **TRAINED})[0].jobs
    assert set(row_of(row)) == {"id", "deadline_seconds", "forecast_seconds"}
    assert gpus_of(row, "V100") == {1, 2, 4}
    total = forecast_job(Job(**TRAINED), place("V100", gpus=2), session).total_seconds  # type: ignore[arg-type]
    assert total is not None
    assert row.forecast_seconds is not None
    assert row.forecast_seconds[GpuChoice("V100", 2)] == total


def test_the_least_and_the_most_gpus_count(session: Session, tmp_path: Path) -> None:
    (row,) = filled(session, tmp_path, {"id": "a", "min_gpus": 2, "max_gpus": 2, **TRAINED})[0].jobs
    assert gpus_of(row, "V100") == {2}


def test_a_job_of_the_job_file_is_asked_by_its_name(session: Session, tmp_path: Path) -> None:
    (tmp_path / "epochcast.toml").write_text(
        '[[job]]\nname = "small"\nmodel = "resnet18"\nbatch = 64\ndataset = "cifar10"\nepochs = 10\ndevice = "H100"\n',
        encoding="utf-8",
    )
    named, twice, own = filled(
        session, tmp_path, {"job": "small"}, {"job": "small", "id": "x", "epochs": 20}, {"id": "own", **TRAINED}
    )[0].jobs
    assert (named.id, twice.id) == ("small", "x")
    assert named.forecast_seconds is not None and named.forecast_seconds == own.forecast_seconds
    assert twice.forecast_seconds is not None
    on_one = GpuChoice("V100", 1)
    assert twice.forecast_seconds[on_one].mid / named.forecast_seconds[on_one].mid == pytest.approx(2, rel=0.05)


def test_what_does_not_fit_in_memory_is_left_out_and_told(session: Session, tmp_path: Path) -> None:
    types = [*TYPES, {"name": "m", "device": "M60", "gpus": 1, "dollars_per_hour": 1.0}]
    large = {"id": "a", **TRAINED, "model": "vgg16", "dataset": "imagenet-1k", "batch": 96}
    document, notes = filled(session, tmp_path, large, types=types)
    assert gpus_of(document.jobs[0], "V100") and not gpus_of(document.jobs[0], "M60")
    assert len(notes) == 1 and "job 'a' is not planned on 1 × M60: it needs" in notes[0]
    nowhere, _ = filled(session, tmp_path, {**large, "batch": 4096}, types=types)
    assert nowhere.jobs == ()
    assert "job 'a': it fits nowhere; on 4 × V100: it needs" in nowhere.refused[0].why


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"model": "resnet1"}, "job 'a': no model called 'resnet1'"),
        ({"dataset": None}, "job 'a': how long it takes is not known"),
        ({"batch": "many"}, "job 'a': batch must be"),
        ({"run_seconds": {}}, "job 'a' has run_seconds, and a model to forecast it by"),
        ({"job": "nobody"}, "job 'a': no epochcast.toml in"),
    ],
)
def test_a_job_that_cannot_be_forecast_is_refused_alone(
    session: Session, tmp_path: Path, row: dict[str, Any], message: str
) -> None:
    asked = {key: value for key, value in {"id": "a", **TRAINED, **row}.items() if value is not None}
    document, _ = filled(session, tmp_path, asked, {"id": "b", "run_seconds": {"V100": {"1": 5}}})
    assert [row.id for row in document.jobs] == ["b"]
    assert message in document.refused[0].why


def test_a_machine_of_the_catalogue_says_how_its_gpus_are_joined(session: Session, tmp_path: Path) -> None:
    types = [{"name": "p3", "instance": "p3.8xlarge", "device": "V100-SXM2-16GB", "gpus": 4, "dollars_per_hour": 12.0}]
    (row,) = filled(session, tmp_path, {"id": "a", **TRAINED}, types=types)[0].jobs
    assert gpus_of(row, "V100-SXM2-16GB") == {1, 2, 4}
