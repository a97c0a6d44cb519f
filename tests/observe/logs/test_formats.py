"""Every format: a few lines in its shape are recognised and read as they say."""

from itertools import pairwise

import pytest
from tests.every import every
from tests.observe.logs.shapes import SHAPES, Shape
from tests.observe.logs.variants_language import LANGUAGE, LIBRARIES
from tests.observe.logs.variants_more import MORE
from tests.observe.logs.variants_vision import VISION

from epochcast.errors import BadInput, UnknownName
from epochcast.observe.logs.formats.format_table import FORMATS, find_format
from epochcast.observe.logs.log_reader import LogReader
from epochcast.observe.runs.report import Report

ALL = (*SHAPES, *VISION, *LANGUAGE, *LIBRARIES, *MORE)

every_shape = every("shape", SHAPES, ids=lambda shape: shape.name)
every_one = every("shape", ALL, ids=lambda shape: shape.name)


def read(text: str, chunk_bytes: int = 1 << 20, pattern: str | None = None) -> tuple[LogReader, list[Report]]:
    reader = LogReader(pattern=pattern)
    data = text.encode()
    found = [seen for at in range(0, len(data), chunk_bytes) for seen in reader.feed(data[at : at + chunk_bytes])]
    return reader, found + reader.close()


@every_one
def test_a_format_is_recognised_and_says_where_the_run_stands(shape: Shape) -> None:
    reader, found = read(shape.text)
    assert reader.recognition is not None
    assert reader.recognition.name == shape.name
    last = [seen for seen in found if seen.phase == "train"][-1]
    assert last.step == pytest.approx(shape.step)
    assert found[-1].total_steps == (None if shape.total is None else pytest.approx(shape.total))
    assert last.clock_seconds == (None if shape.clock_seconds is None else pytest.approx(shape.clock_seconds, abs=1e-3))
    assert last.attempt == shape.attempts - 1


@every_shape
def test_no_other_format_is_as_sure(shape: Shape) -> None:
    reader, _ = read(shape.text)
    assert reader.recognition is not None
    assert all(share < reader.recognition.confidence for _, share in reader.recognition.rivals)


@every_shape
def test_bytes_one_by_one_say_the_same_as_all_at_once(shape: Shape) -> None:
    whole, at_once = read(shape.text)
    pieces, one_by_one = read(shape.text, chunk_bytes=1)
    assert one_by_one == at_once
    assert pieces.recognition == whole.recognition


@every_shape
def test_steps_never_fall_within_an_attempt_and_the_clock_never_runs_back(shape: Shape) -> None:
    _, found = read(shape.text)
    train = [seen for seen in found if seen.phase == "train"]
    assert all(a.step <= b.step for a, b in pairwise(train) if a.attempt == b.attempt)
    clock = [seen.clock_seconds for seen in train if seen.clock_seconds is not None]
    assert clock == sorted(clock)


def test_every_format_has_a_shape() -> None:
    flavours = {"keras": {"keras_bar"}, "csv": {"csv_no_time"}, "deepspeed_step": set(), "mlperf_v0.5": set()}
    flavours["epochcast"] = set()  # our own recordings have their tests beside the recorder's
    names = {shape.name for shape in ALL}
    assert [f.name for f in FORMATS if not flavours.get(f.name, {f.name}) <= names] == []


def test_an_own_pattern_reads_an_own_log() -> None:
    text = "".join(f"<< {n} von 90 | verlust 0.{n} | {n}.5 s >>\n" for n in range(1, 5))
    reader, found = read(
        text,
        pattern=r"<< (?P<step>\d+) von (?P<total>\d+) \| verlust (?P<loss>[\d.]+) \| (?P<elapsed_seconds>[\d.]+) s",
    )
    assert [(seen.step, seen.total_steps, seen.clock_seconds, seen.loss) for seen in found[-1:]] == [(4, 90, 4.5, 0.4)]
    assert reader.recognition is not None and reader.recognition.name == "pattern"


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(?P<step>", "regular expression"),
        ("(?P<stepp>x)", "near: step|known: .*step|step"),
        ("(?P<loss>x)", "position"),
    ],
)
def test_a_pattern_that_cannot_work_is_refused_in_words(pattern: str, words: str) -> None:
    with pytest.raises((BadInput, UnknownName), match=words):
        LogReader(pattern=pattern)


def test_an_unknown_format_offers_near_names() -> None:
    with pytest.raises(UnknownName, match="keras"):
        find_format("kerass")


def test_two_starts_in_one_log_are_two_attempts() -> None:
    line = "2031-01-01 10:0{}:00,000 - mmdet - INFO - Iter [{}/900]\tlr: 2e-02, time: 0.5, data_time: 0.1\n"
    _, found = read("".join(line.format(*at) for at in [(0, 50), (1, 100), (2, 150), (3, 200), (5, 50), (6, 100)]))
    assert [(seen.attempt, seen.step) for seen in found] == [(0, 50), (0, 100), (0, 150), (0, 200), (1, 50), (1, 100)]
    assert found[-1].clock_seconds == 360.0


def test_lines_of_another_rank_do_not_move_the_run() -> None:
    line = "{}: 2031-05-19 21:43:{},000 maskrcnn_benchmark.trainer INFO: eta: 0:37:03  iter: {}  time: 0.04 (0.05)  "
    line += "data: 0.1 (0.1)  loss: 1.1 (2.4)\n"
    _, found = read("".join(line.format(rank, 10 + n, 50 * n) for n in range(1, 4) for rank in (0, 1)))
    assert [(seen.rank, seen.step) for seen in found] == [(0, 50), (1, 50), (0, 100), (1, 100), (0, 150), (1, 150)]
    assert {seen.attempt for seen in found} == {0}


@pytest.mark.parametrize(
    "line",
    [
        "Epoch: [{epoch}/10][ {batch}/1000]\tTime 2.000\tLoss 3.0000",
        "Epoch [{epoch}/10] [{batch}/1000] loss 3.0",
        "Epoch {epoch}/10, {batch}/1000, loss 3.0",
        "Epoch [{epoch}/10] | {batch}/1000 | loss 3.0",
    ],
)
def test_a_pair_beside_an_epoch_of_so_many_counts_its_batches(line: str) -> None:
    lines = [line.format(epoch=epoch, batch=batch) for epoch in range(3) for batch in range(0, 1000, 100)]
    last = read("\n".join(lines))[1][-1]
    assert (last.step, last.total_steps, last.attempt) == (2900, 10_000, 0)


def test_a_pattern_counts_epochs_from_0_or_from_1() -> None:
    pattern = r"at (?P<epoch>\d+)/(?P<epochs>\d+) (?P<batch>\d+)/(?P<batches>\d+)"
    for first in (0, 1):
        lines = [f"at {epoch + first}/10 {batch}/100\n" for epoch in range(3) for batch in range(0, 100, 10)]
        last = LogReader(pattern=pattern).feed("".join(lines).encode())[-1]
        assert (last.step, last.total_steps, last.attempt) == (290, 1000, 0)


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"[{n}/300] Building CXX object src/loss.cc.o\n" for n in range(1, 60)),
        "".join(f"Step {n}/12 : RUN pip install torch\n" for n in range(1, 13)),
        "".join(f"Downloading data: {n}%|##   | {n}.0M/99.0M [00:{n:02d}<00:30, 3.10MB/s]\r" for n in range(10, 60)),
        "".join(f"Map (num_proc=4): {n}%|##   | {n}/100 [00:{n:02d}<00:30, 3.10 examples/s]\r" for n in range(10, 60)),
        "".join(f" {n}192/166094648 [....] - ETA: 1:25:07\n" for n in range(1, 60)),
        "".join(f"Test: [{n}/50]\tTime 0.1 (0.1)\tLoss 0.3 (0.3)\tAcc@1 70.0 (71.0)\n" for n in range(50)),
        "".join(f"10.0.0.{n} - - [02/Jan/2031:03:00:{n:02d} +0000] GET /step/{n}/9 200 {n}\n" for n in range(10, 60)),
        "".join(f"{n},{n * 2},{n * 3}\n" for n in range(60)),
    ],
    ids=["compiler", "docker", "download", "map", "keras download", "test", "server", "numbers"],
)  # fmt: skip
def test_what_is_no_training_is_not_taken_for_it(text: str) -> None:
    _, found = read(text)
    assert [seen for seen in found if seen.phase == "train"] == []
