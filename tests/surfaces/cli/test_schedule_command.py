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


TRACE = """id,submit_seconds,duration_seconds,gpus
a,1000,600,1
b,1010,,1
c,1020,nan,2
d,1030,300,two
a,1040,300,1
f,900,300,1
g,1060,300,8
h,1070,300,2
"""


def test_a_trace_is_played_and_its_gaps_are_a_line_each(command: Command, queue: Path) -> None:
    trace = queue.with_name("trace.csv")
    trace.write_text(TRACE)
    ran = command(f"schedule simulate {trace} --machines {queue} --policy fifo,atc --json")
    assert ran.code == 2
    assert [told["jobs"] for told in ran.json["policies"].values()] == [2, 2]
    lines = [line.removeprefix(f"epochcast: {trace}: ") for line in ran.err.splitlines()]
    assert lines == [
        "row 2 of the trace has no duration_seconds",
        "duration_seconds of row 3 of the trace is nan; a number is needed",
        "gpus of row 4 of the trace is 'two'; a number is needed",
        "two rows of the trace are called 'a'; the second is row 5",
        "row 6 of the trace is submitted before the first; sort it by submit_seconds",
        "row 7 of the trace needs 8 GPUs; the largest machine has 2",
    ]


def test_the_policies_are_listed(command: Command) -> None:
    names = [row["name"] for row in command("schedule policies --json").json["policies"]]
    assert "atc_rollout" in names and "tiresias" in names
    assert "finish-time fairness" in command("schedule policies").out


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("schedule simulate no.json", "cannot read no.json"),
        ("schedule simulate {queue} --policy atc_rolout", "near: atc_rollout"),
        ("schedule simulate {queue} --policy ,", "policies must name a policy"),
        ("schedule simulate {queue} --preemption maybe", "with, without or both"),
        ("schedule simulate {queue} --error -1", "--error must be at least 0, got -1"),
        ("schedule simulate {queue} --every 0s", "--every must be above 0"),
        ("schedule simulate {queue} --gantt g.doc", "known endings"),
        ("schedule simulate {queue} --machines {queue}", "--machines is for a trace"),
        ("schedule simulate {trace}", "say on which machines"),
        ("schedule simulate {trace} --machines no.toml", "cannot read no.toml"),
        ("schedule simulate {trace} --machines {trace}", "trace.csv is not JSON"),
        ("schedule simulate {bad} --machines {queue}", "bad.csv has no column gpus; a trace has submit_seconds"),
    ],
)
def test_mistakes_are_one_line(command: Command, queue: Path, line: str, words: str) -> None:
    trace, bad = queue.with_name("trace.csv"), queue.with_name("bad.csv")
    trace.write_text(TRACE)
    bad.write_text("submit_seconds,duration_seconds\n0,60\n")
    ran = command(line.format(queue=queue, trace=trace, bad=bad))
    assert ran.code == 2
    assert words in ran.err and ran.err.count("\n") == 1
