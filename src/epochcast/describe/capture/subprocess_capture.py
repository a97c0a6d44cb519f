"""The user's code in a process of its own: what it imports, prints, parses and breaks stays there.

Two files with equally named neighbours do not meet, `sys.argv` is the file alone, prints go to standard error, and a
crash is one line. The process starts at the first question, keeps the model for the next ones, and ends with whoever
asked. Starting it costs a start of Python, about 0.1 s; torch is imported there instead of here.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from threading import Lock
from typing import IO, Any
from weakref import finalize

from epochcast import errors
from epochcast.describe.capture.capture_dependencies import Depends
from epochcast.describe.capture.subprocess_capture_host import CAPTURES, read_message, write_message
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.serialization import graph_from_json, recipe_to_json, trace_from_json
from epochcast.describe.graph.trace import Trace
from epochcast.errors import BadInput, EndsProgram, EpochcastError

_START = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from epochcast.describe.capture.subprocess_capture_host import main; main(sys.argv[2:])"
)
# Where epochcast lies, so that the process finds the same one.
_HOME = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))


class IsolatedModel:
    """The model that a reference makes in a process of its own; `depends` is what its answers depended on so far."""

    def __init__(self, reference: str, input_shape: tuple[int, ...] | None = None) -> None:
        self.name = reference
        self.depends = Depends()
        self._about = {"reference": reference, "input_shape": input_shape}
        self._lock = Lock()
        self._process: SubprocessModel | None = None

    def graph(self, batch: int) -> Graph:
        """The forward pass at a batch size."""
        return graph_from_json(self._ask({"graph": batch}))

    def trace(self, recipe: Recipe) -> Trace:
        """One step by a recipe."""
        return trace_from_json(self._ask({"recipe": recipe_to_json(recipe)}))

    def _ask(self, request: Mapping[str, Any]) -> Any:
        with self._lock:
            if self._process is None or self._process.has_ended:
                self._process = SubprocessModel(self._about)
                finalize(self, self._process.end)
            answer = self._process.ask(request)
            self.depends = Depends.from_dict(answer["depends"])
            return answer["value"]


class SubprocessModel:
    """A process that answers questions about the user's code.

    `about` is what its host is made of, and has the `reference`; `host` is the module whose `Host` answers.
    """

    def __init__(self, about: Mapping[str, Any], host: str = CAPTURES) -> None:
        self._reference = str(about["reference"])
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed by `end`)
        self._shown_bytes = 0
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _START, _HOME, str(os.getpid()), json.dumps(sys.path), host],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )
        self._tell(about)

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a request. What the user's code printed is passed on where it worked."""
        self._tell(request)
        assert self._process.stdout is not None
        answer = read_message(self._process.stdout)
        printed = self._printed()
        if answer is None:
            raise self._ended(printed)
        if "error" in answer:
            raise _error(answer, printed)
        if printed and sys.stderr is not None:
            sys.stderr.write(printed)
        return answer

    def _tell(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            write_message(self._process.stdin, message)
        except OSError:
            raise self._ended(self._printed()) from None

    def _printed(self) -> str:
        self._log.seek(self._shown_bytes)
        text = self._log.read()
        self._shown_bytes += len(text)
        return text.decode(errors="replace")

    def _ended(self, printed: str) -> BadInput:
        code = self._process.wait()
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        error = BadInput(f"the process that ran {self._reference} ended {how}, without an answer")
        for line in printed.splitlines()[-4:]:
            error.add_note(line)
        return error

    def end(self) -> None:
        """End it now."""
        with suppress(OSError):
            self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout, self._log):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()
        self._process.wait()


def _error(answer: Mapping[str, Any], printed: str) -> EpochcastError:
    """The error of the other process as one of ours. A program that ended itself said why in what it printed last."""
    kind = getattr(errors, str(answer["error"]), BadInput)
    error = errors.restored(kind if issubclass(kind, EpochcastError) else BadInput, (answer["message"],))
    for name, value in answer["fields"].items():
        setattr(error, name, value)
    last = next((line.strip() for line in reversed(printed.splitlines()) if line.strip()), "")
    if isinstance(error, EndsProgram) and error.is_silent and last:
        error.args = (f"{error}: {last}",)
    for note in answer["notes"]:
        error.add_note(str(note))
    return error
