"""How much of an answer is drawn: all columns, all notes, and where the reader finds what is hidden."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shown:
    """What the reader asked for. The `…_hint`s name the option that shows the rest; "" where there is none."""

    all_columns: bool = False
    columns_hint: str = ""
    all_notes: bool = False
    notes_hint: str = "answer.warnings"
    spelled: Callable[[str], str] = str


_SHOWN: ContextVar[Shown] = ContextVar("shown", default=Shown())  # noqa: B039  (frozen)


def shown() -> Shown:
    """What is to be drawn now."""
    return _SHOWN.get()


@contextmanager
def showing(settings: Shown) -> Iterator[None]:
    """Draw what is drawn meanwhile like this."""
    token = _SHOWN.set(settings)
    try:
        yield
    finally:
        _SHOWN.reset(token)
