"""Inside the process that runs the user's code: requests come in, captures go out, prints go nowhere near them.

A message is its length in eight bytes and JSON. The first one says which model is meant; every later one asks for its
graph at a batch size or for a step by a recipe. The answer brings what it depended on (`watch`), and what was printed
meanwhile goes to a file of the parent. A process that is not asked anything for a while ends.

Who answers is the `CaptureHost` of a module, this one unless another is named (`measure.bench.subprocess_bench_host`
measures).
"""

import json
import os
import select
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Protocol

from epochcast.base.child_processes import end_with_parent
from epochcast.describe.capture.import_watch import ImportWatch
from epochcast.describe.capture.model import Model
from epochcast.describe.capture.model_reference import ModelReference
from epochcast.describe.capture.no_network import choose_keras_backend, stay_offline
from epochcast.describe.capture.torch.traceback_notes import with_traceback
from epochcast.describe.graph.serialization import graph_to_json, recipe_from_json, trace_to_json
from epochcast.errors import BadInput, EndsProgram, EpochcastError

CAPTURES = "epochcast.describe.capture.subprocess_capture_host"
IDLE_SECONDS = 60.0
HEAD_BYTES = 8


class HostAnswers(Protocol):
    """What a host does."""

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to one request, or the error in it."""


def write_message(stream: IO[bytes], document: Mapping[str, Any]) -> None:
    """One message, whole."""
    body = json.dumps(document).encode()
    stream.write(len(body).to_bytes(HEAD_BYTES, "big") + body)
    stream.flush()


def read_message(stream: IO[bytes]) -> dict[str, Any] | None:
    """The next message; None where the other side has ended."""
    head = _read_exactly(stream, HEAD_BYTES)
    body = None if head is None else _read_exactly(stream, int.from_bytes(head, "big"))
    return None if body is None else json.loads(body)


def _read_exactly(stream: IO[bytes], size_bytes: int) -> bytes | None:
    parts: list[bytes] = []
    while size_bytes:
        part = stream.read(size_bytes)
        if not part:
            return None
        parts.append(part)
        size_bytes -= len(part)
    return b"".join(parts)


def serve(parent: int, make_host: Callable[[Mapping[str, Any]], HostAnswers]) -> None:
    """Answer until the parent ends, closes the pipe, or asks nothing more."""
    end_with_parent(parent)
    # without a buffer: what is read ahead would not be seen by `select`
    requests, answers = os.fdopen(os.dup(0), "rb", buffering=0), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # input() of the user's code finds nothing to read
    os.dup2(2, 1)  # and its prints go where its errors go
    first = read_message(requests)
    if first is None:
        return
    host = make_host(first)
    while os.name == "nt" or select.select([requests], [], [], IDLE_SECONDS)[0]:
        request = read_message(requests)
        if request is None:
            return
        write_message(answers, host.answer(request))
        sys.stdout.flush()
        sys.stderr.flush()


def become_program(reference: str) -> Path:
    """Be the program that the file of a reference is: its arguments, its folder first on the path. Gives the folder."""
    parts = ModelReference.of(reference)
    root = Path(parts.script).resolve().parent if parts.script else Path.cwd()
    sys.argv = [parts.module]
    sys.path.insert(0, str(root))  # stays: functions may import when they are called
    return root


def answered(reference: str, answer: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What `answer` gives; where the user's code raises or ends the program, that as an answer."""
    try:
        return answer()
    except EpochcastError as problem:
        return _failure(problem)
    except SystemExit as problem:
        return _failure(EndsProgram(reference, problem))
    except Exception as problem:  # the user's code may raise anything
        error = BadInput(f"{reference} ends in {type(problem).__name__}: {str(problem)[:200]}")
        return _failure(with_traceback(error, problem))


class CaptureHost:
    """One model of the user's, made on the first question."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        self._reference: str = request["reference"]
        shape = request["input_shape"]
        self._input_shape = None if shape is None else tuple(shape)
        self._root = become_program(self._reference)
        stay_offline(self._reference)
        choose_keras_backend()
        self._watch = ImportWatch()
        self._model: Model | None = None

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The capture, and what it depended on."""
        return answered(
            self._reference,
            lambda: {"value": self._value(request), "depends": self._watch.seen((self._root,)).as_dict()},
        )

    def _value(self, request: Mapping[str, Any]) -> dict[str, Any]:
        if self._model is None:
            from epochcast.describe.capture.torch import make_model

            self._model = make_model(self._reference, self._input_shape)
        if "graph" in request:
            return graph_to_json(self._model.graph(request["graph"]))
        return trace_to_json(self._model.trace(recipe_from_json(request["recipe"])))


def _failure(error: EpochcastError) -> dict[str, Any]:
    fields = {name: value for name, value in vars(error).items() if isinstance(value, str | bool | int | float)}
    notes = list(getattr(error, "__notes__", ()))
    return {"error": type(error).__name__, "message": str(error), "fields": fields, "notes": notes}


HOST = CaptureHost


def main(arguments: list[str]) -> None:
    """`arguments` are the parent's process, the folders that it imports from, and the module of the host."""
    parent, folders, host = arguments
    sys.path[:] = json.loads(folders)
    serve(int(parent), import_module(host).HOST)
