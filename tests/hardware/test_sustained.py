from dataclasses import replace

import pytest
from tests.every import every

from epochcast.hardware.catalogue import devices, find_device
from epochcast.hardware.device import Device
from epochcast.hardware.sustained import Sustained, prior, similarity, sustained

A, B = find_device("V100-PCIE-32GB"), find_device("T4")
# No board has so many multiprocessors.
UNMEASURED = replace(find_device("H100"), name="made up", compute_units=97)


def row(fp32: float) -> Sustained:
    return Sustained({"fp32": fp32}, 0.9, 0.8, {"conv": 1.1}, {"pytorch_2": 0.9})


def test_a_measured_device_keeps_its_row_and_lends_what_was_not_measured() -> None:
    kept = sustained(find_device("V100-PCIE-32GB"))
    assert kept.known_kinds
    assert set(kept.math_fractions) >= {"fp32", "fp16"}


def test_a_device_nobody_measured_is_not_known() -> None:
    assert not sustained(UNMEASURED).known_kinds


@every("device", devices(), ids=lambda device: device.name)
def test_every_device_of_the_catalogue_sustains_something_plausible(device: Device) -> None:
    kept = sustained(device)
    for value in (*kept.math_fractions.values(), kept.vector_fraction, kept.bandwidth_fraction):
        assert 0.1 < value < 3
    assert all(0.2 < factor < 5 for factor in (*kept.group_factors.values(), *kept.generation_factors.values()))
    assert all(1e-6 < seconds < 2e-4 for seconds in kept.launch_seconds.values())


def test_a_board_with_more_memory_is_the_same_chip() -> None:
    measured = find_device("RTX 3090")
    small, large = (sustained(device) for device in (measured, replace(measured, name="made up", memory_bytes=2**36)))
    assert small.known_kinds and not large.known_kinds
    assert set(small.known_kinds) <= large.sister_kinds
    assert small.math_fractions["fp16"] == pytest.approx(large.math_fractions["fp16"], rel=1e-3)
    assert small.bandwidth_fraction == pytest.approx(large.bandwidth_fraction, rel=1e-3)


def test_one_relative_answers_alone() -> None:
    expected = prior(find_device("V100-SXM2-16GB"), {A.name: row(0.6)}, (A, B))
    assert expected.math_fractions == pytest.approx({"fp32": 0.6})
    assert expected.group_factors == pytest.approx({"conv": 1.1})
    assert not expected.generation_factors, "what a framework did with one device says little of another"


def test_the_nearer_relative_counts_more() -> None:
    known = {A.name: row(0.9), B.name: row(0.3)}
    assert prior(find_device("V100-SXM2-16GB"), known, (A, B)).math_fractions["fp32"] > 0.8
    assert prior(find_device("TITAN RTX"), known, (A, B)).math_fractions["fp32"] < 0.5


def test_similarity_is_symmetric_and_one_at_most() -> None:
    assert similarity(A, A) == 1
    assert similarity(A, B) == pytest.approx(similarity(B, A))
    assert similarity(A, find_device("MI210")) < 0.1
