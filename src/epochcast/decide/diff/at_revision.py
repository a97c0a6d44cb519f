"""A side at a git revision: forecast in a process of its own whose working directory is that revision's folder.

So `train.py:model`, `package.module:factory`, `job:NAME` and the files that they name are those of the revision. Import
folders inside the user's working tree are replaced by the same folders of the revision. Where the user's code is
found in the working tree all the same (an editable install with an import hook), the answer would be of the wrong
code: it is refused.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from epochcast.base.child_processes import end_with_parent
from epochcast.decide.diff.diff_side import Side
from epochcast.decide.diff.revisions import Repository, Revision
from epochcast.decide.diff.side_reference import DiffQuestion, side_for
from epochcast.describe.capture.capture_cache import CachedModel
from epochcast.describe.capture.capture_dependencies import Depends
from epochcast.describe.capture.subprocess_capture_host import read_message, write_message
from epochcast.errors import BadInput, EpochcastError
from epochcast.predict.forecast.session import Session

_START = "import sys; sys.path.insert(0, sys.argv[1]); from epochcast.decide.diff.at_revision import main; main()"
_HOME = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))


def side_at(
    repository: Repository,
    revision: Revision,
    reference: str,
    question: DiffQuestion,
    session_options: Mapping[str, Any],
) -> Side:
    """What a reference comes to at a revision, asked for in the same folder of it as here."""
    folder_now = Path.cwd().resolve()
    inside = folder_now.relative_to(repository.root)
    with repository.checked_out(revision) as tree:
        folder = tree / inside
        if not folder.is_dir():
            raise BadInput(f"at {revision.short} there is no folder {str(inside)!r}")
        request = {
            "parent": os.getpid(),
            "imports": [_moved(entry, repository.root, tree) for entry in sys.path],
            "avoid": str(repository.root),
            "reference": reference,
            "name": f"{reference} at {revision.short}",
            "question": question.as_dict(),
            "session": dict(session_options),
        }
        answer = _answer(folder, request)
    if answer is None:
        raise BadInput(f"at {revision.short}: the process that forecasts {reference} ended without an answer")
    if "error" in answer:
        error = BadInput(f"at {revision.short}: {answer['error']}")
        error.exit_code = int(answer["exit_code"])
        for note in answer["notes"]:
            error.add_note(str(note))
        raise error
    return Side.from_dict(answer["side"])


def _moved(entry: str, root: Path, tree: Path) -> str:
    """An import folder of the working tree as that of the revision; what epochcast itself is imported from stays."""
    if not entry or os.path.abspath(entry) == _HOME:
        return entry
    path = Path(entry).resolve()
    is_inside = path.is_relative_to(root) and "site-packages" not in path.parts
    return str(tree / path.relative_to(root)) if is_inside else entry


def _answer(folder: Path, request: Mapping[str, Any]) -> dict[str, Any] | None:
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", _START, _HOME],
        cwd=folder,
        env={**os.environ, "EPOCHCAST_CACHE": "off"},  # what is captured in a folder that goes away helps nobody
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        with process.stdin:
            write_message(process.stdin, request)
        return read_message(process.stdout)
    except BrokenPipeError:
        return None
    finally:
        process.kill()
        process.stdout.close()
        process.wait()


def main() -> None:
    """Inside the process: one request, one answer."""
    request = read_message(sys.stdin.buffer)
    assert request is not None
    end_with_parent(request["parent"])
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # the user's code may print
    sys.path[:] = request["imports"]
    try:
        side = _side(request)
        write_message(answers, {"side": side.as_dict()})
    except EpochcastError as error:
        notes = [str(note) for note in getattr(error, "__notes__", ())]
        write_message(answers, {"error": str(error), "exit_code": error.exit_code, "notes": notes})
    answers.close()


def _side(request: Mapping[str, Any]) -> Side:
    profile = request["session"].get("profile")
    session = Session(profile=None if profile is None else Path(profile))
    side = side_for(request["reference"], DiffQuestion.from_dict(request["question"]), session, request["name"])
    _check_files(side.forecast.details.model, Path(request["avoid"]))
    return side


def _check_files(model: object, working_tree: Path) -> None:
    """Refuse an answer whose code lies in the user's working tree."""
    depends = model.depends if isinstance(model, CachedModel) else Depends()
    for file in depends.files:
        path = Path(file)
        if path.is_relative_to(working_tree) and path.suffix == ".py" and "site-packages" not in path.parts:
            raise BadInput(
                f"{path.name} is imported from the working tree ({path}), not from the revision: "
                "uninstall the editable install, or compare file.py:factory"
            )
