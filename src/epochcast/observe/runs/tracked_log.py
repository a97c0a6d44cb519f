"""One log of `epochcast track`: how its run stands, how it was read, and what was asked beside."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from epochcast.base.record import Record, json_hidden
from epochcast.observe.runs.drift import Steadiness
from epochcast.observe.runs.run_prior import Past
from epochcast.observe.runs.standing import Standing

if TYPE_CHECKING:
    from epochcast.decide.plan.job_moves import Move
else:
    Move = Any  # moves are worked out where they are asked for, and loaded with that


@dataclass(frozen=True, slots=True)
class TrackedLog(Record):
    """The answer of one log. Its JSON object has the keys of the standing, too.

    `run` is the name it is stored under, `past` what stored runs of the same job showed. `moves` and `steadiness` are
    None where nobody asked for them.
    """

    log: str
    standing: Standing = json_hidden()
    format: str | None = None
    format_confidence: float | None = None
    unread_fraction: float = 0.0
    job: str | None = None
    run: str | None = None
    past: Past | None = None
    moves: tuple[Move, ...] | None = json_hidden(default=None)
    steadiness: Steadiness | None = None

    def as_dict(self) -> dict[str, Any]:
        """The JSON form."""
        moves = None if self.moves is None else [move.as_dict() for move in self.moves]
        return {**Record.as_dict(self), **self.standing.as_dict(), "moves": moves}
