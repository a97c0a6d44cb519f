"""A queue: its timetable with machines and cost, and where each job stands."""

from collections.abc import Sequence
from datetime import datetime

from rich.console import Group, RenderableType
from rich.text import Text

from epochcast.base.notes import Importance, Note
from epochcast.interval import Interval
from epochcast.schedule.timetable import RUNNING, TO_COME, PastJob, Timetable, TimetableRow
from epochcast.surfaces.render.notes_view import Notes
from epochcast.surfaces.render.table_parts import table
from epochcast.units import show_dollars, show_seconds

# Days ahead up to which a weekday says which.
WEEK_DAYS = 6
SHORT_SECONDS = 3600.0


def timetable(answer: Timetable) -> RenderableType:
    """Who runs when on what, the machines for it, what it costs, what each waits for, who will be late."""
    inside = _inside(answer)
    rows = [
        [
            line.job,
            _place(line),
            "runs" if line.state == RUNNING else _time(line.start.mid, answer),
            _time(line.end.mid, answer),
            _between(line.end, answer),
            _probability(line.late_probability, answer),
        ]
        for line in answer.lines
    ]
    title = f"Timetable from {answer.clock.at(answer.now_seconds):%a %d %b %Y %H:%M %Z}, {answer.policy}"
    columns = f"job | on | starts | ends | {inside} of the end | > late"
    pieces: list[RenderableType] = [table(title, columns, rows, "late: how likely it ends after its deadline")]
    pieces += _machines(answer)
    pieces.append(Text(_dollars(answer), style="bold"))
    pieces += [Text(sentence) for sentence in _sentences(answer)]
    return Group(*pieces, _notes(answer))


def queue(answer: Timetable, lines: Sequence[TimetableRow | PastJob]) -> RenderableType:
    """Where jobs stand: who runs, who is next, when they start and what they wait for."""
    rows = [_past_row(line, answer) if isinstance(line, PastJob) else _queue_row(line, answer) for line in lines]
    title = f"Queue at {answer.clock.at(answer.now_seconds):%a %d %b %Y %H:%M %Z}, {answer.policy}"
    inside = _inside(answer)
    columns = f"> # | job | state | starts | {inside} | done by | waits for"
    caption = f"{inside}: of the start; done by: the high end of the interval of the end"
    return Group(table(title, columns, rows, caption, drop=("done by",)), _notes(answer))


def _queue_row(line: TimetableRow, answer: Timetable) -> list[str]:
    is_unknown = line.state == RUNNING and line.start.mid == answer.now_seconds
    return [
        "" if line.position is None else "–" if line.position == 0 else str(line.position),
        line.job,
        line.state,
        "" if is_unknown else _time(line.start.mid, answer),
        "" if line.state == RUNNING else "sure" if line.start.low == line.start.high else _between(line.start, answer),
        _time(line.end.high, answer),
        "" if line.wait is None else ", ".join(line.wait.holders) or line.wait.resource,
    ]


def _past_row(job: PastJob, answer: Timetable) -> list[str]:
    times = ["" if seconds is None else _time(seconds, answer) for seconds in (job.start_seconds, job.end_seconds)]
    return ["", job.job, job.state, times[0], "", times[1], ""]


def _inside(answer: Timetable) -> str:
    return f"{answer.coverage:.0%}".replace("%", " %")


def _probability(fraction: float, answer: Timetable) -> str:
    """As sure as the number of draws allows: none of 99 is less than 1 %."""
    least = 1 / (answer.draws + 1)
    if fraction < least:
        return f"< {max(1, round(100 * least))} %"
    if fraction > 1 - least:
        return f"> {min(99, round(100 * (1 - least)))} %"
    return f"{fraction:.0%}".replace("%", " %")


def _place(line: TimetableRow) -> str:
    """2 GPUs, p3.8xlarge; what it goes on with where that changes."""
    places = list(dict.fromkeys(f"{stay.choice.gpus} × {stay.node_type}" for stay in line.stays))
    return places[0] if len(places) == 1 else f"{places[0]}, then {places[-1]}"


def _time(seconds: float, answer: Timetable) -> str:
    """09:20 today, Wed 09:20 within a week, 24 Nov 09:20 after that; with seconds where all is over within an hour."""
    end = answer.end
    is_short = end is not None and end.high - answer.now_seconds < SHORT_SECONDS
    return clock_text(
        answer.clock.at(seconds), answer.clock.at(answer.now_seconds), "%H:%M:%S" if is_short else "%H:%M"
    )


def clock_text(moment: datetime, now: datetime, clock: str = "%H:%M") -> str:
    """A time as short as it is clear from a given now."""
    days = (moment.date() - now.date()).days
    day = "" if days == 0 else "%a " if 0 < days <= WEEK_DAYS else "%d %b "
    return moment.strftime(f"{day}{clock}")


def _between(seconds: Interval, answer: Timetable) -> str:
    return "" if seconds.low == seconds.high else f"{_time(seconds.low, answer)} … {_time(seconds.high, answer)}"


def _machines(answer: Timetable) -> list[RenderableType]:
    rows = [
        [
            use.node_type,
            str(use.count),
            str(use.most),
            show_seconds(use.machine_seconds),
            "free" if use.is_in_house and not use.dollars else show_dollars(use.dollars),
        ]
        for use in answer.machines
    ]
    return [table("Machines", "type | > now | > at most | > in use for | > dollars", rows)] if rows else []


def _dollars(answer: Timetable) -> str:
    total, machines = answer.dollars_interval, answer.machine_dollars
    between = "" if total.low == total.high else f" ({show_dollars(total.low)} … {show_dollars(total.high)})"
    late = total.mid - machines.mid
    return f"{show_dollars(total.mid)}{between}: machines {show_dollars(machines.mid)}, lateness {show_dollars(late)}"


def _sentences(answer: Timetable) -> list[str]:
    """What each waits for; who will rather be late than not."""
    waits = [
        f"{line.job} waits for {_waited(line, answer)}"
        for line in answer.lines
        if line.wait is not None and (line.state != TO_COME or line.wait.holders)
    ]
    late = [
        f"{line.job} will likely be late ({_probability(line.late_probability, answer)}): it is due "
        f"{_time(line.deadline_seconds, answer)}"
        for line in answer.likely_late
    ]
    return [*waits, *late]


def _waited(line: TimetableRow, answer: Timetable) -> str:
    wait = line.wait
    assert wait is not None
    until = _time(wait.until_seconds, answer)
    if not wait.holders:
        return f"{wait.resource}, until {until}"
    who = ", ".join(wait.holders)
    if line.stays and wait.resource == str(line.stays[0].choice):
        return f"{wait.resource}, which {who} {'has' if len(wait.holders) == 1 else 'have'} until {until}"
    return f"{wait.resource} ({who}), until {until}"


def _notes(answer: Timetable) -> Notes:
    drawn = "" if answer.drawn_by == answer.policy else f", in which {answer.drawn_by} decides for {answer.policy}"
    draws = Note(f"Intervals come from {answer.draws} simulated runs of the queue{drawn}.", Importance.DETAIL)
    return Notes((draws, *answer.notes))
