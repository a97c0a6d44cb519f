"""Damaged input that fuzzing found to end in something else than one clear line (`make fuzz`)."""

import json
from pathlib import Path
from typing import Any

import pytest

import epochcast as ec
from epochcast.describe.capture.keras.nodes import declared_shapes
from epochcast.errors import BadInput, EpochcastError
from epochcast.observe.logs.log_reader import read_log
from epochcast.observe.runs.tracker import Tracker
from tests.observe.logs.test_event_files import scalar_event


def line_of(model: object, **options: Any) -> str:
    """What a forecast ends in."""
    with pytest.raises(EpochcastError) as caught:
        ec.forecast(model, device="V100", batch=4, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_name_longer_than_any_file_is_no_model() -> None:
    assert line_of("x" * 5000).startswith("no model called 'xxx")
    assert line_of("a\0b").startswith("no model called")


def test_samples_of_a_validation_are_bounded() -> None:
    assert "validation_samples must be at most" in line_of("mnist_cnn", samples=10, validation_samples=10**400)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"loader_seconds": 1e308}, "loader_seconds must be at most 86,400, got 1e+308"),
        ({"loader_seconds": 0.1, "workers": 10**9}, "workers must be at most 512, got 1000000000"),
        ({"loader_seconds": 0.1, "prefetch": 10**9}, "prefetch must be at most 512, got 1000000000"),
        ({"loader_seconds": 0.1, "cpus": 1e300}, "cpus must be at most 10,000, got 1e+300"),
        (
            {"loader_seconds": 0.1, "workers": 512, "prefetch": 512},
            "512 workers with 512 batches ahead of each hold 262,144 batches per GPU; at most 1,024 are simulated",
        ),
    ],
)
def test_a_loader_is_bounded(options: dict[str, Any], line: str) -> None:
    assert line_of("mnist_cnn", **options) == line


def test_a_loader_at_its_bounds_is_forecast() -> None:
    slow = ec.forecast("mnist_cnn", device="V100", batch=4, loader_seconds=86_400, workers=512)
    assert slow.step_seconds.mid >= 4 * 86_400 / 512
    ec.forecast("mnist_cnn", device="V100", batch=4, loader_seconds=0.1, cpus=10_000)


def test_a_step_of_more_than_281_terabytes_does_not_fit() -> None:
    assert not ec.forecast("resnet18", device="V100", batch=10**7).fits


def test_a_line_feed_in_a_layer_type_stays_in_its_quotes(tmp_path: Path) -> None:
    file = tmp_path / "net.json"
    file.write_text(json.dumps({"input": [8], "layers": [{"type": "layer\norm"}]}), encoding="utf-8")
    assert "no layer type called 'layer\\norm'" in line_of(file)


def test_the_name_of_an_onnx_operator_need_not_be_text(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    node = onnx.helper.make_node("Squeeze", ["x"], ["y"])
    value = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2, 3])
    out = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    model = onnx.helper.make_model(onnx.helper.make_graph([node], "g", [value], [out]))
    file = tmp_path / "net.onnx"
    file.write_bytes(model.SerializeToString().replace(b"Squeeze", b"Squ\xe5eze"))
    line_of(file)


def test_a_keras_layer_has_no_billion_outputs() -> None:
    tensor = {
        "class_name": "__keras_tensor__",
        "config": {"shape": [None, 3], "keras_history": ["conv", 0, 10**9]},
    }
    assert declared_shapes([{"inbound_nodes": [{"args": [tensor], "kwargs": {}}]}]) == {}


def test_architectures_of_a_configuration_may_be_any_value(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    from types import SimpleNamespace

    from epochcast.describe.capture.hf_tasks import task_of

    damaged, plain = SimpleNamespace(model_type="bert", architectures=100), SimpleNamespace(model_type="bert")
    assert task_of(transformers, damaged) == task_of(transformers, plain)


@pytest.mark.parametrize("odd", [float("inf"), float("nan"), 1e300, 5e-324])
def test_clocks_of_a_damaged_event_file_are_left_out(odd: float, tmp_path: Path) -> None:
    clocks = [1.9e9, 1.9e9 + 10, odd, 1.9e9 + 30, 1.9e9 + 40]
    file = tmp_path / "events.out.tfevents.1"
    file.write_bytes(b"".join(scalar_event("loss", 10 * i, clock, 1.0) for i, clock in enumerate(clocks)))
    tracker = Tracker(total=100).add_all(read_log(file).reports)
    json.dumps(tracker.standing().as_dict(), allow_nan=False)


def test_a_total_that_no_calendar_holds_is_one_line(tmp_path: Path) -> None:
    from datetime import UTC, datetime

    file = tmp_path / "train.log"
    lines = [f"2031-04-05 06:0{i}:00,000 step {i * 10}/99999999999999 loss 0.1" for i in range(6)]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    tracker = Tracker().add_all(read_log(file).reports)
    with pytest.raises(BadInput, match="would end after the year 9999"):
        tracker.standing(datetime(2031, 4, 5, tzinfo=UTC))
