from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from epochcast.hardware.catalogue import devices, find_device
from epochcast.hardware.power_law import sustained_peak
from epochcast.hardware.siblings import is_sibling, ordered, sibling_pairs
from epochcast.hardware.sustained import _table, sustained

V100 = find_device("V100-SXM2-16GB")
PAIRS = [("a", "b"), ("b", "c"), ("a", "c")]


def test_a_sibling_is_as_fast_by_every_line() -> None:
    faster = replace(V100, memory_bytes_per_second=2 * V100.memory_bytes_per_second)
    assert is_sibling(V100, faster) and not is_sibling(faster, V100)
    slower = {math: 0.9 * peak for math, peak in V100.peak_flops_per_second.items()}
    assert not is_sibling(V100, replace(faster, peak_flops_per_second=slower))
    assert not is_sibling(V100, find_device("A100")), "another generation"
    assert ("RTX 3080", "RTX 3090") in sibling_pairs(devices())


def test_what_is_in_order_stays_as_it_is() -> None:
    assert ordered({"a": 1.0, "b": 1.5, "c": 2.0}, dict.fromkeys("abc", 1.0), PAIRS) == {"a": 1.0, "b": 1.5, "c": 2.0}


# b is measured nine times as well as a: they meet at 1.1.
def test_the_better_measured_moves_less() -> None:
    found = ordered({"a": 2.0, "b": 1.0}, {"a": 1.0, "b": 9.0}, [("a", "b")])
    assert found == pytest.approx({"a": 1.1, "b": 1.1}, abs=1e-5)


def test_a_slack_is_left_to_the_slower_one() -> None:
    found = ordered({"a": 2.0, "b": 1.0}, {"a": 1.0, "b": 1.0}, [("a", "b")], [0.6])
    assert found == pytest.approx({"a": 1.8, "b": 1.2}, abs=1e-5)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.tuples(*[st.floats(-2, 2)] * 3), st.tuples(*[st.floats(0.1, 100)] * 3))
def test_nothing_is_out_of_order_afterwards(values: tuple[float, ...], weights: tuple[float, ...]) -> None:
    found = ordered(dict(zip("abc", values, strict=True)), dict(zip("abc", weights, strict=True)), PAIRS)
    assert all(found[slow] <= found[fast] + 1e-9 for slow, fast in PAIRS)
    assert min(values) - 1e-6 <= min(found.values()) and max(found.values()) <= max(values) + 1e-6


def test_what_nobody_measured_on_a_sibling_does_not_move_what_was() -> None:
    """No sibling of an RX 5700 was timed under PyTorch 1: their factor there is unknown, not 1."""
    measured = _table()["RX 5700"].generation_factors["pytorch_1"]
    assert measured > 1.3
    assert sustained(find_device("RX 5700")).generation_factors["pytorch_1"] == pytest.approx(measured, rel=0.01)
    assert not _table()["RX 6800 XT"].generation_factors


def test_no_device_of_the_catalogue_sustains_less_than_a_slower_sibling() -> None:
    boards = [device for device in devices() if device.kind == "gpu"]
    by_name = {device.name: device for device in boards}
    pairs = sibling_pairs(boards)
    assert len(pairs) > 300
    for slow, fast in ((by_name[a], by_name[b]) for a, b in pairs):
        less, more = sustained(slow), sustained(fast)
        for math in slow.peak_flops_per_second.keys() & {"fp32", "tf32", "fp16", "bf16", "fp8"}:
            rates = [own.math_fraction(math) * sustained_peak(d, math) for own, d in ((less, slow), (more, fast))]
            assert rates[0] <= rates[1] * (1 + 1e-6), (slow.name, fast.name, math)
        moved = [own.bandwidth_fraction * d.memory_bytes_per_second for own, d in ((less, slow), (more, fast))]
        assert moved[0] <= moved[1] * (1 + 1e-6), (slow.name, fast.name)
        for group, factor in less.group_factors.items():
            seconds = [factor / moved[0], more.group_factors[group] / moved[1]]
            assert seconds[1] <= seconds[0] * (1 + 1e-6), (slow.name, fast.name, group)
