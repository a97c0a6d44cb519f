"""The tail of a user's traceback on an error, where the command line prints it below the one clear line."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from textwrap import shorten
from typing import TypeVar

from epochcast.errors import BadInput, EpochcastError

Error = TypeVar("Error", bound=EpochcastError)


def with_traceback(error: Error, problem: BaseException, frames: int = 4) -> Error:
    """The error with the last frames of the problem as notes."""
    for line in traceback.format_exception(type(problem), problem, problem.__traceback__)[-frames - 1 :]:
        error.add_note(line.rstrip())
    return error


def first_line(problem: BaseException) -> str:
    """The class of an exception and the first line of what it says."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    name = type(problem).__name__
    return shorten(f"{name}: {lines[0]}", 200, placeholder=" …") if lines else name


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Whatever the user's code raises, as one line with the tail of its traceback."""
    try:
        yield
    except EpochcastError:
        raise
    except Exception as problem:  # the user's code may raise anything
        raise with_traceback(BadInput(f"{what} fails: {first_line(problem)}"), problem) from problem
