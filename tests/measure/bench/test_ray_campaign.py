"""A campaign on a real Ray cluster of several nodes: spread, exclusive, redone where a node is lost, resumable."""

import os
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.ports import free_port

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
ray = pytest.importorskip("ray")

from epochcast.errors import BadInput, MissingExtra  # noqa: E402
from epochcast.measure.bench import campaign  # noqa: E402
from epochcast.measure.bench.campaign import BenchQuestion  # noqa: E402
from epochcast.measure.bench.measurements import Appender, MeasuredMachine, Measurement, read  # noqa: E402
from epochcast.measure.bench.ray_campaign import fleet  # noqa: E402

HERE = MeasuredMachine("here", {})
STORE_BYTES = 100 * 2**20


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Three nodes with a processor each; the first has two GPUs, which are only counted."""
    from ray.cluster_utils import Cluster

    node: dict[str, Any] = {"num_cpus": 1, "object_store_memory": STORE_BYTES, "include_dashboard": False}
    agent = {"dashboard_agent_listen_port": free_port()}  # another cluster may run beside this one
    made: Any = Cluster(initialize_head=True, head_node_args={**node, **agent, "num_gpus": 2})
    try:
        for _ in range(2):
            made.add_node(**node, num_gpus=0)
        yield made
    finally:
        made.shutdown()


@pytest.fixture(scope="module")
def story(cluster: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, campaign.CampaignReport]:
    """A campaign that is interrupted, then resumed; a node is killed in the middle, and one question kills workers.

    The file, how many rows the interrupted half left in it, and the report of the second half.
    """
    path = tmp_path_factory.mktemp("story") / "m.jsonl"

    def interrupt(_: float, rows: int) -> None:
        if rows == 3:
            raise KeyboardInterrupt

    def kill_one(_: float, rows: int) -> None:
        if rows == 4:
            cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)

    with pytest.raises(KeyboardInterrupt):
        run(cluster, questions(24), path, measure=pretended(), progress=interrupt)
    before = lines(path)
    asked = [BenchQuestion("op", "op/deadly", {"deadly": True}), *questions(24)]
    return path, before, run(cluster, asked, path, measure=pretended(), progress=kill_one, resume=True)


def questions(count: int) -> list[BenchQuestion]:
    return [BenchQuestion("op", f"op/{number}", {"number": number}) for number in range(count)]


def pretended(seconds: float = 0.2, meeting: Path | None = None) -> Callable[[BenchQuestion], Measurement]:
    """A measurement that takes so long, says when, and kills its process where the question is "deadly".

    With a place to meet, it first waits until two devices measure at once.
    """

    def measure(question: BenchQuestion) -> Measurement:
        from time import sleep, time

        began = time()
        if meeting is not None:
            (meeting / str(os.getpid())).touch()
            while len(list(meeting.iterdir())) < 2 and time() < began + 60:
                sleep(0.05)
        if question.ask.get("deadly"):
            os._exit(1)
        sleep(seconds)
        gpu = os.environ.get("CUDA_VISIBLE_DEVICES", "")
        details = {"began": began, "ended": time(), "gpu": gpu, "limit": question.limit_seconds}
        machine = MeasuredMachine("there", {})
        return Measurement(question.kind, question.key, machine, question.ask, seconds, repeats=1, details=details)

    return measure


def run(cluster: Any, asked: list[BenchQuestion], path: Path, **more: Any) -> campaign.CampaignReport:
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


def test_an_interrupted_campaign_goes_on_where_it_was(story: tuple[Path, int, campaign.CampaignReport]) -> None:
    _, before, report = story
    assert (before, report.measured_before, report.measured, report.left) == (3, 3, 22, 0)


def test_the_work_of_a_lost_node_is_redone_and_no_row_is_doubled(
    story: tuple[Path, int, campaign.CampaignReport],
) -> None:
    path, *_ = story
    assert lines(path) == 25
    assert keys(path) == sorted(["op/deadly", *(question.key for question in questions(24))])


def test_a_node_measures_one_thing_at_a_time(story: tuple[Path, int, campaign.CampaignReport]) -> None:
    nodes = by(tuple(row for row in read(story[0]).rows if row.failed is None), "node")
    assert len(nodes) >= 2
    assert not any(overlapping(rows) for rows in nodes.values())


def test_a_question_that_kills_its_worker_is_a_failed_row(story: tuple[Path, int, campaign.CampaignReport]) -> None:
    (failed,) = [row.failed for row in read(story[0]).rows if row.failed]
    assert failed.startswith("unsupported: its worker process died 3 times")


def test_each_gpu_is_one_device_and_never_shared(cluster: Any, tmp_path: Path) -> None:
    meeting = tmp_path / "meeting"
    meeting.mkdir()
    run(cluster, questions(8), tmp_path / "m.jsonl", device="cuda", measure=pretended(0.1, meeting))
    gpus = by(read(tmp_path / "m.jsonl").rows, "gpu")
    assert sorted(gpus) == ["0", "1"]
    assert not any(overlapping(rows) for rows in gpus.values())


def test_a_budget_ends_it_and_the_rest_is_left(cluster: Any, tmp_path: Path) -> None:
    report = run(cluster, questions(500), tmp_path / "m.jsonl", measure=pretended(), budget_seconds=3.0)
    assert report.left > 0
    assert report.seconds < 30


def test_ops_are_measured_on_the_nodes(story: object, cluster: Any, tmp_path: Path) -> None:
    """After the story: with two of the three nodes."""
    from epochcast.measure.bench.ops_bench import questions as ops

    asked = ops("cpu", draws=20)[:4]
    report = run(cluster, asked, tmp_path / "m.jsonl")
    rows = read(tmp_path / "m.jsonl").rows
    assert (report.measured, report.failed) == (4, 0)
    assert sorted(row.key for row in rows) == sorted(question.key for question in asked)
    assert all(row.machine.facts["torch"] for row in rows)


# The messages a user meets.


def test_no_cluster_at_the_address() -> None:
    with pytest.raises(BadInput, match=r"no Ray cluster answers at '127.0.0.1:9'"), fleet("127.0.0.1:9"):
        pass


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"pip install '\.\[ray\]'"), fleet():
        pass
