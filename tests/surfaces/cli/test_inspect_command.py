from collections.abc import Callable
from pathlib import Path

import pytest

from epochcast.describe.capture.resolve import find_model
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.receptive_field import receptive_fields

from .conftest import Command

KEYS = {
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
LAYER_KEYS = {"name", "kind", "output_shape", "parameters", "activations", "forward_flops", "receptive_field"}

# Homework table of VGG19 without biases, completed by hand: side, channels, weights of every convolution of a stage.
STAGES = (
    (224, 64, (3 * 3 * 3 * 64, 3 * 3 * 64 * 64)),
    (112, 128, (3 * 3 * 64 * 128, 3 * 3 * 128 * 128)),
    (56, 256, (3 * 3 * 128 * 256, *[3 * 3 * 256 * 256] * 3)),
    (28, 512, (3 * 3 * 256 * 512, *[3 * 3 * 512 * 512] * 3)),
    (14, 512, (3 * 3 * 512 * 512,) * 4),
)
PRODUCTS = ((4096, 7 * 7 * 512 * 4096), (4096, 4096 * 4096), (1000, 4096 * 1000))


def _homework() -> list[tuple[int, int]]:
    """(activations, parameters) of every row behind the input."""
    rows: list[tuple[int, int]] = []
    for side, channels, weights in STAGES:
        rows += [(side * side * channels, count) for count in weights]
        rows.append(((side // 2) ** 2 * channels, 0))
    return rows + list(PRODUCTS)


def test_the_vgg19_table_is_complete(command: Command) -> None:
    answer = command("inspect vgg19 --no-bias --brief --json").json
    assert [(row["activations"], row["parameters"]) for row in answer["layers"]] == _homework()
    given = {1_728, 36_864, 589_824, 1_179_648, 16_777_216}  # the rows the table comes with
    assert given <= {row["parameters"] for row in answer["layers"]}
    assert answer["parameters"] == sum(parameters for _, parameters in _homework()) == 143_652_544
    assert answer["activations_per_sample"] == sum(size for size, _ in _homework()) == 16_391_656


def test_biases_are_one_per_output_channel(command: Command) -> None:
    with_bias = command("inspect vgg19 --json").json["parameters"]
    channels = 2 * 64 + 2 * 128 + 4 * 256 + 8 * 512 + 4096 + 4096 + 1000
    assert with_bias == 143_652_544 + channels == 143_667_240


# 256·(128 + 9·192 + 25·96) and 256·(128 + 3·64) + 64·(9·192 + 25·96) multiply-adds on each of 32·32 positions.
def test_the_inception_modules_by_hand(command: Command) -> None:
    answer = command("inspect inception_naive --versus inception_reduced --json").json
    naive, reduced = 32 * 32 * 1_089_536, 32 * 32 * 346_112
    assert answer["forward_flops_per_sample"] == 2 * naive == 2 * 1_115_684_864
    assert answer["layers"][-1]["output_shape"] == [128 + 192 + 96 + 256, 32, 32]
    versus = answer["versus"]
    assert versus["forward_flops_per_sample"] == 2 * reduced == 2 * 354_418_688
    assert versus["output_shape"] == [128 + 192 + 96 + 64, 32, 32]
    assert versus["ratios"]["forward_flops_per_sample"] == pytest.approx(1 - 0.682, abs=5e-4)


def test_the_saving_is_printed(command: Command) -> None:
    shown = " ".join(command("inspect inception_naive --versus inception_reduced").out.split())
    assert "1,115,684,864 multiply-adds" in shown
    assert "forward, matrix work 2.23 GFLOP 709 MFLOP 0.318 -68.2%" in shown
    assert "output 672×32×32 480×32×32" in shown


def test_a_model_versus_itself_is_one(command: Command) -> None:
    ratios = command("inspect mnist_cnn --versus mnist_cnn --json").json["versus"]["ratios"]
    assert set(ratios.values()) == {1.0}


def _stack(layers: int, window: int) -> Graph:
    b = Builder("stack", 1)
    x = b.input("image", (1, 64, 64))
    for _ in range(layers):
        x = b.conv(x, 1, window)
    return b.finish(x, loss="none")


@pytest.mark.parametrize("window", [1, 3, 5, 7])
@pytest.mark.parametrize("layers", [1, 2, 3, 5])
def test_a_stack_sees_as_much_as_one_large_window(layers: int, window: int) -> None:
    """N·F - N + 1 a side; three of 5x5 see 13."""
    seen = list(receptive_fields(_stack(layers, window)).values())[-1]
    assert seen == (layers * window - layers + 1,) * 2
    if (layers, window) == (3, 5):
        assert seen == (13, 13)


@pytest.mark.parametrize("name", ["resnet50", "bert_base", "lstm_lm", "dlrm"])
def test_json_has_the_keys_of_the_contract(name: str, command: Command) -> None:
    ran = command(f"inspect {name} --json")
    assert (ran.code, ran.err, ran.out.count("\n")) == (0, "", 1)
    assert set(ran.json) >= KEYS
    assert all(set(row) >= LAYER_KEYS for row in ran.json["layers"])
    assert sum(row["forward_flops"] for row in ran.json["layers"]) == ran.json["forward_flops_per_sample"]
    assert sum(row["parameters"] for row in ran.json["layers"]) == ran.json["parameters"]


@pytest.mark.parametrize("line", ["mnist_cnn", "vgg19 --no-bias --brief", "inception_naive --versus inception_reduced"])
def test_the_table_of_layers(line: str, command: Command, snapshot: Callable[[str, str], None]) -> None:
    ran = command(f"inspect {line}")
    assert (ran.code, ran.err) == (0, "")
    snapshot(f"inspect {line}.txt".replace(" --", "-").replace(" ", "_"), ran.out)


def test_a_narrow_terminal_shows_fewer_columns(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = command("inspect resnet18").out
    assert max(map(len, shown.splitlines())) <= 80
    assert "matrix work" in shown and "sees" not in shown


def test_memory_is_shown_for_a_device_and_a_batch(command: Command) -> None:
    memory = command("inspect resnet50 --device V100 --batch 32 --json").json["memory"]
    assert (memory["device"], memory["batch_per_gpu"], memory["fits"]) == ("V100-SXM2-16GB", 32, True)
    assert sum(memory["peak_breakdown"].values()) == memory["peak_bytes"]["mid"]
    assert memory["peak_breakdown"]["parameters"] == 4 * 25_557_032
    assert "memory of a training step at batch 32: fits" in command("inspect resnet50 --device V100 --batch 32").out


def test_a_timeline_is_drawn(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "memory.svg"
    assert command(f"inspect mnist_cnn --device V100 --batch 32 --plot {file}").code == 0
    assert "context and libraries" in file.read_text()


def test_what_does_not_fit_ends_with_code_4(command: Command) -> None:
    ran = command("inspect vgg19 --device K20 --batch 1024 --json")
    assert (ran.code, ran.json["memory"]["fits"]) == (4, False)
    assert {remedy["change"] for remedy in ran.json["memory"]["would_fit"]} >= {"batch", "accumulate", "device"}


def test_a_model_saved_is_the_same_model(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "net.json"
    before = command(f"inspect mnist_cnn --save {file} --json").json
    after = command(f"inspect {file} --json").json
    assert after["layers"] == before["layers"]
    assert find_model(file).graph(2).parameter_count == before["parameters"]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("resnet5", "no model called 'resnet5'; near: "),
        ("mnist_cnn --versus mnist_cn", "model 'mnist_cn' could be: mnist_cnn, mnist_cnn_2conv; name one of them"),
        ("mnist_cnn --device V100", "memory needs both --device and --batch"),
        ("mnist_cnn --plot memory.svg", "--plot draws the memory of a step: it needs --device and --batch"),
        ("mnist_cnn --device V100 --batch 0", "batch must be at least 1, got 0"),
        ("mnist_cnn --input 1x2x2", "the input is too small for this network"),
    ],
)
def test_bad_input_is_one_line_and_code_2(line: str, complaint: str, command: Command) -> None:
    ran = command(f"inspect {line}")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert complaint in ran.err
