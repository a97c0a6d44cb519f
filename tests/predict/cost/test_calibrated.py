from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from epochcast.describe.graph.trace import Trace
from epochcast.errors import UnknownName
from epochcast.hardware.device import Device
from epochcast.hardware.profile import Profile, profile_path, save_profile
from epochcast.predict.cost.calibrated import Calibrated, calibrated_device, is_compute_bound, with_profile
from epochcast.predict.cost.cost_contract import check_op_cost
from epochcast.predict.cost.roofline import Analytic
from epochcast.predict.cost.software_setting import TODAY

Step = Callable[..., Trace]
PROFILE = Profile("round", "pytorch", "made up", "2026-01-01", 3, "analytic", compute_factor=2.0, memory_factor=0.5)


def test_each_limb_of_the_roofline_has_its_factor(step: Step, device: Device) -> None:
    trace = step()
    before, after = (
        model.costs(trace.columns, device, TODAY) for model in (Analytic(), Calibrated(Analytic(), PROFILE))
    )
    bound = is_compute_bound(trace.columns, device)
    assert 0 < bound.sum() < len(bound)
    assert after.mid == pytest.approx(before.mid * np.where(bound, 2.0, 0.5))
    assert set(after.models) == {"analytic, calibrated"}


def test_the_contract_is_kept(step: Step, device: Device) -> None:
    check_op_cost(Calibrated(Analytic(), PROFILE), step(), device)


def test_the_spread_of_steps_becomes_the_interval(step: Step, device: Device) -> None:
    costs = Calibrated(Analytic(), replace(PROFILE, step_spread=(0.9, 1.2))).costs(step().columns, device, TODAY)
    assert costs.low == pytest.approx(costs.mid * 0.9)
    assert costs.high == pytest.approx(costs.mid * 1.2)


def test_other_devices_are_left_alone(step: Step, device: Device) -> None:
    other = replace(device, name="another")
    trace = step()
    assert np.array_equal(
        Calibrated(Analytic(), PROFILE).costs(trace.columns, other, TODAY).mid,
        Analytic().costs(trace.columns, other, TODAY).mid,
    )


def test_an_unknown_class_is_refused() -> None:
    with pytest.raises(UnknownName, match="no op class called 'convolution'"):
        Calibrated(Analytic(), replace(PROFILE, class_factor={"convolution": 1.1}))


def test_a_saved_profile_is_used_for_the_model_it_was_made_for(
    device: Device, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EPOCHCAST_PROFILES", str(tmp_path))
    assert with_profile(Analytic(), device) == Analytic()
    save_profile(replace(PROFILE, launch_seconds=9e-6), profile_path(device))
    assert isinstance(with_profile(Analytic(), device), Calibrated)
    assert calibrated_device(Analytic(), device).launch_seconds == 9e-6
    other = Analytic(name="another")
    assert with_profile(other, device) == other
    assert calibrated_device(other, device) == device
