"""One small network written four ways: builder, spec, Keras config and ONNX. The same parameters, the same work."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from epochcast.describe.capture.keras import from_config
from epochcast.describe.capture.model import BuiltModel, Model
from epochcast.describe.capture.onnx import load_onnx
from epochcast.describe.capture.spec import spec_model
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.recipe import Recipe


def _build(batch: int) -> Graph:
    b = Builder("small", batch)
    x = b.input("x", (3, 32, 32))
    x = b.relu(b.batch_norm(b.conv(x, 16, 3, padding=1, bias=False)))
    y = b.relu(b.conv(x, 16, 3, padding=1, name="conv2"))
    x = b.max_pool(b.add(x, y), 2)
    return b.finish(b.linear(b.flatten(x), 10))


def by_spec() -> Model:
    layers = [
        {"type": "conv", "channels": 16, "kernel": 3, "padding": 1, "bias": False},
        {"type": "batch_norm"},
        {"type": "relu"},
        {"type": "conv", "channels": 16, "kernel": 3, "padding": 1},
        {"type": "relu", "name": "second"},
        {"type": "add", "from": ["relu", "second"]},
        {"type": "max_pool", "kernel": 2},
        {"type": "flatten"},
        {"type": "linear", "features": 10},
    ]
    return spec_model({"input": [3, 32, 32], "layers": layers}, "small.toml", "small")


def by_keras() -> Model:
    def row(kind: str, name: str, *reads: str, **config: Any) -> dict[str, Any]:
        nodes = [[[read, 0, 0, {}] for read in reads]] if reads else []
        return {"class_name": kind, "name": name, "config": {"name": name, **config}, "inbound_nodes": nodes}

    same = {"filters": 16, "kernel_size": [3, 3], "padding": "same"}
    layers = [
        row("InputLayer", "x", batch_shape=[None, 32, 32, 3]),
        row("Conv2D", "a", "x", use_bias=False, **same),
        row("BatchNormalization", "b", "a", axis=[3]),
        row("ReLU", "c", "b"),
        row("Conv2D", "d", "c", activation="relu", **same),
        row("Add", "e", "c", "d"),
        row("MaxPooling2D", "f", "e", pool_size=[2, 2]),
        row("Flatten", "g", "f"),
        row("Dense", "h", "g", units=10),
    ]
    config = {"name": "small", "layers": layers, "input_layers": [["x", 0, 0]], "output_layers": [["h", 0, 0]]}
    return from_config({"class_name": "Functional", "config": config}, "small.json")


def by_onnx(path: Path) -> Model:
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper, numpy_helper

    sizes = {
        "w1": (16, 3, 3, 3), "g": (16,), "b": (16,), "m": (16,), "v": (16,), "w2": (16, 16, 3, 3), "b2": (16,),
        "w3": (10, 16 * 16 * 16), "b3": (10,),
    }  # fmt: skip
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["1"], pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["1", "g", "b", "m", "v"], ["2"]),
        helper.make_node("Relu", ["2"], ["3"]),
        helper.make_node("Conv", ["3", "w2", "b2"], ["4"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["4"], ["5"]),
        helper.make_node("Add", ["3", "5"], ["6"]),
        helper.make_node("MaxPool", ["6"], ["7"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["7"], ["8"]),
        helper.make_node("Gemm", ["8", "w3", "b3"], ["y"], transB=1),
    ]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 32, 32])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 10])],
        [numpy_helper.from_array(np.zeros(shape, np.float32), name) for name, shape in sizes.items()],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return load_onnx(path)


@pytest.mark.parametrize("recipe", [Recipe(8), Recipe(8, "adam", "amp_fp16")])
@pytest.mark.parametrize("way", ["spec", "keras", "onnx"])
def test_every_front_end_gives_the_same_step(tmp_path: Path, way: str, recipe: Recipe) -> None:
    builder = BuiltModel("small", _build)
    model = by_spec() if way == "spec" else by_keras() if way == "keras" else by_onnx(tmp_path / "small.onnx")
    assert model.graph(2).parameter_count == builder.graph(2).parameter_count == 432 + 32 + 2320 + 40970
    ours, theirs = model.trace(recipe), builder.trace(recipe)
    assert ours.flops == theirs.flops
    assert ours.columns.bytes.sum() == theirs.columns.bytes.sum()
    assert ours.columns.launches.sum() == theirs.columns.launches.sum()
