import pytest

from epochcast.errors import BadInput
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
    ],
)
def test_devices_are_named_as_people_type_them(typed: str, meant: str) -> None:
    assert find_device(typed).name == meant


@pytest.mark.parametrize(("typed", "count"), [("8xA100", 8), ("A100x8", 8), ("4 × RTX 4090", 4), ("2 X h100", 2)])
def test_several_at_once_are_told_how_to_be_counted(typed: str, count: int) -> None:
    with pytest.raises(BadInput, match=rf"is {count} of a device: name one, .* and give `gpus` {count}"):
        find_device(typed)
