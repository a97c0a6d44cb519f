"""What a capture depended on: the same as long as nothing changed, however little."""

from pathlib import Path

import pytest

from epochcast.describe.capture.capture_dependencies import ABSENT, Depends, content_mark


def test_a_changed_file_a_new_name_and_another_variable_are_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "helper.py"
    file.write_text("WIDTH = 60\n", encoding="utf-8")
    monkeypatch.setenv("OWN_WIDTH", "7")
    depends = Depends.on([file, tmp_path / "later.yaml"], [tmp_path], ["OWN_WIDTH", "OWN_DEPTH"])
    assert depends.holds()
    assert Depends.from_dict(depends.as_dict()) == depends
    file.write_text("WIDTH = 70\n", encoding="utf-8")
    assert not depends.holds()
    file.write_text("WIDTH = 60\n", encoding="utf-8")
    assert depends.holds()
    (tmp_path / "torch.py").write_text("", encoding="utf-8")
    assert not depends.holds()
    (tmp_path / "torch.py").unlink()
    (tmp_path / "later.yaml").write_text("", encoding="utf-8")
    assert not depends.holds()
    (tmp_path / "later.yaml").unlink()
    monkeypatch.setenv("OWN_DEPTH", "2")
    assert not depends.holds()


def test_no_secret_is_written_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OWN_TOKEN", "hunter2")
    assert "hunter2" not in str(Depends.on(names=["OWN_TOKEN"]).as_dict())


def test_a_large_file_is_known_by_its_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("epochcast.describe.capture.capture_dependencies.MOST_READ_BYTES", 4)
    file = tmp_path / "weights.bin"
    file.write_bytes(b"12345")
    assert content_mark(file).startswith("date:")
    assert content_mark(tmp_path / "nothing") == ABSENT


@pytest.mark.parametrize("document", [None, [], {"files": 3}, {"files": {"a": 1}}, {"environment": [1]}])
def test_what_is_no_such_thing_is_refused(document: object) -> None:
    with pytest.raises(ValueError, match="must be"):
        Depends.from_dict(document)  # type: ignore[arg-type]
