import json
import re
from pathlib import Path
from time import process_time
from typing import Any

import pytest

from epochcast.describe.capture.model import Model
from epochcast.describe.capture.spec import load_spec, save_spec, spec_model
from epochcast.describe.capture.spec.spec_rules import RULES
from epochcast.describe.capture.torch.user_workload import from_workload
from epochcast.describe.capture.workload import Workload
from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.trace import Trace
from epochcast.errors import BadInput

DOCS = Path(__file__).parents[3] / "docs" / "reference" / "spec.md"


def built(layers: list[dict[str, Any]], shape: list[int], **more: Any) -> Graph:
    return spec_model({"input": shape, "layers": layers, **more}, "net.toml", "net").graph(2)


def shape_of(layers: list[dict[str, Any]], shape: list[int]) -> tuple[int, ...]:
    return built(layers, shape).outputs[0].shape[1:]


# ---- layers -------------------------------------------------------------------------------------


def test_the_example_of_the_manual_is_a_model(tmp_path: Path) -> None:
    text = re.search(r"```toml\n(name = .*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    assert text is not None
    (tmp_path / "small.toml").write_text(text[1], encoding="utf-8")
    graph = load_spec(tmp_path / "small.toml").graph(4)
    by_hand = 3 * 9 * 16 + 32 + 6 * (16 * 9 * 16 + 16) + 16 * 10 + 10
    assert (graph.name, graph.parameter_count, graph.outputs[0].shape) == ("small-resnet", by_hand, (4, 10))
    assert "stage.2.conv1.weight" in {p.name for p in graph.parameters}


def test_the_manual_lists_every_layer_type() -> None:
    listed = set(re.findall(r"`(\w+)`", "\n".join(re.findall(r"^\| (`.*?) \|", DOCS.read_text("utf-8"), re.MULTILINE))))
    assert listed == {*RULES, "block"}


@pytest.mark.parametrize(
    ("layer", "shape", "result", "parameters"),
    [
        ({"type": "conv", "channels": 8, "kernel": 3, "stride": 2, "padding": 1}, [3, 9, 9], (8, 5, 5), 224),
        ({"type": "conv", "channels": 8, "kernel": [1, 3], "padding": "same"}, [3, 9, 9], (8, 9, 9), 80),
        ({"type": "conv", "channels": 8, "kernel": 3, "dilation": 2, "padding": "same"}, [3, 9], (8, 9), 80),
        ({"type": "depthwise_conv", "kernel": 3, "multiplier": 2, "bias": False}, [3, 9, 9], (6, 7, 7), 54),
        ({"type": "conv_transposed", "channels": 4, "kernel": 2, "stride": 2}, [3, 9, 9], (4, 18, 18), 52),
        ({"type": "linear", "features": 5}, [7, 3], (7, 5), 20),
        ({"type": "embedding", "rows": 100, "width": 8}, [7], (7, 8), 800),
        ({"type": "position"}, [7, 8], (7, 8), 56),
        ({"type": "lstm", "hidden": 6, "bidirectional": True}, [7, 8], (7, 12), 2 * 4 * 6 * (8 + 6 + 2)),
        ({"type": "gru", "hidden": 6, "layers": 2, "sequence": False}, [7, 8], (6,), 3 * 6 * (8 + 6 + 2 + 6 + 6 + 2)),
        ({"type": "attention", "heads": 2}, [7, 8], (7, 8), 4 * (64 + 8)),
        ({"type": "attention", "heads": 4, "kv_heads": 1, "bias": False}, [7, 8], (7, 8), 8 * (12 + 8)),
        ({"type": "group_norm", "groups": 2}, [4, 5, 5], (4, 5, 5), 8),
        ({"type": "rms_norm"}, [7, 8], (7, 8), 8),
        ({"type": "local_response_norm"}, [4, 5, 5], (4, 5, 5), 0),
        ({"type": "max_pool", "kernel": 3, "stride": 2, "ceil_mode": True}, [4, 6, 6], (4, 3, 3), 0),
        ({"type": "global_average_pool", "flatten": True}, [4, 6, 6], (4,), 0),
        ({"type": "mean", "axes": [1]}, [7, 8], (8,), 0),
        ({"type": "permute", "order": [2, 1]}, [7, 8], (8, 7), 0),
        ({"type": "reshape", "shape": [4, 14]}, [7, 8], (4, 14), 0),
        ({"type": "select"}, [7, 8], (8,), 0),
        ({"type": "upsample", "scale": 3}, [4, 5, 5], (4, 15, 15), 0),
        ({"type": "pad", "padding": [1, 2]}, [4, 5, 5], (4, 7, 9), 0),
        ({"type": "opaque", "target": "sinkhorn", "shape": [3]}, [7, 8], (3,), 0),
    ],
)
def test_a_layer_has_its_shape_and_parameters(
    layer: dict[str, Any], shape: list[int], result: tuple[int, ...], parameters: int
) -> None:
    graph = built([layer], shape)
    assert (graph.outputs[0].shape[1:], graph.parameter_count) == (result, parameters)


def test_from_joins_layers_that_are_not_neighbours() -> None:
    layers: list[Any] = [
        {"type": "linear", "features": 8, "name": "a"},
        {"type": "linear", "features": 8, "name": "b", "from": "input"},
        {"type": "concatenate", "from": ["a", "b", "input"]},
    ]
    assert shape_of(layers, [8]) == (24,)


def test_a_tied_table_is_one_parameter() -> None:
    layers: list[Any] = [
        {"type": "embedding", "rows": 100, "width": 8, "name": "wte"},
        {"type": "linear", "tie": "wte"},
    ]
    graph = built(layers, [5], dtype="int64")
    assert (graph.outputs[0].shape, graph.parameter_count) == ((2, 5, 100), 800)


def test_a_frozen_block_trains_nothing() -> None:
    block = {"type": "block", "trainable": False, "layers": [{"type": "linear", "features": 8}]}
    graph = built([block, {"type": "linear", "features": 2}], [4])
    assert (graph.parameter_count, graph.trainable_parameter_count) == (58, 18)


def test_two_inputs_and_two_outputs() -> None:
    document = {
        "inputs": [{"name": "x", "shape": [4]}, {"name": "ids", "shape": [3], "dtype": "int64"}],
        "outputs": ["left", "right"],
        "layers": [
            {"type": "linear", "features": 2, "name": "left"},
            {"type": "embedding", "rows": 9, "width": 5, "name": "right", "from": "ids"},
        ],
    }
    graph = spec_model(document, "net.json", "net").graph(2)
    assert [t.shape for t in graph.outputs] == [(2, 2), (2, 3, 5)]


def test_the_input_can_be_given_another_shape(tmp_path: Path) -> None:
    (tmp_path / "net.toml").write_text('input = [3, 32, 32]\n[[layers]]\ntype = "relu"\n')
    assert load_spec(tmp_path / "net.toml", (3, 8, 8)).graph(2).outputs[0].shape == (2, 3, 8, 8)


def test_a_spec_of_alexnets_layers_has_its_published_count() -> None:
    """Krizhevsky 2014 ("one weird trick"): 61,100,840 parameters."""
    conv: Any = lambda c, k, **more: [{"type": "conv", "channels": c, "kernel": k, **more}, {"type": "relu"}]  # noqa: E731
    pool = [{"type": "max_pool", "kernel": 3, "stride": 2}]
    layers = [
        *conv(64, 11, stride=4, padding=2), *pool, *conv(192, 5, padding=2), *pool, *conv(384, 3, padding=1),
        *conv(256, 3, padding=1), *conv(256, 3, padding=1), *pool, {"type": "flatten"},
        {"type": "dropout"}, {"type": "linear", "features": 4096}, {"type": "relu"},
        {"type": "dropout"}, {"type": "linear", "features": 4096}, {"type": "relu"},
        {"type": "linear", "features": 1000},
    ]  # fmt: skip
    assert built(layers, [3, 224, 224]).parameter_count == 61_100_840


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ([{"type": "convv"}], "net.toml: layers[0] 'convv' (convv): no layer type called 'convv'; near: conv"),
        ([{"type": "conv", "channels": 8}], "net.toml: layers[0] 'conv' (conv): 'kernel' is missing"),
        ([{"type": "conv", "channels": "8", "kernel": 3}], "'channels' must be a whole number of at least 1, got '8'"),
        (
            [{"type": "relu", "slope": 1}],
            "layers[0] 'relu' (relu): no key 'slope'; known: from, name, trainable, type",
        ),
        ([{"type": "conv", "channels": 1, "kernel": 1, "strides": 2}], "no key 'strides'; near: stride"),
        ([{"type": "add", "from": ["a", "input"]}], "'from': no layer above called 'a'; known: input"),
        ([{"type": "conv", "channels": 8, "kernel": 9}], "conv turns 3×8×8 into 8×0×0: the input is too small"),
        ([{"type": "conv", "channels": 8, "kernel": [3]}], "expected 2 sizes, got (3,)"),
        ([{"type": "lstm", "hidden": 8}], "needs (length, width), like 128×768; got 3×8×8"),
        ([{"type": "flatten"}, {"type": "add", "from": ["flatten", "input"]}], "192 and 3×8×8 do not fit"),
        ([{"type": "relu", "name": "input"}], "the name is taken by another layer or input"),
        ([{"type": "reshape", "shape": [4, 4]}], "3×8×8 has 192 elements, 'shape' 16"),
        ([{"name": "x"}], "net.toml: layers[0]: 'type' is missing"),
        ([{"type": "block", "layers": [{"type": "rulu"}]}], "layers[0].layers[0] 'rulu' (rulu): no layer type called"),
        ([], "net.toml: 'layers' is empty"),
        (["relu"], "net.toml: 'layers' must be a list of tables, got ['relu']"),
    ],
)
def test_a_broken_layer_is_refused_by_its_place(layers: list[Any], message: str) -> None:
    with pytest.raises(BadInput) as refusal:
        built(layers, [3, 8, 8])
    assert message in str(refusal.value)
    assert str(refusal.value).startswith("net.toml")


def nested(depth: int, repeat: int) -> dict[str, Any]:
    layer: dict[str, Any] = {"type": "relu"}
    for _ in range(depth):
        layer = {"type": "block", "repeat": repeat, "layers": [layer]}
    return layer


@pytest.mark.parametrize(
    ("layers", "shape", "message"),
    [
        ([{"type": "lstm", "hidden": 8, "layers": 10**9}], [4, 8], "more than 200,000 operators"),
        ([nested(1, 10**12)], [8], "more than 200,000 operators"),
        ([nested(60, 2)], [8], "more than 200,000 operators"),
        ([{"type": "relu"}] * 1_000_000, [8], "more than 200,000 operators"),
        ([{"type": "block", "repeat": 10**12, "layers": []}], [8], "'layers' must be one or more tables"),
        ([{"type": "linear", "features": 10**30}], [8], r"more than 2^55 bytes in one tensor"),
        ([{"type": "relu"}], [10**9, 10**9, 10**9], r"more than 2^55 bytes in one tensor"),
        ([{"type": "relu"}], [1] * 100, "101 dimensions"),
    ],
)
def test_what_no_network_has_is_refused_at_once(layers: list[Any], shape: list[int], message: str) -> None:
    began = process_time()
    with pytest.raises(BadInput) as refusal:
        built(layers, shape)
    assert message in str(refusal.value)
    assert process_time() - began < 5


def test_ten_thousand_layers_are_built_in_a_moment() -> None:
    began = process_time()
    graph = built([{"type": "linear", "features": 8}] * 10_000, [8])
    assert len(graph.ops) == 10_000
    assert process_time() - began < 10  # it grows with the number of layers, not with its square


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.toml", "name = \n", r"a\.toml is not TOML: .*line 1"),
        ("a.json", '{"name": 1,\n}', r"a\.json is not JSON: .*\(at line 2, column 1\)"),
        ("a.json", "[1]", r"a\.json must hold an object, got a list"),
        ("a.json", "{}", r"a\.json is no spec: it has neither 'layers'"),
        ("a.json", '{"class_name": "Sequential"}', r"a\.json is a Keras model, not a spec"),
        ("a.json", "[" * 100_000, r"a\.json is nested more than"),
        ("a.json", '{"layers": []}', r"a\.json: it must have 'input', one sample's shape, or a list of 'inputs'"),
        ("a.json", '{"graph": {}, "version": 7}', r"a\.json is a spec of version 7; this epochcast reads version 1"),
        ("a.json", '{"graph": {}, "version": 1}', r"a\.json: graph has no 'template'"),
    ],
)
def test_a_broken_file_is_refused_in_one_line(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(BadInput, match=message) as refusal:
        load_spec(tmp_path / name)
    assert "\n" not in str(refusal.value)


def test_a_file_that_is_not_there_or_not_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"cannot read .*gone\.toml: No such file"):
        load_spec(tmp_path / "gone.toml")
    (tmp_path / "x.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadInput, match=r"x\.json is not text in UTF-8"):
        load_spec(tmp_path / "x.json")


# ---- saved --------------------------------------------------------------------------------------


class Captured:
    """A model whose step is not what the rules would derive, as a framework's is."""

    name = "captured"

    def graph(self, batch: int) -> Graph:
        return zoo_model("resnet20").graph(batch)

    def trace(self, recipe: Recipe) -> Trace:
        from dataclasses import replace

        derived = zoo_model("resnet20").trace(recipe)
        template = derived.template
        return replace(derived, template=type(template)(template.base[:-1], template.growths[:-1]), notes=("captured",))


@pytest.mark.parametrize("recipe", [Recipe(8), Recipe(5, "adamw", "amp_bf16", freeze=("conv1*",))])
def test_a_built_model_comes_back_for_every_recipe(tmp_path: Path, recipe: Recipe) -> None:
    model = zoo_model("resnet18")
    save_spec(model, tmp_path / "r.json")
    back = load_spec(tmp_path / "r.json")
    assert back.graph(7) == model.graph(7)
    assert back.trace(recipe) == model.trace(recipe)
    assert back.trace(recipe.at(3)).ops == model.trace(recipe.at(3)).ops


def test_a_captured_step_comes_back_as_it_was(tmp_path: Path) -> None:
    recipe = Recipe(8, "adam")
    save_spec(Captured(), tmp_path / "c.json", recipe)
    back = load_spec(tmp_path / "c.json")
    assert back.trace(recipe) == Captured().trace(recipe)


def test_a_torch_capture_is_forecast_without_torch(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")

    nn = torch.nn
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 5))
    model, recipe = from_workload(Workload(module, inputs=(3, 8, 8))), Recipe(8, "adam", "amp_fp16")
    save_spec(model, tmp_path / "t.json", recipe)
    back = load_spec(tmp_path / "t.json")
    assert back.trace(recipe) == model.trace(recipe)
    assert back.trace(recipe.at(5)).ops == model.trace(recipe.at(5)).ops
    assert back.graph(5) == model.graph(5)


def test_a_recipe_that_was_not_captured_is_derived_and_says_so(tmp_path: Path) -> None:
    save_spec(Captured(), tmp_path / "c.json", Recipe(8, "adam"))
    trace = load_spec(tmp_path / "c.json").trace(Recipe(8, "sgd"))
    assert trace.ops == zoo_model("resnet20").trace(Recipe(8, "sgd")).ops
    assert trace.notes == (
        "backward and update are derived by rule: the file holds the captured step of training, adam, fp32 only",
    )


def test_saving_again_keeps_what_was_captured(tmp_path: Path) -> None:
    save_spec(Captured(), tmp_path / "a.json", Recipe(8, "adam"))
    save_spec(load_spec(tmp_path / "a.json"), tmp_path / "b.json")
    assert (tmp_path / "a.json").read_text() == (tmp_path / "b.json").read_text()


def test_a_saved_model_keeps_its_input(tmp_path: Path) -> None:
    save_spec(zoo_model("resnet20"), tmp_path / "r.json")
    assert load_spec(tmp_path / "r.json", (3, 32, 32)).graph(1).inputs[0].shape == (1, 3, 32, 32)
    with pytest.raises(BadInput, match=r"r\.json was saved at input 3x32x32; for 3x64x64 save the model again"):
        load_spec(tmp_path / "r.json", (3, 64, 64))


def test_a_failed_save_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "r.json"
    target.mkdir()
    with pytest.raises(BadInput, match=r"cannot write .*r\.json"):
        save_spec(zoo_model("resnet20"), target)
    assert list(tmp_path.iterdir()) == [target]


def test_a_saved_spec_is_json_by_name(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"a saved spec is JSON: name it r\.json, not r\.toml"):
        save_spec(zoo_model("resnet20"), tmp_path / "r.toml")


def test_a_damaged_saved_file_is_refused_by_its_place(tmp_path: Path) -> None:
    save_spec(zoo_model("resnet20"), tmp_path / "r.json")
    document = json.loads((tmp_path / "r.json").read_text())
    document["graph"]["template"]["ops"][3][2] = [99999]
    (tmp_path / "r.json").write_text(json.dumps(document))
    with pytest.raises(BadInput, match=r"r\.json: graph\.template\.ops\[3\]\.inputs: no tensor 99999"):
        load_spec(tmp_path / "r.json")


def test_a_loaded_model_is_a_model(tmp_path: Path) -> None:
    save_spec(zoo_model("resnet20"), tmp_path / "r.json")
    model: Model = load_spec(tmp_path / "r.json")
    assert model.name == "resnet20"
