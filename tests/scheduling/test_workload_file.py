import json
import re
from pathlib import Path
from typing import Any

import pytest

from epochcast.errors import BadInput
from epochcast.scheduling.workload import Choice
from epochcast.scheduling.workload_file import read_workload, workload_of

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
    assert workload.jobs[0].seconds[Choice("V100", 2)].mid == 30


def test_what_a_policy_sees_may_differ_from_what_happens() -> None:
    job = {**JOB, "forecast_seconds": {"V100": {"1": [40, 45, 60]}}}
    workload = workload_of(document(jobs=[job]))
    assert workload.jobs[0].seconds[Choice("V100", 1)].high == 60
    assert workload.run_seconds(workload.jobs[0], Choice("V100", 1)) == 50


def test_least_and_most_gpus_restrict_the_choices() -> None:
    workload = workload_of(document(jobs=[{**JOB, "max_gpus": 1}]))
    assert set(workload.jobs[0].seconds) == {Choice("V100", 1)}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"jobs": [{**JOB, "deadline_seconds": -5}]}, "job 'a': its deadline (-5 s) is before it is submitted"),
        ({"jobs": [JOB, JOB]}, "two jobs are called 'a'"),
        ({"jobs": [{**JOB, "run_seconds": {"H100": {"1": 5}}}]}, "job 'a' fits on no machine"),
        ({"jobs": [{**JOB, "run_seconds": {"V100": {"1": -5}}}]}, "job 'a': -5 seconds on 1xV100"),
        ({"jobs": [{**JOB, "run_seconds": {"V100": {"x": 5}}}]}, "'x' is no number of GPUs"),
        ({"jobs": [{**JOB, "run_seconds": {"V100": {"1": "5"}}}]}, "seconds or [low, mid, high] are needed"),
        ({"jobs": [{**JOB, "run_seconds": 7}]}, "is no object of devices"),
        ({"jobs": [{k: v for k, v in JOB.items() if k != "run_seconds"}]}, "job 'a' has no run_seconds"),
        ({"jobs": [{**JOB, "submit_seconds": None}]}, "submit_seconds of job 'a' is None"),
        ({"jobs": [{**JOB, "submit_seconds": float("nan")}]}, "submit_seconds is nan"),
        ({"jobs": [7]}, "job 1 is no object"),
        ({"jobs": 7}, "jobs is no list"),
        ({"nodes": 0}, "nodes is 0; a whole number of at least 1"),
        ({"node_types": []}, "no node type is given"),
        ({"node_types": [{**TYPE, "gpus": 0}]}, "gpus of node type 'n1' is 0"),
        ({"node_types": [{**TYPE, "dollars_per_hour": -1}]}, "a price is at least 0"),
        ({"node_types": [TYPE, TYPE]}, "two node types are called 'n1'"),
        ({"failures": [{"machine": 1}]}, "a failure is an object with at_seconds"),
    ],
)
def test_a_mistake_is_one_line_that_names_the_row(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=re.escape(message)):
        workload_of(document(**changes))
