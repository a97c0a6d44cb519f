from pathlib import Path
from typing import Any

import polars as pl
import pytest

import epochcast as ec
from epochcast.errors import BadInput
from epochcast.observe.history import history_verbs as verbs
from epochcast.observe.history.experience import Experience
from epochcast.observe.history.model_file import HistoryModel
from epochcast.predict.forecast.forecast_correction import correct

SLOWER = 1.7


def past(target: str = "step_seconds") -> list[dict[str, Any]]:
    """A team whose steps take 1.7 times what the forecast says."""
    rows = []
    for model in ("resnet18", "alexnet"):
        for device in ("V100", "T4"):
            for batch in (8, 16, 32, 64):
                told = ec.forecast(model, device=device, batch=batch, samples=6400, epochs=2, optimizer="momentum")
                seconds = {"step_seconds": told.step_seconds, "total_seconds": told.total_seconds}[target]
                assert seconds is not None
                job = {"model": model, "device": device, "batch_per_gpu": batch, "samples": 6400, "epochs": 2}
                rows.append({**job, "repeat": batch % 3, target: SLOWER * seconds.mid})
    return rows


@pytest.fixture(scope="module")
def steps() -> HistoryModel:
    return verbs.fit(pl.DataFrame(past()), "step_seconds")


def test_the_past_of_a_team_corrects_a_forecast_and_says_so(steps: HistoryModel, tmp_path: Path) -> None:
    steps.save(tmp_path / "history.json")
    asked: dict[str, Any] = {"device": "V100", "batch": 32, "samples": 6400, "epochs": 3, "optimizer": "momentum"}
    alone, together = (
        ec.forecast("resnet18", **asked),
        ec.forecast("resnet18", **asked, history=tmp_path / "history.json"),
    )
    assert together.step_seconds.mid / alone.step_seconds.mid == pytest.approx(SLOWER, rel=0.1)
    assert together.total_seconds is not None and alone.total_seconds is not None
    assert together.total_seconds.mid / alone.total_seconds.mid == pytest.approx(SLOWER, rel=0.1)
    assert together.step_parts is not None
    assert together.step_parts.total_seconds == pytest.approx(together.step_seconds.mid)
    assert all(name.endswith("corrected by history") for name in together.answered_by)
    assert together.step_seconds.high / together.step_seconds.low < alone.step_seconds.high / alone.step_seconds.low


def test_a_job_unlike_the_past_is_told_so(steps: HistoryModel) -> None:
    alone = ec.forecast("resnet18", device="A100", batch=32)
    together = correct(alone, alone.details.job.as_dict(), Experience(steps))
    assert any("no such device" in warning for warning in together.warnings)


def test_a_past_of_whole_jobs_needs_to_know_how_much_data() -> None:
    model = verbs.fit(pl.DataFrame(past("total_seconds")), "total_seconds")
    without = ec.forecast("resnet18", device="V100", batch=32)
    with pytest.raises(BadInput, match="give `samples` or `dataset`"):
        correct(without, without.details.job.as_dict(), Experience(model))
    told = ec.forecast("resnet18", device="V100", batch=32, samples=6400, epochs=2, optimizer="momentum")
    together = correct(told, told.details.job.as_dict(), Experience(model))
    assert together.total_seconds is not None and told.total_seconds is not None
    assert together.total_seconds.mid / told.total_seconds.mid == pytest.approx(SLOWER, rel=0.15)
