from pathlib import Path

import pytest

from epochcast.base.atomic_files import replacing, write_text


def test_a_file_is_written_and_readable_by_others_as_the_process_writes_files(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("x")
    write_text(tmp_path / "new.txt", "α\n")
    assert (tmp_path / "new.txt").read_bytes() == "α\n".encode()
    assert (tmp_path / "new.txt").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_file_that_was_there_keeps_its_permissions(tmp_path: Path) -> None:
    (tmp_path / "own").write_text("x")
    (tmp_path / "own").chmod(0o600)
    write_text(tmp_path / "own", "y")
    assert (tmp_path / "own").stat().st_mode & 0o777 == 0o600


def test_what_goes_wrong_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "kept.txt").write_text("old")
    with pytest.raises(RuntimeError), replacing(tmp_path / "kept.txt") as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("kept.txt", "old")]
