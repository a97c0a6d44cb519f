import json
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest

from epochcast.describe.capture.keras import from_keras, load_keras
from epochcast.describe.capture.keras.archive import MOST_BYTES
from epochcast.errors import BadInput

CONFIG: dict[str, Any] = {
    "class_name": "Sequential",
    "config": {
        "name": "tiny",
        "layers": [
            {"class_name": "InputLayer", "config": {"name": "x", "batch_shape": [None, 4]}},
            {"class_name": "Dense", "config": {"name": "fc", "units": 3}},
        ],
    },
}


def archive(path: Path, name: str = "config.json", text: str = json.dumps(CONFIG)) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr(name, text)
    return path


def test_an_archive_is_read_by_its_config_alone(tmp_path: Path) -> None:
    assert load_keras(archive(tmp_path / "m.keras")).graph(2).parameter_count == 15


def test_a_json_of_keras_is_the_same_model(tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text(json.dumps(CONFIG))
    assert load_keras(tmp_path / "m.json").graph(2) == load_keras(archive(tmp_path / "m.keras")).graph(2)


def test_a_truncated_archive_is_refused(tmp_path: Path) -> None:
    whole = archive(tmp_path / "m.keras").read_bytes()
    (tmp_path / "m.keras").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(BadInput, match=r"^m\.keras is not a Keras archive, or it is truncated$"):
        load_keras(tmp_path / "m.keras")


def test_a_zip_that_is_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"m\.keras is not a Keras archive: it has no config\.json"):
        load_keras(archive(tmp_path / "m.keras", "readme.txt"))
    with pytest.raises(BadInput, match=r"m\.keras is not a Keras model: its config has no class_name"):
        load_keras(archive(tmp_path / "m.keras", text="{}"))
    with pytest.raises(BadInput, match=r"m\.keras: the model's config is not JSON: .*\(at line 2, column"):
        load_keras(archive(tmp_path / "m.keras", text="{\n!"))


def test_a_zip_bomb_is_not_unpacked(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"m\.keras: its config is larger than \d+ bytes"):
        load_keras(archive(tmp_path / "m.keras", text=" " * (MOST_BYTES + 1)))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"cannot read .*gone\.keras: No such file"):
        load_keras(tmp_path / "gone.keras")


def test_something_else_is_no_model() -> None:
    with pytest.raises(BadInput, match="int is not a Keras model"):
        from_keras(3)


def test_a_saved_model_a_json_and_the_live_model_agree(tmp_path: Path) -> None:
    os.environ.setdefault("KERAS_BACKEND", "torch")
    keras = pytest.importorskip("keras")
    layers = keras.layers
    x = keras.Input((16, 16, 3))
    y = layers.Conv2D(8, 3, padding="same", activation="relu")(x)
    y = layers.Add()([y, layers.Conv2D(8, 1)(x)]) * 2.0
    model = keras.Model(x, layers.Dense(10)(layers.GlobalAveragePooling2D()(y)), name="small")
    model.save(tmp_path / "small.keras")
    (tmp_path / "small.json").write_text(model.to_json())
    live = from_keras(model).graph(4)
    assert live == load_keras(tmp_path / "small.keras").graph(4) == load_keras(tmp_path / "small.json").graph(4)
    assert live.parameter_count == model.count_params()
