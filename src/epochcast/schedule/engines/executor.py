"""What an engine does for the scheduler: start, look, stop, kill, logs, nodes. Nothing is decided here.

A start is known by its key, which is recorded before the engine is asked. Asked twice with one key, an engine
starts once: this is what makes it safe to ask again after a crash.

`spool` is a folder that the scheduler and the nodes share. Jobs of the local engine and of Slurm leave two files there:
KEY.started (made once, so that a second start of the key ends at once) and KEY.exit with the exit code, so that the end
of a job is known however long nobody looked.
"""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from epochcast.errors import EpochcastError
from epochcast.schedule.workload_jobs import GpuChoice

PENDING, RUNNING, OVER = "pending", "running", "over"
STARTED_TWICE = 97
"""The exit code of a second start with the same key."""


class EngineAway(EpochcastError):
    """The engine does not answer; it may later."""


class EngineRefuses(EpochcastError):
    """The engine does not take a job, for a reason that stays."""


@dataclass(frozen=True, slots=True)
class StartOrder:
    """A start, as an engine is asked for it. `node` is None where any node of the type will do."""

    key: str
    job: str
    command: tuple[str, ...]
    folder: Path
    log: Path
    choice: GpuChoice
    node_type: str
    node: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    grace_seconds: float = 30.0
    engine_id: str | None = None
    has_ray_workers: bool = False

    @property
    def spool(self) -> Path:
        """Where the files of starts are."""
        return self.folder / ".epochcast"

    @property
    def started_file(self) -> Path:
        """There from when the job has begun."""
        return self.spool / f"{self.key}.started"

    @property
    def exit_file(self) -> Path:
        """There from when the job has ended."""
        return self.spool / f"{self.key}.exit"

    def exit_code(self) -> int | None:
        """What the job left behind; None where it left nothing."""
        try:
            return int(self.exit_file.read_text())
        except (OSError, ValueError):
            return None

    def started(self) -> dict[str, Any] | None:
        """What was recorded when the job began; None where it has not."""
        try:
            content = json.loads(self.started_file.read_text())
        except OSError:
            return None
        except ValueError:
            return {}
        return content if isinstance(content, dict) else {}

    def make_folders(self) -> None:
        """Those of the log, of the spool and of the job itself."""
        for folder in (self.folder, self.log.parent, self.spool):
            try:
                os.makedirs(folder, exist_ok=True)
            except OSError as error:
                raise EngineRefuses(f"the folder {folder} cannot be made: {error.strerror}") from None


@dataclass(frozen=True, slots=True)
class StartState:
    """What an engine says of a start. `is_lost`: it ended with its node or its engine, not by itself."""

    engine_id: str
    state: str
    exit_code: int | None = None
    is_lost: bool = False
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class EngineNode:
    """A node of the engine, of one of the queue's types."""

    name: str
    node_type: str
    is_up: bool = True


class Executor(Protocol):
    """An engine."""

    @property
    def name(self) -> str:
        """As the command line has it."""

    def start(self, order: StartOrder) -> str:
        """Start a job, once for every key; gives the engine's own name of it."""

    def look(self, orders: Sequence[StartOrder]) -> Mapping[str, StartState]:
        """How starts stand, by their keys; those that the engine has never heard of are left out."""

    def stop(self, order: StartOrder) -> None:
        """Ask a job to save itself and end: SIGTERM. Returns at once; a job that is over already stays so."""

    def kill(self, order: StartOrder) -> None:
        """End a job at once."""

    def fetch_log(self, order: StartOrder) -> None:
        """Bring the file of the log up to date, where the job does not write it by itself."""

    def nodes(self, types: Iterable[str]) -> Sequence[EngineNode] | None:
        """The nodes of these types, up or down; None where machines come when they are asked for."""

    def close(self) -> None:
        """Close connections; jobs keep running."""
