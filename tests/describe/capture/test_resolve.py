from pathlib import Path

import pytest

from epochcast.describe.capture.resolve import find_model
from epochcast.describe.capture.zoo import zoo_model
from epochcast.errors import BadInput, UnknownName


def test_a_name_is_of_the_zoo() -> None:
    assert find_model("resnet50").name == "resnet50"


def test_the_input_can_be_another() -> None:
    assert find_model("resnet50", (3, 96, 96)).graph(2).inputs[0].shape == (2, 3, 96, 96)


def test_a_model_is_itself() -> None:
    model = zoo_model("resnet50")
    assert find_model(model) is model


def test_auxiliary_heads_can_be_dropped() -> None:
    assert len(find_model("googlenet").graph(1).outputs) == 3
    assert len(find_model("googlenet", aux=False).graph(1).outputs) == 1
    with pytest.raises(BadInput, match="resnet50 has no auxiliary heads to drop"):
        find_model("resnet50", aux=False)


def test_a_name_slightly_off_is_offered_the_near_ones() -> None:
    with pytest.raises(UnknownName, match=r"no model called 'resnet51'; near: .*resnet50"):
        find_model("resnet51")


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(BadInput, match=r"no file 'missing\.onnx'"):
        find_model("missing.onnx")


@pytest.mark.parametrize("name", ["weights.pt", "weights.pth", "weights.pkl", "weights.h5"])
def test_pickles_are_never_loaded(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"")
    with pytest.raises(BadInput, match=f"{name} may hold pickled code, which is never loaded; give the code"):
        find_model(path)


def test_a_file_of_another_kind_is_told_what_is_read(tmp_path: Path) -> None:
    path = tmp_path / "model.txt"
    path.write_text("resnet50")
    with pytest.raises(BadInput, match=r"is not a model file that can be read; known: \.onnx, \.keras"):
        find_model(path)


@pytest.mark.parametrize("reference", ["package.module:factory", "model.py:factory"])
def test_code_runs_only_where_it_is_allowed(reference: str) -> None:
    with pytest.raises(BadInput, match=f"'{reference}' would run Python code, which is not allowed here"):
        find_model(reference, allow_code=False)


def test_a_broken_json_file_goes_to_the_spec_reader(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_text("{")
    with pytest.raises(BadInput, match=r"model\.json"):
        find_model(path)


def test_a_thing_that_is_no_model_is_told_what_would_be() -> None:
    with pytest.raises(BadInput, match=r"a dict is not a model: give a name, a file, an nn\.Module or a Keras model"):
        find_model({})
