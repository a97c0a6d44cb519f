from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcast.errors import BadInput
from epochcast.hardware.catalogue import devices, find_device
from epochcast.hardware.profile import (
    Profile,
    ProfileWarning,
    load_profiles,
    profile_path,
    save_profile,
    to_toml,
    user_profile,
)

V100 = find_device("V100")
PROFILE = Profile(
    device=V100.name,
    stack="pytorch",
    source="three steps",
    date="2026-01-02",
    rows=3,
    relative_to="analytic",
    gemm_fraction={"fp32": 0.9},
    launch_seconds=8e-6,
    compute_factor=1.25,
    class_factor={"conv": 0.8},
    step_spread=(0.8, 1.3),
)

factors = st.floats(0.02, 50)


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EPOCHCAST_PROFILES", str(tmp_path / "profiles"))
    return tmp_path / "profiles"


def test_a_saved_profile_is_found_again(own_folder: Path) -> None:
    assert user_profile(V100) is None
    save_profile(PROFILE, profile_path(V100))
    assert user_profile(V100) == PROFILE
    assert [p.name for p in own_folder.iterdir()] == ["v100sxm216gb.toml"]


def test_saving_again_replaces(own_folder: Path) -> None:
    save_profile(PROFILE, profile_path(V100))
    save_profile(replace(PROFILE, rows=9), profile_path(V100))
    found = user_profile(V100)
    assert found is not None and found.rows == 9


def test_no_two_devices_share_a_file() -> None:
    assert len({profile_path(device) for device in devices()}) == len(devices())


@given(
    source=st.text(min_size=1),
    compute=factors,
    memory=factors,
    classes=st.dictionaries(st.sampled_from(["conv", "linear", 'it\'s "odd"']), factors),
    low=st.floats(0.01, 1),
    high=st.floats(1, 100),
)
def test_toml_is_read_back_as_it_was(
    source: str, compute: float, memory: float, classes: dict[str, float], low: float, high: float
) -> None:
    profile = replace(
        PROFILE,
        source=source,
        compute_factor=compute,
        memory_factor=memory,
        class_factor=classes,
        step_spread=(low, high),
    )
    assert load_profiles(to_toml([profile])) == {"v100sxm216gb": profile}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"source": ""}, "a profile needs a device and a source"),
        ({"gemm_fraction": {"fp12": 0.5}}, "gemm_fraction: no math called 'fp12'"),
        ({"gemm_fraction": {"fp32": 9.0}}, "gemm_fraction of fp32 must be between 0.001 and 1.5, got 9.0"),
        ({"compute_factor": 0.0}, "compute_factor must be between 0.01 and 100, got 0.0"),
        ({"step_spread": (1.1, 1.2)}, "step_spread must be two factors, low ≤ 1 ≤ high, got 1.1 and 1.2"),
    ],
)
def test_a_profile_is_valid_from_birth(change: dict[str, object], message: str) -> None:
    with pytest.raises(BadInput) as caught:
        replace(PROFILE, **change)  # type: ignore[arg-type]
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (
            b'[[profile]]\nname = "V100-SXM2-16GB"\n',
            r"v100sxm216gb.toml, \[\[profile\]\] row 1 \(V100-SXM2-16GB\): 'stack' is missing",
        ),
        (b"\xff\xfe", "is left out"),
    ],
    ids=["incomplete", "not text"],
)
def test_a_file_that_cannot_be_used_costs_a_warning_that_names_it(own_folder: Path, content: bytes, says: str) -> None:
    own_folder.mkdir()
    profile_path(V100).write_bytes(content)
    with pytest.warns(ProfileWarning, match=says):
        assert user_profile(V100) is None
