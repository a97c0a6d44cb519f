"""What is asked about a training that ran out of memory, over HTTP and by assistants."""

from dataclasses import dataclass

from epochcast.base.options import required


@dataclass(frozen=True)
class OomQuestion:
    """The message; files of the machine that answers are not read."""

    message: str = required("The error with its traceback, as text.", example="CUDA out of memory. Tried to …")
