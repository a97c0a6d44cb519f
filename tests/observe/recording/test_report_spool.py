"""Reports that a server does not take wait on the disk and arrive later: in order, after a crash, and once."""

import logging
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.observe.recording.test_server_sink import server
from tests.ports import free_port

from epochcast.observe.recording import report_spool
from epochcast.observe.recording.outbox import Outbox
from epochcast.observe.recording.recorded_rows import AttemptStart, RecordedRow
from epochcast.observe.recording.report_spool import ReportSpool
from epochcast.observe.recording.server_sink import ServerSink
from epochcast.observe.recording.spooled_sink import SpooledSink

URL = "http://127.0.0.1:9"
START = AttemptStart("mine", 7, 1_700_000_000.0, total_steps=10)


def rows(first: int, last: int) -> list[RecordedRow]:
    return [
        RecordedRow(number, "train", number + 1, number + 0.25, steps=1, seconds=1.0, loss=0.5)
        for number in range(first, last)
    ]


class Away:
    """A server that is away until somebody says so."""

    name = URL

    def __init__(self) -> None:
        self.is_there = False
        self.got: list[tuple[AttemptStart, RecordedRow]] = []

    def send(self, start: AttemptStart, rows: Sequence[RecordedRow]) -> int:
        if not self.is_there:
            raise ConnectionRefusedError("nobody is there")
        self.got += [(start, row) for row in rows]
        return len(rows)


def test_what_waits_arrives_before_what_is_new_and_leaves_no_file(tmp_path: Path) -> None:
    server, spool = Away(), ReportSpool(tmp_path, URL)
    sink = SpooledSink(server, spool, first_wait_seconds=0.0)
    later = AttemptStart("mine", 7, 1_700_000_000.0, total_steps=20)
    assert sink.send(START, rows(0, 3)) == 3 and sink.send(later, rows(3, 5)) == 2
    (file,) = tmp_path.iterdir()
    assert sink.waiting == 5 and file.stat().st_mode & 0o077 == 0
    server.is_there = True
    assert sink.send(later, rows(5, 6)) == 1
    assert server.got == [(START, row) for row in rows(0, 3)] + [(later, row) for row in rows(3, 6)]
    assert sink.waiting == 0 and not list(tmp_path.iterdir())


def test_a_server_that_stops_in_the_middle_gets_the_rest_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("epochcast.observe.recording.spooled_sink.MOST_AT_ONCE", 2)
    server, spool = Away(), ReportSpool(tmp_path, URL)
    sink = SpooledSink(server, spool, first_wait_seconds=0.0)
    sink.send(START, rows(0, 5))
    batch = spool.first(2)
    assert batch is not None and list(batch.rows) == rows(0, 2)
    spool.remove(batch)
    assert sink.waiting == 3
    server.is_there = True
    sink.send(START, [])
    assert [row for _, row in server.got] == rows(2, 5)


def test_a_spool_has_a_bound_and_memory_holds_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool = ReportSpool(tmp_path, URL)
    spool.add(START, rows(0, 1))
    (file,) = tmp_path.iterdir()
    monkeypatch.setattr(report_spool, "MOST_FILE_BYTES", file.stat().st_size + 10)
    assert spool.add(START, rows(1, 2)) == 0 and spool.waiting == 1
    monkeypatch.setattr(report_spool, "MOST_FOLDER_BYTES", 10)
    assert ReportSpool(tmp_path, URL).add(START, rows(1, 2)) == 0
    assert ReportSpool(None, URL).add(START, rows(1, 2)) == 0
    assert ReportSpool(file / "no folder", URL).add(START, rows(1, 2)) == 0


def test_a_line_that_a_power_cut_left_half_written_is_left_out(tmp_path: Path) -> None:
    spool = ReportSpool(tmp_path, URL)
    spool.add(START, rows(0, 2))
    spool.close()
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-20])
    (found,) = ReportSpool(tmp_path, URL).left_behind()
    batch = found.first(10)
    assert batch is not None and list(batch.rows) == rows(0, 1)


def test_what_a_living_process_holds_is_not_taken_from_it(tmp_path: Path) -> None:
    mine = ReportSpool(tmp_path, URL)
    mine.add(START, rows(0, 2))
    other = ReportSpool(tmp_path, URL)
    assert list(other.left_behind()) == []
    mine.close()
    assert [spool.waiting for spool in other.left_behind()] == [2]
    assert list(ReportSpool(tmp_path, "http://another.example").left_behind()) == []


PROGRAM = """
import sys, time
import epochcast as ec
with ec.track(total=1000, job="killed", to=sys.argv[1]) as run:
    for step in range(1000):
        run.step(loss=0.5)
        time.sleep(0.02)
"""


def test_what_a_killed_training_left_the_next_one_sends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    monkeypatch.setenv("EPOCHCAST_SPOOL", str(tmp_path))
    training = subprocess.Popen([sys.executable, "-c", PROGRAM, url])
    end = time.monotonic() + 90
    while not any(file.stat().st_size > 2_000 for file in tmp_path.iterdir()):
        assert time.monotonic() < end and training.poll() is None
        time.sleep(0.05)
    training.send_signal(signal.SIGKILL)
    training.wait()
    with server(200) as (there, got):
        spool = ReportSpool(tmp_path, url)
        next_one = SpooledSink(ServerSink(there), spool)
        next_one.send(START, rows(0, 1))
    *late, own = got  # in the order in which it happened
    assert own[2]["start"]["job"] == "mine" and {mail[2]["start"]["job"] for mail in late} == {"killed"}
    steps = [row["step"] for _, _, body in late for row in body["observations"]]
    assert len(steps) > 1 and steps == sorted(set(steps)) and not list(tmp_path.iterdir())


def test_that_a_server_refuses_the_token_is_said_once_in_its_words(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with server(401) as (url, _), caplog.at_level(logging.WARNING):
        sink = SpooledSink(ServerSink(url, "wrong"), ReportSpool(tmp_path, url), first_wait_seconds=0.001)
        box = Outbox(sink, START, flush_seconds=0.001, close_seconds=0.05)
        end = time.monotonic() + 30
        while not caplog.records and time.monotonic() < end:
            box.put(rows(0, 1)[0])
            time.sleep(0.01)
        time.sleep(0.1)
        box.close()
    said = [record.getMessage() for record in caplog.records]
    assert said[0] == f"{url}: the server answers 401: Unauthorized. Training continues; reports wait on this machine."
    assert len(said) == 2 and "are not sent" in said[1] and str(tmp_path) in said[1]


def test_a_server_that_is_not_there_is_said_within_the_first_minute_though_no_step_ends() -> None:
    """Three tries with waits of one and two seconds, and what a server may take to refuse, are far from a minute."""
    from epochcast.observe.recording import server_sink, spooled_sink

    waits = [spooled_sink.FIRST_WAIT_SECONDS * 2.0**failures for failures in range(spooled_sink.MANY_FAILURES - 1)]
    assert sum(waits) + spooled_sink.MANY_FAILURES * server_sink.ANSWER_SECONDS < 30
