"""Queues over HTTP: those of the store, and queues that are sent."""

from pathlib import Path
from typing import Any

import httpx

from epochcast.observe.store.store_opening import open_store
from epochcast.schedule.queue_file import queue_of
from epochcast.schedule.stored_queue import save_queue

QUEUE: dict[str, Any] = {
    "nodes": 1,
    "node_types": [{"name": "NC6", "device": "K80", "gpus": 1, "dollars_per_hour": 0.56}],
    "jobs": [
        {
            "id": name,
            "submit_seconds": 0,
            "deadline_seconds": 9000,
            "tardiness_dollars_per_second": 0.01,
            "run_seconds": {"K80": {"1": 3600}},
        }
        for name in ("a", "b")
    ],
}


def test_a_queue_of_the_store_is_shown_as_it_will_go_on(client: httpx.Client, folder: Path) -> None:
    assert client.get("/api/v1/queues").json() == {"queues": []}
    assert "No queue yet" in client.get("/queue").text
    commanded = {**QUEUE, "jobs": [{**job, "command": ["true"]} for job in QUEUE["jobs"]]}
    with open_store(str(folder / "store.db")) as store:
        save_queue(store, "lab", queue_of(commanded, folder))
    assert client.get("/api/v1/queues").json() == {"queues": ["lab"]}
    told = client.get("/api/v1/queues/lab").json()
    assert {line["job"] for line in told["timetable"]} == {"a", "b"}
    assert "lab" in client.get("/queue").text
    assert client.get("/api/v1/queues/other").status_code == 404


def test_a_queue_that_is_sent_is_planned_and_played(client: httpx.Client) -> None:
    planned = client.post("/api/v1/schedule/plan", json=QUEUE)
    assert planned.status_code == 200, planned.text
    assert [line["job"] for line in planned.json()["timetable"]] == ["a", "b"]
    asked = client.post("/api/v1/schedule/plan", json={**QUEUE, "policy": "edf", "draws": 5}).json()
    assert (asked["policy"], asked["draws"]) == ("edf", 5)
    refused = client.post("/api/v1/schedule/plan", json={**QUEUE, "draws": 0})
    assert refused.status_code == 422 and "draws must be at least 1, got 0" in refused.json()["detail"]
    played = client.post("/api/v1/schedule/simulate", json={**QUEUE, "policies": ["fifo", "edf"]}).json()
    assert set(played["policies"]) == {"fifo", "edf"} and played["policies"]["fifo"]["jobs"] == 2


def test_a_sent_queue_neither_runs_nor_reads_anything(client: httpx.Client) -> None:
    for told in ({"command": "rm -rf /"}, {"folder": "/etc"}, {"model": "evil.py:f"}, {"model": "/etc/passwd.json"}):
        answer = client.post("/api/v1/schedule/plan", json={**QUEUE, "jobs": [{**QUEUE["jobs"][0], **told}]})
        assert answer.status_code == 422, told
    assert client.post("/api/v1/schedule/plan", json={"jobs": 3}).status_code == 422
    many = {**QUEUE, "jobs": QUEUE["jobs"] * 300}
    assert "at most 500 jobs" in client.post("/api/v1/schedule/plan", json=many).json()["detail"]
