"""What the documentation says of running a server, done: behind nginx, by systemd, with Grafana and webhooks."""

import json
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.ports import free_port
from tests.surfaces.web.browser import CHROMIUM, FLAGS, WAIT, log_in
from tests.surfaces.web.conftest import Served
from tests.surfaces.web.test_kills import wait_for

DOCS = Path(__file__).parents[3] / "docs" / "serve"
NGINX = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
NAME = "epochcast.example"


def test_every_count_of_the_dashboard_is_counted(server: Served) -> None:
    server.client.get("/api/v1/devices")
    counted = server.client.get("/metrics").text
    board = json.loads((DOCS / "grafana.json").read_text())
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    assert len(asked) > 4
    for name in {name for expression in asked for name in re.findall(r"epochcast_\w+", expression)}:
        told = name.removesuffix("_total").removesuffix("_bucket")
        assert f"# TYPE {told}" in counted or f"# TYPE {name}" in counted, name


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, httpx.Client]]:
    """A server with our site of nginx in front of it, with a certificate of its own."""
    if NGINX is None or shutil.which("openssl") is None:
        pytest.skip("no nginx here; `make test` installs it where it can")
    folder, port = tmp_path_factory.mktemp("nginx"), free_port()
    store = ("--database", str(folder / "s.db"), "--folder", str(folder / "uploads"), "--workers", "1")
    served = Served("--token", "--public-name", NAME, *store)
    make = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -keyout key -out pem -subj"
    subprocess.run([*make.split(), f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}"], cwd=folder, check=True)
    site = (DOCS / "nginx.conf").read_text()
    for ours, here in (
        ("listen 443", f"listen 127.0.0.1:{port}"),
        ("/etc/ssl/epochcast.pem", f"{folder}/pem"),
        ("/etc/ssl/epochcast.key", f"{folder}/key"),
        ("http://127.0.0.1:8642", served.url),
    ):
        assert ours in site
        site = site.replace(ours, here)
    temporary = " ".join(f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi"))
    whole = f"daemon off; pid {folder}/pid; error_log {folder}/log; events {{}} http {{ access_log off; {temporary}"
    (folder / "nginx.conf").write_text(f"{whole} scgi_temp_path {folder}/scgi;\n{site}\n}}")
    nginx = subprocess.Popen([NGINX, "-c", str(folder / "nginx.conf"), "-e", f"{folder}/log"])
    import ssl

    trusted = ssl.create_default_context(cafile=str(folder / "pem"))
    client = httpx.Client(
        base_url=f"https://127.0.0.1:{port}",
        verify=trusted,
        headers={"Host": f"{NAME}:{port}"},
        timeout=60,
    )
    try:
        yield served, client
    finally:
        nginx.terminate()
        nginx.wait(20)
        served.end()


def through(client: httpx.Client, method: str, path: str, **given: Any) -> httpx.Response:
    """A request to the public name."""
    return client.request(method, path, extensions={"sni_hostname": NAME}, **given)


def test_behind_nginx_one_logs_in_and_asks(proxied: tuple[Served, httpx.Client]) -> None:
    served, client = proxied
    wait_for("nginx", lambda: _answers(client))
    assert through(client, "GET", "/runs").headers["location"].startswith("/login?then=")
    origin = {"Origin": f"https://{client.headers['host']}"}
    inside = through(client, "POST", "/login", data={"token": served.token, "then": "/runs"}, headers=origin)
    cookie = inside.headers["set-cookie"].casefold()
    assert inside.status_code == 303 and "secure" in cookie and "httponly" in cookie and "samesite=strict" in cookie
    other = {"Origin": "https://elsewhere.example"}
    assert through(client, "POST", "/login", data={"token": served.token}, headers=other).status_code == 403
    bearer = {"Authorization": f"Bearer {served.token}"}
    answer = through(
        client, "POST", "/api/v1/forecast", json={"model": "resnet18", "device": "V100", "batch": 8}, headers=bearer
    )
    assert answer.status_code == 200 and answer.json()["fits"]


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium here; `make test` installs it where it can")
def test_a_browser_logs_in_under_the_public_name(proxied: tuple[Served, httpx.Client]) -> None:
    from playwright.sync_api import sync_playwright

    served, client = proxied
    wait_for("nginx", lambda: _answers(client))
    url = f"https://{client.headers['host']}"
    flags = [*FLAGS.split(), f"--host-resolver-rules=MAP {NAME} 127.0.0.1"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
        page = browser.new_context(ignore_https_errors=True).new_page()
        page.goto(f"{url}/runs", timeout=WAIT)
        log_in(page, "ec_wrong")
        page.wait_for_selector(".fault", timeout=WAIT)
        assert "This token is unknown" in page.inner_text(".fault") and page.context.cookies() == []
        log_in(page, served.token)
        page.wait_for_url(f"{url}/runs", timeout=WAIT)
        assert [cookie["secure"] for cookie in page.context.cookies()] == [True]
        page.goto(f"{url}/nothere", timeout=WAIT)
        assert "There is no page at /nothere" in page.inner_text("main")
        page.goto(f"{url}/runs", timeout=WAIT)
        page.click("text=Log out")
        page.wait_for_url(f"{url}/login", timeout=WAIT)
        assert page.context.cookies() == []
        browser.close()


def test_live_events_pass_nginx_at_once(proxied: tuple[Served, httpx.Client]) -> None:
    served, client = proxied
    wait_for("nginx", lambda: _answers(client))
    bearer = {"Authorization": f"Bearer {served.token}"}
    with client.stream("GET", "/api/v1/events", headers=bearer, extensions={"sni_hostname": NAME}) as stream:
        lines = stream.iter_lines()
        assert next(lines).startswith("retry")
        report = {"ec": "train", "step": 1, "at": 1_763_370_001.0, "steps": 1, "step_seconds": 1.0}
        start = {"job": "seen", "attempt": 1, "at": 1_763_370_000.0, "total_steps": 10}
        served.client.post(
            "/api/v1/observations", json={"start": start, "observations": [report]}, headers=bearer
        ).raise_for_status()
        told = next(line for line in lines if line.startswith("data:"))
    assert json.loads(told.removeprefix("data:"))["run"] == "seen"


def _answers(client: httpx.Client) -> bool:
    try:
        return through(client, "GET", "/healthz").status_code == 200
    except httpx.HTTPError:
        return False


def test_systemd_takes_our_unit(tmp_path: Path) -> None:
    verify = shutil.which("systemd-analyze")
    if verify is None:
        pytest.skip("no systemd here")
    unit = tmp_path / "epochcast.service"
    written = (DOCS / "epochcast.service").read_text()
    unit.write_text(written.replace("/opt/epochcast/.venv/bin/epochcast", shutil.which("true") or "/bin/true"))
    told = subprocess.run([verify, "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False)
    assert "epochcast.service" not in told.stderr, told.stderr


class Hook(BaseHTTPRequestHandler):
    """Takes every message."""

    got: list[dict[str, Any]]

    def do_POST(self) -> None:
        Hook.got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *given: Any) -> None:
        """Nothing."""


def test_a_run_that_drifts_costs_too_much_and_ends_is_told_to_webhooks(tmp_path: Path) -> None:
    Hook.got = []
    receiver = HTTPServer(("127.0.0.1", 0), Hook)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{receiver.server_port}/"
    store = ("--database", str(tmp_path / "s.db"), "--folder", str(tmp_path / "uploads"), "--workers", "1")
    served = Served("--webhook", url, *store)
    try:
        job = {"model": "resnet18", "device": "V100", "batch": 32, "samples": 320_000}
        known = served.client.put("/api/v1/runs/slow", json={"job": job, "budget_dollars": 0.01})
        assert known.status_code == 200 and known.json()["state"] == "queued"
        began = time.time() - 2_000
        start = {"job": "slow", "attempt": 1, "at": began, "total_steps": 10_000}
        clock = [began + (0.1 * step if step < 3_000 else 300 + 0.3 * (step - 3_000)) for step in range(0, 6_000, 10)]
        rows: list[dict[str, Any]] = [
            {"ec": "train", "step": 10 * number, "at": at, "steps": 10, "step_seconds": 0.1 if number < 300 else 0.3}
            for number, at in enumerate(clock)
        ]
        sent = served.client.post("/api/v1/observations", json={"start": start, "observations": rows})
        assert sent.json() == {"run": "slow", "kept": len(rows)}
        wait_for("drift and budget", lambda: {"drift", "over budget"} <= {one["event"] for one in Hook.got})
        end = {"ec": "end", "step": 10_000, "at": began + 1_990}
        served.client.post("/api/v1/observations", json={"start": start, "observations": [end]}).raise_for_status()
        wait_for("the end", lambda: "finished" in {one["event"] for one in Hook.got})
        wait_for("the count", lambda: 'epochcast_webhooks{state="sent"} 3.0' in served.client.get("/metrics").text)
    finally:
        served.end()
        receiver.shutdown()
    told = {one["event"]: one["text"] for one in Hook.got}
    assert len(Hook.got) == 3 and told["finished"] == "epochcast: slow has ended"
    assert "pace of slow changed by a factor of" in told["drift"] and "its budget is $0.01" in told["over budget"]
