import json
from pathlib import Path

import pytest

from .conftest import Command


@pytest.fixture
def queue(tmp_path: Path) -> Path:
    """Six jobs, one machine of two GPUs at a time."""
    job = {"tardiness_dollars_per_second": 0.01, "run_seconds": {"V100": {"1": 100, "2": 60}}}
    jobs = [{**job, "id": f"j{n}", "submit_seconds": 5 * n, "deadline_seconds": 5 * n + 150} for n in range(6)]
    types = [{"name": f"v{n}", "device": "V100", "gpus": n, "dollars_per_hour": 3.6 * n} for n in (1, 2)]
    path = tmp_path / "queue.json"
    path.write_text(json.dumps({"nodes": 1, "node_types": types, "jobs": jobs}), encoding="utf-8")
    return path


def test_json_has_the_contract(command: Command, queue: Path) -> None:
    body = command(f"schedule simulate {queue} --policy fifo,atc_rollout --json").json
    assert set(body["policies"]) == {"fifo", "atc_rollout"}
    for told in body["policies"].values():
        assert told["jobs"] == 6
        assert told["dollars"] == pytest.approx(told["machine_dollars"] + told["tardiness_dollars"])
        assert told["dollars"] >= body["bound_dollars"] * (1 - 1e-9)
        assert {"tardiness_seconds", "mean_completion_seconds", "makespan_seconds", "deadline_misses"} <= set(told)
        assert "decision_seconds_p99" in told
    assert body["policies"]["atc_rollout"]["dollars"] < body["policies"]["fifo"]["dollars"]


def test_the_table_has_both_ways_and_the_bound(command: Command, queue: Path) -> None:
    ran = command(f"schedule simulate {queue} --policy edf,atc_rollout --preemption both")
    assert ran.code == 0
    for words in ("atc_rollout", "atc_rollout_keeping", "edf", "no policy can pay less than $"):
        assert words in ran.out


def test_charts_are_written(command: Command, queue: Path, tmp_path: Path) -> None:
    ran = command(f"schedule simulate {queue} --gantt {tmp_path / 'g.svg'} --plot {tmp_path / 'c.svg'}")
    assert ran.code == 0
    assert "late" in (tmp_path / "g.svg").read_text(encoding="utf-8")
    assert "lateness" in (tmp_path / "c.svg").read_text(encoding="utf-8")


def test_error_and_reestimation_change_the_bill_and_not_the_jobs(command: Command, queue: Path) -> None:
    plain, blind, seeing = (
        command(f"schedule simulate {queue} --json --no-bound {more}").json["policies"]["atc_rollout"]
        for more in ("", "--error 0.8 --seed 2", "--error 0.8 --seed 2 --reestimate")
    )
    assert plain["jobs"] == blind["jobs"] == seeing["jobs"] == 6
    assert len({plain["dollars"], blind["dollars"], seeing["dollars"]}) == 3


def test_jobs_may_be_stopped_without_being_resized(command: Command, queue: Path) -> None:
    told = command(f"schedule simulate {queue} --no-bound --no-resizing --json").json["policies"]["atc_rollout"]
    assert told["resizes"] == 0 and told["jobs"] == 6


def test_the_policies_are_listed(command: Command) -> None:
    names = [row["name"] for row in command("schedule policies --json").json["policies"]]
    assert "atc_rollout" in names and "tiresias" in names
    assert "finish-time fairness" in command("schedule policies").out


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("schedule simulate no.json", "cannot read no.json"),
        ("schedule simulate {queue} --policy atc_rolout", "near: atc_rollout"),
        ("schedule simulate {queue} --policy ,", "names no policy"),
        ("schedule simulate {queue} --preemption maybe", "with, without or both"),
        ("schedule simulate {queue} --error -1", "from 0 to 3"),
        ("schedule simulate {queue} --every 0s", "more than 0"),
        ("schedule simulate {queue} --gantt g.doc", "known endings"),
    ],
)
def test_mistakes_are_one_line(command: Command, queue: Path, line: str, words: str) -> None:
    ran = command(line.format(queue=queue))
    assert ran.code == 2
    assert words in ran.err and ran.err.count("\n") == 1
