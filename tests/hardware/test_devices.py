"""The device table: figures checked by hand, laws every row obeys, and names."""

from collections import Counter
from dataclasses import replace

import pytest
from tests.every import every

from epochcast.base import catalogue_rows as rows
from epochcast.base.name_matching import plain
from epochcast.describe.graph.math_modes import MATHS
from epochcast.errors import AmbiguousName, BadInput, UnknownName
from epochcast.hardware import catalogue
from epochcast.hardware.catalogue import devices, family, find_device, find_link, load_devices
from epochcast.hardware.device import Device

every_device = every("device", devices(), ids=lambda device: device.name)

ROW = """
[[device]]
name = "X1"
vendor = "NVIDIA"
kind = "gpu"
generation = "ampere"
year = 2020
compute_units = 10
clock_hertz = 1.5e9
peak_flops_per_second = { fp32 = 2e12 }
memory = "8 GiB"
memory_bandwidth = "400 GB/s"
interconnect = "pcie4"
host_link = "pcie4"
tensor_cores = false
source = "a test"
verified = false
"""


# Vendor sheets: units, boost clock, fp32 and fp16 peak (fp32 accumulation), memory, bandwidth.
@every(
    ("name", "units", "fp32", "fp16", "memory_bytes", "bytes_per_second"),
    [
        ("K80", 13, 4.37e12, 4.37e12, 12 * 2**30, 240e9),
        ("GTX 1080 Ti", 28, 11.34e12, 11.34e12, 11 * 2**30, 484e9),
        ("P100-PCIE-16GB", 56, 9.3e12, 18.7e12, 16 * 2**30, 732e9),
        ("V100-SXM2-16GB", 80, 15.7e12, 125e12, 16 * 2**30, 900e9),
        ("T4", 40, 8.14e12, 65e12, 16 * 2**30, 320e9),
        ("RTX 2080 Ti", 68, 13.45e12, 53.8e12, 11 * 2**30, 616e9),
        ("RTX 3090", 82, 35.6e12, 71.2e12, 24 * 2**30, 936e9),
        ("A100-SXM4-80GB", 108, 19.5e12, 312e12, 80 * 2**30, 2039e9),
        ("H100-SXM5-80GB", 132, 66.9e12, 989.4e12, 80 * 2**30, 3352e9),
        ("RTX 4090", 128, 82.6e12, 165.2e12, 24 * 2**30, 1008e9),
        ("MI250", 104, 45.3e12, 181e12, 64 * 2**30, 1638e9),
        ("RTX 4070 Ti SUPER", 66, 44.1e12, 88.2e12, 16 * 2**30, 672e9),
        ("RTX 5080", 84, 56.28e12, 112.6e12, 16 * 2**30, 960e9),
        ("RTX 5000 Ada", 100, 65.28e12, 261.1e12, 32 * 2**30, 576e9),
        ("RTX PRO 6000 Blackwell Workstation", 188, 125.9e12, 503.8e12, 96 * 2**30, 1792e9),
        ("H20", 78, 44e12, 148e12, 96 * 10**9, 4000e9),
        ("MI325X", 304, 163.4e12, 1307.4e12, 256 * 10**9, 6000e9),
        ("RX 7900 XTX", 96, 61.4e12, 122.9e12, 24 * 2**30, 960e9),
        ("TPU v4", 2, 45.8e12, 45.8e12, 32 * 2**30, 1200e9),
    ],
)
def test_the_table_gives_the_figures_of_the_data_sheets(
    name: str, units: int, fp32: float, fp16: float, memory_bytes: int, bytes_per_second: float
) -> None:
    device = find_device(name)
    assert device.compute_units == units
    assert (device.peak("fp32"), device.peak("fp16")) == pytest.approx((fp32, fp16), rel=1e-3)
    assert device.memory_bytes == memory_bytes
    assert device.memory_bytes_per_second == pytest.approx(bytes_per_second)


def test_other_formats_of_a_few_devices_by_hand() -> None:
    assert find_device("A100").peak("tf32") == 156e12
    assert find_device("RTX 3090").peak("tf32") == find_device("RTX 3090").peak("fp32")
    assert find_device("H100").peak("fp8") == pytest.approx(1978.9e12)
    assert find_device("MI100").peak("bf16") == pytest.approx(92.3e12)
    assert find_device("V100").peak("fp16_vector") == pytest.approx(31.4e12)
    assert find_device("MI210").peak("fp32_vector") == pytest.approx(22.6e12)
    assert find_device("TPU v3").peak("bf16") == 123e12


def test_there_are_at_least_sixty_devices_of_the_four_large_vendors_and_others() -> None:
    assert len(devices()) >= 60
    assert {"NVIDIA", "AMD", "Intel", "Google"} <= {device.vendor for device in devices()}


@every_device
def test_a_missing_format_runs_at_the_rate_of_its_stand_in(device: Device) -> None:
    given = device.peak_flops_per_second
    for math in ("tf32", "fp16", "bf16", "fp16_vector", "fp32_vector"):
        assert device.peak(math) == given.get(math, given["fp32"])
    assert device.peak("fp8") == given.get("fp8", device.peak("fp16"))


@every_device
def test_narrower_formats_are_never_much_slower_than_fp32(device: Device) -> None:
    assert device.peak("fp16") >= device.peak("fp32") / 64
    assert device.peak("fp32") <= device.peak("tf32") <= max(device.peak("fp16"), device.peak("bf16"))
    assert device.peak("fp32_vector") <= device.peak("fp32")


# fp32 lanes of one unit (SM or CU).
LANES = {
    "fermi": 32,
    "kepler": 192,
    "maxwell": 128,
    "pascal": 128,
    "volta": 64,
    "turing": 64,
    "ampere": 128,
    "ada": 128,
    "hopper": 128,
    "blackwell": 128,
    "gcn5": 64,
    "rdna": 64,
    "rdna2": 64,
    "rdna3": 128,
    "rdna4": 128,
    "xe_hpg": 128,
    "xe2": 128,
}
HALF_WIDTH = {"P100", "A100"}  # GP100 and GA100 have 64 lanes where their generation has 128
HALF_WIDTH_BOARDS = {"A800-SXM4-80GB"}
OTHER_CLOCKS = {"A30", "H100-NVL-94GB", "H200-NVL-141GB", "H20"}  # their sheets' peaks are not those of their clocks


@every(
    "device",
    [d for d in devices() if d.generation in LANES and d.name not in OTHER_CLOCKS],
    ids=lambda device: device.name,
)
def test_the_fp32_peak_is_lanes_times_clock_times_two(device: Device) -> None:
    """A slipped digit in units, clock or peak shows here."""
    compute_die = device.name in HALF_WIDTH_BOARDS or any(device in family(name) for name in HALF_WIDTH)
    lanes = LANES[device.generation] // 2 if compute_die else LANES[device.generation]
    reckoned = device.compute_units * lanes * device.clock_hertz * 2
    assert device.peak("fp32_vector") == pytest.approx(reckoned, rel=0.05)


YEARS = {
    "fermi": (2010, 2012),
    "kepler": (2012, 2015),
    "maxwell": (2014, 2016),
    "pascal": (2016, 2018),
    "volta": (2017, 2018),
    "turing": (2018, 2020),
    "ampere": (2020, 2022),
    "ada": (2022, 2024),
    "hopper": (2022, 2024),
    "blackwell": (2024, 2026),
    "gcn5": (2017, 2019),
    "cdna": (2020, 2020),
    "cdna2": (2021, 2022),
    "cdna3": (2023, 2024),
    "cdna4": (2025, 2025),
    "rdna2": (2020, 2022),
    "rdna3": (2022, 2024),
    "rdna4": (2025, 2026),
}


@every_device
def test_a_device_is_of_its_generations_years(device: Device) -> None:
    first, last = YEARS.get(device.generation, (2010, 2026))
    assert first <= device.year <= last


@every_device
def test_memory_is_of_plausible_size_and_speed(device: Device) -> None:
    """Reading all of memory once takes from five milliseconds (on-chip SRAM aside) to a second and a half."""
    if device.vendor != "Graphcore":
        assert 5e-3 < device.memory_bytes / device.memory_bytes_per_second < 1.5


@every_device
def test_tensor_cores_show_in_the_peaks(device: Device) -> None:
    narrow = max(device.peak("fp16"), device.peak("bf16"))
    if device.tensor_cores:
        assert narrow > 1.9 * device.peak("fp32")
    else:
        assert narrow <= 2.02 * device.peak("fp32")


@every_device
def test_every_device_says_where_its_figures_come_from(device: Device) -> None:
    assert len(device.source) > 10
    assert device.verified or "recalled" in device.source or "assumed" in device.source or "taken from" in device.source


@every_device
def test_every_device_is_wired_by_links_of_the_catalogue(device: Device) -> None:
    assert find_link(device.interconnect).name == device.interconnect
    assert find_link(device.host_link).name == device.host_link


@every_device
def test_a_launch_time_is_fitted_and_not_in_the_table(device: Device) -> None:
    assert device.launch_seconds is None


def test_names_and_aliases_are_unique() -> None:
    spoken = Counter(key for d in devices() for key in {plain(name) for name in (d.name, *d.aliases)})
    assert [name for name, times in spoken.items() if times > 1] == []


@every_device
def test_every_name_and_alias_finds_its_device(device: Device) -> None:
    for name in (device.name, *device.aliases):
        assert find_device(name) == device
        assert find_device(f"NVIDIA {name}".upper().replace(" ", "_")) == device


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("V100", "V100-SXM2-16GB"),
        ("A100", "A100-SXM4-40GB"),
        ("H100", "H100-SXM5-80GB"),
        ("P100", "P100-SXM2-16GB"),
        ("T4", "T4"),
        ("nvidia tesla v100-pcie-32gb", "V100-PCIE-32GB"),
        ("NVIDIA GeForce RTX 3090", "RTX 3090"),
        ("GTX TITAN X", "GTX TITAN X (Maxwell)"),
        ("AMD Radeon Instinct MI25", "MI25"),
    ],
)
def test_what_people_say_is_what_they_mean(said: str, meant: str) -> None:
    assert find_device(said).name == meant


@pytest.mark.parametrize(
    ("said", "memory_bytes", "meant"),
    [
        ("V100", 32e9, "V100-SXM2-32GB"),
        ("V100", 16e9, "V100-SXM2-16GB"),
        ("A100", 80e9, "A100-SXM4-80GB"),
        ("P100", 12e9, "P100-PCIE-12GB"),
        ("A100-PCIe-80GB", 40e9, "A100-PCIE-80GB"),
    ],
)
def test_a_memory_size_chooses_within_a_family_and_never_overrules_a_full_name(
    said: str, memory_bytes: float, meant: str
) -> None:
    assert find_device(said, memory_bytes=memory_bytes).name == meant


def test_the_source_of_a_name_can_decide_its_meaning() -> None:
    assert find_device("TITAN X", source="jcjohnson").name == "TITAN X (Pascal)"
    assert find_device("TITAN X", source="paleo").name == "GTX TITAN X (Maxwell)"
    assert find_device("TPU", source="mlperf_training").name == "TPU v4"
    assert find_device("NVIDIA Tesla P100", source="deepbench").name == "P100-PCIE-16GB"
    assert find_device("RTX 3090", source="never heard of").name == "RTX 3090"


def test_an_ambiguous_name_is_refused_with_the_candidates() -> None:
    with pytest.raises(AmbiguousName, match=r"device 'TITAN X' could be: GTX TITAN X \(Maxwell\), TITAN X \(Pascal\)"):
        find_device("TITAN X")
    with pytest.raises(AmbiguousName, match="'TPU' could be: TPU v2, TPU v3, TPU v4"):
        find_device("TPU")


def test_a_device_without_honest_numbers_is_refused_with_the_reason() -> None:
    with pytest.raises(BadInput, match="device 'Apple M1 CPU' is not in the catalogue: Apple never published"):
        find_device("Apple M1 CPU")


def test_a_wrong_name_is_answered_with_near_ones() -> None:
    with pytest.raises(UnknownName, match=r"no device called 'RTX 3909'; near: .*RTX 3090"):
        find_device("RTX 3909")


def test_an_unknown_math_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UnknownName, match="no math called 'fp12'; known: bf16, fp16, "):
        find_device("A100").peak("fp12")


def test_a_format_nothing_stands_in_for_is_refused() -> None:
    with pytest.raises(UnknownName, match="no math of GTX 850M called 'int8'; known: fp32"):
        find_device("GTX 850M").peak("int8")


def test_a_good_row_loads_and_the_shipped_table_equals_itself() -> None:
    (device,) = load_devices(ROW).devices
    assert (device.memory_bytes, device.memory_bytes_per_second) == (8 * 2**30, 400e9)
    assert load_devices(rows.shipped("devices.toml", catalogue.__file__)).devices == devices()


@pytest.mark.parametrize(
    ("good", "broken", "message"),
    [
        ("year = 2020", 'year = "2020"', "'year' must be a whole number, got '2020'"),
        ("year = 2020", "year = 20", "year must be between 2000 and 2100, got 20"),
        ("year = 2020\n", "", "'year' is missing"),
        ("verified = false", "verified = 0", "'verified' must be true or false, got 0"),
        ("8 GiB", "8 gigs", "'memory': '8 gigs' is not a size in bytes"),
        ("400 GB/s", "400 TB/s", "memory_bytes_per_second must be between"),
        ("fp32 = 2e12", "fp16 = 2e12", "must contain 'fp32'"),
        ("fp32 = 2e12", "fp32 = 2e12, fp12 = 1e12", "no math called 'fp12'"),
        ("clock_hertz", "clock_herz", "'clock_hertz' is missing"),
        ("verified = false", "verified = false\nvolts = 5", "unknown key 'volts'"),
    ],
)
def test_a_broken_row_names_file_and_row(good: str, broken: str, message: str) -> None:
    text = ROW.replace("X1", "X0") + ROW.replace(good, broken)
    with pytest.raises(BadInput) as caught:
        load_devices(text, "devices.toml")
    assert str(caught.value).startswith("devices.toml, [[device]] row 2 (X1): ")
    assert message in str(caught.value)


def test_a_name_given_twice_is_refused() -> None:
    with pytest.raises(BadInput, match=r"devices\.toml: 'Tesla X-1' names both 'X1' and 'Tesla X-1'"):
        load_devices(ROW + ROW.replace("X1", "Tesla X-1"))


def test_a_family_of_an_unknown_device_is_refused() -> None:
    with pytest.raises(BadInput, match=r"devices.toml, \[family\] X: no device called 'X2'"):
        load_devices('[family]\nX = ["X1", "X2"]\n' + ROW)


def test_a_device_is_valid_from_birth_and_keeps_its_own_peaks() -> None:
    peaks = {"fp32": 1e12}
    device = replace(find_device("T4"), peak_flops_per_second=peaks)
    peaks["fp32"] = 5.0
    assert device.peak("fp32") == 1e12
    assert hash(device) != 0
    with pytest.raises(BadInput, match="compute_units must be at least 1, got 0"):
        replace(device, compute_units=0)
    assert set(device.peak_flops_per_second) <= set(MATHS)
