from pathlib import Path

import numpy as np
import pytest

from epochcast.errors import BadInput

pl = pytest.importorskip("polars")

from epochcast.measure.evaluate.layer_table import evaluate_layers, is_layer_table, read_layers  # noqa: E402

CONV = {
    "device": ["V100", "K80"],
    "batch_size": [28, 4],
    "input_size": [224, 10],
    "kernel_size": [2, 3],
    "stride": [2, 1],
    "padding": ["same", "valid"],
    "channels_in": [4, 8],
    "channels_out": [42, 16],
    "use_bias": [True, False],
    "activation": ["none", "relu"],
    "optimizer": ["sgd", "none"],
    "backward_and_update": [True, False],
    "seconds_median": [2.8e-3, None],
}
DENSE = {
    "device": ["P100"],
    "batch_size": [26],
    "features_in": [2078],
    "features_out": [1665],
    "activation": ["none"],
    "optimizer": ["adam"],
    "seconds_median": [8e-4],
}


def test_a_convolution_by_hand() -> None:
    table = read_layers(pl.DataFrame(CONV))
    assert table.rows.kind == "conv2d"
    assert table.rows.output_size.tolist() == [112, 8]
    assert table.rows.trains.tolist() == [True, False]
    assert table.is_measured.tolist() == [True, False]


def test_a_dense_layer_is_a_convolution_of_one_pixel() -> None:
    rows = read_layers(pl.DataFrame(DENSE)).rows
    assert rows.kind == "dense"
    assert rows.product_flops[0] == 2 * 26 * 2078 * 1665


def test_a_table_with_source_files_is_the_report_s() -> None:
    assert set(read_layers(pl.DataFrame(CONV)).stack) == {"tensorflow1"}
    assert set(read_layers(pl.DataFrame(CONV | {"source_file": ["a", "a"]})).stack) == {"tensorflow2"}


def test_a_row_that_makes_no_sense_has_no_answer_and_spoils_no_other() -> None:
    frame = pl.DataFrame(CONV | {"device": ["V100", "Voodoo2"]})
    _, mid, _ = evaluate_layers(frame)
    assert mid[0] > 0
    assert np.isnan(mid[1])
    low, mid, high = evaluate_layers(pl.DataFrame(CONV | {"kernel_size": [2, 11]}))
    assert np.isnan(mid).tolist() == [False, True]
    assert low[0] <= mid[0] <= high[0]


def test_tables_are_told_by_their_columns() -> None:
    assert is_layer_table(list(DENSE))
    assert not is_layer_table(["device", "batch_per_gpu"])


def test_a_missing_column_is_named() -> None:
    with pytest.raises(BadInput, match="needs optimizer; it has device"):
        read_layers(pl.DataFrame(DENSE).drop("optimizer"))
    with pytest.raises(BadInput, match="single conv2d layers needs stride"):
        read_layers(pl.DataFrame(CONV).drop("stride"))


@pytest.mark.needs_data
@pytest.mark.parametrize(("name", "most"), [("layers_conv2d", 0.06), ("layers_dense", 0.06)])
def test_the_last_tenth_is_met(name: str, most: float, data: Path) -> None:
    frame = pl.read_parquet(data / f"{name}.parquet").filter(pl.col("split_seed0") == "test").head(4000)
    low, mid, high = evaluate_layers(frame)
    seconds = frame["seconds_median"].cast(pl.Float64).to_numpy()
    assert np.mean(np.abs(mid / seconds - 1)) < most
    assert 0.85 < np.mean((low <= seconds) & (seconds <= high)) < 0.95
