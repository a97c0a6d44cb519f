"""A buffer with a bound before sinks that fail."""

import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event, active_count

import pytest

import epochcast as ec
from epochcast.observe.recording.file_sink import FileSink
from epochcast.observe.recording.outbox import Outbox
from epochcast.observe.recording.recorded_rows import AttemptStart, RecordedRow

START = AttemptStart("mine", 1, 1_700_000_000.0)


def row(number: int) -> RecordedRow:
    return RecordedRow(number, "train", number + 1, 0.1 * number, steps=1, seconds=0.1)


def until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        time.sleep(0.005)


class Shaky:
    """Takes rows while `is_there`."""

    name = "shaky"

    def __init__(self) -> None:
        self.is_there = Event()
        self.tried = 0
        self.rows: list[RecordedRow] = []

    def send(self, start: AttemptStart, rows: Sequence[RecordedRow]) -> int:
        self.tried += 1
        if not self.is_there.is_set():
            raise ConnectionRefusedError("nobody is there")
        self.rows += rows
        return len(rows)


def test_rows_wait_for_a_sink_that_is_away_and_arrive_in_order() -> None:
    sink = Shaky()
    box = Outbox(sink, START, flush_seconds=0.002)
    for number in range(50):
        box.put(row(number))
    until(lambda: sink.tried > 2)
    assert box.waiting == 50 and box.error == "ConnectionRefusedError: nobody is there"
    sink.is_there.set()
    box.close()
    assert [one.number for one in sink.rows] == list(range(50)) and box.dropped == 0


def test_the_oldest_are_dropped_counted_and_told_when_the_sink_is_back(caplog: pytest.LogCaptureFixture) -> None:
    sink = Shaky()
    box = Outbox(sink, START, most_rows=10, flush_seconds=0.002)
    box.put(row(0))
    until(lambda: sink.tried > 0)
    for number in range(1, 100):
        box.put(row(number))
    sink.is_there.set()
    with caplog.at_level(logging.WARNING):
        box.close()
    kept = [one.number for one in sink.rows if one.kind == "train"]
    (told,) = (one for one in sink.rows if one.kind == "dropped")
    assert kept == [0, *range(90, 100)] and told.steps == box.dropped == 89
    assert "shaky: 89 records of 'mine' were lost" in caplog.text


def test_a_sink_that_never_comes_does_not_hold_up_the_end_and_is_named(caplog: pytest.LogCaptureFixture) -> None:
    box = Outbox(Shaky(), START, flush_seconds=0.002, close_seconds=0.05)
    box.put(row(0))
    with caplog.at_level(logging.WARNING):
        box.close()
    assert "shaky: 1 records of 'mine' were lost (ConnectionRefusedError: nobody is there)" in caplog.text


def test_a_sink_that_hangs_holds_up_nothing_but_its_own_thread() -> None:
    release = Event()

    class Hanging:
        name = "hanging"

        def send(self, start: AttemptStart, rows: Sequence[RecordedRow]) -> int:
            release.wait()
            return len(rows)

    other = Shaky()
    other.is_there.set()
    boxes = [Outbox(sink, START, flush_seconds=0.002, close_seconds=0.05) for sink in (Hanging(), other)]
    for number in range(20):
        for box in boxes:
            box.put(row(number))
    for box in boxes:
        box.close()
    release.set()
    assert len(other.rows) == 20


def test_waiting_doubles_up_to_a_minute() -> None:
    box = Outbox(Shaky(), START, flush_seconds=1.0, close_seconds=0.0)
    waits = []
    for failures in (0, 1, 2, 5, 6, 100):
        box._failures = failures
        waits.append(box._wait_seconds())
    box.close()
    assert waits == [1, 2, 4, 32, 60, 60]


@pytest.mark.parametrize("limit_bytes", range(0, 700, 37))
def test_a_disk_that_fills_up_in_the_middle_of_a_line_leaves_whole_lines(tmp_path: Path, limit_bytes: int) -> None:
    """A limit on the size of files acts as a full disk does: a part is written, then nothing."""
    import resource

    sink = FileSink(tmp_path / "run.jsonl")
    rows = [row(number) for number in range(8)]
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    taken = 0
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limits[1]))
    try:
        for _ in range(3):
            taken += sink.send(START, rows[taken:])
    except OSError:
        pass
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    while taken < len(rows):
        taken += sink.send(START, rows[taken:])
    sink.send(START, [])
    written = (tmp_path / "run.jsonl").read_text(encoding="utf-8")
    plain = FileSink(tmp_path / "plain.jsonl")
    plain.send(START, rows)
    assert written == (tmp_path / "plain.jsonl").read_text(encoding="utf-8")


@pytest.mark.parametrize("place", ["/dev/full", "/proc/none/run.jsonl"])
def test_a_full_or_absent_disk_does_not_reach_the_training(place: str, caplog: pytest.LogCaptureFixture) -> None:
    from epochcast.observe.recording import outbox

    with pytest.MonkeyPatch.context() as patch, caplog.at_level(logging.WARNING):
        patch.setattr(outbox.Outbox.__init__, "__defaults__", (10_000, 0.01, 0.05))
        with ec.track(total=3, to=place) as run:
            for _ in range(3):
                run.step()
    assert run.steps == 3 and run.lost == {place: 3} and f"{place}: 3 records" in caplog.text


def test_a_file_that_was_moved_away_is_made_anew_with_its_head(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    sink = FileSink(path)
    sink.send(START, [row(0)])
    path.rename(tmp_path / "old.jsonl")
    sink.send(START, [row(1)])
    assert path.read_text(encoding="utf-8").startswith('{"epochcast_track": 1')


def test_an_attempt_after_one_that_was_cut_off_begins_on_a_line_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text('{"epochcast_track": 1, "job": "mine"}\n{"ec": "tra', encoding="utf-8")
    FileSink(path).send(START, [row(0)])
    assert path.read_text(encoding="utf-8").splitlines()[2].startswith('{"epochcast_track": 1')


def test_a_run_that_is_over_leaves_no_thread_behind(tmp_path: Path) -> None:
    before = active_count()
    with ec.track(total=1, to=tmp_path / "run.jsonl") as run:
        run.step()
    for box in run.outboxes:
        box._thread.join()
    assert active_count() <= before
