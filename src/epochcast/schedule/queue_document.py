"""Queue and workload files as typed rows. Every key is declared once and parsed once, with its type, unit and bounds.

A file is JSON or TOML with `nodes`, `node_types` and `jobs`; its keys are the fields of `QueueDocument`, `NodeTypeRow`,
`QueueJobRow` and `RunningRow`. A mistake in the file or in a node type refuses the file. A mistake in a job refuses the
job (`QueueDocument.refused`) and the others stay. Messages name the row and the key.

`row_of` writes a row back as JSON: that is what the store keeps of a queue.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from datetime import date, datetime
from pathlib import Path
from typing import Any

from epochcast.base.caching import remembered
from epochcast.base.documents import parse_json, parse_toml, read_text
from epochcast.base.options import Option, check_mapping, option, options_of, required
from epochcast.base.record import Record
from epochcast.errors import BadInput, EpochcastError, UnknownName
from epochcast.interval import Interval
from epochcast.schedule.workload_jobs import GpuChoice, MachineFailure, NodeType, QueuedJob, Straggler

TRIGGERS = ("arrival", "completion")
MOST_GPUS = 10**6
GRACE_SECONDS = 30.0
RETRIES = 2
MOST_RETRIES = 1000
# What may stand in the name of a file, of a Slurm job and of a Ray submission alike.
_PLAIN_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_READER = "reader"

Reader = Callable[[str, Any], Any]
"""Reads the value of a key; raises `BadInput` that begins with the key."""
ClockTime = datetime | str
"""A time as TOML has it, or as text: '2026-11-20T18:00', 'Friday 18:00', '+6h'."""
RunSeconds = Mapping[GpuChoice, Interval]


@dataclass(frozen=True, slots=True)
class RefusedJob(Record):
    """A job that was left out, and why."""

    job: str
    why: str


# Readers of values that are no plain numbers or texts


def _text(key: str, value: Any) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise BadInput(f"{key} must be a text, got {value!r}")
    return value


def _name(key: str, value: Any) -> str:
    """A text; a whole number is a name, too."""
    return str(value) if type(value) is int else _text(key, value)


def _interval(key: str, value: Any) -> Interval:
    """A number, which is exact, or [low, mid, high]."""
    ends = value if isinstance(value, list) else [value]
    if not all(isinstance(end, int | float) and not isinstance(end, bool) for end in ends) or len(ends) not in (1, 3):
        raise BadInput(f"{key} must be seconds or [low, mid, high], got {value!r}")
    try:
        return Interval(*map(float, ends)) if len(ends) == 3 else Interval.exact(float(ends[0]))
    except (ValueError, OverflowError) as error:
        raise BadInput(f"{key}: {error}") from None


def _run_seconds(key: str, value: Any) -> RunSeconds:
    check_mapping(key, value)
    seconds = {}
    for device, by_gpus in value.items():
        check_mapping(f"{key}.{device}", by_gpus)
        for gpus, run in by_gpus.items():
            if not (isinstance(gpus, str) and gpus.isdecimal() and len(gpus) < 7):
                raise BadInput(f"{key}.{device}: {gpus!r} is no number of GPUs")
            seconds[GpuChoice(device, int(gpus))] = _interval(f"{key}.{device}.{gpus}", run)
    return seconds


def _clock_time(key: str, value: Any) -> ClockTime:
    if isinstance(value, datetime | str):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    raise BadInput(f"{key} must be a time like 2026-11-20T18:00, got {value!r}")


def _command(key: str, value: Any) -> tuple[str, ...] | str:
    words = [value] if isinstance(value, str) else value
    is_plain = isinstance(words, list) and all(isinstance(word, str) and "\0" not in word for word in words)
    if not is_plain or not words or not words[0].strip():
        raise BadInput(f"{key} must be a list of words or a line for the shell, got {value!r}")
    return value if isinstance(value, str) else tuple(words)


def _environment(key: str, value: Any) -> Mapping[str, str]:
    check_mapping(key, value)
    for name, text in value.items():
        if not _VARIABLE.fullmatch(name) or not isinstance(text, str) or "\0" in text:
            raise BadInput(f"{key} must have names of variables with texts, got {name!r} = {text!r}")
    return dict(value)


def _running(key: str, value: Any) -> "RunningRow":
    return RunningRow(**parse_row(RunningRow, value, key))


def _done(key: str, value: Any) -> float | None:
    done: float | None = Option(key, float, None, "", least=0).check(value)
    if done is not None and done >= 1:
        raise BadInput(f"{key} must be below 1, got {value}")
    return done


def _triggers(key: str, value: Any) -> tuple[str, ...]:
    names: tuple[str, ...] = Option(key, tuple[str, ...], (), "").check(value)
    for name in names:
        if name not in TRIGGERS:
            raise BadInput(str(UnknownName(f"trigger in {key}", name, TRIGGERS)))
    return names


# Declarations of keys


def _read_by(reader: Reader, declared: Any) -> Any:
    """A declared field whose value has a reader of its own."""
    return field(default=declared.default, metadata={**declared.metadata, _READER: reader})


def _same(kind: type, name: str, default: Any = ...) -> Any:
    """A field declared as in another dataclass; `default` replaces the default there."""
    item = next(item for item in fields(kind) if item.name == name)
    return field(default=item.default if default is ... else default, metadata=item.metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTypeRow:
    """A node type of a file. `instance` is a machine of the catalogue, which says what the row leaves out."""

    name: str | None = _read_by(_text, _same(NodeType, "name", None))
    device: str | None = _read_by(_text, _same(NodeType, "device", None))
    gpus: int | None = _same(NodeType, "gpus", None)
    dollars_per_hour: float | None = _same(NodeType, "dollars_per_hour", None)
    quota: int | None = _same(NodeType, "quota")
    boot_seconds: float | None = _same(NodeType, "boot_seconds", None)
    interruptions_per_hour: float = _same(NodeType, "interruptions_per_hour")
    slow_fraction: float = _same(NodeType, "slow_fraction")
    slowdown: float = _same(NodeType, "slowdown")
    in_house: bool = option(False, "Your own machines: always booted, and free unless they have a price.")
    count: int | None = option(None, "How many in-house machines there are.", least=0)
    instance: str | None = _read_by(_text, _same(NodeType, "instance"))
    spot: bool = option(False, "Use the spot price of the catalogue.")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningRow:
    """Where a job runs already, and how far it is: `done_fraction`, `remaining_seconds` or both."""

    node_type: str = _read_by(_text, required("Node type of its machine."))
    gpus: int = required("GPUs that it uses.", least=1)
    machine: str = _read_by(_name, option("", "Name of the machine; jobs on one machine share it."))
    done_fraction: float | None = _read_by(_done, option(None, "Fraction of the whole run that is done."))
    remaining_seconds: Interval | None = _read_by(
        _interval, option(None, "Time left, as `epochcast track` reports it.", unit="seconds or [low, mid, high]")
    )
    since_seconds: float | None = option(None, "When it started.", unit="seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueJobRow:
    """A job of a file: when it comes and is due, how long it runs or what it trains, and how it is started.

    `options` are the options of a forecast beside `model` or `job`, checked.
    """

    id: str = _read_by(_name, required("Name of the job."))
    submit_seconds: float = _same(QueuedJob, "submit_seconds", 0.0)
    submit_at: ClockTime | None = _read_by(_clock_time, option(None, "When it is submitted, as a time of the clock."))
    deadline_seconds: float | None = _same(QueuedJob, "deadline_seconds", None)
    deadline: ClockTime | None = _read_by(
        _clock_time, option(None, "When it should end, as a time of the clock or a duration from its submission.")
    )
    tardiness_dollars_per_second: float = _same(QueuedJob, "tardiness_dollars_per_second", 0.0)
    run_seconds: RunSeconds | None = _read_by(
        _run_seconds, option(None, "Whole run by device and number of GPUs.", unit="seconds or [low, mid, high]")
    )
    forecast_seconds: RunSeconds | None = _read_by(
        _run_seconds, option(None, "What a policy sees where that differs from run_seconds.")
    )
    min_gpus: int = option(1, "Fewest GPUs.", least=1)
    max_gpus: int = option(MOST_GPUS, "Most GPUs.", least=1)
    restart_seconds: float = _same(QueuedJob, "restart_seconds")
    checkpoint_seconds: float = _same(QueuedJob, "checkpoint_seconds")
    preemptible: bool = option(True, "Whether it may be stopped and resized.")
    priority: float | None = _same(QueuedJob, "priority")
    budget_dollars: float | None = _same(QueuedJob, "budget_dollars")
    after: tuple[str, ...] = _same(QueuedJob, "after")
    done_fraction: float | None = _read_by(_done, option(None, "Fraction done of a job that was stopped and waits."))
    running: RunningRow | None = _read_by(_running, option(None, "Where it runs already."))
    job: str | None = _read_by(_text, option(None, "Name of a job in epochcast.toml."))
    command: tuple[str, ...] | str | None = _read_by(
        _command, option(None, "Starts the training: a list of words, or one line for the shell.")
    )
    folder: str = _read_by(_text, option(".", "Where the command runs [default: the folder of the file]."))
    log: str | None = _read_by(_text, option(None, "Where its output goes [default: logs/ID.log]."))
    checkpoint_folder: str | None = _read_by(_text, option(None, "Where it keeps checkpoints [checkpoints/ID]."))
    env: Mapping[str, str] | None = _read_by(_environment, option(None, "Variables of its environment."))
    grace_seconds: float = option(
        GRACE_SECONDS, "Time to save itself between SIGTERM and SIGKILL.", unit="seconds", least=0, most=10**6
    )
    retries: int = option(RETRIES, "How often it is started again after a failure.", least=0, most=MOST_RETRIES)
    ray_workers: bool = option(False, "Whether it is a Ray program that places its own workers on the GPUs.")
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_forecast(self) -> bool:
        """Whether a forecast fills in its seconds."""
        return self.job is not None or "model" in self.options


@dataclass(frozen=True, kw_only=True)
class QueueDocument:
    """A whole file. `refused` are jobs whose rows make no sense."""

    nodes: int | None = option(None, "Machines that may be rented at a time [default: all quotas and counts].", least=1)
    boot_seconds: float = _same(NodeType, "boot_seconds")
    decide_on: tuple[str, ...] = _read_by(_triggers, option(TRIGGERS, "Events at which the policy decides."))
    every_seconds: float | None = option(None, "The policy decides at least this often.", unit="seconds", above=0)
    start_at: ClockTime | None = _read_by(_clock_time, option(None, "The time of second 0 [default: now]."))
    node_types: tuple[NodeTypeRow, ...] = ()
    jobs: tuple[QueueJobRow, ...] = ()
    failures: tuple[MachineFailure, ...] = ()
    stragglers: tuple[Straggler, ...] = ()
    refused: tuple[RefusedJob, ...] = ()


_LISTS = ("node_types", "jobs", "failures", "stragglers")


# Parsing


def read_document(path: Path) -> Any:
    """What a JSON or TOML file says."""
    text = read_text(path)
    return parse_toml(text, path.name) if path.suffix.lower() == ".toml" else parse_json(text, path.name)


def parse_queue(
    document: Any, job_options: Mapping[str, Option] | None = None, machines: QueueDocument | None = None
) -> QueueDocument:
    """The typed rows of a file. `job_options` are keys of jobs that say what is trained.

    `machines` is a document whose node types and rules count instead of those of the file.
    """
    if not isinstance(document, Mapping):
        raise BadInput("a queue must be an object with nodes, node_types and jobs")
    if machines is not None:
        document = {**fleet_row(machines), **{key: document[key] for key in ("jobs", "start_at") if key in document}}
    for key in ("node_types", "jobs"):
        if key not in document:
            raise BadInput(f"it has no {key}")
    for key in _LISTS:
        if not isinstance(document.get(key, []), list):
            raise BadInput(f"{key} must be a list, got {document[key]!r}")
    plain = {key: value for key, value in document.items() if key not in _LISTS}
    jobs, refused = _parse_jobs(document["jobs"], job_options or {})
    return QueueDocument(
        **parse_row(QueueDocument, plain, "the file", _LISTS),
        node_types=tuple(
            NodeTypeRow(**parse_row(NodeTypeRow, row, f"node type {node_type_name(row, place)!r}"))
            for place, row in enumerate(document["node_types"], 1)
        ),
        jobs=jobs,
        failures=tuple(
            MachineFailure(**parse_row(MachineFailure, row, "a failure")) for row in document.get("failures", ())
        ),
        stragglers=tuple(
            Straggler(**parse_row(Straggler, row, "a straggler")) for row in document.get("stragglers", ())
        ),
        refused=refused,
    )


def _parse_jobs(
    rows: list[Any], job_options: Mapping[str, Option]
) -> tuple[tuple[QueueJobRow, ...], tuple[RefusedJob, ...]]:
    jobs: dict[str, QueueJobRow] = {}
    refused = []
    for place, row in enumerate(rows, 1):
        name = job_name(row, place)
        try:
            if name in jobs:
                raise BadInput(f"two jobs are called {name!r}; the second is row {place} of jobs")
            jobs[name] = parse_job(row, place, job_options)
        except BadInput as error:
            refused.append(RefusedJob(name, str(error)))
    return tuple(jobs.values()), tuple(refused)


def parse_job(row: Any, place: int, job_options: Mapping[str, Option] | None = None) -> QueueJobRow:
    """The typed row of a job; `place` is its number in the file."""
    label = f"job {job_name(row, place)!r}"
    if not isinstance(row, Mapping):
        raise BadInput(f"{label} must be an object, got {row!r}")
    is_forecast = "model" in row or "job" in row
    options = {key: row[key] for key in row if is_forecast and key in (job_options or {})}
    values = {key: value for key, value in row.items() if key not in options}
    if "job" in row:
        values.setdefault("id", row["job"])
    parsed = QueueJobRow(
        **parse_row(QueueJobRow, values, label, job_options if is_forecast and job_options else ()),
        options={key: _checked(label, (job_options or {})[key].read, value) for key, value in options.items()},
    )
    for clock, seconds in (("submit_at", "submit_seconds"), ("deadline", "deadline_seconds")):
        if clock in row and seconds in row:
            raise BadInput(f"{label} has both {clock} and {seconds}: give one of them")
    for key in ("run_seconds", "forecast_seconds"):
        if is_forecast and key in row:
            raise BadInput(f"{label} has {key}, and a model to forecast it by: give one of them")
    if parsed.min_gpus > parsed.max_gpus:
        raise BadInput(f"{label}: min_gpus is {parsed.min_gpus}, more than its max_gpus, {parsed.max_gpus}")
    if parsed.command is not None and not _PLAIN_ID.fullmatch(parsed.id):
        raise BadInput(f"{label}: an id of a job that is run has up to 100 letters, digits, points, _ or -")
    return parsed


def job_name(row: Any, place: int) -> str:
    """What a job is called, as far as its row says: its id, or its place in the list."""
    name = row.get("id", row.get("job")) if isinstance(row, Mapping) else None
    if type(name) is int:
        return str(name)
    return name if isinstance(name, str) and name else f"row {place}"


def node_type_name(row: Any, place: int) -> str:
    """What a node type is called, as far as its row says."""
    return str(row.get("name", row.get("instance", place))) if isinstance(row, Mapping) else str(place)


def parse_row(kind: type, row: Any, label: str, more_keys: Any = ()) -> dict[str, Any]:
    """The values of a row by key, as a dataclass declares them. `more_keys` are known, and read elsewhere."""
    if not isinstance(row, Mapping):
        raise BadInput(f"{label} must be an object, got {row!r}")
    cells = _cells(kind)
    for key in row:
        if key not in cells:
            # a misspelt key would have no effect
            raise BadInput(f"{label}: {UnknownName('key', str(key), {*cells, *more_keys})}")
    for key, (declared, _) in cells.items():
        if declared.is_required and row.get(key) is None:
            raise BadInput(f"{label}: {key} is missing")
    return {key: _checked(label, cells[key][1], value) for key, value in row.items()}


def _checked(label: str, read: Callable[[Any], Any], value: Any) -> Any:
    try:
        return read(value)
    except EpochcastError as error:
        raise BadInput(f"{label}: {error}") from None


@remembered(20)
def _cells(kind: type) -> Mapping[str, tuple[Option, Callable[[Any], Any]]]:
    """The keys of a row: how each is declared, and read."""
    readers = {item.name: item.metadata.get(_READER) for item in fields(kind)}
    return {declared.name: (declared, _reading(declared, readers[declared.name])) for declared in options_of(kind)}


def _reading(declared: Option, reader: Reader | None) -> Callable[[Any], Any]:
    if reader is None:
        return declared.check
    return lambda value: None if value is None and declared.default is None else reader(declared.name, value)


# Writing


def fleet_row(document: QueueDocument) -> dict[str, Any]:
    """The machines of a document and its rules of decisions, as JSON."""
    plain = {key: value for key, value in row_of(document).items() if key not in (*_LISTS, "refused", "start_at")}
    return {**plain, "node_types": [row_of(row) for row in document.node_types]}


def row_of(row: Any) -> dict[str, Any]:
    """A row as JSON: what differs from the defaults."""
    return {
        item.name: _plain(getattr(row, item.name))
        for item in fields(row)
        if item.name in _cells(type(row)) and (item.default is MISSING or getattr(row, item.name) != item.default)
    }


def _plain(value: Any) -> Any:
    match value:
        case Interval():
            return value.mid if value.low == value.high else [value.low, value.mid, value.high]
        case tuple():
            return list(value)
        case datetime():
            return value.isoformat()
        case RunningRow():
            return row_of(value)
        case Mapping():
            return _by_device(value) if any(isinstance(key, GpuChoice) for key in value) else dict(value)
    return value


def _by_device(seconds: RunSeconds) -> dict[str, dict[str, Any]]:
    by_device: dict[str, dict[str, Any]] = {}
    for choice, run in seconds.items():
        by_device.setdefault(choice.device, {})[str(choice.gpus)] = _plain(run)
    return by_device
