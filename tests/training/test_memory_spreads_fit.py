"""The fit of memory's spreads finds the parts that made the errors."""

import numpy as np
import pytest

from epochcast.predict.memory.memory_spreads import ALONE, PARTS, SPLIT
from training.memory_spreads import MeasuredPeak, fitted, is_inside, left_out


def peaks(group: str, deviations: dict[str, float], count: int = 300) -> list[MeasuredPeak]:
    """Networks of ten sources whose errors are normal, each part with its own deviation."""
    draw = np.random.default_rng(7)
    measured = []
    for place in range(count):
        shares = {"activations, zoo": draw.uniform(0.2, 1.0), f"setup, {group}": 1.0}
        error = sum(shares[part] * draw.normal(0, deviation) for part, deviation in deviations.items())
        cells = tuple(shares.get(part, 0.0) for part in PARTS)
        measured.append(MeasuredPeak(error, cells, group, f"s{place % 10}", f"cell {place}", "allocated"))
    return measured


def test_parts_of_one_gpu_are_found_whatever_several_err() -> None:
    alone = peaks(ALONE, {"activations, zoo": 0.1, f"setup, {ALONE}": 0.03})
    split = peaks(SPLIT, {f"setup, {SPLIT}": 0.25})
    variances = fitted([*alone, *split]).variances
    assert np.sqrt(variances["activations, zoo"]) == pytest.approx(0.1, rel=0.25)
    assert np.sqrt(variances[f"setup, {ALONE}"]) == pytest.approx(0.03, abs=0.02)
    assert np.sqrt(variances[f"setup, {SPLIT}"]) == pytest.approx(0.23, rel=0.2)  # errors above 0.35 are cut


def test_nine_of_ten_are_inside_and_sources_left_out_too() -> None:
    measured = peaks(ALONE, {"activations, zoo": 0.1, f"setup, {ALONE}": 0.03})
    spreads = fitted(measured)
    assert np.mean([is_inside(peak, spreads)[0] for peak in measured]) == pytest.approx(0.9, abs=0.02)
    assert np.mean([share for _, share, _ in left_out(measured).values()]) == pytest.approx(0.9, abs=0.04)
