"""Rows to a real server on this machine: one that takes them, one that fails, one that redirects, one that hangs."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from epochcast.observe.recording.outbox import Outbox
from epochcast.observe.recording.recorded_rows import AttemptStart, RecordedRow
from epochcast.observe.recording.server_sink import ServerSink
from epochcast.observe.recording.sink import ServerRefuses

START = AttemptStart("mine", 7, 1_700_000_000.0, total_steps=10)
ROWS = [RecordedRow(number, "train", number + 1, float(number), steps=1, seconds=1.0) for number in range(3)]


@contextmanager
def server(*codes: int) -> Iterator[tuple[str, list[tuple[str, dict[str, str], Any]]]]:
    """Answers with these codes, one after the other, and then always with the last; gives its address and its mail."""
    got: list[tuple[str, dict[str, str], Any]] = []
    answers = list(codes)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got.append((self.path, dict(self.headers), json.loads(body)))
            self.send_response(answers.pop(0) if len(answers) > 1 else answers[0])
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST

        def log_message(self, *_: object) -> None:
            """Quiet."""

    here = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=here.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{here.server_address[1]}", got
    finally:
        here.shutdown()
        here.server_close()


def test_a_batch_is_one_request_with_its_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EPOCHCAST_TOKEN", "secret")
    with server(200) as (url, got):
        assert ServerSink(url).send(START, ROWS) == 3
    ((path, headers, body),) = got
    assert path == "/api/v1/observations" and headers["Authorization"] == "Bearer secret"
    assert (body["start"]["job"], body["start"]["attempt"], body["start"]["total_steps"]) == ("mine", 7, 10)
    assert [(one["number"], one["step"]) for one in body["observations"]] == [(0, 1), (1, 2), (2, 3)]


def test_a_server_that_fails_twice_gets_everything_the_third_time() -> None:
    with server(500, 503, 200) as (url, got):
        box = Outbox(ServerSink(url), START, flush_seconds=0.01)
        for row in ROWS:
            box.put(row)
        box.close()
    assert len(got) >= 3 and [one["number"] for one in got[-1][2]["observations"]] == [0, 1, 2]
    assert (box.sent, box.dropped, box.waiting) == (3, 0, 0)


def test_a_redirect_is_not_followed_so_that_the_token_stays_here() -> None:
    with server(307) as (url, got):
        with pytest.raises(ServerRefuses, match="307: report to /elsewhere instead"):
            ServerSink(url, "secret").send(START, ROWS)
        assert [path for path, _, _ in got] == ["/api/v1/observations"]


def test_a_server_that_never_answers_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(TimeoutError):
        ServerSink(f"http://127.0.0.1:{silent.getsockname()[1]}", answer_seconds=0.05).send(START, ROWS)
