"""A campaign on a real Ray cluster of several nodes: spread, exclusive, redone where a node is lost, resumable."""

import os
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
ray = pytest.importorskip("ray")

from epochcast.bench import campaign  # noqa: E402
from epochcast.bench.campaign import Question  # noqa: E402
from epochcast.bench.measurements import Appender, Machine, Measurement, read  # noqa: E402
from epochcast.bench.ray_engine import fleet  # noqa: E402
from epochcast.errors import BadInput, MissingExtra  # noqa: E402

HERE = Machine("here", {})
STORE_BYTES = 100 * 2**20


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head without processors, two nodes with one, one with two GPUs that are only counted."""
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 0, "num_gpus": 0, "object_store_memory": STORE_BYTES, "include_dashboard": False}
    made = Cluster(initialize_head=True, head_node_args=head)
    try:
        for gpus in (0, 0, 2):
            made.add_node(num_cpus=1, num_gpus=gpus, object_store_memory=STORE_BYTES)
        yield made
    finally:
        made.shutdown()


def questions(count: int) -> list[Question]:
    return [Question("op", f"op/{number}", {"number": number}) for number in range(count)]


def pretended(seconds: float = 0.2) -> Callable[[Question], Measurement]:
    """A measurement that takes so long, says when, and kills its process where the question is "deadly"."""

    def measure(question: Question) -> Measurement:
        from time import sleep, time

        began = time()
        if question.ask.get("deadly"):
            os._exit(1)
        sleep(seconds)
        gpu = os.environ.get("CUDA_VISIBLE_DEVICES", "")
        details = {"began": began, "ended": time(), "gpu": gpu, "limit": question.limit_seconds}
        machine = Machine("there", {})
        return Measurement(question.kind, question.key, machine, question.ask, seconds, repeats=1, details=details)

    return measure


def run(cluster: Any, asked: list[Question], path: Path, **more: Any) -> campaign.Report:
    fleet_options = {name: more.pop(name) for name in ("device", "measure", "budget_seconds") if name in more}
    with Appender(path) as out, fleet(cluster.address, **fleet_options) as engine:
        return campaign.run(asked, out, HERE, engine=engine, **more)


def keys(path: Path) -> list[str]:
    return sorted(row.key for row in read(path).rows)


def lines(path: Path) -> int:
    return path.read_text().count('"kind":"op"')


def overlapping(rows: list[Measurement]) -> list[tuple[float, float]]:
    spans = sorted((row.details["began"], row.details["ended"]) for row in rows)
    return [(one[1], two[0]) for one, two in pairwise(spans) if two[0] < one[1]]


def by(rows: tuple[Measurement, ...], what: str) -> dict[str, list[Measurement]]:
    groups: dict[str, list[Measurement]] = {}
    for row in rows:
        groups.setdefault(row.details[what], []).append(row)
    return groups


def test_ops_are_measured_on_the_nodes(cluster: Any, tmp_path: Path) -> None:
    from epochcast.bench.ops import questions as ops

    asked = ops("cpu", draws=20)[:4]
    report = run(cluster, asked, tmp_path / "m.jsonl")
    rows = read(tmp_path / "m.jsonl").rows
    assert (report.measured, report.failed) == (4, 0)
    assert sorted(row.key for row in rows) == sorted(question.key for question in asked)
    assert all(row.machine.facts["torch"] for row in rows)


def test_each_gpu_is_one_device_and_never_shared(cluster: Any, tmp_path: Path) -> None:
    run(cluster, questions(8), tmp_path / "m.jsonl", device="cuda", measure=pretended())
    gpus = by(read(tmp_path / "m.jsonl").rows, "gpu")
    assert sorted(gpus) == ["0", "1"]
    assert not any(overlapping(rows) for rows in gpus.values())


def test_an_interrupted_campaign_goes_on_where_it_was(cluster: Any, tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"

    def interrupt(_: float, rows: int) -> None:
        if rows == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(cluster, questions(9), path, measure=pretended(), progress=interrupt)
    assert len(keys(path)) == 3
    report = run(cluster, questions(9), path, measure=pretended(), resume=True)
    assert (report.known, report.measured, report.left) == (3, 6, 0)
    assert lines(path) == 9 == len(keys(path))


def test_a_question_that_kills_its_worker_is_a_failed_row(cluster: Any, tmp_path: Path) -> None:
    deadly = Question("op", "op/deadly", {"deadly": True})
    report = run(cluster, [deadly, *questions(3)], tmp_path / "m.jsonl", measure=pretended(0.05))
    assert (report.measured, report.failed) == (4, 1)
    (failed,) = [row.failed for row in read(tmp_path / "m.jsonl").rows if row.failed]
    assert failed.startswith("unsupported: its worker died 3 times")


def test_a_budget_ends_it_and_the_rest_is_left(cluster: Any, tmp_path: Path) -> None:
    report = run(cluster, questions(500), tmp_path / "m.jsonl", measure=pretended(), budget_seconds=3.0)
    assert report.left > 0
    assert report.seconds < 30


def test_the_work_of_a_lost_node_is_redone_elsewhere(cluster: Any, tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"

    def kill_one(_: float, rows: int) -> None:
        if rows == 4:
            cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)

    report = run(cluster, questions(20), path, measure=pretended(0.3), progress=kill_one)
    assert (report.measured, report.failed, report.left) == (20, 0, 0)
    assert lines(path) == 20 == len(keys(path))
    nodes = by(read(path).rows, "node")
    assert len(nodes) == 3
    assert not any(overlapping(rows) for rows in nodes.values())


# The messages a user meets.


def test_no_cluster_at_the_address() -> None:
    with pytest.raises(BadInput, match=r"no Ray cluster answers at '127.0.0.1:9'"), fleet("127.0.0.1:9"):
        pass


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"epochcast\[ray\]"), fleet():
        pass
