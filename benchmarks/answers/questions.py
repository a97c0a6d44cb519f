"""The questions of `questions.txt`, and those about logs, tables and workloads that other people measured."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from benchmarks.answers.material import beside_data, write_logs, write_material, write_onnx, write_slices

QUESTIONS = Path(__file__).with_name("questions.txt")
BAD_INPUT = "bad input"
# In these chapters a question reads what one before it wrote.
IN_ORDER = ("history", "store")
PART_QUESTIONS = 8

GROUPED_BY = {"runs": "device", "llm_runs": "device", "ops": "family", "transformer_runs": "model"}
POLICIES = ("fifo,edf,priority,edf_shared", "atc_rollout")
WORKLOADS_WITH_ROLLOUT = ("n10_low_s0", "n10_mixed_s1")


@dataclass(frozen=True)
class Question:
    """A command line. `chapter` is the row of the comparison that it counts in."""

    id: str
    chapter: str
    arguments: tuple[str, ...]


def make_questions(folder: Path, only: Sequence[str] = ()) -> list[list[Question]]:
    """Write the files of the questions into `folder`; give the questions in parts, each to be asked in order.

    `only` names chapters; without it, all are asked.
    """
    write_material(folder)
    write_onnx(folder / "small.onnx")
    chapters: dict[str, list[Question]] = {}
    for question in [*_listed(), *_about_logs(folder), *_about_tables(folder), *_about_workloads()]:
        if not only or question.chapter in only:
            chapters.setdefault(question.chapter, []).append(question)
    parts = []
    for chapter, questions in chapters.items():
        size = len(questions) if chapter in IN_ORDER else PART_QUESTIONS
        parts += [questions[start : start + size] for start in range(0, len(questions), size)]
    return parts


def _listed() -> Iterator[Question]:
    """Those of the file. A question counts in its chapter's numbers also where it is left out."""
    chapter, package = "", ""
    numbers: dict[str, int] = {}
    for line in QUESTIONS.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            chapter, _, package = line.strip("[]").partition(" needs ")
        elif line and not line.startswith("#"):
            numbers[chapter] = numbers.get(chapter, 0) + 1
            if not package or find_spec(package) is not None:
                yield Question(f"{chapter} {numbers[chapter]:03d}", chapter, tuple(shlex.split(line)))


def _about_logs(folder: Path) -> Iterator[Question]:
    for log in write_logs(folder):
        total = [] if log.total_steps is None else ["--total", str(log.total_steps)]
        yield Question(f"track {log.name}", "track", ("track", log.file, *total))


def _about_tables(folder: Path) -> Iterator[Question]:
    for file in write_slices(folder):
        table = file.removesuffix(".parquet")
        by = ["--by", GROUPED_BY[table]] if table in GROUPED_BY else []
        yield Question(f"evaluate {table}", "measurements", ("evaluate", file, *by))


def _about_workloads() -> Iterator[Question]:
    folder = beside_data("workloads")
    for path in sorted(folder.glob("n*.json")) if folder else []:
        for policies in POLICIES[: 1 + (path.stem in WORKLOADS_WITH_ROLLOUT)]:
            arguments = ("schedule", "simulate", str(path), "--policy", policies)
            yield Question(f"schedule simulate {path.stem} {policies}", "schedule simulate", arguments)
