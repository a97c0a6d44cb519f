from dataclasses import replace
from pathlib import Path

import pytest

from epochcast.decide.diff.forecast_lock import Lock, Locked, read_lock
from epochcast.decide.diff.forecast_provenance import Provenance, own_provenance
from epochcast.errors import BadInput, UnknownName

from .conftest import side

SIDE = side({"a": (1.0, "aa"), "layer with blanks": (0.5, "bb")}, host=0.25)


def test_a_lock_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "epochcast.lock"
    Lock().accepting({"job": SIDE}).write(path)
    assert read_lock(path).jobs == {"job": Locked(SIDE, own_provenance())}
    assert read_lock(path).text() == path.read_text()


def test_accepting_one_job_leaves_the_others() -> None:
    lock = Lock().accepting({"a": SIDE, "b": SIDE}).accepting({"a": replace(SIDE, name="new")})
    assert (lock.jobs["a"].side.name, lock.jobs["b"].side.name) == ("new", "made")


def test_a_lock_of_another_model_is_not_ours() -> None:
    assert Locked(SIDE, own_provenance()).is_ours
    assert not Locked(SIDE, replace(own_provenance(), model="other")).is_ours
    assert not Locked(SIDE, Provenance("0.0.1", own_provenance().model)).is_ours


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[]", "is no lock"),
        ('{"format": 99, "jobs": {}}', "has format 99"),
        ('{"format": 1, "jobs": {"a": {"layers": ["x"]}}}', "job 'a' is damaged"),
        ('{"format": 1, "jobs": {"a": 3}}', "job 'a' is damaged"),
    ],
)
def test_a_damaged_lock_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "epochcast.lock"
    path.write_text(text)
    with pytest.raises(BadInput, match=message):
        read_lock(path)


def test_a_job_that_was_never_accepted_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match=r"no accepted job in epochcast.lock called 'b'; known: a"):
        Lock().accepting({"a": SIDE}).job("b", tmp_path / "epochcast.lock")


def test_without_a_lock_the_command_that_writes_one_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="epochcast diff --lock --accept"):
        read_lock(tmp_path / "epochcast.lock")
