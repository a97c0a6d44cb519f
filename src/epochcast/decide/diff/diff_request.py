"""What `diff` is asked beside its two sides. Flags, keywords of `ec.diff` and the web API follow from the fields."""

from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING

from epochcast.base.options import Option, check_fields, option, options_of
from epochcast.errors import BadInput
from epochcast.units import parse_dollars, parse_fraction, parse_size

if TYPE_CHECKING:
    from epochcast.decide.diff.change_limits import ChangeLimits


def parse_increase(text: str) -> float:
    """5 % as a fraction. A bare 5 is refused: as a fraction it would let everything pass."""
    if "$" in text:
        raise BadInput(
            f"{text!r} is in dollars, this limit is in percent like 5%; dollars go with --max-dollar-increase"
        )
    fraction = parse_fraction(text)
    if fraction > 1 and "%" not in text:
        raise BadInput(f"{text!r} is {100 * fraction:.0f} %; write {text.strip()}% or {100 * fraction:.0f}%")
    return fraction


_increase = partial(option, None, unit="fractions", least=0, parse=parse_increase, example="0.05")


@dataclass(frozen=True, kw_only=True)
class DiffRequest:
    """The revisions that one reference is compared at, and how much a change may cost.

    Increases are fractions: 0.05 is 5 % more than the base. `most_memory_bytes` is of the head alone.
    """

    base_revision: str | None = option(None, "Compare with this git revision instead, like main.", flag="--base")
    head_revision: str | None = option(None, "The other git revision; without it, the working tree.", flag="--head")
    time_increase: float | None = _increase(
        "Exit code 3 if the job takes this much longer, like 5%.", flag="--max-time-increase"
    )
    cost_increase: float | None = _increase(
        "Exit code 3 if it costs this much more, like 5%.", flag="--max-cost-increase"
    )
    memory_increase: float | None = _increase(
        "Exit code 3 if it needs this much more memory, like 10%.", flag="--max-memory-increase"
    )
    most_memory_bytes: int | None = option(
        None,
        "Exit code 3 if the head needs more memory than this, like 40GiB.",
        unit="bytes",
        least=0,
        parse=parse_size,
        flag="--max-memory",
    )

    time_change: float | None = _increase(
        "Exit code 3 if the job takes this much longer or shorter, like 10%.", flag="--max-time-change"
    )
    cost_change: float | None = _increase(
        "Exit code 3 if it costs this much more or less, like 10%.", flag="--max-cost-change"
    )
    dollar_increase: float | None = option(
        None,
        "Exit code 3 if it costs this many dollars more, like $20.",
        unit="dollars",
        least=0,
        parse=parse_dollars,
        flag="--max-dollar-increase",
    )
    quiet_below: float | None = _increase(
        "Say only one line, and write no new comment, if time, cost and memory change less than this, like 2%.",
        flag="--quiet-below",
    )

    def __post_init__(self) -> None:
        check_fields(self, DIFF_OPTIONS)

    @property
    def limits(self) -> "ChangeLimits":
        """How much the change may cost."""
        from epochcast.decide.diff.change_limits import ChangeLimits

        return ChangeLimits(**{item.name: getattr(self, item.name) for item in fields(ChangeLimits)})


DIFF_OPTIONS: tuple[Option, ...] = options_of(DiffRequest)
