"""A profile to score a table with: a calibration or a fitted model of one device, from its file.

A calibration (`epochcast calibrate`, TOML) multiplies what the cost model answers for its device and leaves other
devices as they are. A fitted model (`epochcast fit`, JSON) answers for its device alone.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from epochcast.base.documents import read_text
from epochcast.base.name_matching import plain
from epochcast.errors import BadInput
from epochcast.hardware.profile import Profile, load_profiles
from epochcast.measure.tables.row_errors import FailedRow, OtherProfileDevice
from epochcast.measure.tables.run_table import MeasuredRun
from epochcast.predict.cost.calibrated import Calibrated
from epochcast.predict.cost.cost_model import CostModel
from epochcast.predict.cost.local_file import load_local
from epochcast.predict.cost.local_model import Local


@dataclass(frozen=True, slots=True)
class ScoringProfile:
    """The cost model with the profile in it, the device it is of, and its measured launch."""

    model: CostModel
    device: str
    launch_seconds: float | None = None
    only_this_device: bool = False

    def applied(self, runs: list[MeasuredRun]) -> tuple[list[MeasuredRun], list[FailedRow]]:
        """The runs as the profile answers them, and those that it cannot."""
        scored_runs, failures = [], []
        for run in runs:
            if run.device.name != self.device and self.only_this_device:
                error = OtherProfileDevice(self.device, run.device.name)
                failures.append(FailedRow.because(run.row_index, run.model, error))
            elif run.device.name == self.device and self.launch_seconds is not None:
                scored_runs.append(replace(run, device=replace(run.device, launch_seconds=self.launch_seconds)))
            else:
                scored_runs.append(run)
        return scored_runs, failures


def scoring_profile(path: Path, model: CostModel) -> ScoringProfile:
    """The profile in a file, for a cost model that it corrects."""
    if not path.is_file():
        raise BadInput(f"no file {str(path)!r}")
    if path.suffix.lower() == ".toml":
        profile = _calibration(path)
        if profile.relative_to != model.name:
            raise BadInput(f"{path.name} corrects the cost model {profile.relative_to!r}, not {model.name!r}")
        return ScoringProfile(Calibrated(model, profile), profile.device, profile.launch_seconds)
    fitted: Local = load_local(path)
    return ScoringProfile(fitted, fitted.device, only_this_device=True)


def _calibration(path: Path) -> Profile:
    profiles = load_profiles(read_text(path), path.name)
    if len(profiles) != 1:
        raise BadInput(f"{path.name} must hold the profile of one device, it holds {len(profiles)}")
    (name,) = profiles
    return profiles[plain(name)]
