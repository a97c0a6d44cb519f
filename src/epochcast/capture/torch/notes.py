"""The tail of a user's traceback on an error, where the command line prints it below the one clear line."""

import traceback
from textwrap import shorten
from typing import TypeVar

from epochcast.errors import EpochcastError

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
