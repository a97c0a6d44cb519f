"""Nothing that was acknowledged is lost: writers killed at any moment, a server killed, two writers at once."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from tests.observe.store.conftest import Server

from epochcast.observe.runs.report import Report
from epochcast.observe.store.store_errors import Unavailable
from epochcast.observe.store.store_opening import migrated, open_store

# Writes batch after batch and tells the last step of each once it is kept.
WRITER = """
import sys
from epochcast.observe.store.store_opening import open_store
from epochcast.observe.runs.report import Report
store = open_store(sys.argv[1])
run = store.open_run("r")
first, most = int(sys.argv[2]), int(sys.argv[3])
print("ready", flush=True)
for begin in range(first, first + most, 20):
    rows = [Report(float(step), clock_seconds=0.1 * step, loss=1.0) for step in range(begin, begin + 20)]
    store.record(run.id, rows)
    print(begin + 20, flush=True)
"""


def writer(database: str, first: int = 0, most: int = 10**7) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", WRITER, database, str(first), str(most)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None and child.stdout.readline() == "ready\n"
    assert child.stdout.readline()  # one batch is acknowledged
    return child


def acknowledged(child: "subprocess.Popen[str]", begin: int) -> int:
    """The steps below which everything was acknowledged by a child that has ended."""
    assert child.stdout is not None
    told = [int(line) for line in child.stdout.read().splitlines() if line.strip()]
    child.wait()
    return told[-1] if told else begin + 20  # the batch that `writer` waited for


def steps(database: str) -> list[float]:
    with open_store(database) as store:
        return [row.step for row in store.observations(store.run("r").id)]


def test_what_was_acknowledged_is_there_after_kill_9(database: str) -> None:
    chosen = random.Random(15)
    begin = 0
    for _ in range(3):
        child = writer(database, begin)
        time.sleep(chosen.uniform(0.01, 0.2))
        child.kill()
        told = acknowledged(child, begin)
        kept = steps(database)
        # All that was acknowledged, and whole batches: at most the one more that was kept but not told any more.
        assert kept == [float(step) for step in range(len(kept))]
        assert told <= len(kept) <= told + 20
        begin = len(kept)
    assert begin > 0


def test_two_processes_write_at_once_and_all_of_both_is_kept(database: str) -> None:
    with open_store(database) as store:
        store.open_run("r")
    # They overlap in half of their rows.
    children = [writer(database, first, 400) for first in (0, 200)]
    assert [acknowledged(child, 0) for child in children] == [400, 600]
    assert [child.returncode for child in children] == [0, 0]
    assert steps(database) == [float(step) for step in range(600)]


@pytest.fixture
def own_server() -> Iterator[Server]:
    """A server that may be killed."""
    server = Server()
    yield server
    server.stop()


def test_what_was_acknowledged_is_there_after_the_server_was_killed(own_server: Server) -> None:
    url = own_server.new_database()
    migrated(url)
    child = writer(url)
    with open_store(url, wait_seconds=2) as store:
        run = store.open_run("other")
        store.record(run.id, [Report(1.0)])
        os.kill(own_server.pid, signal.SIGKILL)
        told = acknowledged(child, 0)
        own_server.wait_for_end()
        with pytest.raises(Unavailable, match="the database postgresql://"):
            store.record(run.id, [Report(2.0)])
        own_server.start_again()
        kept = steps(url)
        assert kept == [float(step) for step in range(len(kept))]
        assert told <= len(kept) <= told + 20
        # The store that was open goes on.
        assert store.record(run.id, [Report(1.0), Report(2.0)]) == 1
