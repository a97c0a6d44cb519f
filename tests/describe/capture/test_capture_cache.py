"""Captures on disk: found again, never half-written, never believed when broken."""

import gzip
import json
import os
from hashlib import sha256
from pathlib import Path

import pytest

from epochcast import describe
from epochcast.describe.capture.capture_cache import CachedModel, CacheWarning, about, folder
from epochcast.describe.capture.model import BuiltModel
from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.recipe import Recipe

RECIPE = Recipe(8, optimizer="adam", precision="amp_fp16")


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EPOCHCAST_CACHE", str(tmp_path / "kept"))
    return tmp_path / "kept"


class Counted:
    """A model that counts how often it is loaded."""

    def __init__(self) -> None:
        self.loads = 0

    def load(self) -> BuiltModel:
        self.loads += 1
        return zoo_model("resnet20")

    def cached(self, reference: str = "mine", **options: object) -> CachedModel:
        return CachedModel(reference, about(reference, None, options), self.load)


def test_a_second_process_reads_what_the_first_captured(kept: Path) -> None:
    counted = Counted()
    first = counted.cached().trace(RECIPE)
    second = counted.cached().trace(RECIPE)
    assert counted.loads == 1
    assert first == second
    assert len(list(kept.glob("*.json.gz"))) == 1


def test_another_batch_is_the_same_capture() -> None:
    counted = Counted()
    counted.cached().trace(RECIPE)
    assert counted.cached().trace(RECIPE.at(64)).batch == 64
    assert counted.loads == 1


def test_graphs_are_kept_too() -> None:
    counted = Counted()
    first = counted.cached().graph(2)
    assert isinstance(first, Graph)
    assert counted.cached().graph(2) == first
    assert counted.loads == 1


@pytest.mark.parametrize("other", [Recipe(8, optimizer="sgd"), Recipe(8, freeze=("fc.*",)), Recipe(8, mode="forward")])
def test_another_recipe_is_another_capture(other: Recipe) -> None:
    counted = Counted()
    counted.cached().trace(RECIPE)
    counted.cached().trace(other)
    assert counted.loads == 2


def test_other_options_and_other_versions_are_another_capture(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted()
    counted.cached().trace(RECIPE)
    counted.cached(grad_scaler=True).trace(RECIPE)
    monkeypatch.setattr("epochcast.describe.capture.capture_cache.version", lambda package: "99")
    counted.cached().trace(RECIPE)
    assert counted.loads == 3


def test_the_same_file_from_another_folder_is_the_same_capture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert about("model.py:make", None, {}) == about(f"{tmp_path}/model.py:make", None, {})
    before = about("package.model:make", None, {})
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert about("package.model:make", None, {}) != before


def test_a_folder_with_a_configuration_is_read_again_when_that_changes(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text('{"model_type": "bert"}', encoding="utf-8")
    counted = Counted()
    kept = counted.cached(f"hf:{tmp_path}")
    kept.trace(RECIPE)
    assert not kept.is_stale
    config.write_text('{"model_type": "gpt2"}', encoding="utf-8")
    assert kept.is_stale
    counted.cached(f"hf:{tmp_path}").trace(RECIPE)
    assert counted.loads == 2


def test_a_folder_that_is_a_file_costs_a_warning(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("EPOCHCAST_CACHE", str(tmp_path / "file"))
    with pytest.warns(CacheWarning, match="the capture is not cached"):
        assert Counted().cached().trace(RECIPE).batch == 8


def test_a_file_that_may_not_be_read_costs_a_warning(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted()
    first = counted.cached().trace(RECIPE)

    def refused(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", refused)
    with pytest.warns(CacheWarning, match=r"is ignored: .*Permission denied"):
        assert counted.cached().trace(RECIPE) == first


@pytest.mark.parametrize(
    "content",
    [b"", b"not gzip", gzip.compress(b"{"), gzip.compress(b"[]"), gzip.compress(json.dumps({"ops": 1}).encode())],
    ids=["empty", "no gzip", "no json", "a list", "no trace"],
)
def test_a_broken_file_is_ignored_with_a_warning_and_written_anew(kept: Path, content: bytes) -> None:
    counted = Counted()
    first = counted.cached().trace(RECIPE)
    (path,) = kept.glob("*.json.gz")
    path.write_bytes(content)
    with pytest.warns(CacheWarning, match="is ignored"):
        assert counted.cached().trace(RECIPE) == first
    assert counted.cached().trace(RECIPE) == first
    assert counted.loads == 2


def test_a_flipped_bit_costs_a_warning_once(kept: Path) -> None:
    counted = Counted()
    first = counted.cached().trace(RECIPE)
    (path,) = kept.glob("*.json.gz")
    whole = path.read_bytes()
    for place in range(10, len(whole), max(1, len(whole) // 40)):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << (place % 8)
        path.write_bytes(bytes(damaged))
        with pytest.warns(CacheWarning, match="is ignored"):
            assert counted.cached().trace(RECIPE) == first
        assert path.read_bytes() == whole  # rewritten: the next run has no warning


def test_a_write_that_fails_leaves_nothing_behind(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.warns(CacheWarning, match="the capture is not cached: no space left"):
        Counted().cached().trace(RECIPE)
    assert list(kept.iterdir()) == []


@pytest.mark.parametrize("word", ["off", "", "0", "None"])
def test_it_can_be_turned_off(monkeypatch: pytest.MonkeyPatch, kept: Path, word: str) -> None:
    monkeypatch.setenv("EPOCHCAST_CACHE", word)
    Counted().cached().trace(RECIPE)
    assert folder() is None
    assert not kept.exists()


def test_without_a_name_it_is_in_the_users_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("EPOCHCAST_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    where = folder()
    assert where is not None
    assert where.parts[-2:] == ("epochcast", "captures")


def test_a_change_of_our_own_rules_is_another_capture() -> None:
    own = sha256()
    rooms = [Path(describe.__file__).parent / name for name in ("capture", "graph")]
    for path in sorted(path for room in rooms for path in room.rglob("*.py")):
        own.update(path.name.encode() + b"\0" + path.read_bytes())
    assert about("torchvision:alexnet", None, {})["ours"] == own.hexdigest()
    assert own.hexdigest() != sha256().hexdigest()
