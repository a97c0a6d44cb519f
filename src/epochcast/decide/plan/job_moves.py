"""What if a running job moved: how long it would still take elsewhere, and what that would cost.

    remaining there = remaining here · (forecast there / forecast here, per sample) + start again + checkpoint

A checkpoint (parameters and optimizer state) is written here and read there, each at what epochs are forecast with
(`predict.forecast.epochs`). So what the run has shown against its forecast (slower data, a slower cluster) is carried
over, and with it its pauses. Staying costs no new start. A move's interval is wider than that of staying: the
forecasts of both places are in it, unless they are the same. Time in which nothing will run (interruptions like those
before) is neither scaled nor paid for.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, hypot, log

from epochcast.base.record import Record
from epochcast.decide.plan.choice import frontier
from epochcast.errors import BadInput
from epochcast.interval import Interval
from epochcast.predict.forecast.epochs import CHECKPOINT_BYTES_PER_SECOND
from epochcast.predict.forecast.forecast import Forecast
from epochcast.predict.forecast.forecaster import forecast_job
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.job_defaults import placement_of
from epochcast.predict.forecast.loader_step import CountedLoader
from epochcast.predict.forecast.session import Session
from epochcast.predict.forecast.where import Where

# What a checkpoint holds, of the parts of memory.
CHECKPOINTED = ("parameters", "optimizer_state")
_PLACE = re.compile(r"(?:(\d+)\s*[x×*]\s*)?(?:(\d+)\s*[x×*]\s*)?([^\s].*)")


@dataclass(frozen=True, slots=True)
class Move(Record):
    """Finishing at a place. `pareto` is None where no price is known: what costs nobody-knows-what is not compared."""

    placement: str
    remaining_seconds: Interval
    dollars: Interval | None
    global_batch: int
    fits: bool | None = None
    is_here: bool = False
    pareto: bool | None = None
    restart_seconds: float = 0.0
    checkpoint_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class _Priced:
    move: Move
    total_seconds: Interval
    dollars: Interval


def places_in(text: str) -> tuple[Where, ...]:
    """Places as they are typed: `4xV100,1xA100`, over two machines `2x8xH100`."""
    return tuple(_place(part) for part in text.split(",") if part.strip())


def _place(text: str) -> Where:
    match = _PLACE.fullmatch(text.strip())
    if match is None:
        raise BadInput(f"{text!r} is no place; write like 4xV100, or 2x8xH100 for two machines of eight")
    first, second, device = match.groups()
    nodes, gpus = (1, int(first or 1)) if second is None else (int(first), int(first) * int(second))
    if gpus < 1 or nodes < 1:
        raise BadInput(f"{text!r} has no GPU; write like 4xV100")
    where = Where(device, gpus=gpus, nodes=nodes)
    where.found_device()
    return where


def moves(
    job: Job,
    here: Forecast,
    remaining_seconds: Interval,
    places: Sequence[Where],
    *,
    restart_seconds: float,
    down_seconds: float = 0.0,
    session: Session | None = None,
) -> tuple[Move, ...]:
    """Staying, and every move; the Pareto set is of those that fit and have a price. Where it runs it fits.

    Of the middle of what remains, nothing runs in `down_seconds`.
    """
    session = session or Session()
    staying = Move(
        _name(here),
        remaining_seconds,
        _dollars(remaining_seconds, here, down_seconds),
        here.global_batch,
        here.fits,
        is_here=True,
    )
    all_moves = [staying]
    carried = checkpoint_seconds(here)
    for where in places:
        there = forecast_job(job, placement_of(where, job, session), session, loader=CountedLoader.SAID)
        left = _moved(remaining_seconds, here, there, restart_seconds + carried, down_seconds)
        all_moves.append(
            Move(
                _name(there),
                left,
                _dollars(left, there, down_seconds),
                there.global_batch,
                there.fits,
                restart_seconds=restart_seconds,
                checkpoint_seconds=carried,
            )
        )
    priced = [
        _Priced(move, move.remaining_seconds, move.dollars)
        for move in all_moves
        if move.dollars is not None and (move.is_here or move.fits is not False)
    ]
    best = [choice.move for choice in frontier(priced)]
    return tuple(replace(move, pareto=None if move.dollars is None else move in best) for move in all_moves)


def checkpoint_seconds(current: Forecast) -> float:
    """Writing and reading what is kept of the model between steps; nothing where its memory was not asked for."""
    saved_bytes = sum(current.peak_breakdown.get(part, 0) for part in CHECKPOINTED)
    return 2 * saved_bytes / CHECKPOINT_BYTES_PER_SECOND


def _moved(left: Interval, here: Forecast, there: Forecast, restart_seconds: float, down_seconds: float) -> Interval:
    """The formula above; relative errors of the three are taken as unrelated, those of one place by itself are none."""
    old, new = here.step_seconds, there.step_seconds
    ratio = (new.mid / there.global_batch) / (old.mid / here.global_batch)
    middle = (left.mid - down_seconds) * ratio + down_seconds
    if middle <= 0:
        return Interval(restart_seconds, restart_seconds, restart_seconds, left.coverage)
    intervals = (left,) if _name(here) == _name(there) else (left, new, old)
    below = hypot(*(log(interval.mid / max(interval.low, 1e-12)) for interval in intervals))
    above = hypot(*(log(max(interval.high, 1e-12) / interval.mid) for interval in intervals))
    return Interval(
        restart_seconds + middle * exp(-below),
        restart_seconds + middle,
        restart_seconds + middle * exp(above),
        left.coverage,
    )


def _dollars(seconds: Interval, at: Forecast, down_seconds: float) -> Interval | None:
    if at.dollars_per_hour is None:
        return None
    paid = Interval(seconds.low, max(seconds.low, seconds.mid - down_seconds), seconds.high, seconds.coverage)
    return paid.scaled(at.dollars_per_hour / 3600)


def _name(at: Forecast) -> str:
    return f"{at.gpus} × {at.device}" + (f" in {at.nodes} nodes" if at.nodes > 1 else "")
