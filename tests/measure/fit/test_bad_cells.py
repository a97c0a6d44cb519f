"""One bad cell costs its row, not the table."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from epochcast.errors import BadInput
from epochcast.hardware.catalogue import find_device
from epochcast.measure.evaluate.evaluate import evaluate
from epochcast.measure.evaluate.predicted import Predicted
from epochcast.measure.evaluate.scored_rows import scored
from epochcast.measure.evaluate.scores import grouped_scores, scores
from epochcast.measure.fit.calibrate import calibrate
from epochcast.measure.tables.row_errors import FailedRow
from epochcast.predict.cost.cost_models import find_cost_model

ANALYTIC = find_cost_model("analytic")
RUN: dict[str, Any] = {"model": "mnist_cnn", "device": "V100", "batch_per_gpu": 32, "step_seconds": 0.01, "gpus": 1}
OP: dict[str, Any] = {
    **{"device": "A100", "family": "matmul", "op": "linear", "phase": "forward", "dtype": "float32"},
    **{"seconds": 1e-4, "batch": 8, "m": 64, "n": 64, "k": 64},
}
LAYER: dict[str, Any] = {
    **{"device": "V100", "batch_size": 8, "activation": "relu", "optimizer": "sgd", "backward_and_update": "true"},
    **{"features_in": 64, "features_out": 32, "seconds_median": 1e-3},
}
REPORT: dict[str, Any] = {
    **{"model": "mnist_cnn", "device": "V100", "batch_size_per_replica": 32, "steps_per_epoch": 100},
    **{"seconds": 5.0, "gpu_count": 1, "epoch": 2, "epochs_in_time": 1, "note": ""},
}
NASTY = ["many", "nan", "inf", "-5", "1e400", "1" + "0" * 30, "[1]"]


@pytest.mark.parametrize(
    ("row", "column"),
    [
        *((RUN, name) for name in ("batch_per_gpu", "step_seconds", "gpus")),
        *((OP, name) for name in ("m", "batch", "seconds")),
        *((LAYER, name) for name in ("features_in", "batch_size", "seconds_median", "backward_and_update")),
        *((REPORT, name) for name in ("seconds", "steps_per_epoch", "batch_size_per_replica", "gpu_count")),
    ],
)
def test_a_bad_cell_costs_its_row(tmp_path: Path, row: dict[str, Any], column: str) -> None:
    texts = {name: str(value) for name, value in row.items()}
    file = tmp_path / "t.csv"
    pl.DataFrame([texts, *({**texts, column: cell} for cell in NASTY)]).write_csv(file)
    found = evaluate(file, cost_model=ANALYTIC)
    assert found.scores.n == 1
    assert [failure.row_index for failure in found.failures] == list(range(1, len(NASTY) + 1))
    assert not any("ended in" in failure.reason for failure in found.failures)  # no error of ours


@pytest.mark.parametrize("column", ["batch_per_gpu", "step_seconds", "device_memory_bytes", "nodes", "grad_accum"])
def test_a_word_among_numbers_costs_its_row_of_a_calibration(column: str) -> None:
    rows = [{**RUN, "step_seconds": seconds} for seconds in (0.01, 0.011, 0.012)]
    found = calibrate([{**RUN, column: "many"}, *rows], find_device("V100"), ANALYTIC, date="2026-01-01")
    assert found.profile.rows == 3
    assert [(one.row_index, column in one.reason) for one in found.failures] == [(0, True)]  # and it is said
    with pytest.raises(BadInput, match=f"{column} must be a number, got 'many'"):
        calibrate([{**RUN, column: "many"}], find_device("V100"), ANALYTIC, date="2026-01-01")


def test_groups_have_the_figures_of_their_rows() -> None:
    import numpy as np

    random = np.random.default_rng(0)
    measured, mid = random.uniform(1, 2, 60), random.uniform(1, 2, 60)
    low, high = 0.8 * mid, 1.2 * mid
    keys = [f"g{i}" for i in random.integers(0, 4, 60)]
    is_failed = random.uniform(size=60) < 0.2
    failures = tuple(FailedRow(int(i), "net", "no reason") for i in np.flatnonzero(is_failed))
    part = Predicted(measured, low, mid, high, failures, {"device": keys}, ~is_failed)
    found = grouped_scores(scored(part, pl.DataFrame({"system": keys}), (), 0).lazy(), ["device"])
    assert list(found) == sorted(found, key=lambda key: (-found[key].n, key))
    for key, group in found.items():
        own = np.array([k == key for k in keys])
        chosen = own & ~is_failed
        expected = scores(measured[chosen], low[chosen], mid[chosen], high[chosen], int((own & is_failed).sum()))
        assert group.as_dict() == pytest.approx(expected.as_dict())


def test_a_table_of_convolutions_without_their_padding_says_so() -> None:
    row = {**LAYER, "input_size": 8, "kernel_size": 3, "stride": 1, "channels_in": 3, "channels_out": 8}
    for name in ("features_in", "features_out"):
        row.pop(name)
    with pytest.raises(BadInput, match="needs padding"):
        evaluate(pl.DataFrame([row]))
