"""One log of `epochcast track`: how its run stands and how the log was read."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from epochcast.base.record import INLINE, Record
from epochcast.observe.runs.drift import Steadiness
from epochcast.observe.runs.run_prior import Past
from epochcast.observe.runs.standing import Standing

if TYPE_CHECKING:
    from epochcast.decide.plan.job_moves import Move
else:
    Move = Any  # loaded only where moves are worked out


@dataclass(frozen=True, slots=True)
class TrackedLog(Record):
    """The answer of one log. Its JSON object has the keys of the standing, too.

    `run` is the name it is stored under, `past` what stored runs of the same job showed. `moves` and `steadiness` are
    None unless the user requests them.
    """

    log: str
    standing: Standing = field(metadata=INLINE)
    format: str | None = None
    format_confidence: float | None = None
    unread_fraction: float = 0.0
    job: str | None = None
    run: str | None = None
    past: Past | None = None
    moves: tuple[Move, ...] | None = None
    steadiness: Steadiness | None = None
