"""The clock that a board's power sustains, worked out by hand and against published rates."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.every import every

from epochcast.errors import BadInput
from epochcast.hardware.catalogue import devices, find_device
from epochcast.hardware.device import Device
from epochcast.hardware.power_law import (
    IDLE_SHARE,
    Energy,
    chip_class,
    clock_at,
    clock_fraction,
    clock_with,
    limited_clock,
    sustained_peak,
)

T4 = find_device("T4")


def test_the_clock_is_the_cube_root_of_the_power_and_proportional_below_the_least_voltage() -> None:
    assert clock_at(2.0) == 1
    assert clock_at(0.729) == pytest.approx(0.9)
    assert clock_at(0.357) == pytest.approx(0.5, rel=1e-3), "0.357 / 0.845²"
    assert clock_at(0.845**3) == pytest.approx(0.845), "both laws meet"


def test_a_board_by_hand() -> None:
    """0.8 · 70 W over 16 pJ · 8.14 Tflop/s: 0.43 of what the boost clock needs, so 0.6 of the clock."""
    energy = Energy(16e-12, 2e-12)
    assert clock_with(energy, T4, "fp32") == pytest.approx(56 / (16e-12 * 8.14e12) / 0.845**2)
    assert clock_with(energy, T4, "bf16") == clock_with(energy, T4, "fp32"), "Turing computes bf16 in fp32"
    assert clock_with(energy, T4, "fp16") == pytest.approx(56 / (2e-12 * 65e12) / 0.845**2)
    assert clock_with(energy, replace(T4, watts=None), "fp32") == clock_with(None, T4, "fp32") == 1


# Zeus (You et al., NSDI 2023): throughput of BERT in fp32 on a V100 at 100 to 200 W; 220 of its 250 W are enough.
# What waits for memory is not slowed, so that the whole step loses less than products at the lowest limit.
@pytest.mark.parametrize(
    ("watts", "measured", "tolerance"), [(100, 0.50, 0.2), (125, 0.65, 0.08), (150, 0.80, 0.08), (200, 0.94, 0.08)]
)
def test_a_power_limit_costs_what_was_measured(watts: float, measured: float, tolerance: float) -> None:
    idle = IDLE_SHARE * 250
    assert clock_at((watts - idle) / (220 - idle)) == pytest.approx(measured, rel=tolerance)


def test_a_limited_board_by_hand() -> None:
    assert limited_clock(1.0) == 1
    assert limited_clock(0.6) == pytest.approx(0.5 / 0.845**2), "half of the watts that the board itself leaves"


# Large fp32 products: chsasank and NeuSight; A100, V100 and P100 need all or nearly all of the clock they have.
@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("L4", 0.5, 0.7),
        ("T4", 0.5, 0.65),
        ("A10", 0.5, 0.65),
        ("A100-PCIE-40GB", 0.85, 0.97),
        ("V100-SXM2-16GB", 0.95, 1.0),
        ("P100-PCIE-16GB", 0.99, 1.0),
        ("GTX 1080 Ti", 0.99, 1.0),
    ],
)
def test_boards_with_little_power_run_fp32_below_their_boost_clock(name: str, low: float, high: float) -> None:
    assert low <= clock_fraction(find_device(name), "fp32") <= high


@every("device", devices(), ids=lambda device: device.name)
def test_more_power_or_a_higher_peak_is_never_slower(device: Device) -> None:
    watts = device.watts or 100.0
    for math, peak in device.peak_flops_per_second.items():
        own = sustained_peak(replace(device, watts=watts), math)
        assert 0 < own <= peak
        assert sustained_peak(replace(device, watts=1.3 * watts), math) >= own
        faster = replace(device, watts=watts, peak_flops_per_second={**device.peak_flops_per_second, math: 1.3 * peak})
        assert chip_class(faster) != chip_class(device) or sustained_peak(faster, math) >= own * (1 - 1e-12)


@given(st.floats(0, 3), st.floats(0, 3))
def test_the_clock_never_falls_with_power(first: float, second: float) -> None:
    assert clock_at(min(first, second)) <= clock_at(max(first, second))


def test_large_and_small_chips_of_ampere_have_different_energies() -> None:
    assert chip_class(find_device("A100")) == "ampere 64"
    assert chip_class(find_device("RTX 3090")) == "ampere"


def test_doubles_on_tensor_cores_take_no_more_power_than_on_vector_units() -> None:
    a100 = find_device("A100-SXM4-40GB")
    assert clock_fraction(a100, "fp64") == pytest.approx(clock_fraction(a100, "fp64_vector"), rel=0.01)


def test_an_energy_is_positive() -> None:
    with pytest.raises(BadInput):
        Energy(0.0, 1e-12)
