import numpy as np
import pytest

pytest.importorskip("polars")
pytest.importorskip("lightgbm")
pytest.importorskip("scipy")

from epochcast.errors import BadInput
from epochcast.hardware.catalogue import find_device
from epochcast.measure.evaluate.layer_table import LayerTable
from epochcast.predict.cost.layer_terms import TERMS, terms
from epochcast.predict.cost.single_layer import LayerRows
from training.layer_training import Growth, coefficients, quantiles, train, with_intervals
from training.peers import RawTimeMLP
from training.stack_hosts import least_absolute_deviations, run_and_op_seconds, run_ops

DEVICE = find_device("V100")
FEW = {"conv2d": Growth(rounds=20, leaves=7, learning_rate=0.2)}


def made_up(count: int, seed: int, small: bool = False) -> LayerTable:
    """Layers that take three times their arithmetic, twice their traffic and 0.3 ms; 3x3 windows half as long again."""
    rng = np.random.default_rng(seed)
    optimizer = rng.choice(["none", "sgd", "adam"], count)
    most = 12 if small else 200
    rows = LayerRows(
        "conv2d",
        rng.integers(1, 33, count).astype(float),
        rng.integers(8, most, count).astype(float),
        rng.integers(1, 6, count).astype(float),
        rng.integers(1, 3, count).astype(float),
        rng.random(count) < 0.5,
        rng.integers(1, 40, count).astype(float),
        rng.integers(1, 40, count).astype(float),
        rng.random(count) < 0.5,
        rng.choice(["none", "relu"], count),
        optimizer,
        optimizer != "none",
    )
    table = terms(rows, DEVICE)
    factor = np.array([3.0 if "compute" in name else 2.0 for name in TERMS])
    factor[TERMS.index("host")], factor[TERMS.index("host_training")] = 3e-4, 1e-4
    seconds = table @ factor * np.where(rows.kernel == 3, 1.5, 1.0)
    return LayerTable(rows, np.full(count, "V100"), np.full(count, "tensorflow1"), seconds)


def test_coefficients_are_found_again() -> None:
    table = made_up(400, 0)
    others = table.at(table.rows.kernel != 3)
    found = dict(zip(TERMS, coefficients(others, DEVICE), strict=True))
    assert found["product_compute"] == pytest.approx(3, rel=0.05)
    assert found["update_input"] == pytest.approx(2, rel=0.05)
    assert found["host"] == pytest.approx(3e-4, rel=0.05)


def test_trees_learn_what_the_terms_leave() -> None:
    table, test = made_up(1500, 0), made_up(300, 1)
    model = train([table], FEW)
    mid = model.answer(test.rows, DEVICE, "tensorflow1").mid
    base = model.setups[0].base_seconds(test.rows, DEVICE)
    assert np.mean(np.abs(mid / test.seconds - 1)) < np.mean(np.abs(base / test.seconds - 1)) / 3


def test_training_twice_gives_the_same_trees() -> None:
    table = made_up(300, 0)
    first, second = (train([table], FEW).forests["conv2d"].number for _ in range(2))
    assert np.array_equal(first, second)


def test_intervals_hold_nine_of_ten() -> None:
    model = with_intervals(train([made_up(800, 0)], FEW), [made_up(600, 1)])
    test = made_up(600, 2)
    answer = model.answer(test.rows, DEVICE, "tensorflow1")
    assert 0.85 < np.mean((answer.low <= test.seconds) & (test.seconds <= answer.high)) < 0.95


def test_quantiles_always_hold_the_middle() -> None:
    assert quantiles(np.array([0.1, 0.2, 0.3])) == (0.0, 0.3)
    assert quantiles(-np.arange(1, 100) / 100) == (-0.95, 0.0)


def test_the_median_is_the_constant_of_least_absolute_deviation() -> None:
    found = least_absolute_deviations(np.ones((5, 1)), np.array([1.0, 2.0, 3.0, 40.0, 50.0]), np.ones(5))
    assert found == [pytest.approx(3.0)]


def test_ops_of_a_run_by_hand() -> None:
    """Product, bias, relu; two products, bias, relu back; ten of the loss; input, target, weights, bias updated."""
    table = made_up(200, 0)
    rows = table.rows
    chosen = rows.has_bias & rows.is_activated & rows.trains
    assert set(run_ops(rows)[chosen]) == {3 + 4 + 10 + 4}
    assert set(run_ops(rows)[~rows.trains & ~rows.has_bias & ~rows.is_activated]) == {1}


def test_host_figures_are_found_again() -> None:
    table = made_up(300, 0, small=True)
    setup = train([table], FEW).setups[0]
    bare = table.seconds * 0 + 2e-4 + 1e-5 * run_ops(table.rows)
    run, op = run_and_op_seconds(LayerTable(table.rows, table.device, table.stack, bare), DEVICE, setup)
    assert run == pytest.approx(2e-4, rel=0.02)
    assert op == pytest.approx(1e-5, rel=0.02)


def test_a_raw_time_network_must_be_fitted_first() -> None:
    pytest.importorskip("sklearn")
    table = made_up(200, 0)
    with pytest.raises(BadInput, match="must be fitted first"):
        RawTimeMLP().seconds(table.rows, DEVICE)
    assert len(RawTimeMLP(epochs=2).fit([table]).seconds(table.rows, DEVICE)) == 200
