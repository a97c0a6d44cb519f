import json
import re
from pathlib import Path
from typing import Any

import pytest

from epochcast.errors import BadInput
from epochcast.schedule.queue_document import parse_queue
from epochcast.schedule.workload_file import build_workload, fleet_of, read_workload, rules_of, workload_of
from epochcast.schedule.workload_jobs import GpuChoice

JOB: dict[str, Any] = {
    "id": "a",
    "submit_seconds": 0,
    "deadline_seconds": 100,
    "tardiness_dollars_per_second": 0.01,
    "run_seconds": {"V100": {"1": 50, "2": 30}},
}
TYPE: dict[str, Any] = {"name": "n1", "device": "V100", "gpus": 2, "dollars_per_hour": 1.0}


def document(**changes: Any) -> dict[str, Any]:
    return {"nodes": 2, "node_types": [TYPE], "jobs": [JOB], **changes}


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "queue.json"
    path.write_text(json.dumps(document()), encoding="utf-8")
    workload = read_workload(path)
    assert workload.fleet.nodes == 2
    assert workload.jobs[0].seconds[GpuChoice("V100", 2)].mid == 30


def test_what_a_policy_sees_may_differ_from_what_happens() -> None:
    job = {**JOB, "forecast_seconds": {"V100": {"1": [40, 45, 60]}}}
    workload = workload_of(document(jobs=[job]))
    assert workload.jobs[0].seconds[GpuChoice("V100", 1)].high == 60
    assert workload.run_seconds(workload.jobs[0], GpuChoice("V100", 1)) == 50


def test_least_and_most_gpus_restrict_the_choices() -> None:
    workload = workload_of(document(jobs=[{**JOB, "max_gpus": 1}]))
    assert set(workload.jobs[0].seconds) == {GpuChoice("V100", 1)}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"jobs": [{**JOB, "deadline_seconds": float("nan")}]}, "job 'a': deadline_seconds must be a number, got nan"),
        ({"jobs": [{**JOB, "deadline_seconds": -5}]}, "job 'a': its deadline (-5 s) is before it is submitted"),
        ({"jobs": [JOB, JOB]}, "two jobs are called 'a'"),
        ({"jobs": [{**JOB, "run_seconds": {"H100": {"1": 5}}}]}, "job 'a' does not fit on any machine"),
        ({"jobs": [{**JOB, "run_seconds": {"V100": {"1": -5}}}]}, "job 'a': -5 seconds on 1xV100"),
        ({"jobs": [{**JOB, "run_seconds": {"V100": {"x": 5}}}]}, "'x' is no number of GPUs"),
        (
            {"jobs": [{**JOB, "run_seconds": {"V100": {"1": "5"}}}]},
            "run_seconds.V100.1 must be seconds or [low, mid",
        ),
        ({"jobs": [{**JOB, "run_seconds": 7}]}, "job 'a': run_seconds must be a dictionary, got 7"),
        ({"jobs": [{k: v for k, v in JOB.items() if k != "run_seconds"}]}, "job 'a' has no run_seconds"),
        ({"jobs": [{**JOB, "submit_seconds": None}]}, "job 'a': submit_seconds must be a number, got None"),
        ({"jobs": [{**JOB, "submit_seconds": float("nan")}]}, "job 'a': submit_seconds must be a number, got nan"),
        ({"jobs": [7]}, "job 'row 1' must be an object, got 7"),
        ({"jobs": 7}, "jobs must be a list, got 7"),
        ({"nodes": 0}, "the file: nodes must be at least 1, got 0"),
        ({"node_types": []}, "no node type is given"),
        ({"node_types": [{**TYPE, "gpus": 0}]}, "node type 'n1': gpus must be at least 1, got 0"),
        (
            {"node_types": [{**TYPE, "dollars_per_hour": -1}]},
            "'n1': dollars_per_hour must be at least 0, got -1",
        ),
        ({"node_types": [TYPE, TYPE]}, "two node types are called 'n1'"),
        ({"failures": [{"machine": 1}]}, "a failure: at_seconds is missing"),
        ({"jobs": [{**JOB, "restart_secs": 5}]}, "job 'a': no key called 'restart_secs'; near: restart_seconds"),
        ({"node_types": [{**TYPE, "quotta": 5}]}, "node type 'n1': no key called 'quotta'; near: quota"),
        ({"node_types": [{k: v for k, v in TYPE.items() if k != "device"}]}, "node type 'n1': device is missing"),
        ({"node_types": [7]}, "node type '1' must be an object, got 7"),
        ({"jobs": [{k: v for k, v in JOB.items() if k != "id"}]}, "job 'row 1': id is missing"),
        ({"jobs": [{k: v for k, v in JOB.items() if k != "deadline_seconds"}]}, "deadline_seconds is missing"),
        ({"stragglers": [{"at_seconds": 5, "slowdown": 0.5}]}, "a straggler: slowdown must be at least 1, got 0.5"),
        ({"nods": 5}, "the file: no key called 'nods'"),
        ({"jobs": [{**JOB, "restart_seconds": "5"}]}, "job 'a': restart_seconds must be a number, got '5'"),
        ({"jobs": [{**JOB, "checkpoint_seconds": -1}]}, "job 'a': checkpoint_seconds must be at least 0, got -1"),
        ({"jobs": [{**JOB, "preemptible": 1}]}, "job 'a': preemptible must be true or false, got 1"),
        ({"jobs": [{**JOB, "priority": "high"}]}, "job 'a': priority must be a number, got 'high'"),
        ({"jobs": [{**JOB, "budget_dollars": 0}]}, "job 'a': budget_dollars must be above 0, got 0"),
        ({"jobs": [{**JOB, "min_gpus": 2, "max_gpus": 1}]}, "job 'a': min_gpus is 2, more than its max_gpus, 1"),
        ({"jobs": [{**JOB, "min_gpus": 4}]}, "job 'a': run_seconds has nothing for 4 to"),
        ({"jobs": [{**JOB, "after": "b"}]}, "job 'a': after must be a list of texts, got 'b'"),
        ({"jobs": [{**JOB, "after": ["b"]}]}, "job 'a' comes after 'b', which is not in the queue"),
        ({"jobs": [{**JOB, "id": 7.5}]}, "job 'row 1': id must be a text, got 7.5"),
        ({"node_types": [{**TYPE, "in_house": True}]}, "node type 'n1' is in_house: it needs a count"),
        ({"node_types": [{**TYPE, "count": 2}]}, "node type 'n1': `count` is for in_house machines"),
        ({"node_types": [{**TYPE, "boot_seconds": -2}]}, "node type 'n1': boot_seconds must be at least 0, got -2"),
        ({"decide_on": ["friday"]}, "the file: no trigger in decide_on called 'friday'; known: arrival, completion"),
        ({"every_seconds": 0}, "the file: every_seconds must be above 0, got 0"),
    ],
)
def test_a_mistake_is_one_line_that_names_the_row(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=re.escape(message)):
        workload_of(document(**changes))


def test_other_jobs_go_on_where_one_makes_no_sense() -> None:
    rows = [
        JOB,
        {**JOB, "id": "b", "deadline_seconds": -1},
        {**JOB, "id": "c"},
        {**JOB, "id": "c"},
        {**JOB, "id": "d", "after": ["e"]},
        {**JOB, "id": "e", "after": ["d"]},
        {**JOB, "id": "f", "after": ["d"]},
        {**JOB, "id": 9},
    ]
    read = build_workload(parse_queue(document(jobs=rows)))
    assert [job.id for job in read.workload.jobs] == ["a", "c", "9"]
    assert sorted(one.job for one in read.refused) == ["b", "c", "d", "e", "f"]
    assert "row 4" in read.refused[0].why
    assert "can never begin" in read.refused[-1].why


# by hand: one GPU of a two-GPU machine at a dollar an hour: 50 s cost 50/7200, 30 s on two 30/3600
def test_a_budget_leaves_out_what_costs_more() -> None:
    both, one = (workload_of(document(jobs=[{**JOB, "budget_dollars": budget}])) for budget in (0.01, 0.0075))
    assert set(both.jobs[0].seconds) == {GpuChoice("V100", 1), GpuChoice("V100", 2)}
    assert set(one.jobs[0].seconds) == {GpuChoice("V100", 1)}
    with pytest.raises(BadInput, match=r"job 'a' cannot be finished within its budget_dollars.*on 1xV100, costs"):
        workload_of(document(jobs=[{**JOB, "budget_dollars": 0.005}]))


def test_machines_of_the_house_are_free_unless_they_have_a_price() -> None:
    own = {"name": "own", "device": "V100", "gpus": 2, "in_house": True, "count": 3}
    fleet = fleet_of(parse_queue({"node_types": [own, {**TYPE, "quota": 2}], "jobs": [], "boot_seconds": 60}))
    assert fleet.nodes == 5  # as many as there are
    free, rented = fleet.types
    assert (free.dollars_per_hour, free.quota, free.boot_seconds, free.is_in_house) == (0.0, 3, 0.0, True)
    assert (rented.dollars_per_hour, rented.boot_seconds) == (1.0, 60.0)
    paid = fleet_of(parse_queue({"node_types": [{**own, "dollars_per_hour": 0.4}], "jobs": []}))
    assert paid.types[0].dollars_per_hour == 0.4
    with pytest.raises(BadInput, match="it has no nodes"):
        fleet_of(parse_queue({"node_types": [TYPE], "jobs": []}))


def test_the_file_says_when_decisions_are_made() -> None:
    rules = rules_of(parse_queue(document(decide_on=["completion"], every_seconds=600)))
    assert (rules.on_arrival, rules.on_completion, rules.every_seconds) == (False, True, 600)


def test_a_file_may_be_toml(tmp_path: Path) -> None:
    path = tmp_path / "queue.toml"
    path.write_text(
        'nodes = 1\n[[node_types]]\nname = "n1"\ndevice = "V100"\ngpus = 1\ndollars_per_hour = 1.0\n'
        '[[jobs]]\nid = "a"\ndeadline_seconds = 90\nrun_seconds.V100 = { 1 = 50 }\n',
        encoding="utf-8",
    )
    assert read_workload(path).jobs[0].seconds[GpuChoice("V100", 1)].mid == 50
