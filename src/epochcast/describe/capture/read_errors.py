"""The boundary of a reader: what a damaged model file makes its code fail on becomes one sentence that names the place.

Readers check what they can where it enters, with a message of its own. What is left ends here, so that a file never
ends in a traceback, nor in a fault of the server that it was uploaded to. The first error stays attached as the cause.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from epochcast.errors import BadInput, EpochcastError, MissingExtra

DAMAGE = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    NotImplementedError,
    RecursionError,
    StopIteration,
    TypeError,
    ValueError,
)
"""What Python raises where a value is not what the code expects."""


class PlacedError(BadInput):
    """What is wrong in a model file, and the place in it: a layer, a node."""

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(f"{place}: {problem}")
        self.place, self.problem = place, problem


@contextmanager
def reading(file: str) -> Iterator[None]:
    """Damage that nobody checked for is raised as an error of the file, or of the place in it."""
    try:
        yield
    except EpochcastError:
        raise
    except DAMAGE as error:
        raise PlacedError(f"{file} cannot be read", _reason(error)) from error


@contextmanager
def reading_part(place: str) -> Iterator[None]:
    """Errors inside name the place, unless they name one inside it already."""
    try:
        with reading(place):
            yield
    except (MissingExtra, PlacedError):
        raise
    except EpochcastError as error:
        raise PlacedError(place, str(error)) from None


_REASONS = {
    RecursionError: "it is nested too deeply",
    MemoryError: "its sizes are too large",
    OverflowError: "its sizes are too large",
    ZeroDivisionError: "a size in it is zero",
    IndexError: "an axis or an index in it is out of range",
}


def _reason(error: BaseException) -> str:
    """What was wrong, in one line; of a key that is missing Python gives the key alone."""
    if isinstance(error, KeyError):
        return f"it lacks {error}"
    for kind, reason in _REASONS.items():
        if isinstance(error, kind):
            return reason
    line = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return line or f"damaged ({type(error).__name__})"
