"""What a server bears: slow and broken connections, full disks, too many listeners, uploads without end."""

import gzip
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import event
from tests.surfaces.web.conftest import Served
from tests.surfaces.web.test_kills import body, wait_for

from epochcast.observe.runs.report import Report
from epochcast.observe.store.leases import hold
from epochcast.observe.store.store_errors import DiskFull
from epochcast.observe.store.store_opening import open_store
from epochcast.surfaces.web.problems import error_text, problem_of, status_of
from epochcast.surfaces.web.server_settings import RequestLimits
from epochcast.surfaces.web.uploads import accept, make_room, stored_reference, stored_upload

PAGE = {"Accept": "text/html,application/xhtml+xml"}


def address(server: Served) -> tuple[str, int]:
    return "127.0.0.1", int(server.url.rpartition(":")[2])


def test_a_browser_gets_errors_as_pages_and_programs_get_problems(server: Served) -> None:
    for path, said in (("/nothere", "There is no page at /nothere."), ("/runs/nothere", "No run called")):
        page = server.client.get(path, headers=PAGE)
        assert page.status_code == 404 and page.headers["content-type"].startswith("text/html")
        assert (
            said in page.text
            and "<nav" in page.text
            and "default-src 'none'" in page.headers["content-security-policy"]
        )
        assert server.client.get(path).headers["content-type"] == "application/problem+json"
    assert server.client.get("/api/v1/runs/nothere", headers=PAGE).json()["status"] == 404


def test_who_listens_over_the_limit_is_told_so(folder: Path) -> None:
    limit = RequestLimits().streams
    served = Served("--database", str(folder / "listeners.db"), "--folder", str(folder / "u"), "--workers", "1")
    listeners = [socket.create_connection(address(served)) for _ in range(limit)]
    try:
        for listener in listeners:
            listener.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b" 200 " in listener.recv(2_000)
        refused = served.client.get("/api/v1/events")
        assert refused.status_code == 503 and int(refused.headers["retry-after"]) > 0
        assert refused.json()["detail"] == "too many listen already"
        listeners.pop().close()
        wait_for("a place", lambda: _listens(served))
    finally:
        for listener in listeners:
            listener.close()
        served.end()


def _listens(served: Served) -> bool:
    with served.client.stream("GET", "/api/v1/events") as stream:
        return stream.status_code == 200


def test_half_a_request_is_not_waited_for(server: Served) -> None:
    """A head and a body have their time; a request that is whole is answered on the same connection meanwhile."""
    head = (
        b"POST /api/v1/forecast HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n"
    )
    halves = {b"": 408, b"GET /healthz HT": 408, head: 408, head + b"\r\n{": 408}
    opened = [socket.create_connection(address(server)) for _ in halves]
    for connection, half in zip(opened, halves, strict=True):
        connection.sendall(half)
        connection.settimeout(60)
    answers = [_whole(connection) for connection in opened]
    assert [int(answer.split()[1]) for answer in answers] == list(halves.values())
    with httpx.Client(base_url=server.url) as kept:
        assert [kept.get("/healthz").status_code for _ in range(2)] == [200, 200]


def _whole(connection: socket.socket) -> bytes:
    parts = []
    while part := connection.recv(4_000):
        parts.append(part)
    return b"".join(parts)


def test_who_hangs_up_leaves_no_traceback(folder: Path) -> None:
    served = Served("--database", str(folder / "hung.db"), "--folder", str(folder / "u"), "--workers", "1")
    asked = json.dumps({"model": "resnet18", "device": "V100", "batch": 8}).encode()
    head = "POST /api/v1/%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    try:
        for _ in range(3):
            for sent in (
                (head % ("observations", 1_000)).encode() + b'{"start":',
                (head % ("uploads?name=m.json", 1_000)).encode() + b"{",
                (head % ("forecast", len(asked))).encode() + asked,
                b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n",
                b"GET /static/vega.js HTTP/1.1\r\nHost: localhost\r\n\r\n",
            ):
                connection = socket.create_connection(address(served))
                connection.sendall(sent)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # a reset, no farewell
                connection.close()
        assert served.client.post("/api/v1/forecast", content=asked, headers=JSON).status_code == 200
        served.client.post("/api/v1/observations", json=body("after", 0)).raise_for_status()
    finally:
        served.end()
    assert not [line for line in served.said if "Traceback" in line or "Error" in line], served.said


JSON = {"Content-Type": "application/json"}


def test_static_files_are_compressed_and_asked_for_once(server: Served) -> None:
    for name in ("style.css", "common.js", "icon.svg", "vega.js"):
        plain = server.client.get(f"/static/{name}", headers={"Accept-Encoding": "identity"})
        assert plain.status_code == 200 and "content-encoding" not in plain.headers
        with server.client.stream("GET", f"/static/{name}", headers={"Accept-Encoding": "br, gzip"}) as stream:
            small = b"".join(stream.iter_raw())
        assert gzip.decompress(small) == plain.content and len(small) < len(plain.content)
        assert stream.headers["vary"] == "Accept-Encoding"
        again = server.client.get(f"/static/{name}", headers={"If-None-Match": plain.headers["etag"]})
        assert again.status_code == 304 and not again.content and again.headers["etag"] == plain.headers["etag"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", place], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("file systems cannot be mounted here")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def test_a_full_disk_answers_507_and_readiness_comes_back_with_room(small_disk: Path) -> None:
    served = Served("--database", str(small_disk / "s.db"), "--folder", str(small_disk / "up"), "--workers", "1")
    ballast = small_disk / "ballast"
    try:
        served.client.post("/api/v1/observations", json=body("job", 0)).raise_for_status()
        with ballast.open("wb", buffering=0) as file:
            try:
                while file.write(b"0" * 65_536):
                    pass
            except OSError:
                pass
        first = 20
        answers: list[Any] = []
        while not answers or answers[-1].status_code == 200:
            assert first < 100_000
            answers.append(served.client.post("/api/v1/observations", json=body("job", first, 2_000)))
            first += 2_000
        full = answers[-1]
        assert full.status_code == 507 and str(small_disk) not in full.text and "s.db" not in full.text
        assert "disk is full" in full.json()["detail"]
        sent = served.client.post("/api/v1/uploads?name=m.json", content=b"{" + b" " * 200_000 + b"}")
        assert sent.status_code == 507 and str(small_disk) not in sent.text
        away = served.client.get("/readyz")
        assert away.status_code == 503 and str(small_disk) not in away.text
        assert served.client.get("/healthz").status_code == 200
        ballast.unlink()
        wait_for("room", lambda: served.client.get("/readyz").status_code == 200)
        served.client.post("/api/v1/observations", json=body("job", first, 20)).raise_for_status()
    finally:
        served.end()


def test_an_sqlite_file_that_cannot_grow_is_a_full_disk_and_its_place_is_not_told(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "s.db")) as store:
        event.listen(store.engine, "connect", lambda connection, _: connection.execute("PRAGMA max_page_count=80"))
        store.engine.dispose()
        run = store.open_run("a")
        with pytest.raises(DiskFull, match="the disk is full") as error:
            store.record(run.id, [Report(float(step), clock_seconds=1.0 * step) for step in range(20_000)])
    assert str(tmp_path) in str(error.value) and str(tmp_path) not in error_text(error.value)
    assert status_of(error.value) == problem_of(error.value).status == 507
    assert problem_of(OSError(28, "No space left on device", str(tmp_path))).status == 507


def test_only_its_user_may_read_a_new_store(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with open_store(str(tmp_path / "s.db")) as store:
            store.open_run("a")
            modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert modes == {"s.db": 0o600, "s.db-wal": 0o600, "s.db-shm": 0o600}


def test_uploads_have_a_quota_and_an_age(tmp_path: Path) -> None:
    digests = []
    for content in (b"{}" * 100, b"[]" * 100):
        digest, file = stored_upload(tmp_path, "vision", "m.toml", content)
        accept(file, digest)
        digests.append(digest)
    assert make_room(tmp_path, "vision", 50, 450, 3_600) and not make_room(tmp_path, "vision", 51, 450, 3_600)
    assert make_room(tmp_path, "speech", 450, 450, 3_600)
    for place in tmp_path.glob("*/*"):
        os.utime(place, (time.time() - 7_000,) * 2)
    stored_reference(tmp_path, "vision", digests[0])  # asked about: young again
    assert make_room(tmp_path, "vision", 250, 450, 3_600)
    assert [place.name for place in tmp_path.glob("*/*")] == [digests[0]]
    assert all(place.stat().st_mode & 0o077 == 0 for place in tmp_path.glob("*/*"))


def test_two_uploads_are_read_at_once(server: Served) -> None:
    """One that takes long does not hold up another."""
    assert RequestLimits().parsers > 1
    layers = [{"class_name": "InputLayer", "config": {"batch_shape": [None, 4]}}]
    layers += [{"class_name": "Dense", "config": {"units": 3}}] * 3
    config = json.dumps({"class_name": "Sequential", "config": {"layers": layers}}).encode()
    sent: list[httpx.Response] = []
    threads = [
        threading.Thread(target=lambda number=number: sent.append(_upload(server, config + b" " * number)))
        for number in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [answer.status_code for answer in sent] == [201] * 4


def _upload(server: Served, content: bytes) -> httpx.Response:
    return httpx.post(f"{server.url}/api/v1/uploads?name=m.json", content=content, timeout=120)


def test_made_up_runs_are_removed_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    served = Served("--demo", "--workers", "1")
    try:
        assert len(list(tmp_path.glob("epochcast-demo-*"))) == 1
        assert served.client.get("/api/v1/runs").json()["runs"]
    finally:
        served.end()
    assert not list(tmp_path.glob("epochcast-demo-*"))


def test_names_with_slashes_open(server: Served) -> None:
    server.client.post("/api/v1/observations", json=body("team a/exp 1/run#2?", 0)).raise_for_status()
    for path in ("/api/v1/runs/", "/runs/"):
        for name in ("team%20a%2Fexp%201%2Frun%232%3F", "team%20a/exp%201/run%232%3F"):
            assert server.client.get(f"{path}{name}").status_code == 200
    rows = server.client.get("/api/v1/runs/team%20a/exp%201/run%232%3F/observations").json()["observations"]
    assert len(rows) == 20


def test_a_lease_from_before_the_clock_was_set_back_is_taken_over(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "l.db")) as store:
        assert hold(store, "work", "gone", 86_400.0)
        assert not hold(store, "work", "new", 86_400.0) and hold(store, "work", "new", 15.0)


def test_a_wrong_token_is_said_in_the_words_of_the_server(folder: Path, tmp_path: Path) -> None:
    served = Served("--token", "--database", str(folder / "w.db"), "--folder", str(folder / "u"), "--workers", "1")
    program = (
        f"import epochcast as ec, time\nrun = ec.track(total=9, job='x', to={served.url!r})\ntime.sleep(9)\nrun.close()"
    )
    environment = {**os.environ, "EPOCHCAST_TOKEN": "ec_wrong", "EPOCHCAST_SPOOL": str(tmp_path)}
    try:
        training = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True, timeout=120
        )
    finally:
        served.end()
    said = [line for line in training.stderr.splitlines() if "Training continues" in line]
    assert said == [
        f"{served.url}: the server answers 401: this token is unknown, or was ended. "
        "Training continues; reports wait on this machine."
    ]


def test_every_report_of_a_spool_is_kept_once(tmp_path: Path) -> None:
    """Sent before and after a crash, as a spool does, rows are those of one sending."""
    served = Served("--database", str(tmp_path / "s.db"), "--folder", str(tmp_path / "u"), "--workers", "1")
    try:
        for first in (0, 10, 0, 5):
            served.client.post("/api/v1/observations", json=body("twice", first)).raise_for_status()
        kept: Any = served.client.get("/api/v1/runs/twice/observations").json()["observations"]
    finally:
        served.end()
    assert [row["step"] for row in kept] == [float(step) for step in range(30)]
