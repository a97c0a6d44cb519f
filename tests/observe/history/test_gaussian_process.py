import numpy as np
import pytest

from epochcast.errors import BadInput
from epochcast.observe.history.gaussian_process import Blocks, Deviations, HistoryProcess, covariance
from epochcast.observe.history.models.process_fit import Repeated, _negative_likelihood, fit_process, repeated

BLOCKS = Blocks(numbers=2, groups=(2, 3))


def table(count: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Two numbers, a category of two values and one of three; the second category has an effect, the first none."""
    generator = np.random.default_rng(5)
    numbers = generator.normal(size=(count, 2))
    one, other = generator.integers(0, 2, count), generator.integers(0, 3, count)
    rows = np.column_stack([numbers, np.eye(2)[one], np.eye(3)[other]])
    target = 0.3 * numbers[:, 0] + np.array([-0.5, 0.0, 0.5])[other] + 0.01 * generator.normal(size=count)
    return rows, target


def test_covariance_by_hand() -> None:
    """One number at 0 and 1, the same category: c² + a² + s²·exp(−½·w)."""
    blocks = Blocks(1, (1,))
    deviations = Deviations(np.log([0.5, 2.0, 0.1, 0.25, 3.0, 4.0]), blocks)
    found = covariance(np.array([[0.0, 1.0]]), np.array([[1.0, 1.0], [1.0, 0.0]]), deviations)
    assert found[0] == pytest.approx([0.5 + 0.25 + 2 * np.exp(-2), 0.5 + 2 * np.exp(-3 - 2)])


def test_slopes_of_the_likelihood_are_its_differences() -> None:
    rows, target = table(25)
    generator = np.random.default_rng(2)
    different = Repeated(rows, target, generator.integers(1, 5, len(rows)).astype(float), generator.random(len(rows)))
    prior = Deviations.prior(BLOCKS)
    same = [rows[:, part] @ rows[:, part].T for part in BLOCKS.slices()]
    squares = [(rows[:, j][:, None] - rows[:, j][None, :]) ** 2 for j in range(2)]
    values = prior + np.random.default_rng(0).normal(0, 0.3, len(prior))

    def loss(at: np.ndarray) -> tuple[float, np.ndarray]:
        return _negative_likelihood(at, prior, BLOCKS, different, (same, squares))

    for place, slope in enumerate(loss(values)[1]):
        step = np.zeros(len(values))
        step[place] = 1e-5
        assert slope == pytest.approx((loss(values + step)[0] - loss(values - step)[0]) / 2e-5, rel=1e-3, abs=1e-4)


def test_equal_rows_as_one_change_nothing() -> None:
    """Against the likelihood of all rows as a multivariate normal, up to what depends on no deviation."""
    from scipy.stats import multivariate_normal

    rows, target = table(12)
    which = np.repeat(np.arange(12), np.arange(1, 13) % 4 + 1)
    generator = np.random.default_rng(3)
    all_rows, all_targets = rows[which], target[which] + generator.normal(0, 0.3, len(which))
    different = repeated(all_rows, all_targets)
    assert len(different.rows) == 12 and different.counts.sum() == len(which)
    prior = Deviations.prior(BLOCKS)

    def both(values: np.ndarray) -> tuple[float, float]:
        d, x = Deviations(values, BLOCKS), different.rows
        same = [x[:, part] @ x[:, part].T for part in BLOCKS.slices()]
        squares = [(x[:, j][:, None] - x[:, j][None, :]) ** 2 for j in range(2)]
        merged, _ = _negative_likelihood(values, values, BLOCKS, different, (same, squares))
        whole = covariance(all_rows, all_rows, d) + d.noise * np.eye(len(which))
        return merged, -float(multivariate_normal.logpdf(all_targets, np.zeros(len(which)), whole))

    one, other = both(prior), both(prior + generator.normal(0, 0.5, len(prior)))
    assert one[0] - other[0] == pytest.approx(one[1] - other[1], rel=1e-4)


def test_ten_times_the_same_table_is_learned_as_quickly_and_said_more_surely() -> None:
    rows, target = table(40)
    noisy = np.concatenate([target + np.random.default_rng(s).normal(0, 0.2, 40) for s in range(10)])
    process = fit_process(np.tile(rows, (10, 1)), noisy, BLOCKS, 0)
    assert len(process.weights) == 40
    assert np.abs(process.values(rows) - target).mean() < 0.08


def test_rare_categories_are_kept_where_rows_are_too_many() -> None:
    from epochcast.observe.history.models.process_fit import _spread

    categories = np.zeros((500, 2))
    categories[:, 0] = 1
    categories[:3] = [0, 1]
    kept = _spread(categories, 50, np.random.default_rng(0))
    assert len(set(kept.tolist())) == 50 and {0, 1, 2} <= set(kept.tolist())


def test_a_law_is_learned() -> None:
    rows, target = table()
    process = fit_process(rows[10:], target[10:], BLOCKS, 0)
    assert np.abs(process.values(rows[:10]) - target[:10]).mean() < 0.05


def test_far_from_all_numbers_what_is_common_is_left() -> None:
    generator = np.random.default_rng(1)
    rows = generator.normal(size=(60, 1))
    process = fit_process(rows, rows[:, 0], Blocks(1, ()), 0)
    assert process.values(rows) == pytest.approx(rows[:, 0], abs=0.1)
    assert abs(process.values(np.array([[100.0]]))[0]) < 1.0


def test_an_unseen_category_is_what_is_common_to_all() -> None:
    rows, target = table()
    process = fit_process(rows, target, BLOCKS, 0)
    unseen = rows[:1].copy()
    unseen[0] = [0.0, 0.0, 1, 0, 0, 0, 0]
    assert abs(process.values(unseen)[0]) < 0.2


def test_rows_that_do_not_fit_are_refused() -> None:
    rows, target = table(20)
    process = fit_process(rows, target, BLOCKS, 0)
    document = process.as_dict()
    assert HistoryProcess.from_dict(document).values(rows) == pytest.approx(process.values(rows), abs=1e-9)
    with pytest.raises(BadInput):
        HistoryProcess.from_dict({**document, "deviations": document["deviations"][:-1]})
