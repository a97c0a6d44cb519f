"""`epochcast track`"""

import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epochcast.errors import BadInput, EpochcastError
from epochcast.surfaces.cli.command_line import FORECASTS, Explain, Wide, app, show
from epochcast.surfaces.cli.database_options import Database
from epochcast.surfaces.cli.help_groups import GroupedCommand
from epochcast.surfaces.cli.track_store import Keeper, KeptTracking, keeping, patient

if TYPE_CHECKING:
    from epochcast.decide.plan.job_moves import Move
    from epochcast.observe.logs.log_metric import MetricReader
    from epochcast.observe.logs.log_reader import LogReader
    from epochcast.observe.logs.observation import Observation
    from epochcast.observe.runs.early_stopping import StoppingRule
    from epochcast.observe.runs.phases import Phases
    from epochcast.observe.runs.sweep import Sweep
    from epochcast.observe.runs.tracker import Progress
    from epochcast.predict.forecast.forecast import Forecast
    from epochcast.predict.forecast.job_file import NamedJob

    Answer = tuple[Progress, dict[str, Any], tuple[Move, ...]]

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
    asked = _Asked(
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
                return _follow(logs, lambda path: _Run(path, asked, kept).keep(), asked, is_sweep)
            return _track([_Run(path, asked, kept, path in logs) for path in files], asked, is_sweep)
    except EpochcastError as error:
        error.args = (re.sub(r"`(\w+)`", lambda match: _FLAGS.get(match[1], match[0]), str(error)),)
        raise


def _track(runs: "Sequence[_Run]", asked: "_Asked", is_sweep: bool) -> int:
    """Of folders, files in which nothing trains (settings, checkpoints) are left out and named."""
    from epochcast.observe.logs.log_reader import NoTraining

    read: list[_Run] = []
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
    _show(read, asked, is_sweep)
    return 0


def _some(names: Sequence[str], most: int = 5) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


# What the library calls these, in its messages.
_FLAGS = {"pattern": "--regex", "format": "--format", "total": "--total", "trials": "--trials", "phases": "--phases"}


@dataclass(frozen=True)
class _Asked:
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
    known: dict[str, Any] = field(default_factory=dict)

    @property
    def forecast(self) -> "Forecast | None":
        """Of the job where it runs; made once."""
        if self.job is None:
            return None
        if "forecast" not in self.known:
            from epochcast.predict.forecast.forecaster import forecast_job
            from epochcast.predict.forecast.job_defaults import placement_of
            from epochcast.predict.forecast.session import Session

            if self.job.where.device is None:
                raise BadInput(f'the job {self.job.name!r} names no device; add one to it, like device = "V100"')
            job, session = self.job.job, Session()
            made = forecast_job(job, placement_of(self.job.where, job, session), session)
            if self.history is not None:
                from epochcast.observe.history.experience import by_history

                made = by_history(made, self.history)
            self.known["forecast"] = made
        found: Forecast = self.known["forecast"]
        return found


class _Run:
    """One log and what is known of it."""

    def __init__(self, path: Path, asked: _Asked, keeper: "Keeper | None" = None, is_named: bool = True) -> None:
        from epochcast.observe.runs.tracker import Tracker

        self.path, self.asked, self.keeper, self.is_named = path, asked, keeper, is_named
        self.kept: KeptTracking | None = None
        self.tracker: Tracker = Tracker(asked.total, asked.forecast, phases=asked.phases)
        self.metric: MetricReader | None = None
        if asked.stopping is not None:
            from epochcast.observe.logs import log_metric as metric
            from epochcast.observe.runs import early_stopping as stopping

            self.tracker.stopping = stopping.StoppingWatch(asked.stopping)
            self.metric = metric.MetricReader(path, asked.stopping.metric)
        self.reader: LogReader | None = None
        self.reported_at = time.time()
        self.is_total_checked = False

    def read(self) -> None:
        """The file as it is now, to its end."""
        from epochcast.observe.logs.log_reader import LogReader, stream

        self.reader = LogReader(self.asked.format, self.asked.regex)
        for part in stream(self.path, self.reader, self.asked.format):
            if part:
                self.keep()
                self.add(part)
        self.reported_at = self.path.stat().st_mtime

    def keep(self) -> "_Run":
        """From now on what is seen is kept, where that is asked, and past runs say what to expect."""
        if self.keeper is not None and self.kept is None:
            self.kept = self.keeper.kept(self.path, self.asked.job, self.asked.forecast)
            self.tracker.past = self.kept.prior
        return self

    def add(self, seen: "list[Observation]") -> None:
        """Take in reports, and keep them where that is asked."""
        self.tracker.add_all(seen if self.kept is None else self.kept.run.take(seen))

    def answer(self) -> "tuple[Progress, dict[str, Any], tuple[Move, ...]]":
        """The progress, its JSON form, and the moves that were asked for."""
        self._evaluated()
        self._check_total()
        progress = self.tracker.progress()
        recognition = None if self.reader is None else self.reader.recognition
        seen_at = datetime.fromtimestamp(self.reported_at).astimezone()
        finish_at = progress.finish_at(seen_at)
        moves = self._moves(progress)
        told = {
            "log": str(self.path),
            "format": None if recognition is None else recognition.name,
            "format_confidence": None if recognition is None else recognition.confidence,
            "unread_fraction": 0.0 if self.reader is None else self.reader.unread_fraction,
            "job": None if self.asked.job is None else self.asked.job.name,
            **progress.as_dict(),
            "seen_at": seen_at.isoformat(timespec="seconds"),
            "finish_at": finish_at.isoformat(timespec="seconds"),
            **({"moves": [move.as_dict() for move in moves]} if self.asked.what_if else {}),
            **({"steadiness": self.tracker.steadiness().as_dict()} if self.asked.changes else {}),
        }
        if self.kept is not None:
            told |= self.kept.told
            self.kept.run.tell(self.tracker, progress, told, self.reported_at)
        return progress, told, moves

    def _check_total(self) -> None:
        """Once: a run that is followed may go a step beyond its total."""
        if self.asked.total is not None and not self.is_total_checked and self.tracker.history.reports:
            from epochcast.observe.runs.total_steps import check_given

            check_given(self.tracker.history, self.asked.total)
            self.is_total_checked = True

    def _evaluated(self) -> None:
        """What the metric of early stopping has become since the last look."""
        if self.metric is not None and self.tracker.stopping is not None:
            for value in self.metric.read():
                self.tracker.stopping.add(value)

    def _moves(self, progress: "Progress") -> "tuple[Move, ...]":
        asked = self.asked
        if asked.what_if is None or asked.job is None or asked.forecast is None:
            return ()
        from epochcast.decide.plan.job_moves import moves, places_in

        return moves(
            asked.job.job,
            asked.forecast,
            progress.remaining_seconds,
            places_in(asked.what_if),
            restart_seconds=asked.restart_seconds + progress.left.start_seconds,
            down_seconds=progress.left.down_seconds,
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


def _answers(runs: Iterable[_Run], is_sweep: bool) -> "Iterator[tuple[Progress, dict[str, Any], tuple[Move, ...]]]":
    """Of every run; in a message that concerns one of many, which."""
    runs = list(runs)
    for run in runs:
        try:
            yield run.answer()
        except EpochcastError as error:
            if len(runs) == 1 and not is_sweep:
                raise
            raise BadInput(f"{run.path}: {error}") from None


def _found(runs: Sequence[_Run], asked: _Asked, is_sweep: bool) -> "tuple[list[Answer], Sweep | None]":
    from epochcast.observe.runs.sweep import sweep

    found = list(_answers(runs, is_sweep))
    return found, sweep([progress for progress, _, _ in found], asked.trials) if is_sweep else None


def _show(runs: Sequence[_Run], asked: _Asked, is_sweep: bool) -> None:
    found, whole = _found(runs, asked, is_sweep)

    def view() -> Any:
        from epochcast.surfaces import render

        return render.track([(progress, told, moves) for progress, told, moves in found], whole)

    if not asked.as_json:
        show({}, False, view, explain=asked.explain, wide=asked.wide)
        return
    for _, told, _ in found:
        show(told, True, view)
    if whole is not None:
        show(whole.as_dict(), True, view)


def _follow(logs: Sequence[Path], run_of: Callable[[Path], _Run], asked: _Asked, is_sweep: bool) -> int:
    """Look at all files until each has ended; show what is new. Files that appear in a folder join in."""
    from epochcast.observe.logs.log_follower import LogFollower
    from epochcast.surfaces.cli.track_screen import screen

    runs: dict[Path, tuple[_Run, LogFollower]] = {}
    with screen(asked.as_json) as draw, ExitStack() as opened, suppress(KeyboardInterrupt):
        while True:
            for path in _files(logs, is_patient=True):
                if path not in runs:
                    runs[path] = run_of(path), LogFollower(path, asked.format, asked.regex)
                    opened.callback(runs[path][1].close)
                    opened.enter_context(patient([runs[path][0].kept]))
            is_new = False
            for run, follower in runs.values():
                run.reader = follower.reader
                if found := follower.look():
                    run.add(found)
                    run.reported_at = os.stat(run.path).st_mtime if run.path.exists() else time.time()
                    is_new = True
            followed = [run for run, _ in runs.values()]
            ready = [run for run in followed if _is_ready(run)]
            if draw is not None:
                answers, whole = _found(ready, asked, is_sweep) if ready else ([], None)
                draw(answers, whole, [str(run.path) for run in followed if not _is_ready(run)])
            elif is_new and ready:
                _show(ready, asked, is_sweep)
                sys.stdout.flush()
            if ready and len(ready) == len(followed) and all(_is_over(run) for run in followed):
                break
            time.sleep(POLL_SECONDS)
    return 0


def _is_ready(run: _Run) -> bool:
    """Whether there is an answer yet: two timed reports, or a forecast."""
    history = run.tracker.history
    if not history.reports:
        return False
    return run.asked.job is not None or history.executed_steps > 0 or history.printed_step_seconds is not None


def _is_over(run: _Run) -> bool:
    try:
        return run.tracker.progress().is_done
    except EpochcastError:
        return False
