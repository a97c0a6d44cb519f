"""The values a store keeps, as it writes and reads them.

A *job* is what is trained, a *run* one training of it somewhere under a name that no other run of the database has, an
*attempt* one start of a run (a stopped run may be resumed); `observe.runs.report` is one report of it. Times are
seconds since 1970 (UTC), named `…_at_seconds`; `clock_seconds` counts from the start of the run on the run's own clock.
None means unknown.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, ClassVar

from epochcast.base.caching import Cache, Derived, derived_property
from epochcast.base.record import HIDDEN, Record, json_hidden, json_name
from epochcast.errors import BadInput
from epochcast.interval import Interval
from epochcast.observe.runs.drift import Drift
from epochcast.observe.runs.report import LONGEST_NAME
from epochcast.observe.runs.standing import Standing

STATES = ("queued", "running", "ended", "failed", "stopped")
"""Of a run and of an attempt: `ended` is finished as planned, `stopped` by somebody, `failed` by itself."""
OVER = ("ended", "failed", "stopped")

# A running job is silent after so many of its own report intervals, and never sooner than after the seconds. The second
# number is for runs whose interval is not known yet.
SILENT_REPORTS = 5
SILENT_LEAST_SECONDS, SILENT_UNKNOWN_SECONDS = 600.0, 3600.0

LONGEST_TEXT = 1000


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


@dataclass(frozen=True)
class RunRow(Record):
    """One training: what the database knows of it, and the JSON object that `epochcast runs` and the API show.

    `key` identifies it in every database. `step_seconds` is the pace it showed, without pauses;
    `elapsed_seconds` include them, and the `down_seconds` between its attempts. `progress` is its last standing as it
    was written (`standing` reads it).
    """

    key: str
    state: str
    id: int = json_hidden()
    name: str = json_name("run")
    place: RunPlace = json_hidden()
    added_at_seconds: float = json_hidden()
    seen_at_seconds: float = json_hidden()
    job_id: int | None = json_hidden(default=None)
    job_name: str | None = json_name("job", default=None)
    source: str | None = None
    format: str | None = None
    started_at_seconds: float | None = json_hidden(default=None)
    ended_at_seconds: float | None = json_hidden(default=None)
    step: float | None = None
    total_steps: float | None = None
    step_seconds: float | None = None
    elapsed_seconds: float | None = None
    down_seconds: float | None = None
    forecast_step_seconds: float | None = None
    forecast_total_seconds: float | None = None
    progress: Mapping[str, Any] = json_hidden(default_factory=dict, hash=False)
    project: str | None = json_hidden(default=None)
    title: str | None = None
    tags: tuple[str, ...] = ()
    archived_at_seconds: float | None = json_hidden(default=None)
    card_key: str | None = json_hidden(default=None)
    end_reason: str | None = None
    """Why it failed or was stopped, as the training said it."""
    derived: Derived = json_hidden(init=False, compare=False, repr=False, default_factory=partial(Cache, 1))

    json_also: ClassVar[tuple[str, ...]] = (
        *("device", "gpus", "nodes", "host", "fraction", "remaining_seconds", "finish_at", "against_forecast"),
        *("started_at", "seen_at", "ended_at", "drift", "reasons", "dollars_so_far", "dollars", "speed_verdict"),
        *("label", "is_archived", "is_shared"),
    )

    @property
    def label(self) -> str:
        """What people call it: its title, or the name under which it reports."""
        return self.title or self.name

    @property
    def is_archived(self) -> bool:
        """Whether lists leave it out."""
        return self.archived_at_seconds is not None

    @property
    def is_shared(self) -> bool:
        """Whether it has a card for people without a token."""
        return self.card_key is not None

    @derived_property
    def standing(self) -> Standing | None:
        """How it stands, as far as anybody has worked that out. Read once: a dozen keys of the JSON follow from it."""
        return Standing.stored(self.progress)

    @property
    def device(self) -> str | None:
        """The name of its device's data sheet."""
        return self.place.device

    @property
    def gpus(self) -> int:
        """On each node."""
        return self.place.gpus

    @property
    def nodes(self) -> int:
        """Machines."""
        return self.place.nodes

    @property
    def host(self) -> str | None:
        """The machine it was started on."""
        return self.place.host

    @property
    def remaining_seconds(self) -> Interval | None:
        """Until its last step; None once it is over."""
        return None if self.standing is None or self.is_over else self.standing.remaining_seconds

    @property
    def finish_at(self) -> datetime | None:
        """When it is expected to end; None once it is over."""
        return None if self.standing is None or self.is_over else self.standing.finish_at

    @property
    def drift(self) -> Drift | None:
        """The latest change of its pace."""
        return None if self.standing is None else self.standing.drift

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is slow, where that is known."""
        return () if self.standing is None else self.standing.reasons

    @property
    def dollars_so_far(self) -> float | None:
        """Its cost until now."""
        return None if self.standing is None else self.standing.dollars_so_far

    @property
    def dollars(self) -> Interval | None:
        """What it will have cost in all."""
        return None if self.standing is None else self.standing.dollars_in_all

    @property
    def started_at(self) -> datetime | None:
        """When its first attempt began."""
        return _moment(self.started_at_seconds)

    @property
    def seen_at(self) -> datetime | None:
        """When it was last heard of."""
        return _moment(self.seen_at_seconds)

    @property
    def ended_at(self) -> datetime | None:
        """When it was over."""
        return _moment(self.ended_at_seconds)

    @property
    def is_over(self) -> bool:
        """Whether nothing more is expected of it."""
        return self.state in OVER

    @property
    def silent_after_seconds(self) -> float:
        """Without a report for this long, the run is silent."""
        interval = None if self.standing is None else self.standing.report_seconds
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
    def speed_verdict(self) -> str | None:
        """Whether its pace is normal for the forecast of its job."""
        return None if self.standing is None else self.standing.speed_verdict

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

    run_id: int = field(metadata=HIDDEN)
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


def _moment(at_seconds: float | None) -> datetime | None:
    """To the second, in UTC; None also for what is no day of any calendar."""
    if at_seconds is None:
        return None
    try:
        return datetime.fromtimestamp(at_seconds, UTC).replace(microsecond=0)
    except (OverflowError, ValueError, OSError):
        return None


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
