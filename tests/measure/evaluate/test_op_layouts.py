import polars as pl
import pytest

from epochcast.measure.evaluate.evaluate import evaluate
from epochcast.measure.evaluate.op_layouts import with_op_columns


def test_products_by_their_sizes_are_forward_linear_layers() -> None:
    table = with_op_columns(
        pl.DataFrame({"device": ["A100"], "dtype": ["fp8"], "m": [8], "n": [8], "k": [8], "seconds": 1.0})
    )
    assert table.select("family", "op", "phase", "dtype").row(0) == ("matmul", "linear", "forward", "fp8")


def test_attention_without_a_dtype_is_in_bfloat16() -> None:
    row = {"device": "A100", "batch": 1, "tokens": 64, "heads": 2, "head_dim": 128, "seconds": 1.0}
    table = with_op_columns(pl.DataFrame([row]))
    assert table.select("family", "phase", "dtype", "key_length").row(0) == ("attention", "forward", "bfloat16", 64)


def test_a_table_of_runs_stays_as_it_is() -> None:
    table = pl.DataFrame({"device": ["A100"], "model": ["resnet50"], "step_seconds": [1.0]})
    assert with_op_columns(table).columns == table.columns


def test_a_layer_of_training_has_a_square_window_and_the_usual_padding() -> None:
    row = {"device": "A100", "dtype": "fp16", "op": "conv2d", "phase": "backward", "batch": 2, "seconds": 1.0}
    row |= {"channels_in": 3, "channels_out": 8, "height": 14, "width": 14, "kernel": 3, "stride": 1}
    table = with_op_columns(pl.DataFrame([row]))
    assert table.select("family", "phase", "kernel_width", "pad_height").row(0) == ("conv", "backward_both", 3, 1)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "tf32", "fp8", "nvfp4"])
def test_products_of_every_format_are_forecast(dtype: str) -> None:
    row = {"source": "aiconfigurator", "device": "B200", "dtype": dtype, "m": 4096, "n": 4096, "k": 4096}
    answer = evaluate(pl.DataFrame([{**row, "seconds": 1e-4}]))
    assert (answer.kind, answer.scores.n) == ("ops", 1)
    assert answer.scores.mape is not None and answer.scores.mape < 2


def test_all_gradients_of_a_convolution_at_once_are_refused() -> None:
    row = {"device": "V100", "dtype": "fp16", "op": "conv2d", "phase": "backward", "seconds": 1.0}
    answer = evaluate(pl.DataFrame([row]))
    assert answer.failures[0].reason == "no rule for all gradients at once of op family 'conv'"
