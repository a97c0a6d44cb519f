import pytest

from epochcast.errors import BadInput, UnknownName
from epochcast.hardware.catalogue import find_device


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("A100 80GB", "A100-SXM4-80GB"),
        ("A100-80G", "A100-SXM4-80GB"),
        ("a100 40gb", "A100-SXM4-40GB"),
        ("A100 PCIe 80GB", "A100-PCIE-80GB"),
        ("H100", "H100-SXM5-80GB"),
        ("H100 SXM", "H100-SXM5-80GB"),
        ("NVIDIA H100 80GB HBM3", "H100-SXM5-80GB"),
        ("H100 SXM5 80GB HBM3", "H100-SXM5-80GB"),
        ("V100 32G", "V100-SXM2-32GB"),
        ("rtx4090", "RTX 4090"),
        ("Tesla T4", "T4"),
        ("RTX 2080 Super with Max-Q Design", "RTX 2080 SUPER Max-Q"),
        ("NVIDIA GeForce RTX 2070 with Max-Q Design", "RTX 2070 Max-Q"),
        ("AMD Instinct MI300X 192GB HBM3", "MI300X"),
        ("MI325X 256GB HBM3e", "MI325X"),
        ("RTX 4090 24GB", "RTX 4090"),
        ("A30-PCIE-24GB", "A30"),
    ],
)
def test_devices_are_named_as_people_type_them(typed: str, meant: str) -> None:
    assert find_device(typed).name == meant


@pytest.mark.parametrize("typed", ["RTX 4090 48GB", "MI300X 256GB", "RTX 4090 0GB", "RTX 3080 with Max-Q Design"])
def test_a_board_that_was_not_sold_is_unknown(typed: str) -> None:
    with pytest.raises(UnknownName, match="no device called"):
        find_device(typed)


@pytest.mark.parametrize("typed", ["AMD Radeon 680M", "780m"])
def test_graphics_with_the_memory_of_a_laptop_are_refused_with_a_way_out(typed: str) -> None:
    with pytest.raises(BadInput, match=r"has the memory of its laptop.* data sheet"):
        find_device(typed)


@pytest.mark.parametrize(("typed", "count"), [("8xA100", 8), ("A100x8", 8), ("4 × RTX 4090", 4), ("2 X h100", 2)])
def test_several_at_once_are_told_how_to_be_counted(typed: str, count: int) -> None:
    with pytest.raises(BadInput, match=rf"is {count} of a device: name one, .* and give `gpus` {count}"):
        find_device(typed)
