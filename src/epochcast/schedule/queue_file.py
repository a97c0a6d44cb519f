"""Queue files: workload files whose jobs can also be started.

Besides the keys of a workload file a job may have

    command             a list of words, or one line for the shell; it trains, and goes on from its checkpoint by itself
    folder              where the command runs; the folder of the file where nothing is said
    log                 where its output goes, `logs/ID.log`; every start after the first has a number before the ending
    checkpoint_folder   where it keeps its checkpoints, `checkpoints/ID`
    env                 variables of its environment
    grace_seconds       how long it may take to save itself after SIGTERM, before it is killed
    retries             how often it is started again after it failed by itself
    ray_workers         true for a program of Ray that puts its own workers on the GPUs (`engines.ray`)

`folder` is relative to the folder of the file, the other paths to `folder`. A job without a command can be planned and
not run.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from epochcast.base.documents import parse_json, read_text
from epochcast.errors import BadInput
from epochcast.schedule.workload_file import workload_of
from epochcast.schedule.workload_jobs import QueueWorkload

GRACE_SECONDS = 30.0
RETRIES = 2
MOST_RETRIES = 1000
# What may stand in the name of a file, of a Slurm job and of a Ray submission alike.
_PLAIN_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class JobCommand:
    """How a job is started. `command` is given to the system as it is, word by word; paths are absolute."""

    command: tuple[str, ...]
    folder: Path
    log: Path
    checkpoint_folder: Path
    env: Mapping[str, str] = field(default_factory=dict)
    grace_seconds: float = GRACE_SECONDS
    retries: int = RETRIES
    has_ray_workers: bool = False

    def log_of(self, attempt: int) -> Path:
        """Where the output of a start goes; starts count from 1."""
        return self.log if attempt == 1 else self.log.with_name(f"{self.log.stem}.{attempt}{self.log.suffix}")

    def as_row(self) -> dict[str, Any]:
        """The keys of a queue file."""
        return {
            "command": list(self.command),
            "folder": str(self.folder),
            "log": str(self.log),
            "checkpoint_folder": str(self.checkpoint_folder),
            "env": dict(self.env),
            "grace_seconds": self.grace_seconds,
            "retries": self.retries,
            "ray_workers": self.has_ray_workers,
        }


@dataclass(frozen=True)
class QueueFile:
    """A workload, how each of its jobs is started (those that have a command), and the document they were read from."""

    workload: QueueWorkload
    works: Mapping[str, JobCommand]
    document: Mapping[str, Any] = field(repr=False)

    def check_runnable(self) -> None:
        """Refuse jobs that cannot be started, naming the first."""
        for job in self.workload.jobs:
            if job.id not in self.works:
                raise BadInput(f"job {job.id!r} has no command: it can be planned, not run")
        for row in self.document["jobs"]:
            if row.get("running") is not None:
                raise BadInput(f"job {row['id']!r} runs already, not by us: it can be planned, not run")

    def rows(self) -> dict[str, dict[str, Any]]:
        """The jobs as rows of a queue file with absolute paths, by their ids."""
        found = {}
        for row in self.document["jobs"]:
            work = self.works.get(row["id"])
            found[row["id"]] = {**row, **({} if work is None else work.as_row())}
        return found


def read_queue(path: Path) -> QueueFile:
    """A queue file, checked; a message names the file and the job."""
    try:
        return queue_of(parse_json(read_text(path), path.name), path.absolute().parent)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None


def queue_of(document: Any, folder: Path, known: Collection[str] = ()) -> QueueFile:
    """A queue from what a file in a folder says; its jobs may come after `known` ones that are elsewhere."""
    workload = workload_of(document, known)
    works = {row["id"]: work_of(row, folder) for row in document["jobs"] if row.get("command") is not None}
    return QueueFile(workload, works, document)


def work_of(row: Mapping[str, Any], folder: Path) -> JobCommand:
    """How a job of a queue file is started."""
    name = row["id"]
    what = f"job {name!r}"
    if not _PLAIN_ID.fullmatch(name):
        raise BadInput(f"{what}: an id of a job that is run has up to 100 letters, digits, points, _ or -")
    inside = folder / _text(row, "folder", what, ".")
    retries = row.get("retries", RETRIES)
    if isinstance(retries, bool) or not isinstance(retries, int) or not 0 <= retries <= MOST_RETRIES:
        raise BadInput(f"retries of {what} is {retries!r}; a whole number from 0 to {MOST_RETRIES} is needed")
    return JobCommand(
        command=_command(row["command"], what),
        folder=inside,
        log=inside / _text(row, "log", what, f"logs/{name}.log"),
        checkpoint_folder=inside / _text(row, "checkpoint_folder", what, f"checkpoints/{name}"),
        env=_env(row.get("env", {}), what),
        grace_seconds=_seconds(row.get("grace_seconds", GRACE_SECONDS), what),
        retries=retries,
        has_ray_workers=_flag(row, "ray_workers", what),
    )


def _command(told: Any, what: str) -> tuple[str, ...]:
    words = ["/bin/sh", "-c", told] if isinstance(told, str) and told.strip() else told
    plain = isinstance(words, list) and words and all(isinstance(word, str) and "\0" not in word for word in words)
    if not plain or not words[0].strip():
        raise BadInput(f"command of {what} is {told!r}; a list of words or a line for the shell is needed")
    return tuple(words)


def _env(told: Any, what: str) -> dict[str, str]:
    if not isinstance(told, dict):
        raise BadInput(f"env of {what} is {told!r}; an object of variables is needed")
    for name, value in told.items():
        if not _VARIABLE.fullmatch(name) or not isinstance(value, str) or "\0" in value:
            raise BadInput(f"env of {what}: {name!r} is {value!r}; names of variables with texts are needed")
    return dict(told)


def _text(row: Mapping[str, Any], key: str, what: str, default: str) -> str:
    value = row.get(key, default)
    if not isinstance(value, str) or not value or "\0" in value:
        raise BadInput(f"{key} of {what} is {value!r}; a path is needed")
    return value


def _flag(row: Mapping[str, Any], key: str, what: str) -> bool:
    value = row.get(key, False)
    if not isinstance(value, bool):
        raise BadInput(f"{key} of {what} is {value!r}; true or false is needed")
    return value


def _seconds(told: Any, what: str) -> float:
    if isinstance(told, bool) or not isinstance(told, int | float) or not 0 <= told <= 1e6:
        raise BadInput(f"grace_seconds of {what} is {told!r}; seconds from 0 to a million are needed")
    return float(told)
