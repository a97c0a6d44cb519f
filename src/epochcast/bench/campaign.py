"""A campaign: questions in the order they are worth asking, each answered once, row by row into the measurement file.

A `Question` is plain data, so that it travels to any process or machine; `measure(question)` answers it wherever it
is and never raises for what is wrong with the configuration: out of memory and unsupported are answers, too. The local
engine below asks here; the Ray engine (`ray_engine.run_campaign`) asks elsewhere, with the same questions and the same
`measure`.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from importlib import import_module
from time import perf_counter
from typing import Any

from epochcast.bench.measurements import Appender, Machine, Measurement
from epochcast.bench.timing import Timing
from epochcast.errors import BadInput, EpochcastError

Progress = Callable[[float, int], None]
"""Told which part is done, and how many rows are written."""

# A question that is given less than this part of its time is not worth its row.
LEAST_FRACTION = 0.25

MEASURES: Mapping[str, str] = {
    "op": "epochcast.bench.ops",
    "model": "epochcast.bench.models",
    "layer": "epochcast.bench.layers",
    "loader": "epochcast.bench.loader_rows",
    "collective": "epochcast.bench.collectives",
}
"""The module that answers each kind of question by its `measure(question)`."""


@dataclass(frozen=True)
class Question:
    """What to measure: `ask` is the `question` of the row, `limit_seconds` how long the answer may take."""

    kind: str
    key: str
    ask: Mapping[str, Any]
    limit_seconds: float = 1.0

    def __post_init__(self) -> None:
        if self.limit_seconds <= 0:
            raise BadInput(f"{self.key}: the time for a measurement must be positive, got {self.limit_seconds}")


def key_of(words: Sequence[str], ask: Mapping[str, Any]) -> str:
    """A readable name that no other question has: a few words and a digest of all of it."""
    digest = sha256(json.dumps(ask, sort_keys=True).encode()).hexdigest()
    return "/".join([*words, digest[:10]])


def measure(question: Question) -> Measurement:
    """The answer of whoever knows this kind of question."""
    answer: Callable[[Question], Measurement] = import_module(MEASURES[question.kind]).measure
    return answer(question)


@dataclass(frozen=True)
class Outcome:
    """What is seen of a configuration that ran."""

    timing: Timing
    peak_bytes: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


def answered(question: Question, machine: Machine, run: Callable[[], Outcome]) -> Measurement:
    """The row of what `run` saw, or of why it could not."""
    details: dict[str, Any] = {"date": datetime.now(UTC).isoformat(timespec="seconds")}
    try:
        outcome = run()
    except Exception as problem:  # whatever a framework raises at a configuration is the answer
        failed = reason(problem)
        return Measurement(question.kind, question.key, machine, question.ask, failed=failed, details=details)
    timing = outcome.timing
    for what in ("steal_fraction", "processor_seconds"):
        if getattr(timing, what) is not None:
            details[what] = getattr(timing, what)
    return Measurement(
        question.kind,
        question.key,
        machine,
        question.ask,
        timing.seconds,
        timing.low_seconds,
        timing.spread,
        timing.repeats,
        outcome.peak_bytes,
        details=details | dict(outcome.details),
    )


def reason(problem: BaseException) -> str:
    """Why a configuration failed, in one line that begins with what kind of failure it is."""
    line = " ".join(str(problem).split()) or type(problem).__name__
    is_memory = isinstance(problem, MemoryError) or any(
        sign in line.casefold() for sign in ("out of memory", "can't allocate memory", "not enough memory", "oom when")
    )
    if is_memory:
        return f"out of memory: {line}"[:300]
    if isinstance(problem, EpochcastError):
        return line
    return f"unsupported: {line}"[:300]


@dataclass(frozen=True, slots=True)
class Report:
    """How a campaign went: `known` were in the file before, `left` did not fit the budget."""

    measured: int
    failed: int
    known: int
    left: int
    seconds: float


Engine = Callable[[Iterable[Question]], Iterator[Measurement]]


def run(
    questions: Sequence[Question],
    out: Appender,
    machine: Machine,
    *,
    budget_seconds: float | None = None,
    resume: bool = False,
    progress: Progress | None = None,
    engine: Engine | None = None,
) -> Report:
    """Ask every question that has no answer yet, in order, until the budget is spent.

    The budget bounds the time until the last row is written; only the execution under way can overrun it. With another
    `engine` answers of any machine count as answers.
    """
    began = perf_counter()
    if budget_seconds is not None and budget_seconds <= 0:
        raise BadInput(f"--budget must be more than zero, got {budget_seconds:g} s")
    keys = {row.key for row in out.before.rows} if engine is not None else out.before.keys(machine)
    answered_before = [q for q in questions if q.key in keys]
    if answered_before and not resume:
        raise BadInput(
            f"{len(answered_before)} of {len(questions)} questions are answered in the file already; "
            "--resume asks only the others, another --out asks all of them"
        )
    waiting = [q for q in questions if q.key not in keys]
    left = _Left(waiting, began, budget_seconds)
    measured = failed = 0
    for row in (engine or _here)(left):
        out.append(row)
        measured += 1
        failed += row.failed is not None
        if progress is not None:
            spent = (perf_counter() - began) / budget_seconds if budget_seconds else 0.0
            progress(min(1.0, max(spent, measured / len(waiting))), measured)
    return Report(measured, failed, len(answered_before), len(waiting) - measured, perf_counter() - began)


def _here(questions: Iterable[Question]) -> Iterator[Measurement]:
    """The local engine: one question after the other, in this process."""
    for question in questions:
        yield measure(question)


@dataclass
class _Left:
    """The questions that still fit what is left of the budget; none may take longer than that. The first always fits,
    so that every run gets on.
    """

    waiting: Sequence[Question]
    began: float
    budget_seconds: float | None

    def __iter__(self) -> Iterator[Question]:
        for place, question in enumerate(self.waiting):
            if self.budget_seconds is None:
                yield question
                continue
            left = self.budget_seconds - (perf_counter() - self.began)
            if left > LEAST_FRACTION * question.limit_seconds or not place:
                limit_seconds = min(question.limit_seconds, max(left, LEAST_FRACTION * question.limit_seconds))
                yield replace(question, limit_seconds=limit_seconds)
