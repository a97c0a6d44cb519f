"""Nodes that are not as ONNX defines them: one line that names the file and the node."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

onnx = pytest.importorskip("onnx")

import numpy as np  # noqa: E402

from epochcast.describe.capture.inspection import inspect_graph  # noqa: E402
from epochcast.describe.capture.onnx import load_onnx  # noqa: E402
from epochcast.errors import BadInput  # noqa: E402

Node = tuple[str, Sequence[str], Sequence[str], Mapping[str, Any]]
TRANSPOSED = {"w": np.zeros((3, 4, 3, 3), np.float32)}
CONVOLVED = {"w": np.zeros((4, 3, 3, 3), np.float32)}
MATRIX = {"m": np.zeros((16, 5), np.float32)}
SHAPE: Node = ("Shape", ["x"], ["s"], {})
RELU: Node = ("Relu", ["x"], ["y"], {})


def written(folder: Path, nodes: Sequence[Node], weights: Mapping[str, Any]) -> Path:
    from onnx import TensorProto, helper, numpy_helper

    made = [helper.make_node(op, inputs, outputs, **attributes) for op, inputs, outputs, attributes in nodes]
    ends = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 16, 16])]
    results = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    tensors = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(made, "g", ends, results, tensors)
    file = folder / "net.onnx"
    file.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())
    return file


@pytest.mark.parametrize(
    ("nodes", "weights", "line"),
    [
        (
            [("ConvTranspose", ["x", "w"], ["y"], {"strides": [2, 2, 2], "output_shape": [1, 4, 32, 32]})],
            TRANSPOSED,
            r"'ConvTranspose_0' \(ConvTranspose\): its attribute 'strides' must be 2 whole numbers of at least 1, got "
            r"\[2, 2, 2\]",
        ),
        ([("Conv", ["x", "w"], ["y"], {"strides": [0, 1]})], CONVOLVED, r"'Conv_0' .*at least 1, got \[0, 1\]"),
        ([("Conv", ["x", "w"], ["y"], {"pads": [1, 1]})], CONVOLVED, r"'Conv_0' .*'pads' must be 4 whole numbers, got"),
        ([("MaxPool", ["x"], ["y"], {"strides": [2, 2]})], {}, r"'MaxPool_0' \(MaxPool\) lacks .* 'kernel_shape'"),
        ([("Shape", ["x"], ["s"], {"start": "a"}), RELU], {}, r"'Shape_0' .*'start' is of kind STRING, expected INT"),
        ([("Constant", [], ["s"], {"value": 3}), RELU], {}, r"'Constant_0' .*'value' is of kind INT, expected TENSOR"),
        ([("Constant", [], [], {"value_int": 3}), RELU], {}, r"'Constant_0' .* has 0 outputs, expected at least 1"),
        ([SHAPE, ("Split", ["s"], ["a", "b"], {"axis": 7}), RELU], {}, r"'Split_1' .* an axis or an index .* range"),
        ([SHAPE, ("Split", ["s"], ["a", "b"], {"axis": "x"}), RELU], {}, r"'Split_1' .*'axis' is of kind STRING"),
        ([SHAPE, ("Split", ["s"], [], {"axis": 0}), RELU], {}, r"'Split_1' \(Split\) has 0 outputs"),
        (
            [SHAPE, ("ConstantOfShape", ["s"], ["z"], {"value": 5}), RELU],
            {},
            r".*'value' is of kind INT, expected TENSOR",
        ),
        ([SHAPE, ("Concat", ["s", "s"], ["z"], {}), RELU], {}, r"'Concat_1' \(Concat\) lacks its attribute 'axis'"),
        ([SHAPE, ("Cast", ["s"], ["z"], {}), RELU], {}, r"'Cast_1' \(Cast\) lacks its attribute 'to'"),
        (
            [("MatMul", ["x", "m"], ["z"], {}), ("Add", ["z"], ["y"], {})],
            MATRIX,
            r"'Add_1' \(Add\) has 1 inputs, expected at least 2",
        ),
    ],
)
def test_a_damaged_node_is_one_line_with_file_and_node(
    nodes: Sequence[Node], weights: Mapping[str, Any], line: str, tmp_path: Path
) -> None:
    file = written(tmp_path, nodes, weights)
    with pytest.raises(BadInput, match=rf"^net\.onnx: node {line}") as caught:
        inspect_graph(load_onnx(file))
    assert "\n" not in str(caught.value)


def test_a_contributed_operator_needs_its_heads(tmp_path: Path) -> None:
    node: Node = ("Attention", ["x", "m"], ["y"], {"domain": "com.microsoft"})
    with pytest.raises(BadInput, match=r"^net\.onnx: node 'Attention_0' .*'num_heads' must be a whole number"):
        load_onnx(written(tmp_path, [node], {"m": np.zeros((16, 48), np.float32)}))


def test_what_no_check_foresees_names_the_file_and_the_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from epochcast.describe.capture.onnx.onnx_rules import RULES

    def stumbling(call: object) -> Any:
        attributes: dict[str, Any] = {}
        return attributes["nothing"]

    monkeypatch.setitem(RULES, "Relu", stumbling)
    with pytest.raises(BadInput, match=r"^net\.onnx: node 'Relu_0' \(Relu\) cannot be read: it lacks 'nothing'$"):
        load_onnx(written(tmp_path, [RELU], {}))
