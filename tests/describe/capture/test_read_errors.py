"""Whatever a damaged file makes a reader fail on is one line that names the place."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from epochcast.describe.capture.keras import load_keras
from epochcast.describe.capture.model import BuiltModel, Model
from epochcast.describe.capture.read_errors import DAMAGE, reading, reading_part
from epochcast.describe.capture.spec import load_spec
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.recipe import Recipe
from epochcast.errors import BadInput, MissingExtra


@pytest.mark.parametrize("kind", DAMAGE)
def test_an_error_of_python_becomes_one_line_with_the_place_and_keeps_its_cause(kind: type[Exception]) -> None:
    with pytest.raises(BadInput, match=r"^net\.onnx cannot be read: \S") as caught, reading("net.onnx"):
        raise kind("two\nlines")
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value.__cause__, kind)


def test_the_innermost_place_is_named_once() -> None:
    places = reading("net"), reading_part("net: block"), reading_part("net: layer 1")
    with pytest.raises(BadInput, match=r"^net: layer 1: too wide$"), places[0], places[1], places[2]:
        raise BadInput("too wide")


def test_a_missing_package_is_not_the_fault_of_the_file() -> None:
    with pytest.raises(MissingExtra), reading_part("net: layer 1"):
        raise MissingExtra("onnx")


def test_a_model_of_a_file_names_it_at_every_batch() -> None:
    def build(batch: int) -> Graph:
        raise IndexError(batch)

    model = BuiltModel("net", build, "net.toml")
    for ask in (lambda: model.graph(7), lambda: model.trace(Recipe(7))):
        with pytest.raises(BadInput, match=r"^net\.toml cannot be read: an axis or an index in it is out of range$"):
            ask()
    with pytest.raises(IndexError):
        BuiltModel("zoo", build).graph(7)  # a fault of ours stays one


@pytest.mark.parametrize(
    ("load", "target"),
    [
        (load_keras, "epochcast.describe.capture.keras.check_layers"),
        (load_spec, "epochcast.describe.capture.spec.layered"),
    ],
)
def test_readers_have_the_boundary(
    load: Callable[[Path], Model], target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stumbling(*_: object) -> None:
        raise TypeError("no number")

    monkeypatch.setattr(target, stumbling)
    file = tmp_path / "net.json"
    layers = [{"class_name": "Dense", "config": {}}]
    file.write_text(json.dumps({"class_name": "Sequential", "config": {"layers": layers}, "layers": []}))
    with pytest.raises(BadInput, match=r"^net\.json cannot be read: no number$"):
        load(file)
