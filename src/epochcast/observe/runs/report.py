"""One report of a run: what a training loop, a line of a log or an HTTP client says, in the same terms.

The fields are the one declaration: the columns of the table of observations (`database_tables`), the JSON object that
the API shows, and what is refused as no report of any training all follow from them.

>>> Report(step=3, clock_seconds=1.5, loss=float("nan")).as_dict()["loss"]
'nan'
>>> Report(step=-1).check()
Traceback (most recent call last):
  ...
epochcast.errors.BadInput: step must be at least 0, got -1
"""

from collections.abc import Mapping
from math import isfinite
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_type_hints

from epochcast.errors import BadInput, UnknownName

Phase = Literal["train", "validation", "checkpoint", "start", "end", "pause"]
PHASES: tuple[Phase, ...] = get_args(Phase)
"""What a report is about; the database keeps its place in this list, so that names are only ever added at its end."""

LONGEST_NAME = 200
MOST_STEP, MOST_ATTEMPT, MOST_RANK = 2.0**62, 2**62, 2**31 - 1


class FieldBounds(NamedTuple):
    """The values a number of a report may have; a number without bounds is any finite one."""

    least: float
    most: float


class AnyNumber(NamedTuple):
    """A number that may be infinite or not a number, as a loss is."""


class Report(NamedTuple):
    """What was said of a run at one moment; None: not said. A named tuple, because a long log makes very many.

    A report is identified by its attempt, step, rank and phase; a second one with the same four is the same report.
    `step` counts finished training steps from the start of the run (a fraction where only epochs are counted).
    `clock_seconds` is the time on the run's own clock. Announcements (`total_steps`, `total_epochs`, `steps_per_epoch`)
    hold until another is made. `pause_seconds` is the length of the pause that ended with this report, `what` its name.
    `reports` counts the reports that this one stands for: old ones are joined when a database is thinned.
    """

    step: Annotated[float, FieldBounds(0, MOST_STEP)]
    clock_seconds: float | None = None
    phase: Phase = "train"
    attempt: Annotated[int, FieldBounds(0, MOST_ATTEMPT)] = 0
    rank: Annotated[int | None, FieldBounds(0, MOST_RANK)] = None
    step_seconds: float | None = None
    data_seconds: float | None = None
    loss: Annotated[float | None, AnyNumber()] = None
    epoch: float | None = None
    total_steps: float | None = None
    total_epochs: float | None = None
    steps_per_epoch: float | None = None
    remaining_seconds: float | None = None
    pause_seconds: float | None = None
    what: str = ""
    reports: Annotated[int, FieldBounds(1, MOST_RANK)] = 1

    def check(self) -> None:
        """Refuse values that no training reports."""
        if self.phase not in PHASES:
            raise UnknownName("phase", str(self.phase), PHASES)
        for place, name, least, most in _BOUNDED:
            value: Any = self[place]
            if value is not None and not least <= value <= most:
                raise BadInput(f"{name} must be {_range(least, most, value)}, got {value}")
        for place, name in _FINITE:
            value = self[place]
            if value is not None and not isfinite(value):
                raise BadInput(f"{name} of step {self.step:g} must be a finite number, got {value}")

    def as_dict(self) -> dict[str, Any]:
        """The JSON form, by hand because a tuple is no `Record`; a loss that is no finite number is text."""
        loss = self.loss if self.loss is None or isfinite(self.loss) else str(self.loss)
        return {**self._asdict(), "loss": loss, "what": self.what or None}


def _range(least: float, most: float, value: float) -> str:
    return f"at most {most:g}" if value > most else f"at least {least:g}"


_HINTS = get_type_hints(Report, include_extras=True)
BOUNDS: Mapping[str, FieldBounds] = {
    name: bounds
    for name, hint in _HINTS.items()
    for bounds in getattr(hint, "__metadata__", ())
    if isinstance(bounds, FieldBounds)
}
"""Of the fields that have some."""
_BOUNDED = [(Report._fields.index(name), name, *bounds) for name, bounds in BOUNDS.items()]
_FINITE = [(place, name) for place, name in enumerate(Report._fields) if _HINTS[name] == float | None]
