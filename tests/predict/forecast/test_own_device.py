"""Forecasts on a user's own data sheet, with a measured product, and with a profile of another format."""

from pathlib import Path
from typing import Any

import pytest

from epochcast import api
from epochcast.errors import BadInput
from epochcast.hardware.catalogue import find_device
from epochcast.hardware.profile import Profile, profile_path, save_profile
from epochcast.predict.forecast.forecast import Forecast
from epochcast.predict.forecast.job_defaults import placement_of
from epochcast.predict.forecast.job_file import read_job
from epochcast.predict.forecast.placement import Placement
from epochcast.predict.forecast.session import Session
from epochcast.predict.forecast.where import Where


@pytest.fixture
def sheet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("EPOCHCAST_PROFILES", str(tmp_path / "profiles"))
    path = tmp_path / "mine.toml"
    path.write_text('like = "V100"\nmemory = "8 GiB"\n')
    return str(path)


def forecast(device: str, precision: str = "fp32", **options: Any) -> Forecast:
    return api.forecast("resnet18", batch=16, device=device, precision=precision, **options)


def width(answer: Forecast) -> float:
    return answer.step_seconds.high / answer.step_seconds.low


def test_a_sheet_is_forecast_like_what_it_is_like_but_says_so_and_is_wider(sheet: str) -> None:
    own, like = forecast(sheet), forecast("V100")
    assert own.step_seconds.mid == pytest.approx(like.step_seconds.mid, rel=0.02)
    assert width(own) >= width(like)
    assert (own.device, own.memory_bytes, own.dollars_per_hour) == ("mine", 8 * 2**30, None)
    (warning,) = [text for text in own.warnings if "data sheet" in text]
    assert warning.startswith(
        "mine comes from the data sheet mine.toml: no measurements, so the interval is wide; rates of V100"
    )


def test_less_power_is_never_faster(sheet: str, tmp_path: Path) -> None:
    (tmp_path / "weak.toml").write_text('like = "V100"\nwatts = 300\npower_limit = 150\n')
    assert forecast(str(tmp_path / "weak.toml")).step_seconds.mid > forecast(sheet).step_seconds.mid


def test_a_place_on_a_sheet_is_written_down_whole(sheet: str, tmp_path: Path) -> None:
    place = Where(sheet, gemm_seconds="100ms").placement("fp32")
    assert Placement.from_dict(place.as_dict()) == place
    assert place.device.sheet == "mine.toml"
    assert set(place.device.measured_fractions) == {"fp32"}


def test_every_verb_takes_a_sheet(sheet: str) -> None:
    assert "on 1 × mine" in repr(api.advise("resnet18", device=sheet))
    table = api.scaling("resnet18", device=sheet, gpus=[1, 2], batch=16)
    assert [row.forecast.device for row in table.rows] == ["mine", "mine"]


def test_a_job_file_finds_a_sheet_beside_it(sheet: str, tmp_path: Path) -> None:
    file = tmp_path / "epochcast.toml"
    file.write_text(
        '[[job]]\nname = "a"\nmodel = "resnet18"\nbatch = 4\ndevice = "mine.toml"\ngemm_seconds = "100ms"\n'
    )
    job = read_job("a", file)
    assert placement_of(job.where, job.job, Session()).device.name == "mine"


def test_a_measured_product_moves_the_forecast_of_its_format_only() -> None:
    slow = forecast("V100", gemm_seconds="200ms")  # 5.5 of 15.7 TFLOPS
    assert slow.step_seconds.mid > 1.2 * forecast("V100").step_seconds.mid
    assert "Matrix products in fp32 use the speed that you measured." in slow.warnings
    half = forecast("V100", "amp_fp16", gemm_seconds="fp32:200ms")
    assert half.step_seconds.mid < 1.15 * forecast("V100", "amp_fp16").step_seconds.mid


def test_a_product_does_not_narrow_the_interval(sheet: str) -> None:
    assert width(forecast(sheet, gemm_seconds="100ms")) > 0.8 * width(forecast(sheet))


def test_a_sheet_like_a_measured_device_is_never_narrower_than_the_device(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('like = "RTX 3090"\n')
    assert width(forecast(str(tmp_path / "mine.toml"), "amp_fp16")) >= width(forecast("RTX 3090", "amp_fp16"))


def test_a_bad_product_names_its_option_and_one_above_the_peak_the_device() -> None:
    with pytest.raises(BadInput, match="gemm_seconds: 'soon' is not a time"):
        Where("V100", gemm_seconds="soon")
    with pytest.raises(BadInput, match="above the peak of V100-SXM2-16GB in fp32"):
        forecast("V100", gemm_seconds="1ms")
    with pytest.raises(BadInput, match="the format of the measured product is missing"):
        Where("V100", gemm_seconds="100ms").placement()


def test_a_profile_of_another_format_is_not_used_and_said(sheet: str) -> None:
    profile = Profile(
        "mine", "pytorch", "a test", "2026-01-01", 5, "learned", compute_factor=3.0, precisions=("amp_fp16",)
    )
    before = forecast(sheet)
    save_profile(profile, profile_path(find_device(sheet)))
    after, half = forecast(sheet), forecast(sheet, "amp_fp16")
    assert after.step_seconds == before.step_seconds
    hint = "Your profile of mine was measured in amp_fp16: it is not used for fp32."
    assert hint in after.warnings
    assert hint not in half.warnings
    assert any(name.endswith("calibrated") for name in half.answered_by)
    assert any("corrected by your measurements" in text for text in half.warnings)
