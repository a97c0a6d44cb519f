"""Running jobs: how far, how long still, when done; moves, changes of pace, a sweep as a whole."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from epochcast.base.current_time import now
from epochcast.base.notes import Importance, Note
from epochcast.decide.plan.job_moves import Move
from epochcast.observe.runs.drift import Drift
from epochcast.observe.runs.speed_verdict import NORMAL
from epochcast.observe.runs.standing import EarlyStopping, Standing
from epochcast.observe.runs.sweep import Sweep
from epochcast.observe.runs.tracked_log import TrackedLog
from epochcast.surfaces.render.notes_view import Notes
from epochcast.surfaces.render.table_parts import INTERVAL, table
from epochcast.units import show_dollars, show_seconds

# Change points that are shown; --json has all.
MOST_CHANGES = 10


def track(logs: Sequence[TrackedLog], runs_as_sweep: Sweep | None = None) -> RenderableType:
    """One row per log, then cost, early stopping and moves of each, then notes."""
    names = _names([log.log for log in logs])
    rows = [_row(name, log.standing) for name, log in zip(names, logs, strict=True)]
    columns = "log | > done | > step | > a step | > remaining | between | ends"
    pieces: list[RenderableType] = [table("Running jobs", columns, rows, f"between: the {INTERVAL}", drop=DROPPED)]
    notes: list[Note] = []
    for name, log in zip(names, logs, strict=True):
        is_alone = len(logs) == 1
        pieces += [Text(line if is_alone else f"{name}: {line}") for line in _lines(log)]
        notes += [note if is_alone else note.of(name) for note in _notes(log)]
        if log.moves:
            pieces.append(_moves(log.moves))
    if runs_as_sweep is not None:
        pieces.append(Text(_sweep_text(runs_as_sweep), style="bold"))
    return Group(*pieces, Notes(tuple(notes)))


# What a narrow terminal goes without, first to last.
DROPPED = ("a step", "step")
# Logs up to which each has a line of its own below its bar; of more there is the bar alone.
MOST_IN_FULL = 6
BAR_COLUMNS = 24
NAME_COLUMNS = 24


def track_live(logs: Sequence[TrackedLog], runs_as_sweep: Sweep | None, waiting: Sequence[str]) -> RenderableType:
    """A bar per log, when it ends and what changed; drawn again and again in the same place."""
    names = _names([log.log for log in logs])
    width = min(NAME_COLUMNS, max(map(len, names), default=0))
    pieces: list[RenderableType] = []
    for name, log in zip(names, logs, strict=True):
        pieces.append(_bar_line(name, width, log.standing))
        if len(logs) <= MOST_IN_FULL or log.standing.drift is not None:
            pieces += [Text(f"  {line}") for line in _live_lines(log.standing)]
    pieces += [Text(f"{name}  waiting for lines that report training", style="dim") for name in _names(waiting)]
    if runs_as_sweep is not None:
        pieces.append(Text(_sweep_text(runs_as_sweep), style="bold"))
    return Group(*pieces)


def _bar_line(name: str, width: int, standing: Standing) -> RenderableType:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=width, overflow="ellipsis", no_wrap=True)
    for _ in range(3):
        grid.add_column(no_wrap=True)
    left = "done" if standing.is_done else f"{show_seconds(standing.remaining_seconds.mid)} left"
    bar = ProgressBar(total=1.0, completed=min(standing.fraction, 1.0), width=BAR_COLUMNS)
    grid.add_row(Text(name, style="bold"), bar, f"{standing.fraction:6.1%}", left)
    return grid


def _live_lines(standing: Standing) -> list[str]:
    step = f"step {standing.step:,.10g} of {standing.total_steps:,.10g}, {show_seconds(standing.step_seconds)} a step"
    lines = [step]
    if not standing.is_done:
        left = standing.remaining_seconds
        ends = f"{standing.finish_at:%a %d %b %H:%M %Z}"
        lines.append(f"ends {ends}; between {show_seconds(left.low)} and {show_seconds(left.high)} from here")
    if standing.drift is not None:
        lines.append(f"drift: {_change_text(standing.drift)}")
    return lines


def _row(name: str, standing: Standing) -> list[str]:
    left = standing.remaining_seconds
    return [
        name,
        f"{standing.fraction:.1%}",
        f"{standing.step:,.10g}/{standing.total_steps:,.10g}",
        show_seconds(standing.step_seconds),
        "done" if standing.is_done else show_seconds(left.mid),
        "" if standing.is_done else f"{show_seconds(left.low)} … {show_seconds(left.high)}",
        "" if standing.is_done else f"{standing.finish_at:%a %d %b %H:%M %Z}",
    ]


def _lines(log: TrackedLog) -> list[str]:
    """What the reader asked for beside the row: early stopping, cost, changes of pace."""
    standing, lines = log.standing, []
    if standing.early_stopping is not None:
        lines.append(_stopping_text(standing.early_stopping))
    if standing.dollars_so_far is not None and standing.dollars_in_all is not None:
        in_all = show_dollars(standing.dollars_in_all.mid)
        lines.append(f"{show_dollars(standing.dollars_so_far)} so far, {in_all} in all")
    if log.steadiness is not None:
        p = log.steadiness.dickey_fuller_p
        test = "unknown" if p is None else f"p = {p:.3g}"
        lines.append(f"step time varies by {log.steadiness.variation:.1%}; augmented Dickey–Fuller: {test}")
        lines += _change_lines(log.steadiness.changes)
    return lines


def _notes(log: TrackedLog) -> Iterator[Note]:
    """What is behind the row."""
    standing = log.standing
    if standing.step > standing.total_steps:
        beyond = f"The log is beyond the total of {standing.total_steps:,.10g} steps ({standing.total_source})."
        yield Note(beyond, Importance.NOT_AS_ASKED)
    if not standing.is_done:
        yield from _silence(standing)
    if standing.drift is not None:
        change = _change_text(standing.drift)
        yield Note(f"drift: {change}", Importance.NOT_AS_ASKED, many="{count} runs changed pace: {names}")
    yield from (Note(reason, Importance.LIMIT) for reason in standing.reasons)
    for drift in standing.rank_drifts:
        yield Note(f"rank {drift.rank}: {_change_text(drift)}", Importance.LIMIT)
    if standing.is_total_inferred:
        yield Note(
            f"Total inferred: {standing.total_source}. Set another with --total.",
            Importance.EVIDENCE,
            many="{count} totals are inferred: {names}. Set another with --total.",
        )
    yield from _expected(log)
    yield from _reading(log)
    yield from _time_beside_steps(standing)


def _reading(log: TrackedLog) -> Iterator[Note]:
    """How the log was read."""
    if log.unread_fraction:
        yield Note(
            f"{log.unread_fraction:.0%} of the log was sampled instead of read line by line: restarts there are "
            "not seen.",
            Importance.EVIDENCE,
        )
    if log.format is not None:
        yield Note(f"log format {log.format} ({log.format_confidence:.0%} confidence)", Importance.DETAIL)


def _time_beside_steps(standing: Standing) -> Iterator[Note]:
    """Restarts so far, pauses and interruptions to come."""
    if standing.restarts:
        times = "once" if standing.restarts == 1 else f"{standing.restarts} times"
        yield Note(f"restarted {times}, {show_seconds(standing.down_seconds)} between attempts")
    if not standing.is_done:
        beside = ((standing.pause_seconds, _PAUSES), (standing.interruption_seconds, _INTERRUPTIONS))
        for seconds, activity in beside:
            if seconds:
                yield Note(f"{show_seconds(seconds)} of the remaining time is for {activity}")


def _silence(standing: Standing) -> Iterator[Note]:
    """Of a log that has been silent for longer than its run had left."""
    seen_at = standing.seen_at or now()
    silent_seconds = (now() - seen_at).total_seconds()
    if silent_seconds > standing.remaining_seconds.high:
        sentence = f"nothing new since {seen_at:%a %d %b %Y %H:%M %Z}: the run has finished or stopped"
        many = "{count} logs are silent, their runs have finished or stopped: {names}"
        yield Note(sentence, Importance.NOT_AS_ASKED, many=many)


def _expected(log: TrackedLog) -> Iterator[Note]:
    """What past runs and the forecast said."""
    standing = log.standing
    if log.past is not None:
        yield Note(log.past.sentence, Importance.EVIDENCE)
    if standing.against_forecast is not None and standing.forecast_step_seconds is not None:
        expected = show_seconds(standing.forecast_step_seconds.mid)
        verdict = standing.speed_verdict
        about = {None: "", NORMAL: ", which is normal"}.get(verdict, ": `epochcast check` names the likeliest causes")
        text = f"steps take {standing.against_forecast:.2f} times the forecast ({expected}){about}"
        yield Note(text, Importance.EVIDENCE)


def _stopping_text(watch: EarlyStopping) -> str:
    name, patience = watch.metric, watch.patience
    if not watch.evaluations:
        return f"early stopping: no {name} in the log yet"
    state = f"early stopping: {name} best {watch.best:.6g}" if watch.best is not None else f"early stopping: {name}"
    state += f", {watch.waited} of {patience} evaluations without a better one"
    if watch.has_stopped or watch.stop_step is None:
        return state + "; the run stops here"
    stop = watch.stop_step
    return state + f"; may end at step {stop.mid:,.6g} ({stop.low:,.6g} … {stop.high:,.6g})"


_PAUSES = "pauses such as validation and checkpoints"
_INTERRUPTIONS = "interruptions like those before"


def _change_lines(changes: Sequence[Drift]) -> list[str]:
    """The largest ones, in the order they came."""
    largest = sorted(changes, key=lambda change: -abs(math.log(change.ratio)))[:MOST_CHANGES]
    lines = [f"change: {_change_text(change)}" for change in changes if change in largest]
    return [f"{len(changes)} changes, of which the largest:", *lines] if len(changes) > len(lines) else lines


def _change_text(change: Drift) -> str:
    before, after = show_seconds(change.step_seconds_before), show_seconds(change.step_seconds_after)
    since = f"since step {change.since_step:,.6g} ({show_seconds(change.since_seconds)} into the log)"
    return f"steps take {change.ratio - 1:+.0%} {since}: {before} before, {after} now"


def _moves(moves: Sequence[Move]) -> RenderableType:
    rows = [
        [
            f"{'▸ ' if move.pareto else ''}{move.placement}{' (stay)' if move.is_here else ''}",
            f"{move.global_batch:,}",
            show_seconds(move.remaining_seconds.mid),
            f"{show_seconds(move.remaining_seconds.low)} … {show_seconds(move.remaining_seconds.high)}",
            "no price" if move.dollars is None else show_dollars(move.dollars.mid),
            "" if move.fits is not False else "forecast: no fit" if move.is_here else "does not fit",
        ]
        for move in moves
    ]
    columns = "to finish on | > global batch | > remaining | between | > cost | "
    return table("What if it moved", columns, rows, "▸ no other is both faster and cheaper", drop=("global batch",))


def _sweep_text(sweep: Sweep) -> str:
    left = sweep.remaining_seconds
    return (
        f"sweep: {sweep.fraction:.1%} of {sweep.trials} runs ({sweep.done} done, {sweep.running} running), "
        f"{show_seconds(left.mid)} to go ({show_seconds(left.low)} … {show_seconds(left.high)})"
    )


def _names(paths: Sequence[str]) -> list[str]:
    """File names where they tell logs apart, else whole paths."""
    names = [Path(path).name for path in paths]
    return names if len(set(names)) == len(names) else list(paths)
