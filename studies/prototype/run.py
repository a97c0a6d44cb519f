"""The talk's prototype again: what a queue of real trainings was predicted to cost, slot by slot, and what it cost.

    python -m studies prototype                     processes of this machine
    python -m studies.prototype.run ray             the same on a Ray cluster of two nodes

Jobs are trainings on the CPU (`train.py`, four widths) on two nodes of different types, one K80 and one M60 by name,
with the talk's prices. How long a step and a start take on each is measured first, for some seconds, both nodes busy.
Then the loop of `schedule run` works the queue off under the default policy, and at the beginning of every slot the
state that the store has is played forward: that is the prediction. A second stands for six minutes in prices and
penalties.

The talk reported 16.02 dollars predicted and 16.71 paid over 11 slots on the real prototype, 4.12 %.
"""

import csv
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from epochcast.scheduling.engines.executor import Executor
from epochcast.scheduling.generators import TALK_TYPES
from epochcast.scheduling.held_queue import take_queue
from epochcast.scheduling.kept_queue import keep_queue, kept_queue, state_of
from epochcast.scheduling.policies.registry import DEFAULT, policy_named
from epochcast.scheduling.queue_file import queue_of
from epochcast.scheduling.queue_rows import KeptQueue
from epochcast.scheduling.running import Manner, Scheduler
from epochcast.scheduling.simulator import Rules, simulate
from epochcast.scheduling.workload import Workload
from epochcast.store.opening import open_store

NEEDS_DATA = False
BY_HAND = True
RESULT = Path(__file__).with_name("result.csv")
TRAIN = Path(__file__).with_name("train.py")

WIDTHS = (64, 128, 256, 512)
JOBS = 20
SLOT_SECONDS = 15.0
# A second of the study stands for so many of the talk's.
SCALE = 360.0
# What the talk's own prediction was off by, and what ours may be.
THEIRS, TOLERANCE = 0.0412, 0.05
TYPES = [kind for kind in TALK_TYPES if kind.gpus == 1]
CALIBRATION_SECONDS = 4.0


@dataclass(frozen=True)
class Pace:
    """Seconds of a step and of everything before the first, of a width on a device."""

    step_seconds: float
    start_seconds: float


@dataclass(frozen=True)
class Slot:
    """Dollars of a slot as predicted at its beginning, and as paid."""

    begin_seconds: float
    predicted: float
    paid: float


def main() -> int:
    engine = sys.argv[1] if len(sys.argv) > 1 else "local"
    began = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="epochcast-prototype-") as folder:
        paces = calibrated(Path(folder))
        document = drawn(paces, seed=0)
        with _engine(engine) as executor:
            slots, before, queue = worked_off(document, executor, Path(folder))
    report(engine, slots, before, queue, (began, os.getloadavg()[0]))
    predicted, paid = sum(slot.predicted for slot in slots), sum(slot.paid for slot in slots)
    return 0 if abs(predicted / paid - 1) <= TOLERANCE else 1


# ---- how long a step takes -------------------------------------------------------------------------------


def calibrated(folder: Path) -> dict[tuple[int, str], Pace]:
    """Every width on both devices, one process of each at a time, so that both cores are busy as they will be."""
    found: dict[tuple[int, str], Pace] = {}
    for width in WIDTHS:
        starts = _timed(folder, width, dict.fromkeys(("K80", "M60"), 1))
        steps = dict.fromkeys(starts, 20)
        # As many steps as take some seconds beside the start.
        while min((told := _timed(folder, width, steps)).values()) < CALIBRATION_SECONDS + max(starts.values()):
            steps = {device: 3 * count for device, count in steps.items()}
        for device, count in steps.items():
            found[width, device] = Pace((told[device] - starts[device]) / count, starts[device])
    return found


def _timed(folder: Path, width: int, steps: dict[str, int]) -> dict[str, float]:
    """Seconds of whole trainings, all at once."""
    begin, ends = time.monotonic(), dict[str, float]()
    running = {}
    for device, count in steps.items():
        place = tempfile.mkdtemp(dir=folder)
        env = {**os.environ, "EPOCHCAST_CHECKPOINT_FOLDER": place, "EPOCHCAST_DEVICE": device}
        words = [sys.executable, str(TRAIN), str(width), str(count)]
        # In a session of its own, as jobs are: Linux shares processors out among sessions.
        running[device] = subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL, start_new_session=True)
    while len(ends) < len(running):
        for device, process in running.items():
            if device not in ends and process.poll() is not None:
                ends[device] = time.monotonic() - begin
        time.sleep(0.005)
    return ends


# ---- the queue -------------------------------------------------------------------------------------------


def drawn(paces: dict[tuple[int, str], Pace], seed: int) -> dict[str, Any]:
    """A queue: jobs of 10 to 25 seconds on the faster node, submitted as slots begin; penalties as in the talk."""
    random = Random(f"prototype {seed}")
    jobs = []
    for number in range(JOBS):
        width = WIDTHS[number % len(WIDTHS)]
        steps = round(random.uniform(10, 25) / paces[width, "M60"].step_seconds)
        seconds = {
            device: {"1": paces[width, device].start_seconds + steps * paces[width, device].step_seconds}
            for device in ("K80", "M60")
        }
        submit = SLOT_SECONDS * (number // 2)
        jobs.append(
            {
                "id": f"j{number}-w{width}",
                "submit_seconds": submit,
                "deadline_seconds": submit + random.uniform(3, 8) * seconds["M60"]["1"],
                "tardiness_dollars_per_second": 2 * random.uniform(0.0015, 0.0075) * SCALE,
                "run_seconds": seconds,
                "restart_seconds": paces[width, "M60"].start_seconds,
                "command": [sys.executable, str(TRAIN), str(width), str(steps)],
            }
        )
    types = [
        {"name": kind.name, "device": kind.device, "gpus": 1, "dollars_per_hour": kind.dollars_per_hour * SCALE}
        | {"quota": 1}
        for kind in TYPES
    ]
    return {"nodes": 2, "node_types": types, "jobs": jobs}


@contextmanager
def _engine(name: str) -> Iterator[Executor]:
    if name == "local":
        from epochcast.scheduling.engines.local import LocalEngine

        yield LocalEngine()
        return
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster

    from epochcast.scheduling.engines.ray import RayEngine

    memory = {"object_store_memory": 100 * 2**20}
    web = {"include_dashboard": True, "dashboard_host": "127.0.0.1", "dashboard_port": 0}
    folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")  # apart from other clusters here; sockets need it short
    head = {"num_cpus": 1, "num_gpus": 0, "temp_dir": folder, **memory, **web}
    cluster: Any = Cluster(initialize_head=True, head_node_args=head)
    for kind in TYPES:
        cluster.add_node(num_cpus=1, num_gpus=1, resources={kind.name: 1}, **memory)
    yield RayEngine(f"http://{cluster.head_node.webui_url}")
    cluster.shutdown()


def worked_off(document: dict[str, Any], engine: Executor, folder: Path) -> tuple[list[Slot], float, KeptQueue]:
    """Work the queue off: slots, predicted and paid; what the plan said before; the queue at its end."""
    policy_named(DEFAULT)(state_of_first(document))  # compiled before the clock runs
    with open_store(str(folder / "store.db")) as store:
        keep_queue(store, "prototype", queue_of(document, folder))
        held, _ = take_queue(store, "prototype", engine.name, DEFAULT)
        scheduler = Scheduler(
            held, engine, policy_named(DEFAULT), lambda event: print(event.line), Manner(0.2, SLOT_SECONDS)
        )
        begins: list[float] = []
        predictions: list[float] = []
        queue = kept_queue(store, "prototype")
        before = predicted(queue, queue.added_at_seconds, None)
        while not all(kept.is_over for kept in queue.jobs.values()):
            queue = scheduler.tick()
            if time.time() >= queue.added_at_seconds + SLOT_SECONDS * len(begins):
                begins.append(queue.seconds(time.time()))
                predictions.append(predicted(queue, queue.added_at_seconds + begins[-1], SLOT_SECONDS * len(begins)))
            time.sleep(0.1)
        held.release()
    ends = [*begins[1:], float("inf")]
    paid = [bill(*real(queue), begin, end) for begin, end in zip(begins, ends, strict=True)]
    return [Slot(*row) for row in zip(begins, predictions, paid, strict=True)], before, queue


def state_of_first(document: dict[str, Any]) -> Any:
    from epochcast.scheduling.state import LiveJob, State

    workload = queue_of(document, Path("/")).workload
    return State(workload.fleet, 0.0, {job.id: LiveJob(job) for job in workload.jobs})


# ---- bills -----------------------------------------------------------------------------------------------

Rentals = list[tuple[float, float, float]]
"""From, to, dollars per second: machines, and lateness of jobs alike."""


def predicted(queue: KeptQueue, now_at_seconds: float, until_seconds: float | None) -> float:
    """Dollars from now until a time of the queue's clock (None: to the end), played forward from what the store has."""
    state = state_of(queue, now_at_seconds)
    known = [kept for kept in queue.jobs.values() if not kept.is_over]
    if until_seconds is not None:
        known = [kept for kept in known if kept.job.submit_seconds < until_seconds]
    paces = {kept.job.id: kept.pace if kept.is_observed else queue.usual_pace for kept in known}
    truth = {kept.job.id: {c: told.mid * paces[kept.job.id] for c, told in kept.job.seconds.items()} for kept in known}
    workload = Workload(queue.fleet, tuple(kept.job for kept in known), truth)
    outcome = simulate(workload, policy_named(DEFAULT), Rules(reestimate=True), state)
    machines = [
        (r.start_seconds, r.end_seconds, queue.fleet.by_name[r.node_type].dollars_per_second) for r in outcome.rentals
    ]
    late = [_late(queue, end.job, end.end_seconds) for end in outcome.ends]
    return bill(machines, late, state.seconds, float("inf") if until_seconds is None else until_seconds)


def real(queue: KeptQueue) -> tuple[Rentals, Rentals]:
    """What was paid for machines and for lateness."""
    machines = [
        (
            queue.seconds(m.rented_at_seconds),
            queue.seconds(m.returned_at_seconds or time.time()),
            m.kind.dollars_per_second,
        )
        for m in queue.machines
    ]
    late = [_late(queue, name, queue.seconds(kept.ended_at_seconds or 0)) for name, kept in queue.jobs.items()]
    return machines, late


def _late(queue: KeptQueue, job: str, end_seconds: float) -> tuple[float, float, float]:
    told = queue.jobs[job].job
    return told.deadline_seconds, max(told.deadline_seconds, end_seconds), told.tardiness_dollars_per_second


def bill(machines: Rentals, late: Rentals, begin: float, end: float) -> float:
    """Dollars between two times."""
    return sum(max(0.0, min(to, end) - max(since, begin)) * rate for since, to, rate in (*machines, *late))


# ---- the report ------------------------------------------------------------------------------------------


def report(engine: str, slots: list[Slot], before: float, queue: KeptQueue, load: tuple[float, float]) -> None:
    predicted, paid = sum(slot.predicted for slot in slots), sum(slot.paid for slot in slots)
    machines, late = real(queue)
    parts = bill(machines, [], 0.0, float("inf")), bill([], late, 0.0, float("inf"))
    print(f"{'slot':>4} {'begins':>7} {'predicted':>10} {'paid':>7}")
    for number, slot in enumerate(slots):
        print(f"{number:4d} {slot.begin_seconds:6.1f}s {slot.predicted:9.3f}$ {slot.paid:6.3f}$")
    ended = sum(kept.state == "ended" for kept in queue.jobs.values())
    error, plan_error = predicted / paid - 1, before / paid - 1
    print(
        f"{engine}: {len(slots)} slots, predicted {predicted:.2f} $, paid {paid:.2f} $: {error:+.2%}, talk {THEIRS:.2%}"
    )
    print(
        f"machines {parts[0]:.2f} $, lateness {parts[1]:.2f} $; the first plan said {before:.2f} $: {plan_error:+.2%}"
    )
    print(f"{len(queue.starts)} starts of {len(queue.jobs)} jobs, {ended} ended; load {load[0]:.1f} to {load[1]:.1f}")
    row = {
        "engine": engine,
        "slots": len(slots),
        "predicted_dollars": f"{predicted:.3f}",
        "paid_dollars": f"{paid:.3f}",
        "error": f"{predicted / paid - 1:.4f}",
        "before_dollars": f"{before:.3f}",
        "before_error": f"{before / paid - 1:.4f}",
        "machine_dollars": f"{parts[0]:.3f}",
        "late_dollars": f"{parts[1]:.3f}",
        "starts": len(queue.starts),
        "load": f"{load[0]:.1f}-{load[1]:.1f}",
    }
    is_new = not RESULT.exists()
    with RESULT.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(row))
        if is_new:
            writer.writeheader()
        writer.writerow(row)


if __name__ == "__main__":
    sys.exit(main())
