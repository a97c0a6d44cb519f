"""What `track` is asked about logs. The flags of the command line follow from the fields; `ec.follow` checks its
keywords with them.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from epochcast.base.options import Option, check_fields, option, options_of
from epochcast.errors import BadInput
from epochcast.units import parse_seconds

if TYPE_CHECKING:
    from epochcast.observe.runs.early_stopping import StoppingRule
    from epochcast.observe.runs.phases import Phases


@dataclass(frozen=True, kw_only=True)
class TrackRequest:
    """How logs are read, what is known about their runs, and where the runs are stored."""

    job: str | None = option(None, "The job in epochcast.toml; the estimate starts from its forecast.")
    history: Path | None = option(
        None, "Correct that forecast with a file written by `epochcast history fit`; needs --job."
    )
    total: float | None = option(None, "Total steps (or epochs, if the log counts only these).", above=0)
    epochs: float | None = option(
        None, "Total epochs, instead of steps; the log says how many steps each has.", above=0
    )
    what_if: str | None = option(None, "Compare moving to 4xV100,1xA100 (2x8xH100: two machines); needs --job.")
    restart_seconds: float = option(
        300.0,
        "Time to get and boot a machine for --what-if; start-up and a checkpoint are added.",
        unit="seconds",
        parse=partial(parse_seconds, unit="min"),
        default_text="5min",
        flag="--restart",
    )
    early_stopping: str | None = option(
        None, "The run may end early: patience=3,metric=val_loss,mode=min,min_delta=0 (metric: its name)."
    )
    phases: str | None = option(
        None, "Relative step time from a step on, for training in phases: 0:1,500:2 or 0:1,50%:2."
    )
    trials: int | None = option(None, "Total runs of the sweep, including future ones.")
    format: str | None = option(None, "Log format [default: detected].")
    pattern: str | None = option(
        None,
        "Custom log format: a regular expression with groups like (?P<step>…) and (?P<total>…).",
        flag="--regex",
    )
    run: str | None = option(None, "Store the run under this name, and use past runs of the job.")
    store: bool = option(False, "Store the run under the path of its log.")
    changes: bool = option(False, "List change points of the step time and how steady it is.")

    def __post_init__(self) -> None:
        check_fields(self, TRACK_OPTIONS)
        if self.total is not None and self.epochs is not None:
            raise BadInput("a run has one length: `total` steps or `epochs`, not both")
        if self.what_if is not None and self.job is None:
            raise BadInput("`what_if` needs `job`: what is trained, to forecast it elsewhere")
        if self.history is not None and self.job is None:
            raise BadInput("`history` needs `job`: the job whose forecast it corrects")
        if self.what_if is not None and not self.what_if.strip(" ,"):
            raise BadInput("`what_if` must name GPUs, like 4xV100,1xA100")
        if self.run is not None and not self.run.strip():
            raise BadInput("`run` is the name to keep the run under, got an empty one")
        if self.format is not None and self.pattern is not None:
            raise BadInput("give `format` or `pattern`, not both")

    @property
    def is_stored(self) -> bool:
        """Whether runs are to be stored."""
        return self.run is not None or self.store

    def stopping_rule(self) -> "StoppingRule | None":
        """The rule of `early_stopping`."""
        from epochcast.observe.runs.early_stopping import StoppingRule

        return None if self.early_stopping is None else StoppingRule.parse(self.early_stopping)

    def step_phases(self) -> "Phases | None":
        """The phases of `phases`."""
        from epochcast.observe.runs.phases import Phases

        return None if self.phases is None else Phases.parse(self.phases)


TRACK_OPTIONS: tuple[Option, ...] = options_of(TrackRequest)
