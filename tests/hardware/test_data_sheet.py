"""A user's own data sheet: read as written, never taken for measured, refused with file and key."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.every import every

from epochcast.errors import BadInput
from epochcast.hardware.catalogue import devices, find_device
from epochcast.hardware.data_sheet import data_sheet_text, load_data_sheet, read_data_sheet
from epochcast.hardware.device import Device
from epochcast.hardware.sustained import sustained

SHEET = """
memory = "24 GiB"
bandwidth = "900 GB/s"
fp32 = "60 TFLOPS"
fp16 = "120 TFLOPS"
compute_units = 100
generation = "ada"
watts = "400 W"
"""


def sheet(text: str = SHEET) -> Device:
    return load_data_sheet(text, "mine.toml")


def test_a_data_sheet_by_itself() -> None:
    device = sheet()
    assert (device.name, device.sheet, device.like, device.verified) == ("mine", "mine.toml", "", False)
    assert (device.memory_bytes, device.memory_bytes_per_second) == (24 * 2**30, 900e9)
    assert (device.peak("fp32"), device.peak("fp16"), device.watts) == (60e12, 120e12, 400)
    assert (device.vendor, device.kind, device.tensor_cores) == ("NVIDIA", "gpu", True)


def test_what_a_generation_shares_is_filled_in() -> None:
    assert (sheet().peak("bf16"), sheet().peak("tf32")) == (120e12, 60e12)
    assert 16 * 2**20 < (sheet().l2_bytes or 0) < 128 * 2**20
    unknown = sheet(SHEET.replace('generation = "ada"', ""))
    assert (unknown.generation, "bf16" in unknown.peak_flops_per_second) == ("unknown", False)
    assert unknown.l2_bytes


def test_a_sheet_that_is_like_another_device_changes_only_what_it_says() -> None:
    device, other = sheet('name = "big"\nlike = "RTX 4090"\nmemory = "48 GiB"'), find_device("RTX 4090")
    same = ("name", "sheet", "like", "source", "verified", "aliases", "memory_bytes")
    assert replace(device, **{name: getattr(other, name) for name in same}) == other
    assert (device.name, device.memory_bytes, device.like) == ("big", 48 * 2**30, "RTX 4090")


def test_peaks_follow_the_given_one_or_units_and_clock() -> None:
    halved = sheet('like = "RTX 4090"\nfp32 = "41.3 TFLOPS"')
    assert halved.peak("bf16") == pytest.approx(165.2e12 / 2)
    fewer = sheet('like = "RTX 4090"\ncompute_units = 64\nclock = "2.52 GHz"')
    assert fewer.peak("fp32") == pytest.approx(82.6e12 / 2)
    assert sheet('like = "RTX 4090"\nfp32 = "41.3 TFLOPS"\nbf16 = "99 TFLOPS"').peak("bf16") == 99e12


def test_a_power_limit_lowers_clock_and_peaks_and_leaves_memory() -> None:
    # By hand: of 400 W the board takes 80, so 150 W leave 70 of 320 for arithmetic, below the least voltage.
    free, limited = sheet(), sheet(SHEET + "power_limit = 150")
    assert limited.peak("fp16") / free.peak("fp16") == pytest.approx(70 / 320 / 0.845**2)
    assert limited.clock_hertz < free.clock_hertz
    assert limited.memory_bytes_per_second == free.memory_bytes_per_second
    assert (limited.watts, "150 of 400 W" in limited.source) == (150, True)


def test_figures_of_a_known_device_are_recognised() -> None:
    text = SHEET.replace("900 GB", "1008 GB").replace("60 T", "82.6 T").replace("120 T", "165 T").replace("100", "128")
    assert sheet(text.replace("1288", "1008")).like == "RTX 4090"


def test_a_sheet_has_the_fractions_of_what_it_is_like_but_is_never_known() -> None:
    own, known = sustained(sheet('like = "RTX 3090"')), sustained(find_device("RTX 3090"))
    assert known.known_kinds
    assert not own.known_kinds and not own.launch_seconds
    assert own.math_fractions == known.math_fractions
    assert own.bandwidth_fraction == known.bandwidth_fraction


def test_a_measured_fraction_counts_before_all_others() -> None:
    device = replace(find_device("V100"), measured_fractions={"fp16": 0.5})
    assert sustained(device).math_fraction("fp16") == 0.5
    assert sustained(device).math_fraction("fp32") == sustained(find_device("V100")).math_fraction("fp32")


@every("device", devices()[::9], ids=lambda device: device.name)
def test_the_printed_sheet_reads_back_as_the_device(device: Device) -> None:
    again = sheet(data_sheet_text(device))
    assert again.name == f"my {device.name}"
    assert again.peak_flops_per_second == pytest.approx(device.peak_flops_per_second, rel=1e-5)
    assert (again.memory_bytes, again.compute_units) == (device.memory_bytes, device.compute_units)
    assert again.memory_bytes_per_second == pytest.approx(device.memory_bytes_per_second, rel=1e-5)


def test_a_path_is_a_device_wherever_a_name_is(tmp_path: Path) -> None:
    file = tmp_path / "RTX4090.toml"
    file.write_text(SHEET)
    # The file is called like a card; it is not taken for it.
    assert find_device(str(file)).name == read_data_sheet(file).name == "RTX4090 (own sheet)"


@pytest.mark.parametrize(
    ("good", "broken", "message"),
    [
        ('bandwidth = "900 GB/s"', "", "'bandwidth' is missing; a data sheet needs memory, bandwidth, fp32, "),
        ("900 GB/s", "900 GB", "'bandwidth': '900 GB' is not a rate; write it like"),
        ("900 GB/s", "-900 GB/s", "'bandwidth': '-900 GB/s' is not a rate"),
        ("900 GB/s", "900 TB/s", "'bandwidth' is implausible: '900 TB/s' is not between"),
        ('"900 GB/s"', "900", "'bandwidth' must be text, got 900"),
        ("24 GiB", "24 gigs", "'memory': '24 gigs' is not a size in bytes"),
        ("24 GiB", "24", "'memory' is implausible: '24' is not between"),
        ("120 TFLOPS", "120 TB/s", "'fp16': '120 TB/s' is not a rate of arithmetic; write it like '165 TFLOPS'"),
        ("120 TFLOPS", "-120 TFLOPS", "'fp16': '-120 TFLOPS' is not a rate of arithmetic"),
        ("60 TFLOPS", "0 TFLOPS", "'fp32' must be above 0, got 0"),
        ("60 TFLOPS", "60 FLOPS", "'fp32' must be between 1 GFLOPS and 100 PFLOPS, got '60 FLOPS'"),
        ("compute_units = 100", "compute_units = -1", "'compute_units' must be between 1 and 100,000, got -1"),
        ("compute_units = 100", "compute_units = 1.5", "'compute_units' must be a whole number, got 1.5"),
        ('"400 W"', "-5", "'watts' must be above 0, got -5"),
        ('"ada"', '"adda"', "no generation called 'adda'; near: "),
        ("bandwidth", "bandwith", "no key called 'bandwith'; near: bandwidth"),
        ("watts", "power_limit", "'power_limit' says nothing without the `watts`"),
        ('"400 W"', "400\npower_limit = 500", "'power_limit' must be between 120 and the 400 `watts`, got 500"),
        ('"400 W"', '400\nlike = "RTX 4091"', "no device called 'RTX 4091'; near: "),
        ('"400 W"', '400\nlike = "local"', "'like' must be a device of the catalogue"),
        ('"400 W"', '400\nname = "RTX 4090"', "'name': 'RTX 4090' is a device of the catalogue"),
        ('"400 W"', '400\nfp32_vector = "70 TFLOPS"', "'fp32_vector' is a rate above the peak 'fp32'"),
        ('"400 W"', "1" + "0" * 400, "'watts' must be a number of at most"),
        ('"400 W"', "nan", "'watts' must be a number of at most"),
        ("memory =", "memory", "Expected '='"),
    ],
)
def test_a_bad_sheet_is_refused_in_one_line_with_file_and_key(good: str, broken: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        sheet(SHEET.replace(good, broken))
    assert str(caught.value).startswith(("mine.toml: ", "mine.toml is not TOML: "))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_file_no_text_and_too_much_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no file 'nowhere\.toml': a device that ends in \.toml is a data sheet"):
        find_device("nowhere.toml")
    (tmp_path / "a.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(BadInput, match=r"a\.toml is not text in UTF-8"):
        read_data_sheet(tmp_path / "a.toml")
    (tmp_path / "b.toml").write_text("#" * 200_000)
    with pytest.raises(BadInput, match="too many for such a file"):
        read_data_sheet(tmp_path / "b.toml")
