"""`epochcast track`"""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epochcast.errors import BadInput, EpochcastError
from epochcast.observe.runs.track_request import TrackRequest
from epochcast.surfaces.cli.command_line import Explain, Wide, show
from epochcast.surfaces.cli.database_options import Database
from epochcast.surfaces.cli.request_flags import request_command
from epochcast.surfaces.cli.track_store import Keeper, StoredTracking, keeping, patient

if TYPE_CHECKING:
    from epochcast.decide.plan.job_moves import Move
    from epochcast.observe.logs.log_metric import MetricReader
    from epochcast.observe.runs.report import Report
    from epochcast.observe.runs.standing import Standing
    from epochcast.observe.runs.sweep import Sweep
    from epochcast.observe.runs.tracked_log import TrackedLog
    from epochcast.predict.forecast.forecast import Forecast
    from epochcast.predict.forecast.job_file import NamedJob

# Between two looks at the files.
POLL_SECONDS = 1.0


@request_command(
    TrackRequest,
    epilog="Examples: epochcast track train.log · epochcast track runs/ --json · "
    "epochcast track train.log --follow --job mine --what-if 4xV100,1xA100",
)
def track(
    request: TrackRequest,
    logs: Annotated[list[Path], typer.Argument(help="Log files, or folders of them as one sweep.", show_default=False)],
    follow: Annotated[bool, typer.Option("--follow", help="Keep reading while the files grow; Ctrl-C stops.")] = False,
    database: Database = None,
    explain: Explain = False,
    wide: Wide = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per log and update.")] = False,
) -> int:
    """Estimate when a training run will finish, from its log."""
    files = _files(logs, is_patient=follow)
    if request.run is not None and len(files) > 1:
        raise BadInput(f"--run names one run, but there are {len(files)} logs; --store keeps each under its path")
    job = _TrackedJob.of(request)
    is_sweep = any(path.is_dir() for path in logs) or request.trials is not None
    view = _TrackView(request.trials, is_sweep, as_json, explain, wide)
    with keeping(database, request.run, request.is_stored or database is not None) as keeper:
        if follow:
            return _follow(logs, lambda path: _LogRun(path, request, job, keeper).keep(), view)
        return _track([_LogRun(path, request, job, keeper, path in logs) for path in files], view)


@dataclass(frozen=True, slots=True)
class _TrackedJob:
    """The job of the runs, and its forecast where it runs."""

    named: "NamedJob"
    forecast: "Forecast"

    @classmethod
    def of(cls, request: TrackRequest) -> "_TrackedJob | None":
        """The job that a request names."""
        if request.job is None:
            return None
        from epochcast.predict.forecast.forecaster import forecast_job
        from epochcast.predict.forecast.job_defaults import placement_of
        from epochcast.predict.forecast.job_file import read_job
        from epochcast.predict.forecast.session import Session

        named, session = read_job(request.job), Session()
        if named.where.device is None:
            raise BadInput(f'the job {named.name!r} names no device; add one to it, like device = "V100"')
        forecast = forecast_job(named.job, placement_of(named.where, named.job, session), session)
        if request.history is not None:
            from epochcast.observe.history.experience import by_history

            forecast = by_history(forecast, request.history)
        return cls(named, forecast)


@dataclass(frozen=True, slots=True)
class _TrackView:
    """How logs are shown, and whether they are one sweep of so many trials."""

    trials: int | None
    is_sweep: bool
    as_json: bool
    explain: bool
    wide: bool


def _track(runs: "Sequence[_LogRun]", view: _TrackView) -> int:
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
    _show(read, view)
    return 0


def _some(names: Sequence[str], most: int = 5) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


class _LogRun:
    """One log: the watch of its run, and what is asked beside."""

    def __init__(
        self,
        path: Path,
        request: TrackRequest,
        job: _TrackedJob | None,
        keeper: "Keeper | None" = None,
        is_named: bool = True,
    ) -> None:
        from epochcast.observe.logs.log_follower import LogFollower
        from epochcast.observe.runs.run_watch import RunWatch
        from epochcast.observe.runs.tracker import Tracker

        self.path, self.request, self.job, self.keeper, self.is_named = path, request, job, keeper, is_named
        self.stored: StoredTracking | None = None
        forecast = None if job is None else job.forecast
        tracker = Tracker(request.total, forecast, phases=request.step_phases(), epochs=request.epochs)
        self.metric: MetricReader | None = None
        stopping = request.stopping_rule()
        if stopping is not None:
            from epochcast.observe.logs import log_metric
            from epochcast.observe.runs.early_stopping import StoppingWatch

            tracker.stopping = StoppingWatch(stopping)
            self.metric = log_metric.MetricReader(path, stopping.metric)
        self.follower = LogFollower(path, request.format, request.pattern)
        self.watch = RunWatch(lambda: self._stored(self.follower.look()), tracker)
        self.reported_at_seconds = time.time()
        self.is_total_checked = False

    def read(self) -> None:
        """The file as it is now, to its end."""
        from epochcast.observe.logs.log_reader import stream

        for reports in stream(self.path, self.follower.reader, self.request.format):
            if reports:
                self.keep()
                self.watch.take(self._stored(reports))
        self.reported_at_seconds = self.follower.reported_at_seconds

    def look(self) -> bool:
        """What is new in the file; whether there is anything."""
        is_new = self.watch.read()
        if is_new:
            self.reported_at_seconds = self.follower.reported_at_seconds
        return is_new

    def keep(self) -> "_LogRun":
        """From now on reports are stored, where that is asked, and past runs say what to expect."""
        if self.keeper is not None and self.stored is None:
            job = self.job
            self.stored = self.keeper.tracking(
                self.path, None if job is None else job.named, None if job is None else job.forecast
            )
            self.watch.tracker.past = self.stored.prior
            self.watch.sinks = [self.stored.run.write]
        return self

    def _stored(self, reports: "Sequence[Report]") -> "Sequence[Report]":
        return reports if self.stored is None else self.stored.run.take(reports)

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

        stored, reader, tracker = self.stored, self.follower.reader, self.watch.tracker
        self._read_metric()
        self._check_total()
        if stored is not None:
            stored.run.format = reader.format
        standing = self.watch.tell(self.reported_at_seconds) or tracker.standing()
        return TrackedLog(
            log=str(self.path),
            standing=standing,
            format=reader.format,
            format_confidence=None if reader.recognition is None else reader.recognition.confidence,
            unread_fraction=reader.unread_fraction,
            job=None if self.job is None else self.job.named.name,
            run=None if stored is None else stored.run.run.name,
            past=None if stored is None else stored.past,
            moves=self._moves(standing),
            steadiness=tracker.steadiness() if self.request.changes else None,
        )

    def _check_total(self) -> None:
        """Once: a run that is followed may go a step beyond its total."""
        history = self.watch.tracker.history
        total = self.request.total
        if total is not None and not self.is_total_checked and history.reports:
            from epochcast.observe.runs.total_steps import check_total

            check_total(history, total)
            self.is_total_checked = True

    def _read_metric(self) -> None:
        """What the metric of early stopping has become since the last look."""
        if self.metric is not None and self.watch.tracker.stopping is not None:
            for value in self.metric.read():
                self.watch.tracker.stopping.add(value)

    def _moves(self, standing: "Standing") -> "tuple[Move, ...] | None":
        request, job = self.request, self.job
        if request.what_if is None or job is None:
            return None
        from epochcast.decide.plan.job_moves import moves, places_in

        return moves(
            job.named.job,
            job.forecast,
            standing.remaining_seconds,
            places_in(request.what_if),
            restart_seconds=request.restart_seconds + standing.start_seconds,
            down_seconds=standing.interruption_down_seconds,
        )


def _files(logs: Sequence[Path], is_patient: bool = False) -> list[Path]:
    """The files themselves; of a folder all that are in it, at any depth. The patient wait for a first one."""
    files: list[Path] = []
    for path in logs:
        if not path.is_dir():
            files.append(path)
            continue
        inside = sorted(file for file in path.rglob("*") if file.is_file() and not file.name.startswith("."))
        if not inside and not is_patient:
            raise BadInput(f"there is no file in {path}")
        files += inside
    return files


def _tracked(runs: Sequence[_LogRun], view: _TrackView) -> "tuple[list[TrackedLog], Sweep | None]":
    """All logs, and the sweep where they are one; a message that concerns one of many says which."""
    from epochcast.observe.runs.sweep import sweep

    logs = []
    for run in runs:
        try:
            logs.append(run.tracked())
        except EpochcastError as error:
            if len(runs) == 1 and not view.is_sweep:
                raise
            raise BadInput(f"{run.path}: {error}") from None
    return logs, sweep([log.standing for log in logs], view.trials) if view.is_sweep else None


def _show(runs: Sequence[_LogRun], view: _TrackView) -> None:
    logs, runs_as_sweep = _tracked(runs, view)

    def drawn() -> Any:
        from epochcast.surfaces import render

        return render.track(logs, runs_as_sweep)

    if not view.as_json:
        show({}, False, drawn, explain=view.explain, wide=view.wide)
        return
    for answer in [*logs, *([] if runs_as_sweep is None else [runs_as_sweep])]:
        show(answer.as_dict(), True, drawn)


def _follow(logs: Sequence[Path], run_of: Callable[[Path], _LogRun], view: _TrackView) -> int:
    """Look at all files until each has ended; show what is new. Files that appear in a folder join in."""
    runs: dict[Path, _LogRun] = {}
    with _screen(view.as_json) as draw, ExitStack() as opened, suppress(KeyboardInterrupt):
        while True:
            for path in _files(logs, is_patient=True):
                if path not in runs:
                    runs[path] = run_of(path)
                    opened.callback(runs[path].follower.close)
                    opened.enter_context(patient(runs[path].stored))
            is_new = any([run.look() for run in runs.values()])
            ready = [run for run in runs.values() if run.watch.tracker.is_ready]
            if draw is not None:
                answers, runs_as_sweep = _tracked(ready, view) if ready else ([], None)
                draw(answers, runs_as_sweep, [str(run.path) for run in runs.values() if run not in ready])
            elif is_new and ready:
                _show(ready, view)
                sys.stdout.flush()
            if ready and len(ready) == len(runs) and all(run.is_over for run in ready):
                break
            time.sleep(POLL_SECONDS)
    return 0


@contextmanager
def _screen(
    as_json: bool,
) -> "Iterator[Callable[[Sequence[TrackedLog], Sweep | None, Sequence[str]], None] | None]":
    """A function that redraws logs, a sweep and the logs that are waited for; None where there is no terminal."""
    if as_json or not sys.stdout.isatty():
        yield None
        return
    from rich.console import Console
    from rich.live import Live

    from epochcast.surfaces import render

    console = Console(highlight=False, emoji=False, markup=False)
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:

        def draw(logs: "Sequence[TrackedLog]", runs_as_sweep: "Sweep | None", waiting: Sequence[str]) -> None:
            live.update(render.track_live(logs, runs_as_sweep, waiting), refresh=True)

        yield draw
