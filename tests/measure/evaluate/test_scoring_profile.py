from pathlib import Path

import pytest

from epochcast.errors import BadInput
from epochcast.hardware.profile import Profile, to_toml
from epochcast.measure.evaluate.scoring_profile import ScoringProfile, scoring_profile
from epochcast.measure.tables.run_table import read_runs
from epochcast.predict.cost.cost_models import find_cost_model

ANALYTIC = find_cost_model("analytic")
ROWS = [{"model": "resnet18", "device": name, "batch_per_gpu": 8, "step_seconds": 0.1} for name in ("V100", "A100")]


def profile(device: str) -> Profile:
    return Profile(device, "pytorch", "a test", "2026-11-16", relative_to=ANALYTIC.name, launch_seconds=2e-5)


def test_a_fitted_model_answers_for_its_device_alone() -> None:
    runs, failures = ScoringProfile(ANALYTIC, "V100-SXM2-16GB", only_this_device=True).applied(read_runs(ROWS)[0])
    assert [run.row_index for run in runs] == [0]
    assert "is a profile of V100-SXM2-16GB" in failures[0].reason


def test_a_calibration_brings_the_launch_of_its_device() -> None:
    runs, failures = ScoringProfile(ANALYTIC, "V100-SXM2-16GB", 2e-5).applied(read_runs(ROWS)[0])
    assert failures == [] and runs[0].device.launch_seconds == 2e-5
    assert runs[1] == read_runs(ROWS)[0][1]


def test_a_file_holds_one_profile(tmp_path: Path) -> None:
    path = tmp_path / "two.toml"
    path.write_text(to_toml([profile("V100-SXM2-16GB"), profile("P100-SXM2-16GB")]))
    with pytest.raises(BadInput, match=r"two\.toml must hold the profile of one device, it holds 2"):
        scoring_profile(path, ANALYTIC)
    path.write_text(to_toml([profile("V100-SXM2-16GB")]))
    assert scoring_profile(path, ANALYTIC).device == "V100-SXM2-16GB"
