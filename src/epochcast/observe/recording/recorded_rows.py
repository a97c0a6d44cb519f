"""What is recorded of a run, and how it is written: one JSON object per line.

The first line of an attempt says what it starts with (`AttemptStart`), each further one what happened
(`RecordedRow`):

    {"epochcast_track": 1, "job": "mine", "attempt": 1763370000, "at": 1763370000.0, "total_steps": 1000}
    {"ec": "train", "step": 12, "at": 1763370001.2, "steps": 3, "step_seconds": 0.1, "data_seconds": 0.01, "loss": 2.3}
    {"ec": "begin", "what": "validation", "step": 100, "at": 1763370009.9}
    {"ec": "done", "what": "validation", "step": 100, "at": 1763370012.0, "seconds": 2.1}
    {"ec": "end", "step": 1000, "at": 1763370100.0}

`at` are seconds since 1970: the wall clock at the start, and from there a clock that nobody sets. A line of an attempt
can be sent twice without harm: (job, attempt, rank, number of the row) identifies it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, isfinite
from numbers import Real
from typing import Any, ClassVar, Literal, NamedTuple, cast, get_args

from epochcast.base.record import Record, json_key, json_optional
from epochcast.errors import BadInput
from epochcast.observe.runs.report import Phase, Report

VERSION = 1
LAST_AT = 253_402_214_400.0
"""The last day that calendars of four digits know, in seconds since 1970."""
HEAD = '{"epochcast_track": '

Kind = Literal["train", "begin", "done", "end", "stopped", "dropped"]
KINDS: tuple[Kind, ...] = get_args(Kind)

# Names of pauses that the tracker distinguishes; any other is a pause.
PAUSES: dict[str, Phase] = {"validation": "validation", "checkpoint": "checkpoint"}


@dataclass(frozen=True, slots=True)
class AttemptStart(Record):
    """One attempt of a run, as it begins. Totals count from the run's start; earlier attempts did `start_step`."""

    json_lenient: ClassVar[bool] = True
    json_from: ClassVar[Mapping[str, str]] = {"started_at_seconds": "at"}

    version: int = field(default=VERSION, kw_only=True, metadata=json_key("epochcast_track"))
    job: str
    attempt: int
    started_at_seconds: float = field(metadata=json_key("at"))
    start_step: int = 0
    rank: int = 0
    ranks: int = 1
    total_steps: float | None = json_optional(default=None)
    total_epochs: float | None = json_optional(default=None)
    steps_per_epoch: float | None = json_optional(default=None)

    def __post_init__(self) -> None:
        if not self.job.strip():
            raise BadInput("`job` must be a name, got an empty one")
        for name in ("total_epochs", "total_steps", "steps_per_epoch"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, Real) and 0 < float(value) < inf):
                raise BadInput(f"`{_GIVEN_AS[name]}` must be a number above 0, got {value!r}")
        if not 0 <= self.started_at_seconds <= LAST_AT:
            raise BadInput(f"`at` must be seconds since 1970, got {self.started_at_seconds!r}")
        for name in ("start_step", "rank", "attempt"):
            value = getattr(self, name)
            if not isinstance(value, Real) or float(value) < 0:
                raise BadInput(f"`{_GIVEN_AS.get(name, name)}` must be at least 0, got {value!r}")

    @property
    def at(self) -> float:
        """When the attempt began, as it is written: to the microsecond."""
        return round(self.started_at_seconds, 6)


# What `ec.track` calls them.
_GIVEN_AS = {
    "total_steps": "total",
    "total_epochs": "epochs",
    "steps_per_epoch": "steps in an epoch",
    "start_step": "start",
}


class RecordedRow(NamedTuple):
    """What happened, made in the training's own thread: a tuple, because nothing else is as quick.

    `steps` were finished since the row before in `seconds`, pauses left out, of which the loop waited `data_seconds`
    for its data; None where nobody measured it. `what` names a pause, or why a run stopped; `number` counts rows.

    Its JSON is written by hand, because it is not that of the fields: times are per step and since 1970, and which keys
    there are depends on the kind.
    """

    number: int
    kind: Kind
    step: int
    clock_seconds: float
    steps: int = 0
    seconds: float = 0.0
    data_seconds: float | None = None
    epoch: float | None = None
    loss: object = None
    what: str = ""

    def as_dict(self, start: AttemptStart) -> dict[str, Any]:
        """By the names of the file, without keys for unknown values."""
        at = round(start.started_at_seconds + self.clock_seconds, 6)
        record: dict[str, Any] = {"ec": self.kind, "step": self.step, "at": at}
        if self.what:
            record["what"] = self.what
        if self.kind == "dropped":
            record["rows"] = self.steps
        elif self.kind == "done":
            record["seconds"] = round(self.seconds, 6)
        elif self.steps > 0:
            record["steps"] = self.steps
            record["step_seconds"] = self.seconds / self.steps
            if self.data_seconds is not None:
                record["data_seconds"] = self.data_seconds / self.steps
        if self.epoch is not None:
            record["epoch"] = round(self.epoch, 6)
        loss = number(self.loss)
        if loss is not None:
            record["loss"] = loss if isfinite(loss) else str(loss)  # JSON has no NaN and no infinity
        return record

    @classmethod
    def from_dict(cls, record: Mapping[str, Any], start: AttemptStart) -> "RecordedRow":
        """The row of `as_dict`; any other object raises `BadInput`."""
        kind = record.get("ec")
        if kind not in KINDS:
            raise BadInput(f"`ec` must be one of {', '.join(KINDS)}, got {kind!r}")
        steps = _number_in(record, "rows" if kind == "dropped" else "steps") or 0.0
        seconds = (
            _number_in(record, "seconds") if kind == "done" else steps * (_number_in(record, "step_seconds") or 0.0)
        )
        data_seconds, at, loss = _number_in(record, "data_seconds"), _number_in(record, "at"), record.get("loss")
        if at is not None and not 0 <= at <= LAST_AT:
            raise BadInput(f"`at` must be seconds since 1970, got {at!r}")
        return cls(
            number=int(_number_in(record, "number") or 0),
            kind=cast(Kind, kind),
            step=int(_number_in(record, "step") or 0),
            clock_seconds=0.0 if at is None else max(0.0, at - start.started_at_seconds),
            steps=int(steps),
            seconds=seconds or 0.0,
            data_seconds=None if data_seconds is None else data_seconds * steps,
            epoch=_number_in(record, "epoch"),
            loss=float(loss) if isinstance(loss, str) and loss in _NO_NUMBERS else _number_in(record, "loss"),
            what=str(record.get("what") or "")[:LONGEST_WHAT],
        )

    def line(self, start: AttemptStart) -> str:
        """The line of the file, with its end."""
        return json.dumps(self.as_dict(start)) + "\n"

    def report(self, start: AttemptStart) -> Report | None:
        """As the tracker takes it; None for what it does not."""
        phase: Phase
        match self.kind:
            case "train" | "end":
                phase = self.kind
            case "begin" | "done":
                phase = PAUSES.get(self.what, "pause")
            case _:
                return None
        step_seconds = self.seconds / self.steps if self.kind == "train" and self.steps > 0 else None
        return Report(
            step=self.step,
            clock_seconds=self.clock_seconds,
            phase=phase,
            attempt=start.attempt,
            rank=start.rank,
            epoch=self.epoch,
            total_steps=start.total_steps,
            total_epochs=start.total_epochs,
            steps_per_epoch=start.steps_per_epoch,
            step_seconds=step_seconds,
            data_seconds=None if step_seconds is None or self.data_seconds is None else self.data_seconds / self.steps,
            loss=number(self.loss),
            pause_seconds=self.seconds if self.kind == "done" else None,
            what=self.what if self.kind == "done" else "",
        )


# What a loss that is no finite number is written as.
_NO_NUMBERS = ("nan", "inf", "-inf")
LONGEST_WHAT = 200


def _number_in(record: Mapping[str, Any], name: str) -> float | None:
    value = record.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise BadInput(f"`{name}` must be a finite number, got {value!r}")
    return float(value)


def number(value: object) -> float | None:
    """A number, an array or a tensor of one element, as a float; None for everything else.

    Called in the thread that writes: a tensor on a GPU is waited for there, not where the training runs.
    """
    if value is None:
        return None
    try:
        return float(value)  # type: ignore[arg-type]
    except Exception:
        return None


def reason_of(error: BaseException | None) -> str:
    """Why a run stopped, in one line: the class of the error and its message; empty where it finished."""
    return (
        "" if error is None else " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")[:LONGEST_WHAT]
    )
