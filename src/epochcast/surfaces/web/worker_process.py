"""A process that answers questions of the server, one at a time: `python -m epochcast.surfaces.web.worker_process`.

A message is a line. A question is {"verb": …, "asked": {…}}; its answer begins with the word `answer`, followed by the
JSON text that is passed on as it is, or with the word `problem` and {"error": …, "status": …} or {"fault": …}. What
libraries print goes to standard error. The process ends with whoever started it, and may be killed at any time: it
keeps nothing that cannot be made again.
"""

import json
import os
import resource
import sys
from typing import Any

from epochcast.base.child_processes import end_with_parent
from epochcast.errors import EpochcastError

ANSWER, PROBLEM = "answer", "problem"


def main() -> None:
    """Answer until the input ends."""
    end_with_parent(int(sys.argv[1]))
    most_bytes, uploads = int(sys.argv[2]), sys.argv[3]
    limit_memory(most_bytes)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print must not mix with the answers
    from epochcast.surfaces.web.worker_verbs import Answering

    answering = Answering(uploads)
    for line in sys.stdin:
        answers.write(_reply(answering, line) + "\n")
        answers.flush()


def _reply(answering: Any, line: str) -> str:
    try:
        question = json.loads(line)
        return f"{ANSWER} {json.dumps(answering.answer(question['verb'], question['asked']), allow_nan=False)}"
    except Exception as error:
        return f"{PROBLEM} {json.dumps(_problem(error))}"


def _problem(error: Exception) -> dict[str, Any]:
    from epochcast.surfaces.web.problems import error_text, status_of

    match error:
        case EpochcastError():
            return {"error": error_text(error), "status": int(status_of(error))}
        case MemoryError() | RecursionError():
            return {"error": f"the question needs too much memory ({type(error).__name__})", "status": 422}
    import traceback

    traceback.print_exception(error)  # a fault of ours: error_text in the log of the server, the worker goes on
    return {"fault": f"{type(error).__name__}: {error}"}


def limit_memory(most_bytes: int) -> None:
    """No more memory than this, where the system can say so: a question that needs more fails alone."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = most_bytes if hard == resource.RLIM_INFINITY else min(most_bytes, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


if __name__ == "__main__":
    main()
