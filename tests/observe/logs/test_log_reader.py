"""Logs as they really are: junk, endless lines, files that are rotated, truncated, packed or empty."""

import gzip
import itertools
import os
import random
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from epochcast.observe.logs.log_follower import LogFollower
from epochcast.observe.logs.log_lines import LONGEST_LINE_BYTES
from epochcast.observe.logs.log_reader import LogReader, NoTraining, candidate_lines, read_log
from epochcast.observe.runs.report import Report

LINE = "2031-05-03 20:{:02d}:{:02d},000 - mmdet - INFO - Iter [{}/900]\tlr: 2e-02, time: 0.5, data_time: 0.1\n"


def log_lines(first: int, last: int) -> bytes:
    return "".join(LINE.format(n // 60, n % 60, n) for n in range(first, last + 1)).encode()


def steps(found: list[Report]) -> list[float]:
    return [seen.step for seen in found]


def test_junk_invalid_text_and_endless_lines_are_passed_over() -> None:
    noise = random.Random(7).randbytes(300_000).replace(b"Iter", b"")
    reader = LogReader()
    found = (
        reader.feed(log_lines(1, 5) + noise + b"\n" + b"Iter [" * 500_000 + b"\n\xff\xfe\n" + log_lines(6, 9))
        + reader.close()
    )
    assert steps(found) == list(range(1, 10))


def test_a_line_of_many_megabytes_does_not_stay_in_memory() -> None:
    reader = LogReader()
    reader.feed(log_lines(1, 5))
    chunk = b"x" * (1 << 20)
    tracemalloc.start()
    for _ in range(40):
        reader.feed(chunk)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 4 * len(chunk) + 2 * LONGEST_LINE_BYTES
    assert steps(reader.feed(b"\n" + log_lines(6, 7))) == [6, 7]


def test_a_long_log_without_training_lines_is_not_kept() -> None:
    reader = LogReader()
    tracemalloc.start()
    for _ in range(20):
        reader.feed(b"nothing to see here, move along\n" * 4000)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 4_000_000
    assert reader.recognition is None


def test_numbers_that_no_one_writes_break_nothing() -> None:
    lines = [
        b"Iter [%s/900]\tlr: 2e-02, time: 0.5, data_time: 0.1, loss: 0.7\n" % (b"9" * 5000),
        b"Epoch: [" + b"1" * 400 + b"]\n",
    ]
    reader = LogReader()
    assert steps(reader.feed(b"".join(lines) + log_lines(1, 4)) + reader.close())[-1] == 4


def test_windows_lines_and_colours_change_nothing() -> None:
    reader = LogReader()
    data = log_lines(1, 4).replace(b"\n", b"\r\n").replace(b"Iter", b"\x1b[1;31mIter\x1b[0m")
    assert steps(reader.feed(data) + reader.close()) == [1, 2, 3, 4]


def test_candidate_lines_are_those_with_a_needle() -> None:
    block = b"one a\ntwo\nthree b\na last"
    assert [block[a:b] for a, b in candidate_lines(block, (b"a", b"b"))] == [b"one a", b"three b", b"a last"]


def test_a_packed_file_reads_like_a_plain_one(tmp_path: Path) -> None:
    plain, packed = tmp_path / "train.log", tmp_path / "train.log.gz"
    plain.write_bytes(log_lines(1, 30))
    packed.write_bytes(gzip.compress(log_lines(1, 30)))
    assert read_log(plain).reports == read_log(packed).reports
    assert read_log(plain).recognition.name == "mmcv_text"
    assert read_log(plain).started_at_seconds == pytest.approx(1935604801.0)


def test_a_packed_file_that_is_cut_gives_what_it_holds(tmp_path: Path) -> None:
    cut = tmp_path / "cut.log.gz"
    data = b"".join(log_lines(n, n) + os.urandom(900).hex().encode() + b"\n" for n in range(1, 2000))
    cut.write_bytes(gzip.compress(data)[:-20_000])
    assert len(read_log(cut).reports) > 500


def test_an_empty_file_and_one_without_training_say_so(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_bytes(b"")
    with pytest.raises(NoTraining, match="is empty"):
        read_log(path)
    path.write_bytes(b"hello\nworld\n")
    with pytest.raises(NoTraining, match=r"looked for .* formats"):
        read_log(path)


def test_following_survives_rotation_truncation_and_absence(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    look = looker(path)
    assert look() == []  # not there yet
    path.write_bytes(log_lines(1, 3))
    assert look() == [1, 2, 3]
    with path.open("ab") as more:
        more.write(log_lines(4, 5)[:-20])
    assert look() == [4]  # half a line waits for its end
    with path.open("ab") as more:
        more.write(log_lines(5, 5)[-20:])
    assert look() == [5]
    path.rename(tmp_path / "train.log.1")
    path.write_bytes(log_lines(6, 7))
    assert look() == [6, 7]
    path.write_bytes(log_lines(8, 8))
    assert look() == [8]


def test_one_common_looking_line_does_not_decide_a_growing_log() -> None:
    reader = LogReader()
    assert reader.feed(b"step 1/3: loading data\n") + reader.flush() == []
    assert steps(reader.feed(log_lines(1, 3)) + reader.flush()) == [1, 2, 3]
    assert reader.recognition is not None and reader.recognition.name == "mmcv_text"


def test_a_log_of_one_line_is_read_when_asked_to_decide() -> None:
    reader = LogReader()
    assert reader.feed(log_lines(1, 1)) == []
    assert steps(reader.flush()) == [1]
    assert reader.recognition is not None and 0 < reader.recognition.confidence < 1


def looker(path: Path) -> Callable[[], list[float]]:
    follower = LogFollower(path)
    return lambda: steps(follower.look())


def test_what_was_written_last_before_a_rotation_is_read(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_bytes(log_lines(1, 3))
    look = looker(path)
    assert look() == [1, 2, 3]
    with path.open("ab") as more:
        more.write(log_lines(4, 5))
    path.rename(tmp_path / "train.log.1")
    path.write_bytes(log_lines(6, 7))
    assert look() == [4, 5, 6, 7]


def test_a_log_that_is_copied_and_truncated_goes_on_behind_its_holes(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    with path.open("wb") as writer:
        writer.write(log_lines(1, 3))
        writer.flush()
        look = looker(path)
        assert look() == [1, 2, 3]
        os.truncate(path, 0)
        assert look() == []
        writer.write(log_lines(4, 5))  # at its old place: zeros come before it
        writer.flush()
        assert look() == [4, 5]


def test_a_packed_log_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "train.log.gz"
    path.write_bytes(gzip.compress(log_lines(1, 3)))
    assert looker(path)() == [1, 2, 3]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_a_log_of_two_bytes_per_letter_reads_like_a_plain_one(encoding: str) -> None:
    reader = LogReader()
    data = log_lines(1, 9).decode().encode(encoding)
    found = [seen for at in range(0, len(data), 7) for seen in reader.feed(data[at : at + 7])] + reader.close()
    assert steps(found) == list(range(1, 10))


def test_a_clock_that_jumps_breaks_nothing() -> None:
    reader = LogReader()
    text = log_lines(1, 3) + log_lines(4, 6).replace(b"20", b"19", 1) + log_lines(7, 9)
    assert steps(reader.feed(text) + reader.close())[-1] == 9


def test_of_a_very_long_log_some_lines_are_read_and_the_last_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("epochcast.observe.logs.line_sampling.EXACT_REPORTS", 100)
    reader = LogReader()
    text = "".join(LINE.format(n // 60 % 60, n % 60, n).replace("900]", "9000]") for n in range(1, 3500)).encode()
    found = steps([seen for at in range(0, len(text), 100_000) for seen in reader.feed(text[at : at + 100_000])])
    assert len(found) < 1500
    assert found[:100] == list(range(1, 101))
    assert found[-1] == 3499


def test_validation_is_never_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("epochcast.observe.logs.line_sampling.EXACT_REPORTS", 100)
    reader = LogReader()
    lines = [LINE.format(n // 60 % 60, n % 60, n).replace("900]", "9000]") for n in range(1, 2000)]
    lines[1500] += "2031-05-03 20:25:01,500 - mmdet - INFO - Iter(val) [500]\tmIoU: 0.5\n"
    found = reader.feed("".join(lines).encode()) + reader.close()
    assert sum(seen.phase == "validation" for seen in found) == 1


def test_lines_without_times_are_timed_by_when_they_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("epochcast.observe.logs.log_follower.time.monotonic", lambda: now[0])
    log = tmp_path / "a.log"
    follower = LogFollower(log)
    found = []
    with log.open("a") as file:
        for step in range(10, 60, 10):
            file.write("".join(f"step {step + part}/100 loss 0.3\n" for part in range(-9, 1)))
            file.flush()
            found.append([(one.step, one.clock_seconds) for one in follower.look()])
            now[0] += 5
    follower.close()
    assert found[0] == [(10, 0.0)]
    assert found[1][-1] == (20, 5.0) and {clock for _, clock in found[1][:-1]} == {None}
    assert found[-1][-1] == (50, 20.0)


def sampled(text: bytes, chunk_bytes: int, monkeypatch: pytest.MonkeyPatch, exact: int = 100) -> list[Report]:
    monkeypatch.setattr("epochcast.observe.logs.line_sampling.EXACT_REPORTS", exact)
    monkeypatch.setattr("epochcast.observe.logs.line_sampling.EXACT_LINES", 4 * exact)
    reader = LogReader()
    found = [seen for at in range(0, len(text), chunk_bytes) for seen in reader.feed(text[at : at + chunk_bytes])]
    return found + reader.close()


def dated_epochs(epochs: int, batches: int, pause_seconds: int = 0) -> bytes:
    """A report a second, a pause that prints nothing after every epoch."""
    form = (
        "2031-05-03 {:02d}:{:02d}:{:02d},000 - mmdet - INFO - Epoch [{}][{}/{}]\tlr: 2e-02, time: 1.0, data_time: 0.1\n"
    )
    rows = []
    for epoch in range(epochs):
        for batch in range(1, batches + 1):
            at = epoch * (batches + pause_seconds) + batch
            rows.append(form.format(at // 3600, at // 60 % 60, at % 60, epoch + 1, batch, batches))
    return "".join(rows).encode()


def test_a_sample_ends_where_all_lines_do_however_the_bytes_come(monkeypatch: pytest.MonkeyPatch) -> None:
    text = dated_epochs(20, 150, pause_seconds=5)
    every = sampled(text, 1 << 20, monkeypatch, exact=10**9)
    for chunk_bytes in (1 << 20, 50_000, 777):
        some = sampled(text, chunk_bytes, monkeypatch)
        assert some[-1] == every[-1]
        assert {(seen.step, seen.clock_seconds) for seen in some} <= {(seen.step, seen.clock_seconds) for seen in every}
    assert len(sampled(text, 1 << 20, monkeypatch)) < len(every) / 5


def test_of_a_sample_a_long_pause_has_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    found = sampled(dated_epochs(4, 1000, pause_seconds=600), 1 << 20, monkeypatch)
    pauses = [
        (a.step, b.step) for a, b in itertools.pairwise(found) if (b.clock_seconds or 0) - (a.clock_seconds or 0) > 300
    ]
    assert pauses == [(1000, 1001), (2000, 2001), (3000, 3001)]


def test_of_a_sample_a_restart_is_an_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    text = log_lines(1, 890) + log_lines(801, 899)
    assert [seen.attempt for seen in sampled(text, 1 << 20, monkeypatch)][-1] == 1


def test_ends_of_epochs_with_a_bar_of_their_own_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    bars = "".join(
        f"Epoch {epoch}: {batch:3d}%|██████████| {batch}/100 [{batch // 60:02d}:{batch % 60:02d}<00:09,  1.00it/s]\r"
        for epoch in range(30)
        for batch in range(1, 101)
    ).encode()
    some, every = sampled(bars, 9999, monkeypatch), sampled(bars, 9999, monkeypatch, exact=10**9)
    assert len(some) < len(every) / 2
    assert (some[-1].step, some[-1].clock_seconds) == (every[-1].step, every[-1].clock_seconds) == (3000, 3000)


def test_times_since_the_report_before_count_for_the_lines_that_were_passed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = "".join(f"INFO:tensorflow:loss = 0.5, step = {n * 100} (2.000 sec)\n" for n in range(1, 2001)).encode()
    found = sampled(text, 1 << 20, monkeypatch)
    assert len(found) < 300
    assert found[-1].clock_seconds == pytest.approx(4000.0)


def test_of_ranks_that_take_turns_each_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(
        f"{rank}: TRAIN [0][{n}/90000]\tTime 0.500 (0.500)\tData 1.8e-03 (1.9e-03)\tTok/s 306068 (369078)\n"
        for n in range(1000)
        for rank in range(8)
    ).encode()
    found = sampled(text, 1 << 20, monkeypatch)
    assert {seen.rank for seen in found[len(found) // 2 :]} == set(range(8))
    assert max(seen.step for seen in found if seen.rank == 0) > 950


def test_a_log_with_too_much_to_tell_is_read_in_parts_that_stand_for_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("epochcast.observe.logs.line_allowance.FIRST_BYTES", 100_000)
    monkeypatch.setattr("epochcast.observe.logs.line_sampling.EXACT_REPORTS", 100)
    text = "".join(f"Epoch {n + 1}/90000\n{7 + n % 2}s - loss: 1.2 - acc: 0.6\n" for n in range(20_000)).encode()
    reader = LogReader()
    found = [seen for at in range(0, len(text), 1 << 16) for seen in reader.feed(text[at : at + (1 << 16)])]
    found += reader.close()
    assert reader.passed_bytes > len(text) / 2
    assert found[-1].step == 20_000
    assert found[-1].clock_seconds == pytest.approx(20_000 * 7.5, rel=0.02)
    assert all((a.clock_seconds or 0) <= (b.clock_seconds or 0) for a, b in itertools.pairwise(found))


def test_written_times_are_exact_behind_a_part_that_was_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("epochcast.observe.logs.line_allowance.FIRST_BYTES", 0)
    text = dated_epochs(300, 9, pause_seconds=40)
    some, every = sampled(text, 1 << 20, monkeypatch), sampled(text, 1 << 20, monkeypatch, exact=10**9)
    assert some[-1] == every[-1]
