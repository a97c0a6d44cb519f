"""Which dimension is the batch, and files that were exported at one batch."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from epochcast.describe.capture.onnx import load_onnx  # noqa: E402
from epochcast.describe.capture.onnx.onnx_moves import _grown_dimension  # noqa: E402
from epochcast.errors import BadInput  # noqa: E402


def weight(name: str, *shape: int) -> Any:
    return numpy_helper.from_array(np.zeros(shape, np.float32), name)


def integers(name: str, *values: int) -> Any:
    return numpy_helper.from_array(np.array(values, np.int64), name)


def node(op: str, *inputs: str, **attributes: Any) -> Any:
    return helper.make_node(op, ["x", *inputs], ["y"], **attributes)


def saved(
    path: Path, shape: Sequence[int | str | None], nodes: Sequence[Any], initializers: Sequence[Any] = ()
) -> Path:
    """A file with input x and output y."""
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], initializers,
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


def test_a_named_batch_is_bound_wherever_it_appears(tmp_path: Path) -> None:
    path = saved(tmp_path / "m.onnx", ["N", 3], [node("Relu")])
    assert load_onnx(path).graph(7).outputs[0].shape == (7, 3)


def test_a_dimension_without_a_name_is_the_batch_in_front(tmp_path: Path) -> None:
    path = saved(tmp_path / "m.onnx", [None, 3], [node("Relu")])
    assert load_onnx(path).graph(7).outputs[0].shape == (7, 3)


def test_other_open_dimensions_ask_for_the_input(tmp_path: Path) -> None:
    path = saved(tmp_path / "m.onnx", ["N", 3, "height", "width"], [node("Relu")])
    with pytest.raises(BadInput, match=r"'x' has dimensions of unknown size \('height', 'width'\); give `input_shape`"):
        load_onnx(path)
    assert load_onnx(path, (3, 8, 9)).graph(2).outputs[0].shape == (2, 3, 8, 9)
    with pytest.raises(BadInput, match="the input is 3xheightxwidth for one sample, got 3x8"):
        load_onnx(path, (3, 8))


def test_a_fixed_batch_is_bound_again(tmp_path: Path) -> None:
    path = saved(tmp_path / "m.onnx", [1, 3, 8, 8], [node("Conv", "w")], [weight("w", 4, 3, 3, 3)])
    assert load_onnx(path).graph(7).outputs[0].shape == (7, 4, 6, 6)


@pytest.mark.parametrize(
    ("exported", "shape", "target", "result"),
    [
        (1, (8, 4), (1, -1), (5, 32)),
        (1, (8, 4), (1, 2, 16), (5, 2, 16)),
        (2, (8, 4), (2, 32), (5, 32)),
        (1, (8, 4), (-1, 4), (40, 4)),
        (2, (8, 4), (16, 4), (40, 4)),
        (1, (8, 12), (8, 3, 4), (40, 3, 4)),
    ],
)
def test_a_reshape_that_fixes_the_batch_is_scaled(
    tmp_path: Path, exported: int, shape: tuple[int, ...], target: tuple[int, ...], result: tuple[int, ...]
) -> None:
    path = saved(tmp_path / "m.onnx", [exported, *shape], [node("Reshape", "s")], [integers("s", *target)])
    assert load_onnx(path).graph(5).outputs[0].shape == result


@pytest.mark.parametrize(
    ("low", "high", "seen", "place"),
    [
        (197, 197, (197, 12, 64), 1),  # (197, N, 768) → (197, N·12, 64): heads
        (1, 12, (1, 12, 197, 64), 0),  # (N·12, 197, 64) → (N, 12, 197, 64)
        (197, 197, (197, 768), 0),  # (197, N, 12, 64) → (197·N, 768): never the features
        (1, 197, (197, 1, 768), 1),  # (197·N, 768) → (197, N, 768)
        (1, 1, (64, 49, 96), 0),  # (N, 8, 8, 7, 7, 96) → (N·64, 49, 96): windows
    ],
)
def test_the_batch_lands_where_attention_keeps_it(low: int, high: int, seen: tuple[int, ...], place: int) -> None:
    assert _grown_dimension(low, high, seen, exported=1) == place


def test_a_class_token_of_one_sample_is_broadcast(tmp_path: Path) -> None:
    join = helper.make_node("Concat", ["token", "x"], ["y"], axis=1)
    path = saved(tmp_path / "m.onnx", [1, 6, 4], [join], [weight("token", 1, 1, 4)])
    graph = load_onnx(path).graph(5)
    assert (graph.outputs[0].shape, graph.parameter_count) == ((5, 7, 4), 4)


def test_a_mask_repeated_for_each_sample_is_not_learnt(tmp_path: Path) -> None:
    path = saved(tmp_path / "m.onnx", [2, 3, 4], [node("Add", "mask")], [weight("mask", 2, 1, 4)])
    graph = load_onnx(path).graph(5)
    assert (graph.outputs[0].shape, graph.parameter_count) == ((5, 3, 4), 0)


def test_a_batch_that_cannot_be_moved_is_refused_clearly(tmp_path: Path) -> None:
    add: Any = helper.make_node("Add", ["r", "x"], ["y"])
    path = saved(
        tmp_path / "m.onnx",
        [2, 4],
        [helper.make_node("Reshape", ["w", "s"], ["r"]), add],
        [weight("w", 8), integers("s", 2, 4)],
    )
    with pytest.raises(
        BadInput, match="which do not fit: the file fixes the batch to 2; export it with a dynamic batch"
    ):
        load_onnx(path)


def test_two_inputs_share_the_batch(tmp_path: Path) -> None:
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "z"], ["y"])], "g",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, [n, 4]) for n in ("x", "z")],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "m.onnx")
    assert [t.shape for t in load_onnx(tmp_path / "m.onnx").graph(3).inputs] == [(3, 4), (3, 4)]
