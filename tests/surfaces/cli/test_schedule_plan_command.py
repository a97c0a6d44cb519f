"""`schedule plan` and `schedule queue`: a queue now as a timetable."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from epochcast.observe.store.store_opening import open_store
from epochcast.schedule.queue_file import queue_of
from epochcast.schedule.stored_queue import save_queue

from .conftest import Command

EXAMPLE = Path(__file__).parents[3] / "examples" / "queue.toml"
TYPES = [{"name": f"v{n}", "device": "V100", "gpus": n, "dollars_per_hour": 3.6 * n} for n in (1, 2)]
JOB = {
    "tardiness_dollars_per_second": 0.01,
    "run_seconds": {"V100": {"1": [2700, 3600, 5400]}},
    "command": "python t.py",
}


def job(name: str, **more: Any) -> dict[str, Any]:
    return {**JOB, "id": name, "deadline": "3h", **more}


def document(*jobs: dict[str, Any], **more: Any) -> dict[str, Any]:
    running = {"node_type": "v1", "gpus": 1, "done_fraction": 0.5}
    rows = jobs or (job("first", running=running), job("second"), job("third", command=["python", "t.py", "a b"]))
    return {"nodes": 1, "start_at": "2026-11-17T09:00:00+01:00", "node_types": TYPES[:1], "jobs": list(rows), **more}


@pytest.fixture
def queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One machine of one GPU; a job runs on it and two wait. It is 09:00."""
    monkeypatch.setenv("EPOCHCAST_NOW", "2026-11-17T09:00:00+01:00")
    path = tmp_path / "queue.json"
    path.write_text(json.dumps(document()), encoding="utf-8")
    return path


def test_plan_has_the_contract_and_times_with_a_zone(command: Command, queue: Path) -> None:
    ran = command(f"schedule plan {queue} --policy edf --draws 39 --json")
    body = ran.json
    assert ran.code == 0 and ran.err == ""
    assert [row["job"] for row in body["timetable"]] == ["first", "second", "third"]
    for row in body["timetable"]:
        assert {"job", "node_type", "gpus", "start_at", "end_at", "end_at_low", "end_at_high", "waits_for"} <= set(row)
        low, mid, high = (datetime.fromisoformat(row[f"end_at{part}"]) for part in ("_low", "", "_high"))
        assert low < mid < high and mid.utcoffset() is not None
    second = body["timetable"][1]
    assert second["waits_for"] == ["first"]
    assert datetime.fromisoformat(second["start_at"]) == datetime.fromisoformat("2026-11-17T09:30:00+01:00")
    assert body["machines"][0]["node_type"] == "v1" and body["machines"][0]["count"] == 1
    between = body["dollars_interval"]
    assert between["low"] <= body["dollars"] == between["mid"] <= between["high"]


def test_queue_has_the_contract_and_one_job_can_be_asked_for(command: Command, queue: Path) -> None:
    rows = command(f"schedule queue {queue} --policy edf --draws 39 --json").json["jobs"]
    assert [(row["job"], row["state"], row["position"]) for row in rows] == [
        ("first", "running", 0),
        ("second", "waiting", 1),
        ("third", "waiting", 2),
    ]
    assert {"start_at", "start_at_low", "start_at_high", "waits_for"} <= set(rows[0])
    assert rows[2]["waits_for"] == ["second"] and rows[2]["start_at_low"] < rows[2]["start_at_high"]
    one = command(f"schedule queue {queue} --policy edf --draws 39 --job third --json").json
    assert one["jobs"] == rows[2:]


def test_tables_fit_in_80_columns_and_say_who_waits_for_whom(
    command: Command, queue: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    ran = command(f"schedule plan {queue} --policy edf --draws 39 --explain")
    for words in ("second waits for 1xV100, which first has until", "90 % of the end", "39 simulated runs", "Machines"):
        assert words in ran.out
    place = command(f"schedule queue {queue} --policy edf --draws 39")
    assert "second" in place.out and "waiting" in place.out
    assert all(len(line) <= 80 for line in (ran.out + place.out).splitlines())


def test_a_chart_and_files_for_skypilot_and_kueue_are_written(command: Command, queue: Path, tmp_path: Path) -> None:
    sky, kube = tmp_path / "sky", tmp_path / "kube"
    ran = command(
        f"schedule plan {queue} --policy edf --draws 9 --gantt {tmp_path / 'g.svg'} --skypilot {sky} --kueue {kube} "
        "--queue lab --image train:1 --json"
    )
    assert ran.code == 0
    assert "second" in (tmp_path / "g.svg").read_text(encoding="utf-8")
    names = ["001-first.yaml", "002-second.yaml", "003-third.yaml"]
    assert sorted(path.name for path in sky.iterdir()) == sorted(path.name for path in kube.iterdir()) == names
    assert ran.json["files"] == [str(folder / name) for folder in (sky, kube) for name in names]
    task = (sky / "003-third.yaml").read_text(encoding="utf-8")
    assert 'accelerators: "V100:1"' in task and "run: \"python t.py 'a b'\"" in task
    manifest = (kube / "002-second.yaml").read_text(encoding="utf-8")
    assert 'kueue.x-k8s.io/queue-name: "lab"' in manifest and "activeDeadlineSeconds: 5400" in manifest
    assert "waits for 1xV100, held by first" in manifest


def test_a_job_without_a_command_has_no_file_and_the_others_do(command: Command, queue: Path, tmp_path: Path) -> None:
    rows = (job("a"), {key: value for key, value in job("b").items() if key != "command"})
    queue.write_text(json.dumps(document(*rows)), encoding="utf-8")
    ran = command(f"schedule plan {queue} --policy edf --draws 1 --skypilot {tmp_path / 'sky'} --json")
    assert ran.code == 2 and "job 'b': it has no start command" in ran.err
    assert [path.name for path in (tmp_path / "sky").iterdir()] == ["001-a.yaml"]


@pytest.mark.parametrize(
    ("flags", "code", "words"),
    [
        ("--deadline 12h --budget 100", 0, ""),
        ("--deadline 1h", 3, "after the deadline"),
        ("--budget 1", 3, "machines may cost"),
    ],
)
def test_limits_of_the_command_line_set_the_exit_code(
    command: Command, queue: Path, flags: str, code: int, words: str
) -> None:
    ran = command(f"schedule plan {queue} --policy edf --draws 19 --json {flags}")
    assert ran.code == code and words in ran.err
    assert bool(ran.json["exceeded"]) == (code == 3)


def test_a_row_that_makes_no_sense_is_one_line_and_the_others_are_planned(command: Command, queue: Path) -> None:
    rows = (job("a"), job("b", run_seconds={"H100": {"1": 5}}), job("c", budget_dollars=0.01))
    queue.write_text(json.dumps(document(*rows)), encoding="utf-8")
    for verb, key in (("plan", "timetable"), ("queue", "jobs")):
        ran = command(f"schedule {verb} {queue} --policy edf --draws 1 --json")
        assert ran.code == 2
        assert [row["job"] for row in ran.json[key]] == ["a"]
        assert [row["job"] for row in ran.json["refused"]] == ["b", "c"]
        first, second = ran.err.splitlines()
        assert "queue.json: job 'b' does not fit on any machine of the list" in first
        assert "cannot be finished within its budget_dollars" in second
    simulated = command(f"schedule simulate {queue} --policy edf --no-bound --json")
    assert simulated.code == 2 and simulated.json["policies"]["edf"]["jobs"] == 1


@pytest.mark.parametrize("now", ["2026-11-17T09:00:00+00:00", "2027-02-28T23:59:00+05:30", "2031-06-01T00:00:00-08:00"])
def test_the_queue_of_the_examples_is_in_time_on_any_day(
    command: Command, monkeypatch: pytest.MonkeyPatch, now: str
) -> None:
    monkeypatch.setenv("EPOCHCAST_NOW", now)
    ran = command(f"schedule plan {EXAMPLE} --draws 9 --json")
    assert (ran.code, ran.err) == (0, "")
    jobs = {one["job"]: one for one in ran.json["timetable"]}
    assert set(jobs) == {"segment", "imagenet", "bert", "detector", "distill"}
    late = {name: one["end_at"] for name, one in jobs.items() if one["end_at"] > one["deadline_at"]}
    assert late == {}


def test_times_of_a_queue_may_count_from_now(command: Command, queue: Path) -> None:
    later = job("later", submit_at="in 2h", deadline="+4h")
    queue.write_text(json.dumps({key: value for key, value in document(later).items() if key != "start_at"}))
    (line,) = command(f"schedule plan {queue} --json").json["timetable"]
    assert line["deadline_at"] == "2026-11-17T14:00:00+00:00"
    assert line["start_at"] >= "2026-11-17T10:00:00+00:00"


def test_seconds_without_an_interval_are_told_and_can_be_given_one(command: Command, queue: Path) -> None:
    queue.write_text(json.dumps(document(job("a", run_seconds={"V100": {"1": 3600}}))), encoding="utf-8")
    exact = command(f"schedule plan {queue} --policy edf --json").json
    assert "the seconds of all jobs have no interval" in exact["warnings"][0]
    assert exact["timetable"][0]["end_at_low"] == exact["timetable"][0]["end_at_high"]
    spread = command(f"schedule plan {queue} --policy edf --error 0.2 --json").json
    assert spread["warnings"] == []
    assert spread["timetable"][0]["end_at_low"] < spread["timetable"][0]["end_at_high"]


def test_without_a_file_the_nearest_queue_is_planned(
    command: Command, queue: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "deep")
    assert len(command("schedule plan --policy edf --draws 1 --json").json["timetable"]) == 3


def test_a_queue_that_is_run_is_planned_from_the_store(
    command: Command, queue: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = tmp_path / "store.db"
    at = datetime.fromisoformat("2026-11-17T09:00:00+01:00").timestamp()
    rows = [{**job(name), "deadline_seconds": 9000} for name in ("a", "b")]
    plain = {
        "nodes": 1,
        "node_types": TYPES[:1],
        "jobs": [{k: v for k, v in r.items() if k != "deadline"} for r in rows],
    }
    with open_store(str(database)) as store:
        save_queue(store, "lab", queue_of(plain, tmp_path), at)
    monkeypatch.setenv("EPOCHCAST_NOW", "2026-11-17T10:00:00+01:00")
    body = command(f"schedule queue --run lab --database {database} --policy edf --draws 9 --json").json
    assert [(row["job"], row["state"], row["position"]) for row in body["jobs"]] == [
        ("a", "waiting", 1),
        ("b", "waiting", 2),
    ]
    assert "no scheduler has written to this queue for 1 h" in body["warnings"][0]
    planned = command(f"schedule plan --run lab --database {database} --policy edf --draws 9 --json").json
    assert planned["timetable"][1]["waits_for"] == ["a"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("schedule plan no.json", "cannot read no.json"),
        ("schedule plan {queue} --policy atc_rolout", "near: atc_rollout"),
        ("schedule plan {queue} --preemption both", "with or without"),
        ("schedule plan {queue} --draws 0", "--draws must be at least 1, got 0"),
        ("schedule plan {queue} --every 0s", "--every must be above 0"),
        ("schedule plan {queue} --error 9", "--error must be at most 3, got 9"),
        ("schedule plan {queue} --budget 0", "above 0"),
        ("schedule plan {queue} --at someday", "'someday' is not a time"),
        ("schedule plan {queue} --gantt g.doc", "known endings"),
        ("schedule plan {queue} --kueue k", "give --queue and --image"),
        ("schedule plan {queue} --run lab", "not both"),
        ("schedule queue --run lab --database {queue}x", "there is no store yet"),
        ("schedule queue {queue} --policy edf --draws 1 --job forth", "no job in the queue called 'forth'"),
    ],
)
def test_mistakes_are_one_line(command: Command, queue: Path, line: str, words: str) -> None:
    ran = command(line.format(queue=queue))
    assert ran.code == 2
    assert words in ran.err and ran.err.count("\n") == 1
