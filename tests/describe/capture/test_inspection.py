import json

import pytest

from epochcast.describe.capture.inspection import inspect_graph
from epochcast.describe.capture.model import BuiltModel
from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.tensor import DType


def small(batch: int) -> Graph:
    b = Builder("small", batch)
    x = b.relu(b.conv(b.input("image", (3, 8, 8)), 4, 3, padding=1, name="conv"), name="relu")
    return b.finish(b.linear(b.flatten(x), 10, name="fc"))


SMALL = BuiltModel("small", small)


# conv: 3·9·4 + 4 parameters, 2·64·4·27 flops; relu: 256 values; fc: 256·10 + 10 parameters, 2·256·10 flops.
def test_a_small_network_by_hand() -> None:
    found = inspect_graph(SMALL)
    rows = {row.name: (row.output_shape, row.parameters, row.activations, row.forward_flops) for row in found.layers}
    assert rows == {
        "conv": ((4, 8, 8), 112, 256, 13_824),
        "relu": ((4, 8, 8), 0, 256, 0),
        "fc": ((10,), 2570, 10, 5120),
    }
    assert (found.parameters, found.forward_flops_per_sample, found.activations_per_sample) == (2682, 18_944, 522)
    assert found.elementwise_flops_per_sample == 256
    assert found.training_flops_per_sample == 3 * 18_944 - 13_824  # no gradient of the image
    assert [row.receptive_field for row in found.layers] == [(3, 3), (3, 3), (8, 8)]


def test_biases_can_be_left_out() -> None:
    found = inspect_graph(SMALL, count_bias=False)
    assert found.parameters == 3 * 9 * 4 + 256 * 10
    assert [row.parameters for row in found.layers] == [108, 0, 2560]


def test_scales_of_a_norm_are_no_biases() -> None:
    model = zoo_model("resnet18")
    assert inspect_graph(model).parameters - inspect_graph(model, count_bias=False).parameters == 1000  # fc's bias


@pytest.mark.parametrize("name", ["resnet18", "vit_ti_16", "mobilenet_v2", "lstm_lm", "bert_base"])
def test_layers_sum_to_the_totals(name: str) -> None:
    found = inspect_graph(zoo_model(name))
    assert found.trainable_parameters == found.parameters == zoo_model(name).graph(1).parameter_count
    assert sum(row.forward_flops for row in found.layers) == found.forward_flops_per_sample


def tied(batch: int) -> Graph:
    b = Builder("tied", batch)
    x = b.embedding(b.input("ids", (3,), DType.INT64), 10, 4, name="table")
    (x,) = b.opaque("mystery", [x], [x.shape])
    return b.finish(b.linear(x, 10, bias=False, weight=b.parameters["table.weight"].tensor, name="head"))


def test_tied_weights_are_counted_where_they_first_appear() -> None:
    found = inspect_graph(BuiltModel("tied", tied))
    assert {row.name: row.parameters for row in found.layers} == {"table": 40, "mystery": 0, "head": 0}
    assert found.parameters == 40


def test_unknown_ops_are_listed() -> None:
    assert inspect_graph(BuiltModel("tied", tied)).opaque_ops == ("mystery",)


CONTRACT = {
    "model",
    "input_shape",
    "parameters",
    "trainable_parameters",
    "forward_flops_per_sample",
    "elementwise_flops_per_sample",
    "training_flops_per_sample",
    "activations_per_sample",
    "layers",
    "opaque_ops",
}


def test_the_dictionary_keeps_the_contract_and_is_json() -> None:
    found = json.loads(json.dumps(inspect_graph(SMALL).as_dict()))
    assert set(found) >= CONTRACT
    row = found["layers"][0]
    assert {"name", "kind", "output_shape", "parameters", "activations", "forward_flops", "receptive_field"} <= set(row)
    assert row["output_shape"] == [4, 8, 8]
