"""The end of a user's traceback as notes of an error, which the command line prints below the message."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import shorten
from typing import TypeVar

from epochcast.errors import BadInput, EpochcastError

Error = TypeVar("Error", bound=EpochcastError)
_OURS = str(Path(__file__).resolve().parents[3])


def with_traceback(error: Error, problem: BaseException, frames: int = 4) -> Error:
    """The error with the last lines of the user's own code as notes, and where they lead: the last frame of all. Frames
    of ours tell a user nothing, those of installed packages little.
    """
    stack = [frame for frame in traceback.extract_tb(problem.__traceback__) if not frame.filename.startswith(_OURS)]
    user_frames = [frame for frame in stack if not {"site-packages", "dist-packages"} & set(Path(frame.filename).parts)]
    if not user_frames:
        return error
    shown = user_frames[-frames:]
    shown += stack[-1:] if stack[-1] is not shown[-1] else []
    for line in (*traceback.format_list(shown), *traceback.format_exception_only(problem)):
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
