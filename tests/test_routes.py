"""One job asked by every route: the same numbers and the same warnings, whoever asks."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import epochcast as ec
from epochcast.api import find_model
from epochcast.predict.forecast.forecaster import forecast_job
from epochcast.predict.forecast.where import Where
from epochcast.surfaces.cli.command_line import run

# Options of every group of a job, those that plan and advise once did not know among them.
JOBS: dict[str, dict[str, Any]] = {
    "mixed": {"model": "resnet18", "precision": "amp", "optimizer": "momentum", "samples": 50_000, "epochs": 3},
    "tensorflow": {
        "model": "resnet18",
        "precision": "fp32",  # assumed, it is noted by `forecast` alone, which says what another would give
        "framework": "tensorflow",
        "samples": 50_000,
        "channels_last": True,
    },
    "accumulated": {
        "model": "bert_base",
        "precision": "fp32",
        "accumulate": 2,
        "samples": 10_000,
        "attention": "eager",
        "freeze": ["*.0.*"],
    },
    "kept gradients": {"model": "mnist_cnn", "keep_gradients": True, "update_style": "loop", "samples": 60_000},
}
INSTANCE, DEVICE, GPUS, BATCH = "p3.8xlarge", "V100", 4, 16


@pytest.fixture(params=JOBS, ids=str)
def options(request: pytest.FixtureRequest) -> dict[str, Any]:
    return dict(JOBS[request.param])


def numbers(answer: ec.Forecast) -> tuple[Any, ...]:
    return answer.step_seconds, answer.step_parts, answer.total_seconds, answer.peak_bytes, answer.fits


def test_every_route_gives_the_same_forecast(
    options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = ec.plan(ec.Job(**options, batch=BATCH), clouds=["aws"], devices=[DEVICE], gpus=[GPUS])
    (candidate,) = [each for each in plan.candidates if each.offer.instance.name == INSTANCE]
    placement = candidate.offer.placement()
    job = ec.Job(**options, batch=BATCH)

    # by values, by options and a place, by the global batch
    whole = forecast_job(job, placement)
    model, rest = options["model"], {name: value for name, value in options.items() if name != "model"}
    assert ec.forecast(model, placement, batch=BATCH, **rest) == whole
    passes = GPUS * options.get("accumulate", 1)
    assert ec.forecast(ec.Job(**options, global_batch=BATCH * passes), placement) == whole
    built = ec.forecast(find_model(model), placement, batch=BATCH, **rest)
    assert replace(built, assumed=whole.assumed) == whole  # the text length of a network that was built is its own

    # by a plan
    assert numbers(candidate.forecast) == numbers(whole)
    assert candidate.forecast.warnings == whole.warnings
    assert set(whole.warnings) <= set(plan.warnings)

    # by names: the wires are those a user names
    where = Where(DEVICE, gpus=GPUS)
    named = ec.forecast(job, device=DEVICE, gpus=GPUS)
    assert forecast_job(job, where.placement()) == named

    # by scaling
    (row,) = ec.scaling(job, device=DEVICE, gpus=[GPUS]).rows
    assert row.forecast == named

    # by advice, at the batch it was told to stay below
    advice = ec.advise(job, device=DEVICE, gpus=GPUS, most_batch=BATCH, loader_seconds=1e-9)
    at_choice = ec.forecast(job, device=DEVICE, gpus=GPUS, batch=advice.choice.batch)
    assert advice.choice.gpu.seconds == at_choice.step_seconds
    assert advice.peak_bytes == at_choice.peak_bytes
    # Advice answers itself what a forecast only notes: how many workers feed the GPU.
    assert {note for note in at_choice.warnings if "Data loading may limit" not in note} <= set(advice.warnings)

    # by the command line and by a job file
    monkeypatch.chdir(tmp_path)
    flags = [word for name, value in rest.items() for word in _flag(name, value)]
    asked = ["forecast", model, "--device", DEVICE, "--gpus", str(GPUS), "--batch", str(BATCH), *flags, "--json"]
    run([*asked, "--save-job", "own"])
    assert ec.Forecast.from_dict(json.loads(capsys.readouterr().out)) == named
    run(["forecast", "--job", "own", "--json"])
    assert ec.Forecast.from_dict(json.loads(capsys.readouterr().out)) == named


def _flag(name: str, value: Any) -> list[str]:
    flag = f"--{name.replace('_', '-')}"
    if isinstance(value, list):
        return [word for item in value for word in (flag, item)]
    return [flag] if value is True else [flag, str(value)]


def test_evaluate_and_calibrate_ask_the_same_question() -> None:
    pytest.importorskip("polars")
    from epochcast.measure.evaluate.evaluate_runs import forecast_runs
    from epochcast.measure.fit.step_pieces import step_pieces
    from epochcast.measure.tables.run_table import read_runs
    from epochcast.predict.cost.cost_models import find_cost_model

    row = {
        "model": "resnet18",
        "device": "V100",
        "batch_per_gpu": 32,
        "precision": "amp",
        "optimizer": "momentum",
        "step_seconds": 0.05,
        "framework_version": "2.4",
    }
    job = ec.Job("resnet18", batch=32, precision="amp", optimizer="momentum", framework_version="2.4")
    answer = ec.forecast(job, device="V100")
    scored = forecast_runs([row], find_cost_model())
    assert (scored.low_seconds[0], scored.mid_seconds[0], scored.high_seconds[0]) == (
        answer.step_seconds.low,
        answer.step_seconds.mid,
        answer.step_seconds.high,
    )
    (pieces,), failures = step_pieces(read_runs([row])[0], find_cost_model(), allow_code=False)
    assert failures == []
    assert list(pieces.kernels) == list(answer.details.step.costs.mid)


def test_a_session_tells_a_layout_that_is_left_open_from_one_that_is_not() -> None:
    job = ec.Job("resnet50", batch=64, precision="amp", framework="tensorflow")
    first = ec.Job("resnet50", batch=64, precision="amp", framework="tensorflow", channels_last=False)
    session, place = ec.Session(), ec.place("V100")
    shared = [forecast_job(each, place, session) for each in (job, first)]
    assert shared == [forecast_job(each, place) for each in (job, first)]
    assert shared[0].step_seconds != shared[1].step_seconds


@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("resnet50", {"batch": 256, "augment": 4}),
        ("vgg16", {"batch": 512, "framework": "tensorflow"}),
        ("gpt2", {"batch": 512, "keep_gradients": True}),
    ],
)
def test_a_batch_that_is_said_to_fit_fits(model: str, options: dict[str, Any]) -> None:
    answer = ec.forecast(model, device="V100", **options)
    assert answer.fits is False
    batch = next(int(remedy.value) for remedy in answer.details.remedies() if remedy.change == "batch")
    assert ec.forecast(model, device="V100", **{**options, "batch": batch}).fits


def test_one_strategy_by_two_spellings_is_timed_alike() -> None:
    def seconds(**options: Any) -> float:
        answer = ec.forecast("vgg16", device="P100", batch=8, gpus=2, framework="tensorflow", **options)
        return answer.step_seconds.mid

    assert seconds(strategy="mirrored") == seconds(strategy="mirrored:nccl")
    assert seconds(strategy="mirrored", allreduce="hierarchical_copy") != seconds(strategy="mirrored")


def test_the_job_of_a_plan_and_of_scaling_can_be_written_down() -> None:
    job = ec.Job("mnist_cnn", batch=8, dataset="mnist", precision="fp32", optimizer="sgd")
    plan = ec.plan(job, devices=["V100"], gpus=[1])
    assert ec.Job.from_dict(plan.job.as_dict()) == job
    (row,) = ec.scaling(job, device="V100", gpus=[1]).rows
    assert row.forecast.details.job == job


def test_advice_counts_accumulated_passes_in_the_global_batch() -> None:
    body = ec.advise("resnet18", device="V100", accumulate=4, gpus=2).as_dict()
    assert body["global_batch"] == 2 * 4 * body["batch"]


def test_what_a_reader_does_to_an_answer_does_not_reach_the_next() -> None:
    session = ec.Session()
    first = ec.forecast("mnist_cnn", device="V100", batch=8, session=session)
    assert isinstance(first.answered_by, dict)
    first.answered_by["other"] = 1.0
    assert "other" not in ec.forecast("mnist_cnn", device="V100", batch=8, session=session).answered_by


@pytest.mark.parametrize(("strategy", "gpus", "nodes"), [("mirrored", 8, 2), ("tp4", 8, 1), ("ddp", 1, 1)])
def test_a_strategy_means_the_same_by_every_route(strategy: str, gpus: int, nodes: int) -> None:
    job = ec.Job("gpt2", batch=4)
    asked = ec.forecast(job, device="A100", gpus=gpus, nodes=nodes, strategy=strategy)
    (row,) = ec.scaling(job, device="A100", gpus=[gpus], nodes=nodes, strategy=strategy).rows
    assert row.forecast == asked


def test_scaling_takes_a_job_with_a_global_batch() -> None:
    rows = ec.scaling(ec.Job("mnist_cnn", global_batch=64), device="V100", gpus=[2, 4], regime="both").rows
    assert [(row.case.regime, row.forecast.global_batch) for row in rows] == [
        ("strong", 64),
        ("strong", 64),
        ("weak", 64),
        ("weak", 128),
    ]


def test_a_file_that_changed_is_read_again_in_one_session(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    session, file = ec.Session(), tmp_path / "net.py"

    def parameters(width: int) -> int | None:
        file.write_text(f"import torch\ndef make():\n    return torch.nn.Linear(3, {width})\n" + "#" * width)
        job = ec.Job(f"{file}:make", batch=2, input_shape=(3,))
        return ec.forecast(job, device="V100", session=session).parameters

    assert [parameters(4), parameters(5)] == [16, 20]
