import numpy as np
import pytest

from epochcast.predict.cost.gaussian import CostKernel, CostProcess

KERNEL = CostKernel(np.array([1.5, 0.7]), signal=0.5, common=0.2, offset=0.1, correlation=0.6, noise=0.05)


def some(size: int = 12) -> CostProcess:
    chance = np.random.default_rng(5)
    points, kinds = chance.normal(size=(size, 2)), chance.integers(0, 2, size)
    return CostProcess(KERNEL, points, kinds, chance.normal(size=size), np.full(size, KERNEL.noise))


# by hand: one point, prior variance 0.25 + 0.04 + 0.01 = 0.3, noise 0.1² → mean 0.3/0.31 of its value
def test_one_point_by_hand() -> None:
    one = CostProcess(KERNEL, np.zeros((1, 2)), np.zeros(1, dtype=np.int64), np.array([0.8]), np.array([0.1]))
    mean, deviation = one.answers(np.zeros((1, 2)), np.zeros(1, dtype=np.int64))
    assert mean[0] == pytest.approx(0.8 * 0.3 / 0.31)
    assert deviation[0] == pytest.approx(np.sqrt(0.3 - 0.3**2 / 0.31))


def test_far_from_every_point_the_prior_is_left() -> None:
    mean, deviation = some().answers(np.full((1, 2), 1e3), np.array([7]))
    assert abs(mean[0]) < 0.5
    assert deviation[0] == pytest.approx(KERNEL.prior_deviation, rel=0.1)


def test_left_out_is_what_the_others_say() -> None:
    process = some()
    error, deviation = process.left_out()
    others = CostProcess(KERNEL, process.points[1:], process.kinds[1:], process.values[1:], process.noises[1:])
    mean, spread = others.answers(process.points[:1], process.kinds[:1])
    assert error[0] == pytest.approx(process.values[0] - mean[0])
    assert deviation[0] == pytest.approx(np.hypot(spread[0], KERNEL.noise), rel=1e-3)


def test_slopes_are_those_of_the_likelihood() -> None:
    def at(theta: np.ndarray) -> CostProcess:
        signal, common, offset, noise = np.exp(theta[2:6])
        kernel = CostKernel(np.exp(theta[:2]), signal, common, offset, theta[6], noise)
        points = some()
        return CostProcess(kernel, points.points, points.kinds, points.values, np.full(12, noise))

    theta = np.log([1.5, 0.7, 0.5, 0.2, 0.1, 0.05, np.exp(0.6)])
    numeric = [(at(theta + d).log_likelihood() - at(theta - d).log_likelihood()) / 2e-5 for d in 1e-5 * np.eye(7)]
    assert at(theta).slopes() == pytest.approx(numeric, rel=1e-3, abs=1e-4)


def test_a_kernel_needs_positive_lengths() -> None:
    with pytest.raises(ValueError, match="lengths above zero"):
        CostKernel(np.array([0.0]), 1, 1, 1, 0.5, 0.1)
