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


@contextmanager
def naming(place: str, file: str = "") -> Iterator[None]:
    """Errors inside name the place; those that begin with the `file` have named a place inside already."""
    try:
        yield
    except EpochcastError as error:
        if isinstance(error, MissingExtra) or not file or str(error).startswith(file):
            raise
        raise BadInput(f"{place}: {error}") from None
    except DAMAGE as error:
        raise BadInput(f"{place} cannot be read: {_reason(error)}") from error


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
