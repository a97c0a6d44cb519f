"""Queue files: workload files whose jobs can be started."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.schedule.test_workload_file import JOB, document

from epochcast.errors import BadInput
from epochcast.schedule.queue_document import fleet_row, row_of
from epochcast.schedule.queue_file import queue_of


def with_job(**more: Any) -> dict[str, Any]:
    return document(jobs=[{**JOB, "command": ["python", "train.py"], **more}])


def test_paths_are_those_of_the_file_and_of_the_jobs_folder(tmp_path: Path) -> None:
    work = queue_of(with_job(folder="work", log="a.log"), tmp_path).works["a"]
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
    kept = json.loads(json.dumps({**fleet_row(queue.document), "jobs": [row_of(row) for row in queue.document.jobs]}))
    again = queue_of(kept, Path("/elsewhere"))
    assert (again.works, again.workload, again.rows) == (queue.works, queue.workload, queue.rows)


def test_a_job_without_a_command_can_be_planned_and_not_run() -> None:
    queue = queue_of(document(), Path("/"))
    assert not queue.works
    with pytest.raises(BadInput, match="job 'a' has no command: it can be planned, not run"):
        queue.check_runnable()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"command": []}, "job 'a': command must be a list of words or a line for the shell"),
        ({"command": " "}, "job 'a': command must be a list of words or a line for the shell"),
        ({"command": ["a\0b"]}, "job 'a': command must be a list of words or a line for the shell"),
        ({"env": {"A B": "1"}}, "job 'a': env must have names of variables with texts, got 'A B'"),
        ({"env": {"A": 1}}, "job 'a': env must have names of variables with texts, got 'A' = 1"),
        ({"env": []}, r"job 'a': env must be a dictionary, got \[\]"),
        ({"folder": 3}, "job 'a': folder must be a text, got 3"),
        ({"retries": -1}, "job 'a': retries must be at least 0, got -1"),
        ({"grace_seconds": "soon"}, "job 'a': grace_seconds must be a number, got 'soon'"),
        ({"id": "../a"}, r"job '\.\./a': an id of a job that is run has"),
    ],
)
def test_a_message_names_the_job_and_the_key(change: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        queue_of(with_job(**change), Path("/"))
