import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from epochcast.errors import BadInput
from epochcast.measure.bench import campaign
from epochcast.measure.bench.campaign import BenchQuestion, CampaignOutcome, key_of, measurement_of, reason, run
from epochcast.measure.bench.measurements import Appender, MeasuredMachine, Measurement, read
from epochcast.measure.bench.timing import Timing

HERE = MeasuredMachine("here", {"cpu": "a processor"})
QUESTIONS = [BenchQuestion("op", f"q{i}", {"number": i}, 0.1) for i in range(6)]


def answer(question: BenchQuestion) -> Measurement:
    return measurement_of(question, HERE, lambda: CampaignOutcome(Timing(0.01, 0.009, 0.1, 7)))


def engine(questions: Iterable[BenchQuestion]) -> Iterator[Measurement]:
    return (answer(question) for question in questions)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "m.jsonl"


def test_every_question_becomes_one_row(file: Path) -> None:
    with Appender(file) as out:
        report = run(QUESTIONS, out, HERE, engine=engine)
    assert (report.measured, report.failed, report.left) == (6, 0, 0)
    assert [row.key for row in read(file).rows] == [q.key for q in QUESTIONS]


def test_an_interrupted_campaign_resumes_without_a_lost_or_doubled_row(file: Path) -> None:
    def interrupted(questions: Iterable[BenchQuestion]) -> Iterator[Measurement]:
        for question in questions:
            if question.key == "q3":
                raise KeyboardInterrupt
            yield answer(question)

    with Appender(file) as out, pytest.raises(KeyboardInterrupt):
        run(QUESTIONS, out, HERE, engine=interrupted)
    with Appender(file) as out:
        report = run(QUESTIONS, out, HERE, resume=True, engine=engine)
    assert (report.measured_before, report.measured) == (3, 3)
    assert [row.key for row in read(file).rows] == [q.key for q in QUESTIONS]


def test_what_is_measured_already_is_refused_without_resume(file: Path) -> None:
    with Appender(file) as out:
        run(QUESTIONS[:2], out, HERE, engine=engine)
    with Appender(file) as out, pytest.raises(BadInput, match="2 of 6 measurements are in the file already"):
        run(QUESTIONS, out, HERE, engine=engine)


def test_a_budget_is_kept_and_the_rest_is_left(file: Path) -> None:
    def slow(questions: Iterable[BenchQuestion]) -> Iterator[Measurement]:
        for question in questions:
            time.sleep(0.1)
            yield answer(question)

    with Appender(file) as out:
        report = run(QUESTIONS, out, HERE, budget_seconds=0.25, engine=slow)
    assert 1 <= report.measured < 6
    assert report.measured + report.left == 6


def test_no_question_gets_more_time_than_is_left(file: Path) -> None:
    limits = []

    def watched(questions: Iterable[BenchQuestion]) -> Iterator[Measurement]:
        for question in questions:
            limits.append(question.limit_seconds)
            yield answer(question)

    with Appender(file) as out:
        run([BenchQuestion("op", "long", {}, 100.0)], out, HERE, budget_seconds=30.0, engine=watched)
    assert 25.0 < limits[0] <= 30.0


def test_progress_ends_at_all_of_it(file: Path) -> None:
    seen: list[tuple[float, int]] = []
    with Appender(file) as out:
        run(QUESTIONS, out, HERE, engine=engine, progress=lambda done, rows: seen.append((done, rows)))
    assert seen[-1] == (1.0, 6)
    assert seen == sorted(seen)


def test_zero_budget_is_refused(file: Path) -> None:
    with Appender(file) as out, pytest.raises(BadInput, match="budget_seconds must be above 0"):
        run(QUESTIONS, out, HERE, budget_seconds=0.0, engine=engine)


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        (RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"), "out of memory: CUDA out of memory"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), "out of memory: Default"),
        (MemoryError(), "out of memory: MemoryError"),
        (
            RuntimeError("slow_conv2d not implemented\nfor 'Half'"),
            "unsupported: slow_conv2d not implemented for 'Half'",
        ),
        (BadInput("torch has no optimizer 'lamb'"), "torch has no optimizer 'lamb'"),
    ],
)
def test_a_failed_configuration_is_a_row_with_its_reason(problem: Exception, expected: str) -> None:
    def run_it() -> CampaignOutcome:
        raise problem

    row = measurement_of(QUESTIONS[0], HERE, run_it)
    assert row.seconds is None
    assert row.failed is not None and row.failed.startswith(expected)
    assert reason(problem) == row.failed


def test_keys_are_readable_and_differ_where_questions_do() -> None:
    one, other = key_of(("op", "conv"), {"a": 1}), key_of(("op", "conv"), {"a": 2})
    assert one.startswith("op/conv/") and one != other
    assert one == key_of(("op", "conv"), {"a": 1})


def test_every_kind_of_row_has_a_module_that_measures_it() -> None:
    from importlib import import_module

    assert all(callable(import_module(module).measure) for module in campaign.MEASURES.values())


SCRIPT = """
import sys
from dataclasses import replace
from pathlib import Path
from epochcast.measure.bench import ops_bench as ops
from epochcast.measure.bench.campaign import run
from epochcast.measure.bench.machine_fingerprint import machine
from epochcast.measure.bench.measurements import Appender
import torch
torch.set_num_threads(1)
questions = [replace(q, limit_seconds=0.02) for q in ops.questions("cpu", draws=12)[:16]]
with Appender(Path(sys.argv[1])) as out:
    run(questions, out, machine("cpu", 1), resume=True, progress=lambda done, rows: print(rows, flush=True))
"""


@pytest.mark.slow
def test_a_killed_campaign_resumes_without_a_lost_or_doubled_row(file: Path) -> None:
    command = [sys.executable, "-c", SCRIPT, str(file)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if int(line) >= 6:
                process.send_signal(signal.SIGKILL)
                break
    before = [row.key for row in read(file).rows]
    assert 6 <= len(before) < 16
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment, timeout=120)
    after = [row.key for row in read(file).rows]
    assert after[: len(before)] == before
    assert (len(after), len(set(after)), read(file).warnings) == (16, 16, ())
