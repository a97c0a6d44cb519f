"""Reports that a model is being captured, which may take a while: the command line shows it."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar

Shown = Callable[[str], AbstractContextManager[object]]

_SHOWN: ContextVar[Shown | None] = ContextVar("shown", default=None)


@contextmanager
def shown_by(shown: Shown) -> Iterator[None]:
    """Inside, `shown(name)` is entered while the model of that name is captured."""
    token = _SHOWN.set(shown)
    try:
        yield
    finally:
        _SHOWN.reset(token)


@contextmanager
def capturing(name: str) -> Iterator[None]:
    """While a model is captured."""
    shown = _SHOWN.get()
    if shown is None:
        yield
        return
    with shown(name):
        yield
