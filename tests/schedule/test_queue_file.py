"""Queue files: workload files whose jobs can be started."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.schedule.test_workload_file import JOB, document

from epochcast.errors import BadInput
from epochcast.schedule.queue_file import queue_of, read_queue


def with_job(**more: Any) -> dict[str, Any]:
    return document(jobs=[{**JOB, "command": ["python", "train.py"], **more}])


def test_paths_are_those_of_the_file_and_of_the_jobs_folder(tmp_path: Path) -> None:
    path = tmp_path / "queue.json"
    path.write_text(json.dumps(with_job(folder="work", log="a.log")), encoding="utf-8")
    work = read_queue(path).works["a"]
    assert (work.folder, work.log) == (tmp_path / "work", tmp_path / "work/a.log")
    assert work.checkpoint_folder == tmp_path / "work/checkpoints/a"


def test_every_start_has_a_log_of_its_own() -> None:
    work = queue_of(with_job(), Path("/q")).works["a"]
    assert [str(work.log_of(attempt)) for attempt in (1, 2)] == ["/q/logs/a.log", "/q/logs/a.2.log"]


def test_a_line_is_given_to_the_shell_and_words_are_not() -> None:
    assert queue_of(with_job(command="a | b"), Path("/")).works["a"].command == ("/bin/sh", "-c", "a | b")
    assert queue_of(with_job(), Path("/")).works["a"].command == ("python", "train.py")


def test_rows_say_everything_that_was_left_out() -> None:
    queue = queue_of(with_job(env={"SEED": "1"}), Path("/q"))
    again = queue_of({**queue.document, "jobs": list(queue.rows().values())}, Path("/elsewhere"))
    assert again.works == queue.works


def test_a_job_without_a_command_can_be_planned_and_not_run() -> None:
    queue = queue_of(document(), Path("/"))
    assert not queue.works
    with pytest.raises(BadInput, match="job 'a' has no command: it can be planned, not run"):
        queue.check_runnable()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"command": []}, "command of job 'a' is"),
        ({"command": " "}, "command of job 'a' is"),
        ({"command": ["a\0b"]}, "command of job 'a' is"),
        ({"env": {"A B": "1"}}, "env of job 'a': 'A B'"),
        ({"env": {"A": 1}}, "env of job 'a': 'A' is 1"),
        ({"env": []}, "env of job 'a' is"),
        ({"folder": 3}, "folder of job 'a' is 3"),
        ({"retries": -1}, "retries of job 'a' is -1"),
        ({"grace_seconds": "soon"}, "grace_seconds of job 'a' is 'soon'"),
        ({"id": "../a"}, r"job '\.\./a': an id of a job that is run has"),
    ],
)
def test_a_message_names_the_job_and_the_key(change: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        queue_of(with_job(**change), Path("/"))
