"""Ask every question, in several processes, and write a line of JSON for each answer."""

import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from benchmarks.answers.asking import CRASHED, ask, fix_environment, without_measured
from benchmarks.answers.questions import Question, make_questions


def record(out: Path, jobs: int, only: Sequence[str] = ()) -> int:
    """Write the answers; exit code 1 where a question ended in a traceback."""
    fix_environment()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="answers-") as name, out.open("w", encoding="utf-8") as file:
        folder = Path(name).resolve()
        parts = make_questions(folder, only)
        rows = []
        for row in _rows(parts, folder, jobs):
            rows.append(row)
            file.write(json.dumps(row) + "\n")
            if sys.stderr.isatty() or len(rows) % 20 == 0:
                file.flush()
                print(f"\r{len(rows)} of {sum(map(len, parts))} answers", end="", file=sys.stderr, flush=True)
    crashed = [row["id"] for row in rows if row["exit_code"] == CRASHED]
    print(f"\n{len(rows)} answers in {time.monotonic() - began:.0f} s, written to {out}")
    if crashed:
        print(f"ended in a traceback: {', '.join(crashed)}")
    return int(bool(crashed))


def _rows(parts: Sequence[Sequence[Question]], folder: Path, jobs: int) -> Iterator[dict[str, Any]]:
    """The answers in the order in which parts are done."""
    # A fresh interpreter for each process: torch and its threads do not survive a fork.
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        for done in as_completed([pool.submit(_ask_part, part, folder) for part in parts]):
            yield from done.result()


def _ask_part(part: Sequence[Question], folder: Path) -> list[dict[str, Any]]:
    return [_row(question, folder) for question in part]


def _row(question: Question, folder: Path) -> dict[str, Any]:
    began = time.monotonic()
    answer = ask(question.arguments, folder)
    return {
        "id": question.id,
        "chapter": question.chapter,
        "argv": [argument.replace(str(folder), "FOLDER") for argument in question.arguments],
        "exit_code": answer.exit_code,
        "answer": without_measured(answer.json),
        "message": answer.message,
        "asked_seconds": round(time.monotonic() - began, 3),
    }
