"""From what was observed, tracked or measured to the run that is shared."""

import json
from pathlib import Path

import pytest

import epochcast as ec
from epochcast.errors import BadInput
from epochcast.measure.bench.measurements import MeasuredMachine, Measurement
from epochcast.observe.runs.report import Report
from epochcast.observe.share.run_sharing import shared_measurement, shared_stored
from epochcast.predict.forecast.session import Session

SECRET = "anna-on-gpu7"
LINES = "".join(
    f"Train: 0 [{step:4d}/1251 ({step / 12.51:3.0f}%)]  Loss: 6.9 (6.9)  Time: 0.200s, 320.00/s  (0.200s, 320.00/s)  "
    f"LR: 1.0e-06  Data: 0.010 (0.010)\n"
    for step in range(0, 500, 50)
)


def test_a_log_is_shared_without_its_place(tmp_path: Path) -> None:
    log = tmp_path / SECRET / "train.log"
    log.parent.mkdir()
    log.write_text(LINES, encoding="utf-8")
    run = ec.share("resnet50", log, device="V100", batch=64, dataset="imagenet-1k")
    assert run.step_seconds.mid == pytest.approx(0.2, rel=0.01)
    assert run.job == {
        "model": "resnet50",
        "batch": 64,
        "precision": "fp32",
        "optimizer": "sgd",
        "dataset": "imagenet-1k",
    }
    assert (run.device, run.gpus, run.seen, run.assumed) == ("V100-SXM2-16GB", 1, "log", ("precision", "optimizer"))
    assert run.data_fraction == pytest.approx(0.05, abs=0.01)
    assert SECRET not in run.text() and str(tmp_path) not in run.text() and "train.log" not in run.text()
    assert run.contributor is None


def test_a_speed_of_all_gpus_is_shared_with_their_number() -> None:
    run = ec.share("resnet50", "800img/s/gpu", device="V100", batch=64, gpus=8, contributor="Anna")
    assert (run.gpus, run.nodes, run.contributor) == (8, 1, "Anna")
    assert run.step_seconds.mid == pytest.approx(64 / 800, rel=0.01)


def test_a_stored_run_is_shared_by_its_name(tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy")
    from epochcast.observe.store.store_opening import open_store
    from epochcast.observe.store.store_rows import RunPlace

    with open_store(str(tmp_path / "runs.db")) as store:
        job = ec.Job("resnet50", batch=64, precision="amp_fp16", dataset="imagenet-1k")
        place = RunPlace("V100-SXM2-16GB", 4, 1, host=SECRET)
        run = store.open_run(SECRET, job=job, place=place)
        store.record(run.id, [Report(step=float(step), step_seconds=0.25) for step in range(1, 40)])
        shared = shared_stored(store, SECRET, Session())
        assert shared.origin == "track" and shared.gpus == 4
        assert shared.step_seconds.mid == pytest.approx(0.25, rel=0.01)
        assert SECRET not in shared.text()
        store.open_run("unsaid")
        with pytest.raises(BadInput, match="does not know the job and device of 'unsaid'"):
            shared_stored(store, "unsaid", Session())


def test_a_measured_step_of_bench_is_shared_with_its_processor() -> None:
    facts = {"cpu": "Some CPU", "cores": 4, "threads": 1, "device": "cpu", "torch": "2.13.0+cpu", "host": SECRET}
    ask = {"device": "cpu", "backend": "torch", "model": "resnet18", "input": "3x64x64", "recipe": {"batch": 8}}
    row = Measurement("model", "k", MeasuredMachine("m", facts), ask, 0.3, 0.28, 0.1, 20, 12345)
    run = shared_measurement(row)
    assert (run.device, run.machine.cpu, run.machine.threads) == ("cpu", "Some CPU", 1)
    assert run.job["model"] == "resnet18" and run.job["batch"] == 8 and run.job["input_shape"] == [3, 64, 64]
    assert run.step_seconds.low < run.step_seconds.mid == 0.3
    assert (run.steps, run.peak_bytes, run.software) == (20, 12345, {"torch": "2.13.0+cpu"})
    assert SECRET not in json.dumps(run.as_dict())
    with pytest.raises(BadInput, match="is no measured training step"):
        shared_measurement(Measurement("op", "o", MeasuredMachine("m", facts), {}, 0.3))
