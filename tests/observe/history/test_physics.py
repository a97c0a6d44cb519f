from typing import Any

import numpy as np
import polars as pl
import pytest

import epochcast as ec
from epochcast.observe.history import history_verbs as verbs
from epochcast.observe.history import physics
from epochcast.observe.history.job_table_reader import read_frame
from epochcast.observe.history.physics import forecast_steps, physics_of


def only(frame: list[dict[str, Any]], target: str = "step_seconds") -> tuple[float, str]:
    found = physics_of(read_frame(frame), target)
    return float(found.values[0]), str(found.kinds[0])


def test_a_row_that_can_be_forecast_is_forecast() -> None:
    value, kind = only([{"model": "resnet18", "device": "V100", "batch": 32, "optimizer": "sgd"}])
    wanted = ec.forecast("resnet18", device="V100", batch=32, framework_version="1.12").step_seconds.mid
    assert kind == "forecast" and value == pytest.approx(wanted, rel=0.1)


def test_a_network_that_nobody_knows_is_answered_by_its_work_over_the_peak_of_the_device() -> None:
    """6 flops per multiply-add of a sample, forward and backward: 64 · 6e9 / 15.7e12."""
    value, kind = only([{"model": "ours", "device": "V100", "batch": 64, "forward_macs_per_sample": 1e9}])
    assert kind == "roofline" and value == pytest.approx(64 * 6e9 / 15.7e12, rel=0.05)


def test_without_any_work_time_goes_by_batch_and_peak() -> None:
    rows = [{"model": "ours", "device": "V100", "batch": batch} for batch in (8, 16)]
    found = physics_of(read_frame(rows), "step_seconds")
    assert set(found.kinds) == {"sizes"} and found.values[1] / found.values[0] == pytest.approx(2)


def test_epochs_and_jobs_are_steps_times_their_number() -> None:
    row = {"model": "ours", "device": "V100", "batch": 50, "gpus": 2, "samples": 1000, "epochs": 3, "parameters": 1e6}
    step, epoch, total = (only([row], name)[0] for name in ("step_seconds", "epoch_seconds", "total_seconds"))
    assert epoch / step == pytest.approx(10) and total / epoch == pytest.approx(3)


def test_equal_jobs_are_forecast_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from epochcast.measure.evaluate import evaluate_runs

    asked: list[Any] = []
    whole = evaluate_runs.forecast_runs

    def counted(rows: list[dict[str, Any]], *arguments: Any, **options: Any) -> Any:
        asked.extend(rows)
        return whole(rows, *arguments, **options)

    monkeypatch.setattr(evaluate_runs, "forecast_runs", counted)
    rows = [{"model": "alexnet", "device": "V100", "batch": 8, "step_seconds": 1.0 + i} for i in range(500)]
    found, _ = forecast_steps(read_frame(rows))
    assert len(asked) == 1 and len(found) == 500 and np.ptp(found) == 0


def test_several_gpus_are_told_apart_from_one() -> None:
    rows = [{"model": "alexnet", "device": "T4", "batch": 8, "gpus": g} for g in (1, 4)]
    steps, overheads = forecast_steps(read_frame(rows))
    assert overheads[0] == 1 and overheads[1] == pytest.approx(steps[1] / steps[0], rel=1e-6) and overheads[1] > 1


def test_memory_is_corrected_from_the_forecast_of_memory() -> None:
    told = ec.forecast("alexnet", device="V100", batch=8, optimizer="momentum", framework_version="1.12").peak_bytes
    value, kind = only([{"model": "alexnet", "device": "V100", "batch": 8}], "peak_bytes")
    assert told is not None and kind == "forecast" and value == pytest.approx(told.mid, rel=0.05)


@pytest.mark.parametrize(
    ("part", "target", "wanted"),
    [
        ({"first_steps": 10, "first_steps_seconds": 5.0}, "step_seconds", 0.5),
        ({"first_steps": 10, "first_steps_seconds": 5.0}, "epoch_seconds", 0.5 * 1000 / 50),
        ({"first_epoch_seconds": 30.0}, "total_seconds", 30.0 * 4),
        ({"first_epochs": 2, "first_epochs_seconds": 50.0}, "total_seconds", 25.0 * 4),
        ({"loader_step_ms": 80.0, "compute_step_ms": 50.0}, "step_seconds", 0.08),
        ({"loader_epoch_seconds": 8.0, "compute_epoch_seconds": 9.0}, "total_seconds", 9.0 * 4),
    ],
)
def test_a_part_of_a_job_that_was_run_tells_of_the_whole(part: dict[str, Any], target: str, wanted: float) -> None:
    value, kind = only([{"model": "ours", "batch": 50, "samples": 1000, "epochs": 4, **part}], target)
    assert value == pytest.approx(wanted) and kind == physics.PARTIAL


def test_whole_jobs_are_learned_from_their_first_epoch() -> None:
    """The a-GPUBench protocol: the first epoch takes 1.3 times the others, whatever the network."""
    generator = np.random.default_rng(0)
    rows = [
        {
            "network": f"net {place % 5}",
            "epochs": int(epochs),
            "first_epoch_seconds": 1.3 * epoch,
            "total_seconds": epoch * (epochs + 0.3),
        }
        for place, (epoch, epochs) in enumerate(
            zip(np.exp(generator.normal(3, 1, 60)), generator.integers(8, 12, 60), strict=True)
        )
    ]
    model = verbs.fit(pl.DataFrame(rows), "total_seconds")
    assert model.error < 0.03
    asked = {"network": "net 1", "epochs": 10, "first_epoch_seconds": 13.0}
    found = verbs.predict(model, pl.DataFrame([asked])).predictions
    assert found.mid[0] == pytest.approx(103, rel=0.05)
