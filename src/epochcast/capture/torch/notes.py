"""The end of a user's traceback as notes of an error, which the command line prints below the message."""

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
    """The class of an exception and the first line of its message."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    name = type(problem).__name__
    return shorten(f"{name}: {lines[0]}", 200, placeholder=" …") if lines else name


@contextmanager
def explained(task: str) -> Iterator[None]:
    """Turn any exception of the user's code into one line with the end of its traceback."""
    try:
        yield
    except EpochcastError:
        raise
    except Exception as problem:  # the user's code may raise anything
        raise with_traceback(BadInput(f"{task} fails: {first_line(problem)}"), problem) from problem
