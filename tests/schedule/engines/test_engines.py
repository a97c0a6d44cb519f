"""The same stories on every engine: real trainings, stopped, resized, broken off, lost with their node, adopted."""

import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.schedule.engines.conftest import Place, until

import epochcast as ec
from epochcast.decide.handover.ray_job import ray_job
from epochcast.decide.handover.resource_request import request_of
from epochcast.observe.store.store import Store
from epochcast.observe.store.store_opening import open_store
from epochcast.schedule.engines.executor import StartOrder
from epochcast.schedule.job_launcher import SchedulerEvent
from epochcast.schedule.queue_changes import cancel
from epochcast.schedule.queue_file import queue_of
from epochcast.schedule.queue_lease import take_queue
from epochcast.schedule.queue_rows import StoredQueue
from epochcast.schedule.queue_state import Decision, GpuGrant, QueueState
from epochcast.schedule.schedule_request import RunQueueRequest
from epochcast.schedule.scheduler_loop import Scheduler
from epochcast.schedule.stored_queue import load_queue, save_queue
from epochcast.schedule.workload_jobs import GpuChoice

TRAINER = Path(__file__).parents[1] / "trainer.py"
TYPES = [
    {"name": "NC12", "device": "K80", "gpus": 2, "dollars_per_hour": 1.13, "quota": 1},
    {"name": "NV12", "device": "M60", "gpus": 2, "dollars_per_hour": 1.24, "quota": 1},
]
SECONDS = {"K80": {"1": 20, "2": 12}, "M60": {"1": 16, "2": 10}}


class Crash(BaseException):
    """The scheduler dies here."""


class Wishes:
    """A policy that does what a test says: choices by job."""

    def __init__(self, **wishes: GpuChoice) -> None:
        self.wishes = dict(wishes)

    def __call__(self, state: QueueState) -> Decision:
        return {job: GpuGrant(choice) for job, choice in self.wishes.items() if job in state.live}


def training(name: str, steps: int = 40, pause: float = 0.02, **more: Any) -> dict[str, Any]:
    return {
        "id": name,
        "deadline_seconds": 600,
        "run_seconds": SECONDS,
        "restart_seconds": 0.5,
        "grace_seconds": 20,
        "command": [sys.executable, str(TRAINER), str(steps), str(pause)],
        **more,
    }


def document(*jobs: Mapping[str, Any]) -> dict[str, Any]:
    return {"nodes": 2, "node_types": TYPES, "jobs": list(jobs)}


class Story:
    """A queue in a store of its own, and schedulers that come and go."""

    def __init__(self, place: Place, folder: Path, *jobs: Mapping[str, Any]) -> None:
        self.place, self.folder, self.events = place, folder, list[SchedulerEvent]()
        self.store: Store = open_store(str(folder / "store.db"))
        save_queue(self.store, "q", queue_of(document(*jobs), folder))

    def scheduler(self, wishes: Wishes) -> Scheduler:
        held, _ = take_queue(self.store, "q", self.place.engine.name, "wishes")
        return Scheduler(
            held, self.place.engine, wishes, self.events.append, RunQueueRequest(look_seconds=0.2, every_seconds=0.2)
        )

    @property
    def queue(self) -> StoredQueue:
        return load_queue(self.store, "q")

    def state(self, job: str) -> str:
        return self.queue.jobs[job].state

    def starts(self, job: str) -> list[dict[str, Any]]:
        """What the training itself wrote down at each of its starts."""
        file = self.folder / f"checkpoints/{job}/starts"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def ticks_until(self, scheduler: Scheduler, is_so: Any, what: str) -> None:
        def tick() -> bool:
            scheduler.tick()
            return bool(is_so())

        try:
            until(tick, what)
        except AssertionError as error:
            logs = "\n".join(file.read_text()[-500:] for file in sorted(self.folder.glob("logs/*")))
            raise AssertionError(f"{error}\n{[one.line for one in self.events]}\n{logs}") from None


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where nodes can write, too."""
    return tmp_path


K1, K2, M1, M2 = GpuChoice("K80", 1), GpuChoice("K80", 2), GpuChoice("M60", 1), GpuChoice("M60", 2)


def test_a_job_is_stopped_resized_and_goes_on_from_its_checkpoint(place: Place, folder: Path) -> None:
    story = Story(place, folder, training("a", steps=200), training("bad", command="exit 3", retries=1))
    wishes = Wishes(a=K1)
    scheduler = story.scheduler(wishes)
    story.ticks_until(scheduler, lambda: story.queue.jobs["a"].left_fraction < 0.95, "progress is seen in the log")
    wishes.wishes = {"a": M2, "bad": K1}
    story.ticks_until(scheduler, lambda: len(story.starts("a")) == 2, "it goes on with two GPUs elsewhere")
    story.ticks_until(scheduler, lambda: all(one.is_over for one in story.queue.jobs.values()), "both are over")
    first, second = story.starts("a")
    assert (first["GPUS"], second["GPUS"], second["NODE_TYPE"], second["ATTEMPT"]) == ("1", "2", "NV12", "2")
    assert len(second["VISIBLE"].split(",")) == 2
    assert 0 < second["begin"] < 200
    assert (story.state("a"), story.state("bad")) == ("ended", "failed")
    starts = [(one.end, one.exit_code) for one in story.queue.starts if one.job == "bad"]
    assert starts == [("failed", 3), ("failed", 3)]
    assert "exit code 3, and so it did 2 times" in str(story.queue.jobs["bad"].reason)
    run = story.store.run("q/a")
    assert (run.state, run.step, run.total_steps) == ("ended", 200, 200)
    assert all(one.returned_at_seconds is not None for one in story.queue.machines)


def test_jobs_are_cancelled_whether_they_run_or_wait(place: Place, folder: Path) -> None:
    long, follower = training("a", steps=2000), training("c", after=["a"])
    story = Story(place, folder, long, training("b"), follower, training("d", steps=10))
    scheduler = story.scheduler(Wishes(a=K1, d=M1))
    story.ticks_until(scheduler, lambda: story.queue.jobs["a"].left_fraction < 1, "progress is seen in the log")
    told, is_worked_on = cancel(story.store, "q", ["a", "b"])
    assert is_worked_on and [one.is_over for one in told] == [False, False]
    story.ticks_until(scheduler, lambda: all(one.is_over for one in story.queue.jobs.values()), "all are over")
    states = {job: story.state(job) for job in "abcd"}
    assert states == {"a": "cancelled", "b": "cancelled", "c": "failed", "d": "ended"}
    (start,) = (one for one in story.queue.starts if one.job == "a")
    assert (start.end, story.store.run("q/a").state) == ("stopped", "stopped")
    assert (folder / "checkpoints/a/checkpoint.npz").exists()
    assert story.queue.jobs["c"].reason == "it comes after 'a', which was cancelled"


def test_a_start_that_was_asked_for_and_not_written_down_is_adopted(place: Place, folder: Path) -> None:
    story = Story(place, folder, training("a", steps=20))
    scheduler = story.scheduler(Wishes(a=K1))
    asked: list[StartOrder] = []

    class Dying:
        """The engine, in a scheduler that dies when the engine has answered."""

        def __getattr__(self, name: str) -> Any:
            return getattr(place.engine, name)

        def start(self, order: StartOrder) -> str:
            asked.append(order)
            place.engine.start(order)
            raise Crash

    scheduler.launcher.engine = Dying()
    with pytest.raises(Crash):
        scheduler.tick()
    assert [one.state for one in story.queue.starts] == ["asked"]
    scheduler.held.release()
    again = story.scheduler(Wishes(a=K1))
    story.ticks_until(again, lambda: story.state("a") == "ended", "it is found and ends")
    assert len(story.starts("a")) == 1
    assert len(story.queue.starts) == len(asked) == 1
    place.engine.start(asked[0])  # the same key again, late: nothing is started
    story.ticks_until(again, lambda: True, "nothing happens")
    assert len(story.starts("a")) == 1


def test_a_start_that_was_written_down_and_not_asked_for_is_made_up_for(place: Place, folder: Path) -> None:
    story = Story(place, folder, training("a", steps=10))
    scheduler = story.scheduler(Wishes(a=K1))

    class Dead:
        """An engine that the scheduler does not live to ask."""

        def __getattr__(self, name: str) -> Any:
            return getattr(place.engine, name)

        def start(self, order: StartOrder) -> str:
            raise Crash

    scheduler.launcher.engine = Dead()
    with pytest.raises(Crash):
        scheduler.tick()
    scheduler.held.release()
    again = story.scheduler(Wishes(a=K1))
    story.ticks_until(again, lambda: story.state("a") == "ended", "it is started after all")
    assert len(story.starts("a")) == len(story.queue.starts) == 1


def test_a_killed_scheduler_and_a_dead_node_lose_no_job_and_start_none_twice(place: Place, folder: Path) -> None:
    fast_on = {"a": "K80", "b": "M60", "c": "M60"}
    jobs = [
        training(job, 250, run_seconds={device: {"1": 5 if device == fast else 50} for device in ("K80", "M60")})
        for job, fast in fast_on.items()
    ]
    file, store = folder / "q.json", str(folder / "store.db")
    file.write_text(json.dumps(document(*jobs)))
    words = [sys.executable, "-m", "epochcast", "schedule", "run", str(file), "--store", store, *place.flags]
    words += ["--policy", "fifo_shared", "--look", "0.2s", "--every", "1s", "--json"]

    def told(job: str) -> list[dict[str, Any]]:
        starts = folder / f"checkpoints/{job}/starts"
        return [json.loads(line) for line in starts.read_text().splitlines()] if starts.exists() else []

    with subprocess.Popen(words, stdout=subprocess.DEVNULL) as first:
        until(lambda: bool(told("a") and told("b")), "two jobs run", 120)
        first.send_signal(signal.SIGKILL)
    until((folder / "checkpoints/a/checkpoint.npz").exists, "a checkpoint is kept")
    place.kill_node("NC12")
    second = subprocess.run(words, capture_output=True, text=True, timeout=150, check=False)
    place.revive_node("NC12")
    assert second.returncode == 0, second.stdout + second.stderr
    with open_store(store) as opened:
        queue = load_queue(opened, "q")
    assert {job: kept.state for job, kept in queue.jobs.items()} == {"a": "ended", "b": "ended", "c": "ended"}
    for job in fast_on:
        keys = [start.key for start in queue.starts if start.job == job]
        assert [one["START"] for one in told(job)] == keys, second.stdout
    ends = {job: [start.end for start in queue.starts if start.job == job] for job in fast_on}
    assert ends == {"a": ["lost", "finished"], "b": ["finished"], "c": ["finished"]}, second.stdout
    assert told("a")[1]["begin"] >= 10


def test_a_program_of_ray_has_its_gpus_in_a_placement_group_on_one_node(ray_place: Place, folder: Path) -> None:
    program = [sys.executable, str(TRAINER.with_name("engines") / "ray_program.py")]
    story = Story(ray_place, folder, training("a", command=program, ray_workers=True, retries=0))
    scheduler = story.scheduler(Wishes(a=M2))
    story.ticks_until(scheduler, lambda: story.queue.jobs["a"].is_over, "it ends")
    assert story.state("a") == "ended", (folder / "logs/a.log").read_text()
    (first, one), (second, other) = json.loads((folder / "places.json").read_text())
    node = story.queue.machines[0].node
    assert first == second == node
    assert {one, other} == {"0", "1"}


def test_what_hand_over_writes_for_ray_runs_with_its_gpus(ray_cluster: Any) -> None:
    from ray.job_submission import JobSubmissionClient

    node = ray_cluster.add_node(num_cpus=2, num_gpus=2, object_store_memory=100 * 2**20)
    try:
        script = "import os; print('gpus', os.environ.get('CUDA_VISIBLE_DEVICES'))"
        forecast = ec.forecast("resnet18", device="V100", batch=8, samples=8000, gpus=2)
        request = replace(request_of(forecast, command=f'{sys.executable} -c "{script}"'), cpus=2, memory_bytes=2**20)
        spec = json.loads(ray_job(request))
        spec["runtime_env"] = {}  # nothing of this folder is needed
        client = JobSubmissionClient(f"http://{ray_cluster.head_node.webui_url}")
        job = client.submit_job(**spec)
        until(lambda: client.get_job_status(job).is_terminal(), "the job of Ray ends", seconds=240)
        logs = client.get_job_logs(job)
        assert client.get_job_status(job).value == "SUCCEEDED", logs
        assert "gpus 0,1" in logs
        metadata = client.get_job_info(job).metadata or {}
        assert metadata["epochcast_placement"] == "2 × V100-SXM2-16GB"
    finally:
        ray_cluster.remove_node(node)
