"""The values a store keeps: what is written into it, and what comes back.

A *job* is what is trained, a *run* one training of it somewhere under a name that no other run of the database has, an
*attempt* one start of a run (it may be stopped and go on), an *observation* one report of it. Times are seconds since
1970 (UTC), named `…_at_seconds`; `clock_seconds` counts from the start of the run on the run's own clock. None means
that nobody said.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, NamedTuple

from epochcast.errors import BadInput, UnknownName

STATES = ("queued", "running", "ended", "failed", "stopped")
"""Of a run and of an attempt: `ended` is finished as planned, `stopped` by somebody, `failed` by itself."""
OVER = ("ended", "failed", "stopped")
PHASES = ("train", "validation", "checkpoint", "start", "end", "pause")
"""What a report is about; the database keeps its place in this list, so that names are only ever added at its end."""

# A running job is silent after so many of its own report intervals, and never sooner than after the seconds. The second
# number is for runs whose interval is not known yet.
SILENT_REPORTS = 5
SILENT_LEAST_SECONDS, SILENT_UNKNOWN_SECONDS = 600.0, 3600.0

LONGEST_NAME, LONGEST_TEXT = 200, 1000
MOST_ATTEMPT, MOST_RANK = 2**62, 2**31 - 1
MOST_STEP = 2.0**62


class ObservationRow(NamedTuple):
    """One report of a run. An attempt has one of each step, rank and phase; a second one is the same again.

    `reports` are those it stands for: older ones are joined when a database is thinned. Announcements (`total_steps`,
    `total_epochs`, `steps_per_epoch`) hold until another is made. `pause_seconds` is how long the pause took that ended
    with it, `what` its name.
    """

    step: float
    attempt: int = 0
    rank: int | None = None
    phase: str = "train"
    clock_seconds: float | None = None
    step_seconds: float | None = None
    data_seconds: float | None = None
    loss: float | None = None
    epoch: float | None = None
    total_steps: float | None = None
    total_epochs: float | None = None
    steps_per_epoch: float | None = None
    remaining_seconds: float | None = None
    pause_seconds: float | None = None
    what: str | None = None
    reports: int = 1

    def check(self) -> None:
        """Refuse what no training reports; a loss may be anything, even not a number."""
        if self.phase not in PHASES:
            raise UnknownName("phase", str(self.phase), PHASES)
        if not 0 <= self.step <= MOST_STEP:
            raise BadInput(f"a step counts from 0, got {self.step}")
        if not 0 <= self.attempt <= MOST_ATTEMPT:
            raise BadInput(f"attempts count from 0, got {self.attempt}")
        if self.rank is not None and not 0 <= self.rank <= MOST_RANK:
            raise BadInput(f"ranks count from 0, got {self.rank}")
        if self.reports < 1:
            raise BadInput(f"a row stands for at least one report, got {self.reports}")
        for name in _FINITE:
            value = getattr(self, name)
            if value is not None and not isfinite(value):
                raise BadInput(f"{name} of step {self.step:g} must be a finite number, got {value}")


_FINITE = (
    "clock_seconds",
    "step_seconds",
    "data_seconds",
    "epoch",
    "total_steps",
    "total_epochs",
    "steps_per_epoch",
    "remaining_seconds",
    "pause_seconds",
)


@dataclass(frozen=True, slots=True)
class RunPlace:
    """Where a run trains: `device` by the name of its data sheet, the machine it was started on."""

    device: str | None = None
    gpus: int = 1
    nodes: int = 1
    host: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if self.gpus < 1 or self.nodes < 1:
            raise BadInput(f"a run has at least one GPU and one node, got {self.gpus} and {self.nodes}")


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job as it was written down (`forecasting.job.Job.as_dict`); `fingerprint` is the same for the same job."""

    id: int
    fingerprint: str
    model: str
    job: Mapping[str, Any] = field(hash=False)
    added_at_seconds: float


@dataclass(frozen=True, slots=True)
class RunRow:
    """One training. `key` tells it from every run of any database; `progress` is the last that was told of it.

    `step_seconds` is the pace it showed, without pauses; `elapsed_seconds` include them, and the `down_seconds`
    between its attempts.
    """

    id: int
    key: str
    name: str
    place: RunPlace
    state: str
    added_at_seconds: float
    seen_at_seconds: float
    job_id: int | None = None
    job_name: str | None = None
    source: str | None = None
    format: str | None = None
    started_at_seconds: float | None = None
    ended_at_seconds: float | None = None
    step: float | None = None
    total_steps: float | None = None
    step_seconds: float | None = None
    elapsed_seconds: float | None = None
    down_seconds: float | None = None
    forecast_step_seconds: float | None = None
    forecast_total_seconds: float | None = None
    progress: Mapping[str, Any] = field(default_factory=dict, hash=False)
    project: str | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing more is expected of it."""
        return self.state in OVER

    @property
    def silent_after_seconds(self) -> float:
        """Without a report for this long, the run is silent."""
        interval = self.progress.get("report_seconds")
        return SILENT_UNKNOWN_SECONDS if not interval else max(SILENT_LEAST_SECONDS, SILENT_REPORTS * interval)

    def silent_seconds(self, now_seconds: float) -> float:
        """Since the last report."""
        return max(0.0, now_seconds - self.seen_at_seconds)

    def is_silent(self, now_seconds: float) -> bool:
        """Whether it should be reporting and does not: it may have crashed, or lost the network."""
        return self.state == "running" and self.silent_seconds(now_seconds) > self.silent_after_seconds

    @property
    def fraction(self) -> float | None:
        """Steps done of all."""
        if self.step is None or not self.total_steps:
            return None
        return min(1.0, self.step / self.total_steps)

    @property
    def against_forecast(self) -> float | None:
        """Observed over forecast seconds of a step."""
        if not self.step_seconds or not self.forecast_step_seconds:
            return None
        return self.step_seconds / self.forecast_step_seconds


@dataclass(frozen=True, slots=True)
class Attempt:
    """One start of a run; `engine_id` is what the engine that started it calls it (a process, a Slurm or Ray job).

    Reports up to `thinned_step` were joined: a later report of such a step is not taken in again.
    """

    run_id: int
    attempt: int
    state: str = "running"
    engine: str | None = None
    engine_id: str | None = None
    host: str | None = None
    started_at_seconds: float | None = None
    ended_at_seconds: float | None = None
    exit_code: int | None = None
    thinned_step: float | None = None


@dataclass(frozen=True, slots=True)
class StoredForecast:
    """A forecast as it was written down (`forecasting.forecast.Forecast.as_dict`), of a run or of a job alone."""

    id: int
    key: str
    forecast: Mapping[str, Any] = field(hash=False)
    version: int
    made_at_seconds: float
    run_id: int | None = None
    job_id: int | None = None


@dataclass(frozen=True, slots=True)
class StoredMeasurement:
    """A line of a measurement file (`bench.measurement`), with the facts of its machine."""

    machine: str
    key: str
    kind: str
    line: Mapping[str, Any] = field(hash=False)
    facts: Mapping[str, Any] = field(default_factory=dict, hash=False)


def checked_name(name: str) -> str:
    """The name of a run, if it is one: printable, not empty, of bounded length."""
    if not name.strip() or not name.isprintable() or len(name) > LONGEST_NAME:
        raise BadInput(f"a run's name has 1 to {LONGEST_NAME} printable characters, got {name[:LONGEST_NAME]!r}")
    return name


def bounded(text: str | None, most: int = LONGEST_TEXT) -> str | None:
    """The text as any database takes it: without NUL and halves of characters, of bounded length."""
    if text is None:
        return None
    plain = text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")
    return plain if len(plain) <= most else f"{plain[: most - 1]}…"
