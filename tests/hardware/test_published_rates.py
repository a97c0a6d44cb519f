"""Published rates: within the data sheet, by device, and inherited by boards of the same chip only."""

from dataclasses import replace

import pytest
from tests.every import every

from epochcast.base import catalogue_rows as rows
from epochcast.errors import BadInput
from epochcast.hardware import catalogue
from epochcast.hardware.catalogue import devices, find_device
from epochcast.hardware.device import Device
from epochcast.hardware.published_rates import (
    FILE,
    load_rates,
    published_bandwidth_fraction,
    published_fractions,
    published_rates,
)

RATE = '[[rate]]\nname = "T4"\nof = "fp16"\nfraction = 0.4\nsource = "a test"\n'


def test_figures_of_the_sources_over_the_peaks_of_the_sheets() -> None:
    # By hand: 91.4 and 66 TFLOPS of 121 in bf16, 12 of 30.3 in fp32, 235 of 300 GB/s.
    rates = published_rates(find_device("L4"))
    assert rates["bf16"].fraction == pytest.approx((91.4 + 66) / 2 / 121, abs=1e-3)
    assert (rates["bf16"].low, rates["bf16"].high) == pytest.approx((66 / 121, 91.4 / 121), abs=1e-3)
    assert published_fractions(find_device("L4"))["fp32"] == pytest.approx(12 / 30.3, abs=1e-3)
    assert published_bandwidth_fraction(find_device("L4")) == pytest.approx(235 / 300, abs=1e-3)


@every("device", devices(), ids=lambda device: device.name)
def test_no_published_rate_is_above_its_data_sheet(device: Device) -> None:
    for what, rate in published_rates(device).items():
        assert 0 < rate.low <= rate.fraction <= rate.high <= 1
        assert what == "bandwidth" or what in device.peak_flops_per_second


def test_there_are_rates_of_most_devices_that_were_published() -> None:
    assert len(load_rates(rows.shipped(FILE, catalogue.__file__))) >= 70


def test_rates_above_the_peak_did_not_enter() -> None:
    # 78 TFLOPS were published for an RTX 3090, whose sheet has 71 with fp32 accumulation.
    assert "bf16" not in published_fractions(find_device("RTX 3090"))


def test_a_board_of_the_same_chip_has_what_its_sister_has() -> None:
    assert (
        published_fractions(find_device("A800"))["bf16"] == published_fractions(find_device("A100-SXM4-80GB"))["bf16"]
    )
    assert published_fractions(find_device("H200"))["bf16"] > 0.7
    assert published_bandwidth_fraction(find_device("H200")) is None


def test_a_board_of_less_power_does_not() -> None:
    weak = replace(find_device("A100-SXM4-80GB"), name="weak", watts=150.0)
    assert published_rates(weak) == {}


def test_nothing_published_is_nothing_and_not_zero() -> None:
    assert published_fractions(find_device("K80")) == {}
    assert published_bandwidth_fraction(find_device("K80")) is None


@pytest.mark.parametrize(
    ("good", "broken", "message"),
    [
        ("0.4", "1.4", "fractions must be in order and at most 1"),
        ('"fp16"', '"fp12"', "'of' must be a math or 'bandwidth', got 'fp12'"),
        ('"T4"', '"T5"', "no device called 'T5'"),
        ('source = "a test"\n', "", "'source' is missing"),
    ],
)
def test_a_broken_rate_is_refused(good: str, broken: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        load_rates(RATE.replace(good, broken))


def test_a_rate_given_twice_is_refused() -> None:
    with pytest.raises(BadInput, match="two rates of T4 in fp16"):
        load_rates(RATE + RATE)
