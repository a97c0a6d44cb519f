"""Keras layers by their configs alone; no Keras is needed here."""

from typing import Any

import pytest

from epochcast.describe.capture.keras import from_config
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.recipe import Recipe
from epochcast.errors import BadInput


def layer(kind: str, name: str | None = None, **config: Any) -> dict[str, Any]:
    return {"class_name": kind, "config": {"name": name or kind.lower(), **config}}


def sequential(shape: list[int | None], *layers: dict[str, Any], dtype: str = "float32") -> dict[str, Any]:
    start = layer("InputLayer", "start", batch_shape=[None, *shape], dtype=dtype)
    return {"class_name": "Sequential", "config": {"name": "net", "layers": [start, *layers]}}


def built(shape: list[int | None], *layers: dict[str, Any], dtype: str = "float32") -> Graph:
    return from_config(sequential(shape, *layers, dtype=dtype), "net.json").graph(2)


@pytest.mark.parametrize(
    ("shape", "layers", "result", "parameters"),
    [
        ([9, 9, 3], [layer("Conv2D", filters=8, kernel_size=[3, 3], strides=[2, 2], padding="same")], (8, 5, 5), 224),
        ([9, 9, 3], [layer("Conv2D", filters=8, kernel_size=[3, 3], use_bias=False)], (8, 7, 7), 216),
        ([10, 3], [layer("Conv1D", filters=8, kernel_size=[3], padding="causal")], (8, 10), 80),
        ([9, 9, 4], [layer("DepthwiseConv2D", kernel_size=[3, 3], depth_multiplier=2)], (8, 7, 7), 80),
        ([9, 9, 4], [layer("SeparableConv2D", filters=6, kernel_size=[3, 3])], (6, 7, 7), 36 + 24 + 6),
        ([5, 5, 4], [layer("Conv2DTranspose", filters=6, kernel_size=[3, 3], strides=[2, 2])], (6, 11, 11), 222),
        ([9, 9, 4], [layer("MaxPooling2D", pool_size=[2, 2], strides=[2, 2], padding="same")], (4, 5, 5), 0),
        ([9, 9, 4], [layer("AveragePooling2D", pool_size=[2, 2], strides=None)], (4, 4, 4), 0),
        ([9, 9, 4], [layer("GlobalAveragePooling2D")], (4,), 0),
        ([9, 9, 4], [layer("BatchNormalization", axis=-1)], (4, 9, 9), 8),
        ([9, 9, 4], [layer("LayerNormalization", axis=[-1], center=False)], (9, 9, 4), 4),
        ([9, 9, 4], [layer("ZeroPadding2D", padding=[[1, 2], [0, 3]])], (4, 12, 12), 0),
        ([9, 9, 4], [layer("Flatten"), layer("Dense", units=5)], (5,), 1625),
        ([7], [layer("Embedding", input_dim=50, output_dim=8)], (7, 8), 400),
        ([7, 8], [layer("LSTM", units=5, return_sequences=True)], (7, 5), 4 * 5 * (8 + 5 + 1)),
        ([7, 8], [layer("GRU", units=5, reset_after=True)], (5,), 3 * 5 * (8 + 5 + 2)),
        ([7, 8], [layer("GRU", units=5, reset_after=False)], (5,), 3 * 5 * (8 + 5 + 1)),
        ([7, 8], [layer("Bidirectional", layer=layer("SimpleRNN", units=5))], (10,), 2 * 5 * (8 + 5 + 1)),
        ([7, 8], [layer("TimeDistributed", layer=layer("Dense", units=3))], (7, 3), 27),
        ([7, 8], [layer("MultiHeadAttention", num_heads=2, key_dim=3)], (7, 8), 3 * (48 + 6) + 48 + 8),
        ([7, 8], [layer("Permute", dims=[2, 1]), layer("Reshape", target_shape=[-1, 4])], (14, 4), 0),
        ([7, 8], [layer("EinsumDense", equation="abc,cd->abd", output_shape=[None, 5], bias_axes="d")], (7, 5), 45),
        ([6, 6, 2], [layer("Resizing", height=4, width=3)], (2, 4, 3), 0),
    ],
)
def test_a_layer_has_its_shape_and_parameters(
    shape: list[int | None], layers: list[dict[str, Any]], result: tuple[int, ...], parameters: int
) -> None:
    graph = built(shape, *layers)
    assert (graph.outputs[0].shape[1:], graph.parameter_count) == (result, parameters)


def test_images_are_channels_first_whatever_the_config() -> None:
    last = built([8, 6, 3], layer("Conv2D", filters=4, kernel_size=[3, 3]))
    first = built([3, 8, 6], layer("Conv2D", filters=4, kernel_size=[3, 3], data_format="channels_first"))
    assert last.inputs[0].shape == first.inputs[0].shape == (2, 3, 8, 6)
    assert last.outputs[0].shape == first.outputs[0].shape == (2, 4, 6, 4)


def test_a_frozen_layer_keeps_its_parameters_out_of_training() -> None:
    graph = built([4], layer("Dense", "a", units=3, trainable=False), layer("Dense", "b", units=2))
    assert (graph.parameter_count, graph.trainable_parameter_count) == (15 + 8, 8)


def test_moving_statistics_are_no_parameters() -> None:
    assert built([4, 4, 3], layer("BatchNormalization", axis=[3])).parameter_count == 6


def test_an_activation_is_an_op_of_its_own_in_either_dialect() -> None:
    keras3 = {"class_name": "function", "config": "relu", "module": "builtins", "registered_name": "function"}
    for given in ("relu", keras3, {"class_name": "ReLU", "config": {"name": "relu"}}):
        ops = built([4], layer("Dense", units=3, activation=given)).ops
        assert [getattr(op.kind, "function", op.kind.label) for op in ops] == ["matmul", "relu"]


def functional(*rows: dict[str, Any], inputs: Any, outputs: Any) -> dict[str, Any]:
    config = {"name": "net", "layers": list(rows), "input_layers": inputs, "output_layers": outputs}
    return {"class_name": "Functional", "config": config}


def keras3_tensor(name: str, node: int = 0, index: int = 0, shape: list[int | None] | None = None) -> dict[str, Any]:
    return {"class_name": "__keras_tensor__", "config": {"shape": shape, "keras_history": [name, node, index]}}


def keras2(dense: list[Any]) -> dict[str, Any]:
    return functional(
        {**layer("InputLayer", "x", batch_input_shape=[None, 8]), "name": "x", "inbound_nodes": []},
        {**layer("Dense", "shared", units=8), "name": "shared", "inbound_nodes": dense},
        {**layer("Add", "sum"), "name": "sum", "inbound_nodes": [[["shared", 0, 0, {}], ["shared", 1, 0, {}]]]},
        inputs=[["x", 0, 0]],
        outputs=[["sum", 0, 0]],
    )


def test_both_dialects_of_nodes_read_the_same() -> None:
    old = keras2([[["x", 0, 0, {}]], [["shared", 0, 0, {}]]])
    new = keras2([{"args": [keras3_tensor("x")], "kwargs": {}}, {"args": [keras3_tensor("shared")], "kwargs": {}}])
    new["config"]["layers"][2]["inbound_nodes"] = [
        {"args": [[keras3_tensor("shared"), keras3_tensor("shared", 1)]], "kwargs": {}}
    ]
    new["config"]["input_layers"], new["config"]["output_layers"] = ["x", 0, 0], ["sum", 0, 0]
    one, other = (from_config(config, "net.json").graph(2) for config in (old, new))
    assert one == other
    assert one.parameter_count == 72  # the layer is used twice and counted once


def test_layers_may_be_listed_in_any_order() -> None:
    config = keras2([[["x", 0, 0, {}]], [["shared", 0, 0, {}]]])
    config["config"]["layers"].reverse()
    assert from_config(config, "net.json").graph(2).parameter_count == 72


def test_a_nested_model_is_scoped_and_shared() -> None:
    inner = sequential([8], layer("Dense", "fc", units=8))
    config = functional(
        {**layer("InputLayer", "x", batch_shape=[None, 8]), "name": "x", "inbound_nodes": []},
        {"class_name": "Sequential", "config": {**inner["config"], "name": "tower"}, "name": "tower",
         "inbound_nodes": [[["x", 0, 0, {}]], [["tower", 0, 0, {}]]]},
        inputs=[["x", 0, 0]], outputs=[["tower", 1, 0]],
    )  # fmt: skip
    graph = from_config(config, "net.json").graph(2)
    assert [p.name for p in graph.parameters] == ["tower.fc.kernel", "tower.fc.bias"]


def odd(**more: Any) -> dict[str, Any]:
    reader = {"args": [keras3_tensor("odd", shape=[None, 8, 5])], "kwargs": {}}
    return functional(
        {**layer("InputLayer", "x", batch_shape=[None, 8, 4]), "name": "x", "inbound_nodes": []},
        {**layer("Sinkhorn", "odd"), "name": "odd", "inbound_nodes": [{"args": [keras3_tensor("x")], "kwargs": {}}]},
        {**layer("Dense", "fc", units=2), "name": "fc", "inbound_nodes": [reader]},
        inputs=["x", 0, 0], outputs=["fc", 0, 0], **more,
    )  # fmt: skip


def test_a_layer_without_a_rule_is_opaque_with_the_shape_its_reader_saw() -> None:
    model = from_config(odd(), "net.json")
    graph, trace = model.graph(2), model.trace(Recipe(4))
    assert graph.outputs[0].shape == (2, 8, 2)
    assert graph.parameter_count == 5 * 2 + 2
    assert trace.opaque == ("Sinkhorn",)
    assert graph.notes == ("Sinkhorn has no rule: its parameters and flops are not counted",)


def test_a_layer_of_unknown_shape_is_taken_to_keep_it_and_says_so() -> None:
    graph = built([8, 4], layer("Sinkhorn"))
    assert graph.outputs[0].shape == (2, 8, 4)
    assert graph.notes == (
        "Sinkhorn has no rule: its output is assumed to be as large as its input, without parameters",
    )


def test_an_open_input_asks_for_a_shape_in_either_order() -> None:
    config = sequential([None, None, 3], layer("Conv2D", filters=4, kernel_size=[3, 3]))
    with pytest.raises(BadInput, match=r"net\.json: input 'input' is \?x\?x3, partly unknown; give `input_shape`"):
        from_config(config, "net.json")
    for given in ((3, 8, 6), (8, 6, 3)):
        assert from_config(config, "net.json", given).graph(2).inputs[0].shape == (2, 3, 8, 6)


def test_a_causal_mask_reaches_the_attention() -> None:
    mha = layer("MultiHeadAttention", "mha", num_heads=2, key_dim=4)
    node = {"args": [keras3_tensor("x"), keras3_tensor("x")], "kwargs": {"use_causal_mask": True}}
    config = functional(
        {**layer("InputLayer", "x", batch_shape=[None, 6, 8]), "name": "x", "inbound_nodes": []},
        {**mha, "name": "mha", "inbound_nodes": [node]},
        inputs=["x", 0, 0], outputs=["mha", 0, 0],
    )  # fmt: skip
    kinds = [op.kind for op in from_config(config, "net.json").graph(2).ops if op.kind.label == "attention"]
    assert [getattr(kind, "causal", None) for kind in kinds] == [True]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            sequential([4], layer("Dense")),
            "layer 'dense' (Dense): 'units' must be a whole number of at least 1, got None",
        ),
        (sequential([4], layer("Dense", units=-3)), "'units' must be a whole number of at least 1, got -3"),
        (
            sequential([4], layer("Conv2D", filters=3, kernel_size=[3, 3])),
            "needs positions and channels, got (4,)",
        ),
        (sequential([2, 2, 3], layer("Conv2D", filters=3, kernel_size=[3, 3])), "the input is too small"),
        (
            sequential([8, 8, 3], layer("Conv2D", filters=3, kernel_size=[3, 3], padding="half")),
            "no padding called 'half'",
        ),
        (
            sequential([8, 8, 3], layer("Reshape", target_shape=[7])),
            "it reshapes (8, 8, 3), which has 192 elements, to (7,)",
        ),
        (sequential([8], layer("LSTM", units=3)), "it needs (steps, features), got (8,)"),
        (keras2([[["y", 0, 0, {}]]]), "layer 'shared' reads 'y', which is missing or part of a cycle"),
        (keras2([[["shared", 1, 0, {}]], [["shared", 0, 0, {}]]]), "part of a cycle"),
        ({"class_name": "Mine", "config": {}}, "net.json has no layers in its config: a subclassed model has no graph"),
        (sequential([4], {"class_name": "Dense"}), "net.json: layer 1 of net has no class_name or config"),
        (
            sequential([4, 4], layer("RNN", cell=layer("MyCell", units=3))),
            "no recurrent cell called 'MyCell' has a rule",
        ),
        (sequential([4], layer("TimeDistributed")), "it has no inner layer"),
    ],
)
def test_a_broken_config_is_refused_in_one_line(config: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput) as refusal:
        from_config(config, "net.json")
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)
