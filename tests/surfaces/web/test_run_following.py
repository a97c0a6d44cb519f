"""Runs followed from the store, and messages about them."""

import json
import sys
import threading
import time
from array import array
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

import epochcast as ec
from epochcast.observe.runs.report import Report
from epochcast.observe.runs.standing import MOST_MOMENTS
from epochcast.observe.runs.tracker import Tracker
from epochcast.observe.store import notices
from epochcast.observe.store.store import Store
from epochcast.observe.store.store_opening import open_store
from epochcast.observe.store.store_rows import RunPlace, RunRow
from epochcast.surfaces.web.follower_process import deliver
from epochcast.surfaces.web.run_following import RunFollower
from epochcast.surfaces.web.webhooks import key_of, message_of


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(str(tmp_path / "s.db")) as opened:
        yield opened


def steps(first: int, last: int, pace: float = 0.1, begin: float = 0.0) -> list[Report]:
    return [
        Report(float(step), clock_seconds=begin + pace * (step - first + 10), step_seconds=pace, total_steps=10_000)
        for step in range(first, last, 10)
    ]


def told(store: Store) -> tuple[RunFollower, list[tuple[str, str]]]:
    heard: list[tuple[str, str]] = []

    def happened(run: RunRow, event: str, facts: Any) -> None:
        heard.append((run.name, event))

    return RunFollower(store, happened), heard


def test_a_run_gets_its_remaining_time_and_a_fan_that_ends_now(store: Store) -> None:
    run = store.open_run("a")
    store.record(run.id, steps(10, 2010))
    follower, _ = told(store)
    assert follower.pass_over(time.time(), time.monotonic()) == 1
    standing = store.run("a").standing
    assert standing is not None and standing.remaining_seconds.mid == pytest.approx(800, rel=0.05)
    assert standing.report_seconds == pytest.approx(1.0, rel=0.05) and not store.run("a").is_silent(time.time())
    assert store.run("a").is_silent(time.time() + 700)
    fan = standing.fan
    assert 5 < len(fan) <= MOST_MOMENTS and fan[-1][0] == pytest.approx(200, rel=0.02)
    assert [moment[0] for moment in fan] == sorted(moment[0] for moment in fan)


def test_only_what_is_new_is_read_and_the_answer_is_the_same(store: Store) -> None:
    for name in ("at once", "in parts"):
        store.open_run(name)
    store.record(store.run("at once").id, steps(10, 3010))
    follower, _ = told(store)
    now, steady = time.time(), 0.0
    for first in range(10, 3010, 500):
        store.record(store.run("in parts").id, steps(first, first + 500, begin=0.1 * (first - 10)))
        steady += 100
        follower.pass_over(now, steady)
    follower.pass_over(now, steady + 100)
    both = [store.run(name).remaining_seconds for name in ("at once", "in parts")]
    assert both[0] is not None and both[1] is not None and both[0].mid == pytest.approx(both[1].mid, rel=0.02)


def test_a_clock_that_is_set_back_does_not_stop_remaining_times(store: Store) -> None:
    run = store.open_run("a")
    store.record(run.id, steps(10, 1010))
    follower, _ = told(store)
    follower.pass_over(time.time(), 0.0)
    store.record(run.id, steps(1010, 3010, begin=100.0))
    follower.pass_over(time.time() - 86_400, 100.0)
    standing = store.run("a").standing
    assert standing is not None and standing.step == 3000.0


def test_a_followed_run_of_any_length_holds_some_hundred_kilobytes() -> None:
    """A thousand live runs must fit beside the server."""
    tracker = Tracker()
    history = tracker.history
    for step in range(1, 12_000):
        tracker.add(Report(10.0 * step, clock_seconds=1.5 * step + (step // 50) * 7.0, total_steps=1e6))
        if step % 50 == 0:
            tracker.add(Report(10.0 * step + 5, phase="validation", clock_seconds=None, pause_seconds=7.0, what="v"))
    columns = (history._ends, history._steps, history._seconds)
    held = sum(sys.getsizeof(column) for column in columns) + sum(
        sys.getsizeof(pause) + 2 * sys.getsizeof(1.0) for pause in history._pauses
    )
    assert held < 350_000 and all(isinstance(column, array) for column in columns)


def test_a_run_that_stops_reporting_is_told_once_after_each_last_report(store: Store) -> None:
    run = store.open_run("gone")
    store.record(run.id, steps(10, 2010))
    follower, heard = told(store)
    now = time.time()
    for wait in (0, 700, 800):
        follower.pass_over(now + wait, time.monotonic())
    assert heard == [("gone", "silent")]
    store.note(run.id, seen_at_seconds=now + 900)
    for wait in (901, 2_000, 2_100):
        follower.pass_over(now + wait, time.monotonic())
    assert heard == [("gone", "silent")] * 2
    message = message_of(store.run("gone"), "silent", {"silent_seconds": 700.0})
    assert message["text"] == "epochcast: gone has not reported for 11 min 40 s"
    assert key_of(run, "silent", "u") != key_of(store.run("gone"), "silent", "u")


def test_drift_a_budget_and_the_end_are_told(store: Store) -> None:
    job = ec.Job("resnet18", batch=32, samples=320_000)
    forecast = ec.forecast(job, device="V100", config=None)
    run = store.open_run("slow", place=RunPlace("V100", 1, 1, None, {"budget_dollars": 0.01}))
    store.add_forecast(forecast, run_id=run.id)
    store.record(run.id, [*steps(10, 3010), *steps(3010, 6010, 0.3, 300.0)])
    follower, heard = told(store)
    follower.pass_over(time.time(), time.monotonic())
    assert ("slow", "drift") in heard and ("slow", "over budget") in heard
    store.note(run.id, state="ended")
    follower.pass_over(time.time(), time.monotonic())
    assert ("slow", "finished") in heard


def test_a_run_that_ends_between_two_looks_keeps_what_its_last_reports_say(store: Store) -> None:
    forecast = ec.forecast(ec.Job("resnet18", batch=32, samples=320_000), device="V100", config=None)
    for name in ("seen before", "never seen"):
        run = store.open_run(name, place=RunPlace("V100"))
        store.add_forecast(forecast, run_id=run.id)
    follower, _ = told(store)
    store.record(store.run("seen before").id, steps(10, 1010))
    follower.pass_over(time.time(), 0.0)
    for name, state in (("seen before", "failed"), ("never seen", "ended")):
        store.record(store.run(name).id, steps(10, 3010))
        store.note(store.run(name).id, state=state, ended_at_seconds=time.time())
    follower.pass_over(time.time(), 1.0)
    for name, state in (("seen before", "failed"), ("never seen", "ended")):
        run = store.run(name)
        assert run.state == state and run.standing is not None and run.standing.step == 3000.0
        assert run.step_seconds == pytest.approx(0.1) and run.dollars_so_far and run.against_forecast


class Hook(BaseHTTPRequestHandler):
    """A webhook that fails once, then takes everything."""

    got: list[dict[str, Any]]
    failures: int

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if Hook.failures > 0:
            Hook.failures -= 1
            self.send_response(500)
        else:
            Hook.got.append(json.loads(body))
            self.send_response(200)
        self.end_headers()

    def log_message(self, *given: Any) -> None:
        """Nothing."""


def test_a_message_arrives_once_even_after_a_failure(store: Store) -> None:
    Hook.got, Hook.failures = [], 1
    server = HTTPServer(("127.0.0.1", 0), Hook)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/"
    run = store.open_run("a")
    for _ in range(3):
        notices.note(store, key_of(run, "finished", url), url, message_of(run, "finished", {"state": "ended"}))
    now = time.time() + 1
    deliver(store, now)
    assert Hook.got == []
    deliver(store, now)  # not yet: it waits before it tries again
    deliver(store, now + 60)
    deliver(store, now + 600)
    server.shutdown()
    assert [(one["event"], one["run"], one["text"]) for one in Hook.got] == [
        ("finished", "a", "epochcast: a has ended")
    ]
