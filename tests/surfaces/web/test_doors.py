"""Who gets in: tokens, scopes, projects; and what browsers are kept from."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.surfaces.web.conftest import Served

from epochcast.errors import BadInput
from epochcast.observe.store.access_tokens import end_token, make_token
from epochcast.observe.store.database_tables import tokens
from epochcast.observe.store.store_opening import open_store
from epochcast.surfaces.web.pages import inside
from epochcast.surfaces.web.request_guard import Rate

BODY: dict[str, Any] = {
    "start": {"job": "secret-run", "attempt": 1, "at": 1_763_370_000.0, "total_steps": 100},
    "observations": [{"ec": "train", "step": 10, "at": 1_763_370_001.0, "steps": 10, "step_seconds": 0.1}],
}


@pytest.fixture(scope="module")
def guarded(folder: Path) -> Iterator[Served]:
    served = Served(
        "--token", "--database", str(folder / "t.db"), "--folder", str(folder / "uploads"), "--workers", "1"
    )
    yield served
    served.end()


@pytest.fixture(scope="module")
def secrets(guarded: Served, folder: Path) -> dict[str, str]:
    with open_store(str(folder / "t.db")) as store:
        made = {
            "all": guarded.token,
            "reader": make_token(store, "reader", ("read",)),
            "vision": make_token(store, "vision", project="vision"),
            "speech": make_token(store, "speech", project="speech"),
            "ended": make_token(store, "ended"),
        }
        end_token(store, "ended")
    return made


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def test_nobody_gets_in_without_a_token(guarded: Served, secrets: dict[str, str]) -> None:
    for path in ("/api/v1/runs", "/api/v1/events", "/api/v1/devices", "/metrics", "/api/v1/runs/x"):
        assert guarded.client.get(path).status_code == 401, path
        assert guarded.client.get(path, headers=bearer("ec_wrong")).status_code == 401, path
        assert guarded.client.get(path, headers=bearer(secrets["ended"])).status_code == 401, path
    assert guarded.client.get("/api/v1/runs", headers=bearer(secrets["all"])).status_code == 200
    assert guarded.client.get("/healthz").status_code == 200


def test_who_may_only_read_cannot_write(guarded: Served, secrets: dict[str, str]) -> None:
    answer = guarded.client.post("/api/v1/observations", json=BODY, headers=bearer(secrets["reader"]))
    assert answer.status_code == 403 and "may not write" in answer.json()["detail"]


def test_a_project_sees_its_own_runs_alone(guarded: Served, secrets: dict[str, str]) -> None:
    for project in ("vision", "speech"):
        assert (
            guarded.client.post("/api/v1/observations", json=BODY, headers=bearer(secrets[project])).status_code == 200
        )
    seen = {
        who: [run["run"] for run in guarded.client.get("/api/v1/runs", headers=bearer(secrets[who])).json()["runs"]]
        for who in ("vision", "speech", "all")
    }
    assert seen["vision"] == ["vision/secret-run"] and seen["speech"] == ["speech/secret-run"]
    assert set(seen["all"]) == {"vision/secret-run", "speech/secret-run"}
    name = "vision/secret-run"
    for path in (f"/api/v1/runs/{name}", f"/api/v1/runs/{name}/observations", f"/runs/{name}"):
        assert guarded.client.get(path, headers=bearer(secrets["speech"])).status_code == 404, path
        assert guarded.client.get(path, headers=bearer(secrets["vision"])).status_code == 200, path
    counted = guarded.client.get("/metrics", headers=bearer(secrets["speech"])).text
    assert 'epochcast_runs{state="running"} 1.0' in counted


def test_what_a_run_is_called_depends_on_no_other_project(guarded: Served, secrets: dict[str, str]) -> None:
    """Nobody can take a name from another project, or see by a name that it is taken."""

    def named(job: str, who: str) -> str:
        body = {**BODY, "start": {**BODY["start"], "job": job}}
        sent = guarded.client.post("/api/v1/observations", json=body, headers=bearer(secrets[who]))
        return str(sent.raise_for_status().json()["run"])

    assert named("speech/mine", "vision") == "vision/speech/mine"
    assert named("mine", "speech") == "speech/mine"
    assert named("vision/secret-run", "speech") == "speech/vision/secret-run"
    described = [
        guarded.client.put(f"/api/v1/runs/{name}", json={"budget_dollars": 1.0}, headers=bearer(secrets["speech"]))
        for name in ("vision/secret-run", "nobody-has-this", "mine")
    ]
    names = [answer.raise_for_status().json()["run"] for answer in described]
    assert names == ["speech/vision/secret-run", "speech/nobody-has-this", "speech/mine"]
    opened = guarded.client.get("/api/v1/runs/mine", headers=bearer(secrets["speech"]))
    assert opened.json()["run"] == "speech/mine"
    assert guarded.client.get("/api/v1/runs/mine", headers=bearer(secrets["vision"])).status_code == 404


def test_a_stream_ends_when_its_token_is_revoked(guarded: Served, secrets: dict[str, str], folder: Path) -> None:
    with open_store(str(folder / "t.db")) as store:
        secret = make_token(store, "short-lived")
        with guarded.client.stream("GET", "/api/v1/events", headers=bearer(secret)) as stream:
            lines = stream.iter_lines()
            assert next(lines).startswith("retry:")
            end_token(store, "short-lived")
            assert all(line in ("", ": still here") or line.startswith(("event", "data")) for line in lines)
    assert guarded.client.get("/api/v1/events", headers=bearer(secret)).status_code == 401


def test_events_of_other_projects_are_not_told(guarded: Served, secrets: dict[str, str]) -> None:
    with guarded.client.stream("GET", "/api/v1/events", headers=bearer(secrets["speech"])) as stream:
        lines = stream.iter_lines()
        assert next(lines).startswith("retry:")
        for project in ("vision", "speech"):
            body = {**BODY, "start": {**BODY["start"], "job": f"told-{project}"}}
            guarded.client.post("/api/v1/observations", json=body, headers=bearer(secrets[project])).raise_for_status()
        told: list[str] = []
        while not told or "told-speech" not in told[-1]:
            told.append(next(line for line in lines if line.startswith("data:")))
    assert all('"project": "speech"' in line and "told-vision" not in line for line in told)


def test_an_upload_of_one_project_is_not_there_for_another(guarded: Served, secrets: dict[str, str]) -> None:
    layers = [
        {"class_name": "InputLayer", "config": {"batch_shape": [None, 4]}},
        {"class_name": "Dense", "config": {"units": 3}},
    ]
    config = json.dumps({"class_name": "Sequential", "config": {"layers": layers}}).encode()
    sent = guarded.client.post("/api/v1/uploads?name=m.json", content=config, headers=bearer(secrets["vision"]))
    asked = {"model": sent.json()["model"], "device": "V100", "batch": 4}
    assert guarded.client.post("/api/v1/forecast", json=asked, headers=bearer(secrets["vision"])).status_code == 200
    other = guarded.client.post("/api/v1/forecast", json=asked, headers=bearer(secrets["speech"]))
    assert other.status_code == 422 and "no upload" in other.json()["detail"]


def test_a_project_is_one_part_of_a_name(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "p.db")) as store, pytest.raises(BadInput, match="no slash, got 'a/b'"):
        make_token(store, "x", project="a/b")


def test_only_a_digest_of_a_token_is_kept(guarded: Served, secrets: dict[str, str], folder: Path) -> None:
    with open_store(str(folder / "t.db")) as store, store.reading() as connection:
        kept = str([tuple(row) for row in connection.execute(tokens.select())])
    assert all(secret not in kept for secret in secrets.values())


def test_a_browser_logs_in_with_a_cookie_that_scripts_cannot_read(guarded: Served, secrets: dict[str, str]) -> None:
    with httpx.Client(base_url=guarded.url) as browser:
        sent_away = browser.get("/runs")
        assert sent_away.status_code == 303 and sent_away.headers["location"] == "/login?then=/runs"
        wrong = browser.post("/login", data={"token": "ec_wrong", "then": "/runs"})
        assert wrong.status_code == 401 and "unknown" in wrong.text
        right = browser.post("/login", data={"token": secrets["all"], "then": "//elsewhere.example"})
        assert right.status_code == 303 and right.headers["location"] == "/"
        cookie = right.headers["set-cookie"]
        assert "HttpOnly" in cookie and "SameSite=strict" in cookie
        assert browser.get("/runs").status_code == 200
        assert browser.post("/logout").status_code == 303
        assert browser.get("/runs").status_code == 303


def test_a_page_of_another_site_can_change_nothing(guarded: Served, secrets: dict[str, str]) -> None:
    cookies = {"epochcast_token": secrets["all"]}
    with httpx.Client(base_url=guarded.url, cookies=cookies) as browser:
        others: list[dict[str, str]] = [
            {"Origin": "https://evil.example"},
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site"},
            {"Origin": "null"},
            {"Origin": "null", "Sec-Fetch-Site": "cross-site"},
            {"Origin": "https://evil.example", "Sec-Fetch-Site": "same-origin"},
        ]
        for headers in others:
            answer = browser.post("/api/v1/observations", json=BODY, headers=headers)
            assert answer.status_code == 403 and "another site" in answer.json()["detail"]


def test_a_page_that_hides_its_address_is_known_by_what_the_browser_says(guarded: Served) -> None:
    """A proxy that sets `Referrer-Policy: no-referrer` makes browsers send `Origin: null` with our own forms."""
    hidden = {"Origin": "null", "Sec-Fetch-Site": "same-origin"}
    assert guarded.client.post("/logout", headers=hidden).status_code == 303
    assert guarded.client.get("/login").headers["referrer-policy"] == "same-origin"


def test_another_name_for_loopback_is_refused(server: Served) -> None:
    answer = server.client.get("/api/v1/runs", headers={"Host": "evil.example"})
    assert answer.status_code == 421


def test_pages_forbid_everything_that_is_not_their_own(server: Served) -> None:
    for path in ("/", "/runs", "/accuracy"):
        answer = server.client.get(path)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
        assert "<script>" not in answer.text and " onclick" not in answer.text and "http://cdn" not in answer.text


@pytest.mark.parametrize("path", ["/static/../app.py", "/static/..%2fapp.py", "/static/%2e%2e/app.py", "/static/none"])
def test_static_files_are_those_of_the_folder(server: Served, path: str) -> None:
    assert server.client.get(path).status_code == 404


def test_too_many_requests_of_one_address_are_refused() -> None:
    rate = Rate(per_second=2.0, most=3)
    assert [rate.takes("a", 0.0) for _ in range(4)] == [True, True, True, False]
    assert rate.takes("b", 0.0) and rate.takes("a", 0.5) and not rate.takes("a", 0.5)


def test_paths_after_logging_in_stay_on_the_server() -> None:
    assert inside("/runs?x=1") == "/runs?x=1"
    assert {inside(path) for path in ("//evil", "https://evil", "/\\evil", "", "/a\nb")} == {"/"}


def test_labels_and_deletion_stay_in_a_project_and_need_the_right_to_write(
    guarded: Served, secrets: dict[str, str]
) -> None:
    body = {**BODY, "start": {**BODY["start"], "job": "labelled"}}
    guarded.client.post("/api/v1/observations", json=body, headers=bearer(secrets["vision"])).raise_for_status()
    path = "/api/v1/runs/vision/labelled"
    for who, status in (("speech", 404), ("reader", 403)):
        assert guarded.client.patch(path, json={"title": "x"}, headers=bearer(secrets[who])).status_code == status
        assert guarded.client.delete(path, headers=bearer(secrets[who])).status_code == status
    answer = guarded.client.patch(path, json={"tags": ["prod"]}, headers=bearer(secrets["vision"]))
    assert answer.json()["tags"] == ["prod"] and answer.json()["label"] == "vision/labelled"
    choices = guarded.client.get("/api/v1/run-choices", headers=bearer(secrets["speech"])).json()
    assert choices["tags"] == [] and set(choices["projects"]) <= {"speech"}
    asked = guarded.client.get("/api/v1/runs?project=vision", headers=bearer(secrets["speech"])).json()
    assert all(run["project"] == "speech" for run in asked["runs"])
    assert guarded.client.delete(path, headers=bearer(secrets["vision"])).status_code == 204


def test_a_card_is_seen_and_embedded_by_its_link_alone_and_no_other_page(
    guarded: Served, secrets: dict[str, str]
) -> None:
    body = {**BODY, "start": {**BODY["start"], "job": "shared"}}
    guarded.client.post("/api/v1/observations", json=body, headers=bearer(secrets["vision"])).raise_for_status()
    path = "/api/v1/runs/vision/shared"
    assert guarded.client.get("/cards/None").status_code == guarded.client.get("/cards/").status_code == 404
    guarded.client.patch(path, json={"is_shared": True}, headers=bearer(secrets["vision"])).raise_for_status()
    card = guarded.client.get(path, headers=bearer(secrets["vision"])).json()["card"]
    page = guarded.client.get(card)
    assert page.status_code == 200 and "shared" in page.text and secrets["vision"] not in page.text
    assert "frame-ancestors *" in page.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in guarded.client.get("/login").headers["content-security-policy"]
    guarded.client.patch(path, json={"is_shared": False}, headers=bearer(secrets["vision"])).raise_for_status()
    assert guarded.client.get(card).status_code == 404


def test_tokens_are_managed_with_a_token_of_all_projects(guarded: Served, secrets: dict[str, str]) -> None:
    for who in ("vision", "reader"):
        assert guarded.client.get("/api/v1/tokens", headers=bearer(secrets[who])).status_code == 403
        made = guarded.client.post("/api/v1/tokens", json={"name": "mine"}, headers=bearer(secrets[who]))
        assert made.status_code == 403
    every = bearer(secrets["all"])
    for wrong in (
        {},
        {"name": ""},
        {"name": "x", "scopes": ["admin"]},
        {"name": "x", "project": 3},
        {"name": "reader"},
    ):
        assert guarded.client.post("/api/v1/tokens", json=wrong, headers=every).status_code == 422, wrong
    made = guarded.client.post("/api/v1/tokens", json={"name": "new", "scopes": ["read"]}, headers=every)
    assert made.status_code == 201
    assert guarded.client.get("/api/v1/runs", headers=bearer(made.json()["token"])).status_code == 200
    listed = guarded.client.get("/api/v1/tokens", headers=every)
    token = next(token for token in listed.json()["tokens"] if token["name"] == "new")
    assert token["used_at_seconds"] is not None and made.json()["token"] not in listed.text
    assert guarded.client.delete("/api/v1/tokens/new", headers=every).status_code == 204
    assert guarded.client.delete("/api/v1/tokens/new", headers=every).status_code == 404
