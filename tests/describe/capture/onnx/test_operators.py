"""ONNX operators by hand: files written with onnx.helper, shapes and parameters worked out on paper."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from epochcast.describe.capture.onnx import load_onnx  # noqa: E402
from epochcast.describe.graph.op import Graph  # noqa: E402
from epochcast.describe.graph.op_kinds import Embedding, Matmul, Recurrent  # noqa: E402
from epochcast.describe.graph.recipe import Recipe  # noqa: E402
from epochcast.errors import BadInput, MissingExtra  # noqa: E402

Dims = Sequence[int | str | None]


def weight(name: str, *shape: int) -> Any:
    return numpy_helper.from_array(np.zeros(shape, np.float32), name)


def integers(name: str, *values: int) -> Any:
    return numpy_helper.from_array(np.array(values, np.int64), name)


def saved(
    path: Path, shape: Dims, nodes: Sequence[Any], initializers: Sequence[Any] = (), *, dtype: int = TensorProto.FLOAT,
    opset: int = 17, domains: Sequence[str] = (),
) -> Path:  # fmt: skip
    """A file with input x and output y."""
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", dtype, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], initializers,
    )  # fmt: skip
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    onnx.save(helper.make_model(graph, opset_imports=opsets), path)
    return path


def built(tmp_path: Path, shape: Dims, nodes: Sequence[Any], initializers: Sequence[Any] = (), **more: Any) -> Graph:
    return load_onnx(saved(tmp_path / "m.onnx", shape, nodes, initializers, **more)).graph(4)


def node(op: str, *inputs: str, outputs: Sequence[str] = ("y",), **attributes: Any) -> Any:
    return helper.make_node(op, ["x", *inputs], outputs, **attributes)


@pytest.mark.parametrize(
    ("made", "initializers", "shape", "result", "parameters"),
    [
        (node("Conv", "w", "b", strides=[2, 2], pads=[1, 1, 1, 1]), [weight("w", 8, 3, 3, 3), weight("b", 8)],
         (3, 9, 9), (8, 5, 5), 224),
        (node("Conv", "w", auto_pad="SAME_UPPER", strides=[2, 2]), [weight("w", 8, 3, 4, 4)],
         (3, 9, 9), (8, 5, 5), 384),
        (node("Conv", "w", pads=[0, 0, 1, 2]), [weight("w", 8, 3, 3, 3)], (3, 9, 9), (8, 8, 9), 216),
        (node("Conv", "w", group=3), [weight("w", 3, 1, 3)], (3, 9), (3, 7), 9),
        (node("ConvTranspose", "w", strides=[2, 2], output_padding=[1, 1]), [weight("w", 3, 8, 3, 3)],
         (3, 5, 5), (8, 12, 12), 216),
        (node("Gemm", "w", "b", transB=1), [weight("w", 5, 7), weight("b", 5)], (7,), (5,), 40),
        (node("MatMul", "w"), [weight("w", 7, 5)], (3, 7), (3, 5), 35),
        (node("BatchNormalization", "g", "b", "m", "v"), [weight(n, 3) for n in "gbmv"], (3, 9, 9), (3, 9, 9), 6),
        (node("LayerNormalization", "g", "b"), [weight("g", 7), weight("b", 7)], (3, 7), (3, 7), 14),
        (node("InstanceNormalization", "g", "b"), [weight("g", 3), weight("b", 3)], (3, 9, 9), (3, 9, 9), 6),
        (node("PRelu", "a"), [weight("a", 3, 1, 1)], (3, 9, 9), (3, 9, 9), 3),
        (node("MaxPool", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1), [], (3, 8, 8), (3, 4, 4), 0),
        (node("AveragePool", kernel_shape=[2, 2], strides=[2, 2]), [], (3, 9, 9), (3, 4, 4), 0),
        (node("GlobalAveragePool"), [], (3, 9, 9), (3, 1, 1), 0),
        (node("ReduceMean", axes=[2, 3], keepdims=0), [], (3, 9, 9), (3,), 0),
        (node("Mul", "s"), [weight("s", 3, 1, 1)], (3, 9, 9), (3, 9, 9), 3),
        (node("Mul", "s"), [weight("s")], (3, 9, 9), (3, 9, 9), 0),
        (node("Transpose", perm=[0, 2, 1]), [], (3, 9), (9, 3), 0),
        (node("Flatten"), [], (3, 9, 9), (243,), 0),
        (node("Reshape", "s"), [integers("s", 0, -1, 3)], (3, 9), (9, 3), 0),
        (node("Unsqueeze", "a"), [integers("a", 1)], (3, 9), (1, 3, 9), 0),
        (node("Slice", "b", "e", "a", "s"), [integers(k, v) for k, v in (("b", 1), ("e", 2**62), ("a", 2), ("s", 3))],
         (3, 9), (3, 3), 0),
        (node("Pad", "p"), [integers("p", 0, 0, 1, 0, 0, 2)], (3, 9), (3, 12), 0),
        (node("Tile", "r"), [integers("r", 1, 2, 1)], (3, 9), (6, 9), 0),
        (node("Expand", "s"), [integers("s", 1, 5, 3, 9)], (1, 3, 9), (5, 3, 9), 0),
        (node("DepthToSpace", blocksize=2), [], (8, 4, 4), (2, 8, 8), 0),
        (node("TopK", "k", outputs=["y", "i"]), [integers("k", 2)], (3, 9), (3, 2), 0),
        (node("Softmax"), [], (9,), (9,), 0),
        (node("Resize", "", "s", mode="nearest"), [numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32), "s")],
         (3, 4, 4), (3, 8, 8), 0),
    ],
)  # fmt: skip
def test_an_operator_has_its_shape_and_parameters(
    tmp_path: Path, made: Any, initializers: list[Any], shape: Dims, result: tuple[int, ...], parameters: int
) -> None:
    graph = built(tmp_path, ["batch", *shape], [made], initializers)
    assert (graph.outputs[0].shape, graph.parameter_count) == ((4, *result), parameters)


def test_a_bias_behind_a_product_belongs_to_it(tmp_path: Path) -> None:
    nodes = [node("MatMul", "w", outputs=["h"]), helper.make_node("Add", ["b", "h"], ["y"])]
    graph = built(tmp_path, ["n", 3, 7], nodes, [weight("w", 7, 5), weight("b", 5)])
    assert [op.kind for op in graph.ops] == [Matmul()]
    assert [t.name for t in graph.ops[0].weights] == ["w", "b"]


def test_a_weight_behind_a_transpose_is_taken_as_it_is_stored(tmp_path: Path) -> None:
    turn = helper.make_node("Transpose", ["fc.weight"], ["wt"], perm=[1, 0])
    graph = built(tmp_path, ["n", 7], [turn, node("MatMul", "wt")], [weight("fc.weight", 5, 7)])
    assert [op.kind for op in graph.ops] == [Matmul(transpose_b=True)]
    assert (graph.parameters[0].tensor.shape, graph.parameters[0].layer) == ((5, 7), "fc")


def test_rows_of_a_table_are_an_embedding(tmp_path: Path) -> None:
    look = helper.make_node("Gather", ["table", "x"], ["y"])
    graph = built(tmp_path, ["n", 7], [look], [weight("table", 100, 8)], dtype=TensorProto.INT64)
    assert [op.kind for op in graph.ops] == [Embedding()]
    assert graph.outputs[0].shape == (4, 7, 8)


def test_a_lstm_counts_its_products(tmp_path: Path) -> None:
    """T = 6 in front; 2·N·T·4H·(I + H) flops."""
    weights = [weight("w", 2, 4 * 5, 3), weight("r", 2, 4 * 5, 5), weight("b", 2, 8 * 5)]
    turned = helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0, 2])
    cell = helper.make_node("LSTM", ["t", "w", "r", "b"], ["s", "y"], hidden_size=5, direction="bidirectional")
    model = load_onnx(saved(tmp_path / "m.onnx", ["n", 6, 3], [turned, cell], weights))
    graph = model.graph(4)
    assert graph.outputs[0].shape == (2, 4, 5)
    assert graph.parameter_count == 2 * 20 * (3 + 5 + 2)
    assert any(op.kind == Recurrent("lstm", 5, 2) for op in graph.ops)
    assert model.trace(Recipe(4, mode="forward")).flops["forward"] == 2 * 2 * 4 * 6 * 20 * (3 + 5)


def test_shape_arithmetic_is_folded_and_free(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["n"]),
        helper.make_node("Unsqueeze", ["n", "axis"], ["n1"]),
        helper.make_node("Concat", ["n1", "rest"], ["target"], axis=0),
        helper.make_node("Reshape", ["x", "target"], ["y"]),
    ]
    zero = numpy_helper.from_array(np.array(0, np.int64), "zero")
    graph = built(tmp_path, ["n", 3, 8], nodes, [zero, integers("axis", 0), integers("rest", 2, -1)])
    assert [op.kind.label for op in graph.ops] == ["view"]
    assert graph.outputs[0].shape == (4, 2, 12)


def test_an_old_opset_reads_attributes_where_new_ones_read_inputs(tmp_path: Path) -> None:
    nodes = [
        node("Slice", outputs=["a"], starts=[0], ends=[2], axes=[1]),
        helper.make_node("Unsqueeze", ["a"], ["b"], axes=[1]),
        helper.make_node("Clip", ["b"], ["y"], min=0.0, max=6.0),
    ]
    graph = built(tmp_path, ["n", 3, 8], nodes, opset=9)
    assert graph.outputs[0].shape == (4, 1, 2, 8)
    assert getattr(graph.ops[-1].kind, "function", "") == "relu6"


def test_an_operator_without_a_rule_is_opaque_and_listed(tmp_path: Path) -> None:
    model = load_onnx(saved(tmp_path / "m.onnx", ["n", 3, 8], [node("Sinkhorn", domain="mine")], domains=["mine"]))
    assert model.trace(Recipe(4, mode="forward")).opaque == ("mine.Sinkhorn",)
    assert model.graph(4).notes == (
        "Sinkhorn has no rule and no declared shape: its output is assumed to be as large as its input",
    )


def test_onnx_infers_what_has_no_rule_of_ours(tmp_path: Path) -> None:
    made = [node("MaxRoiPool", "r", pooled_shape=[2, 2])]
    graph = built(tmp_path, ["n", 3, 8, 8], made, [weight("r", 6, 5)])
    assert graph.outputs[0].shape == (6, 3, 2, 2)
    assert graph.ops[-1].kind.label == "opaque"


@pytest.mark.parametrize(
    ("op", "message"),
    [
        ("QLinearMatMul", r"m\.onnx: node 'QLinearMatMul_0' is QLinearMatMul: a quantised model is for inference"),
        ("DynamicQuantizeLinear", "a quantised model is for inference; give the float model"),
        ("If", r"m\.onnx: node 'If_0' is If, control flow whose work depends on values"),
        ("NonZero", "the size of its output depends on values, so its work cannot be known"),
    ],
)
def test_what_cannot_be_counted_is_refused(tmp_path: Path, op: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        load_onnx(saved(tmp_path / "m.onnx", ["n", 3], [node(op)]))


def test_shapes_that_do_not_fit_name_the_node(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"m\.onnx: node 'MatMul_0' \(MatMul\): \(3, 7\) does not multiply \(8, 5\)"):
        built(tmp_path, ["n", 7], [node("MatMul", "w")], [weight("w", 8, 5)])
    with pytest.raises(BadInput, match=r"node 'Conv_0' \(Conv\): an input of \(3, 9, 9\) does not fit a weight"):
        built(tmp_path, ["n", 3, 9, 9], [node("Conv", "w")], [weight("w", 8, 4, 3, 3)])
    with pytest.raises(BadInput, match=r"\(Add\): it reads 'gone', which no node computes"):
        built(tmp_path, ["n", 7], [node("Add", "gone")])


def test_a_file_that_is_not_onnx_is_refused_in_one_line(tmp_path: Path) -> None:
    for content in (b"PK\x03\x04 not a model", b"", b"{}" * 100):
        (tmp_path / "m.onnx").write_bytes(content)
        with pytest.raises(BadInput, match=r"^m\.onnx is not an ONNX") as refusal:
            load_onnx(tmp_path / "m.onnx")
        assert "\n" not in str(refusal.value)
    whole = saved(tmp_path / "w.onnx", ["n", 3], [node("Relu")]).read_bytes()
    (tmp_path / "m.onnx").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(BadInput, match=r"m\.onnx"):
        load_onnx(tmp_path / "m.onnx")
    with pytest.raises(BadInput, match=r"cannot read .*gone\.onnx"):
        load_onnx(tmp_path / "gone.onnx")


def test_without_the_package_the_message_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path / "m.onnx", ["n", 3], [node("Relu")])
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtra, match=r"this needs onnx; .* pip install '\.\[onnx\]'"):
        load_onnx(path)


def test_an_opset_before_nine_asks_for_another_export(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"m\.onnx is of opset 8; opset 9 and later are read: export it again"):
        built(tmp_path, ["n", 3], [node("Relu")], opset=8)
