"""Nothing acknowledged is lost: workers, the server and the database are killed; two servers share one database."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.observe.store.conftest import Server
from tests.surfaces.web.conftest import Served

from epochcast.observe.store.leases import give_back, hold
from epochcast.observe.store.row_values import RunFilter
from epochcast.observe.store.store import Store
from epochcast.observe.store.store_opening import migrated, open_store
from epochcast.surfaces.web.follower_process import LEASE

JOB = {"model": "resnet18", "device": "V100", "batch": 32}


def body(job: str, first: int, count: int = 20) -> dict[str, Any]:
    start = {"job": job, "attempt": 1, "at": 1_763_370_000.0, "total_steps": 100_000}
    rows = [
        {"ec": "train", "step": step, "at": 1_763_370_000.0 + 0.1 * step, "steps": 1, "step_seconds": 0.1}
        for step in range(first, first + count)
    ]
    return {"start": start, "observations": rows}


def children(process: int) -> dict[int, str]:
    """Processes that a server has started, by what they run."""
    listed = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return {int(one): Path(f"/proc/{one}/cmdline").read_text().replace("\0", " ") for one in listed}


def one_of(process: int, module: str) -> int:
    return next(child for child, line in children(process).items() if module in line)


def send_until_it_dies(url: str, job: str, acknowledged: list[int], begin: int = 0) -> None:
    with httpx.Client(base_url=url, timeout=30) as client:
        for first in range(begin, 100_000, 20):
            try:
                if client.post("/api/v1/observations", json=body(job, first)).status_code != 200:
                    return
            except httpx.HTTPError:
                return
            acknowledged.append(first + 20)


def wait_for(what: str, is_so: Any, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, what
        time.sleep(0.2)


def kept_steps(store: Store, job: str) -> list[float]:
    return [row.step for row in store.observations(store.run(job).id)]


def test_a_killed_worker_costs_one_answer_at_most(server: Served) -> None:
    assert server.client.post("/api/v1/forecast", json=JOB).status_code == 200
    os.kill(one_of(server.process.pid, "epochcast.surfaces.web.worker_process"), signal.SIGKILL)
    answers = [
        server.client.post("/api/v1/forecast", json={**JOB, "batch": batch}).status_code for batch in (33, 34, 35)
    ]
    assert answers.count(200) >= 2 and set(answers) <= {200, 422}
    follower = one_of(server.process.pid, "epochcast.surfaces.web.follower_process")
    os.kill(follower, signal.SIGKILL)
    wait_for("a new follower", lambda: any("follower" in line for line in children(server.process.pid).values()))


def test_what_a_killed_server_acknowledged_is_kept_and_its_children_end(folder: Path) -> None:
    database = str(folder / "killed.db")
    served = Served("--database", database, "--folder", str(folder / "uploads"), "--workers", "1")
    acknowledged: list[int] = []
    sender = threading.Thread(target=send_until_it_dies, args=(served.url, "job", acknowledged))
    sender.start()
    wait_for("some reports", lambda: len(acknowledged) > 5)
    started = list(children(served.process.pid))
    served.kill()
    sender.join()
    with open_store(database) as store:
        kept = kept_steps(store, "job")
    assert kept == [float(step) for step in range(len(kept))] and acknowledged[-1] <= len(kept) <= acknowledged[-1] + 20
    wait_for(
        "children to end",
        lambda: (
            not any(
                Path(f"/proc/{one}/cmdline").exists() and Path(f"/proc/{one}/cmdline").read_text() for one in started
            )
        ),
    )


def test_a_restart_under_load_loses_nothing(folder: Path) -> None:
    database = str(folder / "restarted.db")
    store = ("--database", database, "--folder", str(folder / "uploads"), "--workers", "1")
    done: dict[str, int] = {}
    for end in ("ends", "is killed", "ends"):
        served = Served(*store)
        acknowledged: dict[str, list[int]] = {f"job-{number}": [done.get(f"job-{number}", 0)] for number in range(4)}
        senders = [
            threading.Thread(target=send_until_it_dies, args=(served.url, job, steps, steps[0]))
            for job, steps in acknowledged.items()
        ]
        for sender in senders:
            sender.start()
        wait_for("some reports", lambda told=acknowledged: all(len(steps) > 4 for steps in told.values()))
        served.end() if end == "ends" else served.kill()
        for sender in senders:
            sender.join()
        with open_store(database) as store_:
            for job, steps in acknowledged.items():
                kept = kept_steps(store_, job)
                assert kept == [float(step) for step in range(len(kept))]
                assert steps[-1] <= len(kept) <= steps[-1] + 20, f"{job}, after the server {end}"
                done[job] = steps[-1]


@pytest.fixture(scope="module")
def postgres() -> Iterator[Server]:
    server = Server()
    yield server
    server.stop()


def test_the_database_is_killed_and_comes_back(postgres: Server, folder: Path) -> None:
    url = postgres.new_database()
    migrated(url)
    served = Served("--database", url, "--folder", str(folder / "uploads"), "--workers", "1")
    try:
        assert served.client.post("/api/v1/observations", json=body("job", 0)).status_code == 200
        os.kill(postgres.pid, signal.SIGKILL)
        postgres.wait_for_end()
        away = served.client.post("/api/v1/observations", json=body("job", 20))
        assert away.status_code == 503 and "database" in away.json()["detail"]
        assert served.client.get("/readyz").status_code == 503 and served.client.get("/healthz").status_code == 200
        assert served.client.post("/api/v1/forecast", json=JOB).status_code == 200
        postgres.start_again()
        wait_for("the database", lambda: served.client.get("/readyz").status_code == 200)
        assert served.client.post("/api/v1/observations", json=body("job", 20)).status_code == 200
        with open_store(url) as store:
            assert kept_steps(store, "job") == [float(step) for step in range(40)]
    finally:
        served.end()


def test_two_servers_share_one_database(postgres: Server, folder: Path) -> None:
    url = postgres.new_database()
    migrated(url)
    both = [Served("--database", url, "--folder", str(folder / "uploads"), "--workers", "1") for _ in range(2)]
    try:
        senders = [
            threading.Thread(
                target=lambda one=one: [
                    one.client.post("/api/v1/observations", json=body("job", first)).raise_for_status()
                    for first in range(0, 200, 20)
                ]
            )
            for one in both
        ]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        with open_store(url) as store:
            assert kept_steps(store, "job") == [float(step) for step in range(200)]
            wait_for("one of them to follow the runs", lambda: not hold(store, LEASE, "somebody else", 0.1))
            told = [one.client.get("/api/v1/runs/job").json()["step"] for one in both]
            assert told == [199.0, 199.0]
            both[0].kill()
            both[1].client.post("/api/v1/observations", json=body("job", 200)).raise_for_status()

            def is_followed() -> bool:
                return ((standing := store.runs(RunFilter())[0].standing) is not None) and standing.step == 219.0

            wait_for("the other one to follow", is_followed, 90)
    finally:
        for one in both:
            one.end()


def test_a_lease_is_one_holders_until_it_runs_out(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "l.db")) as store:
        assert hold(store, "work", "a", 60) and hold(store, "work", "a", 60) and not hold(store, "work", "b", 60)
        give_back(store, "work", "a")
        assert hold(store, "work", "b", 0.0) and hold(store, "work", "c", 60)
