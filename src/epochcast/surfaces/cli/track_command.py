"""`epochcast track`"""

import re
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epochcast.errors import BadInput, EpochcastError
from epochcast.surfaces.cli.command_line import FORECASTS, Explain, Wide, app, show
from epochcast.surfaces.cli.database_options import Database
from epochcast.surfaces.cli.help_groups import GroupedCommand
from epochcast.surfaces.cli.track_store import Keeper, StoredTracking, keeping, patient

if TYPE_CHECKING:
    from epochcast.decide.plan.job_moves import Move
    from epochcast.observe.logs.log_metric import MetricReader
    from epochcast.observe.runs.early_stopping import StoppingRule
    from epochcast.observe.runs.phases import Phases
    from epochcast.observe.runs.report import Report
    from epochcast.observe.runs.standing import Standing
    from epochcast.observe.runs.sweep import Sweep
    from epochcast.observe.runs.tracked_log import TrackedLog
    from epochcast.predict.forecast.forecast import Forecast
    from epochcast.predict.forecast.job_file import NamedJob

# Between two looks at the files.
POLL_SECONDS = 1.0


@app.command(
    cls=GroupedCommand,
    rich_help_panel=FORECASTS,
    epilog="Examples: epochcast track train.log · epochcast track runs/ --json · "
    "epochcast track train.log --follow --job mine --what-if 4xV100,1xA100",
)
def track(
    logs: Annotated[list[Path], typer.Argument(help="Log files, or folders of them as one sweep.", show_default=False)],
    follow: Annotated[bool, typer.Option("--follow", help="Keep reading while the files grow; Ctrl-C stops.")] = False,
    job: Annotated[
        str | None, typer.Option(help="The job in epochcast.toml; the estimate starts from its forecast.")
    ] = None,
    history: Annotated[
        Path | None,
        typer.Option(help="Correct that forecast with a file written by `epochcast history fit`; needs --job."),
    ] = None,
    total: Annotated[float | None, typer.Option(help="Total steps (or epochs, if the log counts only these).")] = None,
    what_if: Annotated[
        str | None,
        typer.Option(help="Compare moving to 4xV100,1xA100 (2x8xH100: two machines); needs --job."),
    ] = None,
    restart: Annotated[
        str,
        typer.Option(help="Time to get and boot a machine for --what-if; start-up and a checkpoint are added."),
    ] = "5min",
    early_stopping: Annotated[
        str | None,
        typer.Option(help="The run may end early: patience=3,metric=val_loss,mode=min,min_delta=0 (metric: its name)."),
    ] = None,
    phases: Annotated[
        str | None,
        typer.Option(help="Relative step time from a step on, for training in phases: 0:1,500:2 or 0:1,50%:2."),
    ] = None,
    trials: Annotated[int | None, typer.Option(help="Total runs of the sweep, including future ones.")] = None,
    format: Annotated[str | None, typer.Option("--format", help="Log format [default: detected].")] = None,
    regex: Annotated[
        str | None,
        typer.Option(help="Custom log format: a regular expression with groups like (?P<step>…) and (?P<total>…)."),
    ] = None,
    run: Annotated[
        str | None, typer.Option(help="Store the run under this name, and use past runs of the job.")
    ] = None,
    store: Annotated[bool, typer.Option("--store", help="Store the run under the path of its log.")] = False,
    database: Database = None,
    changes: Annotated[
        bool, typer.Option("--changes", help="List change points of the step time and how steady it is.")
    ] = False,
    explain: Explain = False,
    wide: Wide = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per log and update.")] = False,
) -> int:
    """Estimate when a training run will finish, from its log."""
    from epochcast.units import parse_seconds

    if what_if is not None and job is None:
        raise BadInput("--what-if needs --job: what is trained, to forecast it elsewhere")
    if history is not None and job is None:
        raise BadInput("--history needs --job: what is trained, to ask the past about it")
    if what_if is not None and not what_if.strip(" ,"):
        raise BadInput("--what-if names no place; write like 4xV100,1xA100")
    if run is not None and not run.strip():
        raise BadInput("--run is the name to keep the run under, got an empty one")
    options = _TrackOptions(
        total,
        format,
        regex,
        _named(job),
        what_if,
        parse_seconds(restart, "--restart", unit="min"),
        trials,
        changes,
        as_json,
        explain,
        wide,
        _stopping_rule(early_stopping),
        _phases(phases),
        history,
    )
    is_sweep = any(path.is_dir() for path in logs) or trials is not None
    files = _files(logs, is_patient=follow)
    if run is not None and len(files) > 1:
        raise BadInput(f"--run names one run, but there are {len(files)} logs; --store keeps each under its path")
    try:
        with keeping(database, run, run is not None or store or database is not None) as kept:
            if follow:
                return _follow(logs, lambda path: _LogRun(path, options, kept).keep(), options, is_sweep)
            return _track([_LogRun(path, options, kept, path in logs) for path in files], options, is_sweep)
    except EpochcastError as error:
        error.args = (re.sub(r"`(\w+)`", lambda match: _FLAGS.get(match[1], match[0]), str(error)),)
        raise


def _track(runs: "Sequence[_LogRun]", options: "_TrackOptions", is_sweep: bool) -> int:
    """Of folders, files in which nothing trains (settings, checkpoints) are left out and named."""
    from epochcast.observe.logs.log_reader import NoTraining

    read: list[_LogRun] = []
    left_out: list[str] = []
    for run in runs:
        try:
            run.read()
            read.append(run)
        except NoTraining:
            if run.is_named:
                raise
            left_out.append(run.path.name)
    if not read:
        raise BadInput(f"no file reports training among the {len(left_out)}: {_some(left_out)}")
    if left_out:
        sys.stderr.write(f"epochcast: left out, no training is reported in: {_some(left_out)}\n")
    _show(read, options, is_sweep)
    return 0


def _some(names: Sequence[str], most: int = 5) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


# What the library calls these, in its messages.
_FLAGS = {"pattern": "--regex", "format": "--format", "total": "--total", "trials": "--trials", "phases": "--phases"}


@dataclass(frozen=True)
class _TrackOptions:
    """What holds for all logs."""

    total: float | None
    format: str | None
    regex: str | None
    job: "NamedJob | None"
    what_if: str | None
    restart_seconds: float
    trials: int | None
    changes: bool
    as_json: bool
    explain: bool
    wide: bool
    stopping: "StoppingRule | None" = None
    phases: "Phases | None" = None
    history: Path | None = None
    _forecasts: "list[Forecast]" = field(default_factory=list)

    @property
    def forecast(self) -> "Forecast | None":
        """Of the job where it runs; made once."""
        if self.job is None:
            return None
        if not self._forecasts:
            from epochcast.predict.forecast.forecaster import forecast_job
            from epochcast.predict.forecast.job_defaults import placement_of
            from epochcast.predict.forecast.session import Session

            if self.job.where.device is None:
                raise BadInput(f'the job {self.job.name!r} names no device; add one to it, like device = "V100"')
            job, session = self.job.job, Session()
            forecast = forecast_job(job, placement_of(self.job.where, job, session), session)
            if self.history is not None:
                from epochcast.observe.history.experience import by_history

                forecast = by_history(forecast, self.history)
            self._forecasts.append(forecast)
        return self._forecasts[0]


class _LogRun:
    """One log: the watch of its run, and what is asked beside."""

    def __init__(self, path: Path, options: _TrackOptions, keeper: "Keeper | None" = None, is_named: bool = True):
        from epochcast.observe.logs.log_follower import LogFollower
        from epochcast.observe.runs.run_watch import RunWatch
        from epochcast.observe.runs.tracker import Tracker

        self.path, self.options, self.keeper, self.is_named = path, options, keeper, is_named
        self.kept: StoredTracking | None = None
        tracker = Tracker(options.total, options.forecast, phases=options.phases)
        self.metric: MetricReader | None = None
        if options.stopping is not None:
            from epochcast.observe.logs import log_metric
            from epochcast.observe.runs.early_stopping import StoppingWatch

            tracker.stopping = StoppingWatch(options.stopping)
            self.metric = log_metric.MetricReader(path, options.stopping.metric)
        self.follower = LogFollower(path, options.format, options.regex)
        self.watch = RunWatch(lambda: self._kept(self.follower.look()), tracker)
        self.reported_at_seconds = time.time()
        self.is_total_checked = False

    def read(self) -> None:
        """The file as it is now, to its end."""
        from epochcast.observe.logs.log_reader import stream

        for reports in stream(self.path, self.follower.reader, self.options.format):
            if reports:
                self.keep()
                self.watch.take(self._kept(reports))
        self.reported_at_seconds = self.follower.reported_at_seconds

    def look(self) -> bool:
        """What is new in the file; whether there is anything."""
        is_new = self.watch.read()
        if is_new:
            self.reported_at_seconds = self.follower.reported_at_seconds
        return is_new

    def keep(self) -> "_LogRun":
        """From now on reports are stored, where that is asked, and past runs say what to expect."""
        if self.keeper is not None and self.kept is None:
            self.kept = self.keeper.kept(self.path, self.options.job, self.options.forecast)
            self.watch.tracker.past = self.kept.prior
            self.watch.sinks = [self.kept.run.write]
        return self

    def _kept(self, reports: "Sequence[Report]") -> "Sequence[Report]":
        return reports if self.kept is None else self.kept.run.take(reports)

    @property
    def is_over(self) -> bool:
        """Whether the run has ended, as far as anybody can say."""
        try:
            return self.watch.tracker.standing().is_done
        except EpochcastError:
            return False

    def tracked(self) -> "TrackedLog":
        """How the run stands, how the log was read, and what was asked beside."""
        from epochcast.observe.runs.tracked_log import TrackedLog

        options, reader, tracker = self.options, self.follower.reader, self.watch.tracker
        self._read_metric()
        self._check_total()
        if self.kept is not None:
            self.kept.run.format = reader.format
        standing = self.watch.tell(self.reported_at_seconds) or tracker.standing()
        return TrackedLog(
            log=str(self.path),
            standing=standing,
            format=reader.format,
            format_confidence=None if reader.recognition is None else reader.recognition.confidence,
            unread_fraction=reader.unread_fraction,
            job=None if options.job is None else options.job.name,
            run=None if self.kept is None else self.kept.run.run.name,
            past=None if self.kept is None else self.kept.past,
            moves=self._moves(standing),
            steadiness=tracker.steadiness() if options.changes else None,
        )

    def _check_total(self) -> None:
        """Once: a run that is followed may go a step beyond its total."""
        history = self.watch.tracker.history
        if self.options.total is not None and not self.is_total_checked and history.reports:
            from epochcast.observe.runs.total_steps import check_total

            check_total(history, self.options.total)
            self.is_total_checked = True

    def _read_metric(self) -> None:
        """What the metric of early stopping has become since the last look."""
        if self.metric is not None and self.watch.tracker.stopping is not None:
            for value in self.metric.read():
                self.watch.tracker.stopping.add(value)

    def _moves(self, standing: "Standing") -> "tuple[Move, ...] | None":
        options = self.options
        if options.what_if is None or options.job is None or options.forecast is None:
            return None
        from epochcast.decide.plan.job_moves import moves, places_in

        return moves(
            options.job.job,
            options.forecast,
            standing.remaining_seconds,
            places_in(options.what_if),
            restart_seconds=options.restart_seconds + standing.start_seconds,
            down_seconds=standing.interruption_down_seconds,
        )


def _stopping_rule(text: str | None) -> "StoppingRule | None":
    if text is None:
        return None
    from epochcast.observe.runs.early_stopping import StoppingRule

    return StoppingRule.parse(text)


def _phases(text: str | None) -> "Phases | None":
    if text is None:
        return None
    from epochcast.observe.runs.phases import Phases

    return Phases.parse(text)


def _named(job: str | None) -> "NamedJob | None":
    if job is None:
        return None
    from epochcast.predict.forecast.job_file import read_job

    return read_job(job)


def _files(logs: Sequence[Path], is_patient: bool = False) -> list[Path]:
    """The files themselves; of a folder all that are in it, at any depth. The patient wait for a first one."""
    found: list[Path] = []
    for path in logs:
        if not path.is_dir():
            found.append(path)
            continue
        inside = sorted(file for file in path.rglob("*") if file.is_file() and not file.name.startswith("."))
        if not inside and not is_patient:
            raise BadInput(f"there is no file in {path}")
        found += inside
    return found


def _tracked(
    runs: Sequence[_LogRun], options: _TrackOptions, is_sweep: bool
) -> "tuple[list[TrackedLog], Sweep | None]":
    """All logs, and the sweep where they are one; a message that concerns one of many says which."""
    from epochcast.observe.runs.sweep import sweep

    logs = []
    for run in runs:
        try:
            logs.append(run.tracked())
        except EpochcastError as error:
            if len(runs) == 1 and not is_sweep:
                raise
            raise BadInput(f"{run.path}: {error}") from None
    return logs, sweep([log.standing for log in logs], options.trials) if is_sweep else None


def _show(runs: Sequence[_LogRun], options: _TrackOptions, is_sweep: bool) -> None:
    logs, whole = _tracked(runs, options, is_sweep)

    def view() -> Any:
        from epochcast.surfaces import render

        return render.track(logs, whole)

    if not options.as_json:
        show({}, False, view, explain=options.explain, wide=options.wide)
        return
    for answer in [*logs, *([] if whole is None else [whole])]:
        show(answer.as_dict(), True, view)


def _follow(logs: Sequence[Path], run_of: Callable[[Path], _LogRun], options: _TrackOptions, is_sweep: bool) -> int:
    """Look at all files until each has ended; show what is new. Files that appear in a folder join in."""
    from epochcast.surfaces.cli.track_screen import screen

    runs: dict[Path, _LogRun] = {}
    with screen(options.as_json) as draw, ExitStack() as opened, suppress(KeyboardInterrupt):
        while True:
            for path in _files(logs, is_patient=True):
                if path not in runs:
                    runs[path] = run_of(path)
                    opened.callback(runs[path].follower.close)
                    opened.enter_context(patient([runs[path].kept]))
            is_new = any([run.look() for run in runs.values()])
            ready = [run for run in runs.values() if run.watch.tracker.is_ready]
            if draw is not None:
                answers, whole = _tracked(ready, options, is_sweep) if ready else ([], None)
                draw(answers, whole, [str(run.path) for run in runs.values() if run not in ready])
            elif is_new and ready:
                _show(ready, options, is_sweep)
                sys.stdout.flush()
            if ready and len(ready) == len(runs) and all(run.is_over for run in ready):
                break
            time.sleep(POLL_SECONDS)
    return 0
