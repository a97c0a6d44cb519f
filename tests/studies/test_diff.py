import numpy as np
import pytest

from studies.diff.pairs import Pairs, Step, pairs_of
from studies.diff.run import containments, figure, figures, inside, page, width

GROUP = ("benchmark", "RTX 3090", "a", 64)


def step(model: str, seconds: float, error: float, group: tuple[object, ...] = GROUP, **kernels: float) -> Step:
    return Step(group, model, str(group[2]), float(np.log(seconds)), error, 2 * error, 0.0, kernels)


STEPS = [step("x", 1.0, 0.1, k=1.0), step("y", 1.2, 0.1, k=1.0, m=0.2), step("z", 1.1, -0.2, k=1.0, n=0.1)]


def test_errors_that_both_sides_have_cancel() -> None:
    pairs = pairs_of(STEPS[:2])
    assert pairs.without_family == pytest.approx(pairs.measured)


def test_only_steps_of_one_group_are_pairs() -> None:
    assert len(pairs_of(STEPS)) == 3
    assert len(pairs_of([*STEPS, step("other", 1.0, 0.0, ("benchmark", "RTX 3090", "a", 32), k=1.0)])) == 3


def test_a_wrong_sign_counts_and_points_are_of_both_directions() -> None:
    """y → z: measured 1.1/1.2, forecast 1.1/1.2·e^-0.3; x → z: measured 1.1, forecast 1.1·e^-0.3, below 1."""
    pairs = pairs_of(STEPS)
    found = figure("all", pairs, pairs.without_family, np.ones(3), np.ones(3, dtype=np.bool_))
    assert found.changed == 3
    assert found.sign == pytest.approx(2 / 3)
    ratios = [(1.2, 1.2), (1.1, 1.1 * np.exp(-0.3)), (1.1 / 1.2, 1.1 / 1.2 * np.exp(-0.3))]
    points = [abs(f - m) for m, f in ratios] + [abs(1 / f - 1 / m) for m, f in ratios]
    assert found.median_points == pytest.approx(np.median(points))


def many(seed: int = 0) -> Pairs:
    """Pairs whose errors are normal with 0.1·√u."""
    generator = np.random.default_rng(seed)
    size = 4000
    alone = generator.uniform(0.05, 1, size)
    measured = generator.normal(0, 0.3, size)
    error = generator.normal(0, 0.1, size) * np.sqrt(np.hypot(alone, alone))
    family = np.where(np.arange(size) % 2 == 0, "even", "odd")
    names = np.array(["n"] * size)
    return Pairs(names, names, family, measured, measured + error, measured + 2 * error, measured, alone, alone)


def test_the_width_holds_nine_of_ten() -> None:
    pairs = many()
    assert width(pairs.without_family - pairs.measured, pairs.unlike) == pytest.approx(0.1 * 1.645, rel=0.05)
    assert float(np.nanmean(inside(pairs, pairs.without_family))) == pytest.approx(0.9, abs=0.02)


def test_a_step_with_all_kernels_of_another_is_a_containment() -> None:
    assert containments(pairs_of(STEPS[:2])) == (1, 0)
    assert containments(pairs_of([step("x", 1.2, 0.0, k=1.0), step("y", 1.0, 0.0, k=1.0, m=0.2)])) == (1, 1)


def test_the_page_says_which_target_is_missed() -> None:
    pairs = many()
    text = page(pairs, figures(pairs))
    assert "| sign right in 97 %" in text
    assert "missed by" in text
