"""Queues whose jobs can be started: a workload, and the command of each job.

`folder` of a row is relative to the folder of its file, the other paths to `folder`. A job without a command can be
planned and not run.
"""

import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from epochcast.errors import BadInput
from epochcast.schedule.queue_document import GRACE_SECONDS, RETRIES, QueueDocument, QueueJobRow, parse_queue
from epochcast.schedule.workload_file import checked_workload
from epochcast.schedule.workload_jobs import QueueWorkload


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


@dataclass(frozen=True)
class QueueFile:
    """A workload, how each of its jobs is started (those that have a command), and the rows they were read from.

    Paths in the rows are absolute.
    """

    workload: QueueWorkload
    works: Mapping[str, JobCommand]
    document: QueueDocument = field(repr=False)

    @property
    def rows(self) -> dict[str, QueueJobRow]:
        """The rows of the jobs, by their ids."""
        return {row.id: row for row in self.document.jobs}

    def check_runnable(self) -> None:
        """Refuse jobs that cannot be started, naming the first."""
        for row in self.document.jobs:
            if row.command is None:
                raise BadInput(f"job {row.id!r} has no command: it can be planned, not run")
            if row.running is not None:
                raise BadInput(f"job {row.id!r} runs already, not by us: it can be planned, not run")


def queue_of(document: Any, folder: Path, other_jobs: Collection[str] = ()) -> QueueFile:
    """A queue from what a file in a folder says; its jobs may come after `other_jobs` that are elsewhere."""
    return runnable_queue(parse_queue(document), folder, other_jobs)


def runnable_queue(document: QueueDocument, folder: Path, other_jobs: Collection[str] = ()) -> QueueFile:
    """The same from typed rows."""
    rows = tuple(_with_paths(row, folder) for row in document.jobs)
    document = replace(document, jobs=rows)
    works = {row.id: work for row in rows if (work := _work(row)) is not None}
    return QueueFile(checked_workload(document, other_jobs).workload, works, document)


def _with_paths(row: QueueJobRow, folder: Path) -> QueueJobRow:
    """A row that has a command, with the paths that it leaves out, all absolute."""
    if row.command is None:
        return row
    inside = folder / row.folder
    return replace(
        row,
        command=command_words(row.command),
        folder=str(inside),
        log=str(inside / (row.log or f"logs/{row.id}.log")),
        checkpoint_folder=str(inside / (row.checkpoint_folder or f"checkpoints/{row.id}")),
        env=row.env or None,
    )


def _work(row: QueueJobRow) -> JobCommand | None:
    if row.command is None or row.log is None or row.checkpoint_folder is None:
        return None
    return JobCommand(
        command=command_words(row.command),
        folder=Path(row.folder),
        log=Path(row.log),
        checkpoint_folder=Path(row.checkpoint_folder),
        env=row.env or {},
        grace_seconds=row.grace_seconds,
        retries=row.retries,
        has_ray_workers=row.ray_workers,
    )


def command_words(command: tuple[str, ...] | str) -> tuple[str, ...]:
    """The words that start a job; a line is given to the shell."""
    return ("/bin/sh", "-c", command) if isinstance(command, str) else command


def command_line(command: tuple[str, ...] | str) -> str:
    """What starts a job as a line of a shell."""
    return command if isinstance(command, str) else shlex.join(command)
