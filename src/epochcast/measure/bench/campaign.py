"""A campaign: a list of measurements, the most useful first, each made once and appended to the measurement file.

A `BenchQuestion` says what to measure. It is plain data, so it can be sent to any process or machine.
`measure(question)` makes the measurement there, in a process of its own where it runs the user's code (`apart`). It
does not raise where the configuration cannot run: out of memory and unsupported are results, too. The local engine
below measures in this process; the Ray engine (`ray_engine.fleet`) on a cluster, with the same questions and the same
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

from epochcast.errors import BadInput, EpochcastError
from epochcast.measure.bench.measurements import Appender, MeasuredMachine, Measurement
from epochcast.measure.bench.subprocess_bench import MeasuringProcess, measured_apart, user_code_of
from epochcast.measure.bench.timing import Timing

Progress = Callable[[float, int], None]
"""Called with the fraction that is done and the number of rows written."""

# A measurement that gets less than this part of its time is not made: it would be too noisy.
LEAST_FRACTION = 0.25

MEASURES: Mapping[str, str] = {
    "op": "epochcast.measure.bench.ops_bench",
    "model": "epochcast.measure.bench.models_bench",
    "layer": "epochcast.measure.bench.layers_bench",
    "loader": "epochcast.measure.bench.loader_rows",
    "collective": "epochcast.measure.bench.collectives_bench",
}
"""The module whose `measure(question)` measures each kind of question."""


@dataclass(frozen=True)
class BenchQuestion:
    """What to measure. `ask` becomes the `question` of the row; `limit_seconds` is the time it may take."""

    kind: str
    key: str
    ask: Mapping[str, Any]
    limit_seconds: float = 1.0

    def __post_init__(self) -> None:
        if self.limit_seconds <= 0:
            raise BadInput(f"{self.key}: the time for a measurement must be positive, got {self.limit_seconds}")


def key_of(words: Sequence[str], ask: Mapping[str, Any]) -> str:
    """A readable, unique name of a question: a few words and a digest of all its fields."""
    digest = sha256(json.dumps(ask, sort_keys=True).encode()).hexdigest()
    return "/".join([*words, digest[:10]])


def measure(question: BenchQuestion) -> Measurement:
    """The measurement that a question asks for; where it runs the user's code, in a process of its own."""
    if not user_code_of(question):
        return measured_here(question)
    try:
        return measured_apart(question, _process)
    except EpochcastError as problem:  # the code ended the process that ran it
        from epochcast.measure.bench.machine_fingerprint import machine, torch_threads

        return _failed(question, machine(str(question.ask.get("device", "cpu")), torch_threads()), problem)


_process = MeasuringProcess()


def measured_here(question: BenchQuestion) -> Measurement:
    """The measurement that a question asks for, made in this process."""
    measure_kind: Callable[[BenchQuestion], Measurement] = import_module(MEASURES[question.kind]).measure
    return measure_kind(question)


@dataclass(frozen=True)
class CampaignOutcome:
    """The result of a configuration that ran."""

    timing: Timing
    peak_bytes: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


def measurement_of(
    question: BenchQuestion, machine: MeasuredMachine, run: Callable[[], CampaignOutcome]
) -> Measurement:
    """The row with the result of `run`, or with the reason why it failed."""
    try:
        outcome = run()
    except Exception as problem:  # any error of a framework becomes the reason in the row
        return _failed(question, machine, problem)
    details = _dated()
    timing = outcome.timing
    for name in ("steal_fraction", "processor_seconds"):
        if getattr(timing, name) is not None:
            details[name] = getattr(timing, name)
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


def _failed(question: BenchQuestion, machine: MeasuredMachine, problem: BaseException) -> Measurement:
    failed = reason(problem)
    return Measurement(question.kind, question.key, machine, question.ask, failed=failed, details=_dated())


def _dated() -> dict[str, Any]:
    return {"date": datetime.now(UTC).isoformat(timespec="seconds")}


def reason(problem: BaseException) -> str:
    """Why a configuration failed, in one line that begins with the kind of failure."""
    line = " ".join(str(problem).split()) or type(problem).__name__
    is_memory = isinstance(problem, MemoryError) or any(
        mark in line.casefold() for mark in ("out of memory", "can't allocate memory", "not enough memory", "oom when")
    )
    if is_memory:
        return f"out of memory: {line}"[:300]
    if isinstance(problem, EpochcastError):
        return line
    return f"unsupported: {line}"[:300]


@dataclass(frozen=True, slots=True)
class CampaignReport:
    """Counts of a campaign: `measured_before` were in the file already, `left` did not fit the budget."""

    measured: int
    failed: int
    measured_before: int
    left: int
    seconds: float


Engine = Callable[[Iterable[BenchQuestion]], Iterator[Measurement]]


def run(
    questions: Sequence[BenchQuestion],
    out: Appender,
    machine: MeasuredMachine,
    *,
    budget_seconds: float | None = None,
    resume: bool = False,
    progress: Progress | None = None,
    engine: Engine | None = None,
) -> CampaignReport:
    """Make every measurement that the file does not have yet, in order, until the budget is spent.

    The budget bounds the time until the last row is written; only the execution under way can overrun it. With another
    `engine`, rows of any machine in the file count as measured.
    """
    began = perf_counter()
    if budget_seconds is not None and budget_seconds <= 0:
        raise BadInput(f"budget_seconds must be above 0, got {budget_seconds:g}")
    keys = {row.key for row in out.before.rows} if engine is not None else out.before.keys(machine)
    measured_before = [q for q in questions if q.key in keys]
    if measured_before and not resume:
        raise BadInput(
            f"{len(measured_before)} of {len(questions)} measurements are in the file already: "
            "resume to make only the others, or write to another file"
        )
    unmeasured = [q for q in questions if q.key not in keys]
    fitting = _WithinBudget(unmeasured, began, budget_seconds)
    measured = failed = 0
    for row in (engine or _local_engine)(fitting):
        out.append(row)
        measured += 1
        failed += row.failed is not None
        if progress is not None:
            spent = (perf_counter() - began) / budget_seconds if budget_seconds else 0.0
            progress(min(1.0, max(spent, measured / len(unmeasured))), measured)
    return CampaignReport(measured, failed, len(measured_before), len(unmeasured) - measured, perf_counter() - began)


def _local_engine(questions: Iterable[BenchQuestion]) -> Iterator[Measurement]:
    """The local engine: one question after the other, in this process."""
    for question in questions:
        yield measure(question)


@dataclass
class _WithinBudget:
    """The questions that fit in the remaining budget, each limited to that time. The first always fits, so that every
    run makes progress.
    """

    waiting: Sequence[BenchQuestion]
    began: float
    budget_seconds: float | None

    def __iter__(self) -> Iterator[BenchQuestion]:
        for index, question in enumerate(self.waiting):
            if self.budget_seconds is None:
                yield question
                continue
            left_seconds = self.budget_seconds - (perf_counter() - self.began)
            if left_seconds > LEAST_FRACTION * question.limit_seconds or not index:
                limit_seconds = min(question.limit_seconds, max(left_seconds, LEAST_FRACTION * question.limit_seconds))
                yield replace(question, limit_seconds=limit_seconds)
