"""The talk's prototype again: what a queue of real trainings was predicted to cost, slot by slot, and what it cost.

    python -m studies prototype                 three queues on processes of this machine; forty minutes
    python -m studies.prototype.run ray 2       two queues on a Ray cluster of two nodes
    python -m studies.prototype.run slurm 2     two queues on a Slurm of two nodes on loopback; needs root

Jobs are trainings on the CPU (`train.py`, four widths) on two nodes of different types, one K80 and one M60 by name,
with the talk's prices. How long a step and a start take on each is measured first, for some seconds (`paces`). Then the
loop of `schedule run` works the queue off under the default policy. At the beginning of every slot it decides about the
jobs that came; then that decision is played forward from the state that the store has: that is the prediction
(`bills`). A second stands for two minutes in prices and penalties. Every queue that was begun is in the table; what is
in it of an engine is replaced by the new runs. Engines with a star are runs of before that, renamed by hand: the policy
was asked anew instead.

The talk reported 16.02 dollars predicted and 16.71 paid over 11 slots on the real prototype, 4.12 %.
"""

import csv
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from random import Random
from statistics import mean
from typing import Any

from epochcast.observe.store.store_opening import open_store
from epochcast.schedule.engines.executor import Executor
from epochcast.schedule.policies.policy_table import policy_named
from epochcast.schedule.queue_file import queue_of
from epochcast.schedule.queue_lease import take_queue
from epochcast.schedule.queue_state import LiveJob, QueueState
from epochcast.schedule.schedule_request import DEFAULT_POLICY, RunQueueRequest
from epochcast.schedule.scheduler_loop import Scheduler
from epochcast.schedule.stored_queue import load_queue, save_queue
from studies.prototype.bills import FOREVER, Slot, Worked, bill, predicted, real
from studies.prototype.paces import TRAIN, TYPES, WIDTHS, Pace, calibrated, goes_first

NEEDS_DATA = False
BY_HAND = True
ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "schedule-run.md"
RESULT, SLOTS = Path(__file__).with_name("result.csv"), Path(__file__).with_name("slots.csv")
BEGIN, END = "<!-- prototype: written by python -m studies prototype -->\n", "<!-- end of prototype -->"

QUEUES = 3
JOBS = 16
SLOT_SECONDS = 45.0
# On the faster node.
JOB_SECONDS = (30.0, 75.0)
# How many jobs come as a slot begins, one of these; the nodes can do with 1.4.
SUBMITTED = (0, 1, 1, 1, 2, 3)
# A second of the study stands for so many of the talk's.
SCALE = 120.0
# What the talk's own prediction was off by, and what ours may be.
THEIRS, TOLERANCE = 0.0412, 0.05


def main() -> int:
    engine = sys.argv[1] if len(sys.argv) > 1 else "local"
    queues = int(sys.argv[2]) if len(sys.argv) > 2 else QUEUES
    policy_named(DEFAULT_POLICY)(_first_state(queue_document({}, 0)))  # compiled before it goes before others
    is_first = goes_first()
    errors, rows, slots = [], [], []
    for seed in range(queues):
        began = os.getloadavg()[0]
        with tempfile.TemporaryDirectory(prefix="epochcast-prototype-") as folder, ENGINES[engine]() as executor:
            paces = calibrated(executor, Path(folder))
            worked = worked_off(queue_document(paces, seed), executor, Path(folder))
        errors.append(worked.error)
        rows.append(_row(engine, seed, worked, f"{began:.1f} to {os.getloadavg()[0]:.1f}", is_first))
        slots += [_slot_row(engine, seed, number, slot) for number, slot in enumerate(worked.slots, 1)]
        print(rows[-1])
        _replace(RESULT, engine, rows)
        _replace(SLOTS, engine, slots)
        write_page()
    return 0 if max(map(abs, errors)) <= TOLERANCE else 1


# ---- the queue -------------------------------------------------------------------------------------------


def queue_document(paces: dict[tuple[int, str], Pace], seed: int) -> dict[str, Any]:
    """A queue: jobs of half a minute and more on the faster node, penalties as in the talk.

    As a slot begins, none to three are submitted: nodes stand idle now and then, and jobs are late now and then.
    """
    random = Random(f"prototype {seed}")
    jobs: list[dict[str, Any]] = []
    submit = 0.0
    left = 2
    for number in range(JOBS):
        while left < 1:
            submit, left = submit + SLOT_SECONDS, random.choice(SUBMITTED)
        left -= 1
        width = WIDTHS[number % len(WIDTHS)]
        pace = {kind.device: paces.get((width, kind.device), Pace(0.01, 0.5)) for kind in TYPES}
        steps = round(random.uniform(*JOB_SECONDS) / pace["M60"].step_seconds)
        seconds = {device: {"1": one.start_seconds + steps * one.step_seconds} for device, one in pace.items()}
        jobs.append(
            {
                "id": f"j{number}-w{width}",
                "submit_seconds": submit,
                "deadline_seconds": submit + random.uniform(1.5, 4) * seconds["M60"]["1"],
                "tardiness_dollars_per_second": 2 * random.uniform(0.0015, 0.0075) * SCALE,
                "run_seconds": seconds,
                "restart_seconds": pace["M60"].start_seconds,
                "command": [sys.executable, str(TRAIN), str(width), str(steps)],
            }
        )
    types = [
        {"name": kind.name, "device": kind.device, "gpus": 1, "dollars_per_hour": kind.dollars_per_hour * SCALE}
        | {"quota": 1}
        for kind in TYPES
    ]
    return {"nodes": 2, "node_types": types, "jobs": jobs}


def _first_state(document: dict[str, Any]) -> QueueState:
    workload = queue_of(document, Path("/")).workload
    return QueueState(workload.fleet, 0.0, {job.id: LiveJob(job) for job in workload.jobs})


@contextmanager
def _local() -> Iterator[Executor]:
    from epochcast.schedule.engines.local_engine import LocalEngine

    yield LocalEngine()


@contextmanager
def _ray() -> Iterator[Executor]:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster

    from epochcast.schedule.engines.ray_engine import RayEngine

    memory = {"object_store_memory": 100 * 2**20}
    web = {"include_dashboard": True, "dashboard_host": "127.0.0.1", "dashboard_port": 0}
    folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")  # apart from other clusters here; sockets need it short
    (Path(tempfile.gettempdir()) / "ray").mkdir(exist_ok=True)  # where it writes its address, and makes no folder
    head = {"num_cpus": 1, "num_gpus": 0, "temp_dir": folder, **memory, **web}
    cluster: Any = Cluster(initialize_head=True, head_node_args=head)
    for kind in TYPES:
        cluster.add_node(num_cpus=1, num_gpus=1, resources={kind.name: 1}, **memory)
    try:
        yield RayEngine(f"http://{cluster.head_node.webui_url}")
    finally:
        cluster.shutdown()


@contextmanager
def _slurm() -> Iterator[Executor]:
    from tests.schedule.engines.slurm_cluster import SlurmCluster

    from epochcast.schedule.engines.slurm_engine import SlurmEngine

    with tempfile.TemporaryDirectory(prefix="epochcast-slurm-") as folder:
        Path(folder).chmod(0o755)
        cluster = SlurmCluster(Path(folder))
        os.environ.update(cluster.environment)
        try:
            yield SlurmEngine()
        finally:
            cluster.stop()


ENGINES: Mapping[str, Callable[[], AbstractContextManager[Executor]]] = {"local": _local, "ray": _ray, "slurm": _slurm}


def worked_off(document: dict[str, Any], engine: Executor, folder: Path) -> Worked:
    """Work the queue off, predicting every slot at its beginning."""
    begins: list[tuple[float, float, float]] = []
    with open_store(str(folder / "store.db")) as store:
        save_queue(store, "prototype", queue_of(document, folder))
        held, _ = take_queue(store, "prototype", engine.name, DEFAULT_POLICY)
        request = RunQueueRequest(look_seconds=0.2, every_seconds=SLOT_SECONDS)
        scheduler = Scheduler(held, engine, policy_named(DEFAULT_POLICY), lambda event: print(event.line), request)
        queue = load_queue(store, "prototype")
        before = predicted(queue, queue.added_at_seconds, FOREVER)
        while not all(kept.is_over for kept in queue.jobs.values()):
            looked = time.time()
            queue = scheduler.tick()
            now, end = time.time(), SLOT_SECONDS * (1 + len(begins))
            # Not before the scheduler has decided about the jobs that came as the slot began.
            if looked >= queue.added_at_seconds + end - SLOT_SECONDS:
                begins.append((queue.seconds(now), end, predicted(queue, now, end, scheduler.decided(now))))
            time.sleep(0.1)
        held.release()
    machines, late = real(queue)
    slots = [Slot(begin, end, told, bill(machines, late, begin, end)) for begin, end, told in begins]
    return Worked(slots, before, queue)


# ---- the report ------------------------------------------------------------------------------------------


def _row(engine: str, seed: int, worked: Worked, load: str, is_first: bool) -> dict[str, object]:
    return {
        "engine": engine,
        "queue": seed,
        "slots": len(worked.slots),
        "predicted_dollars": f"{worked.predicted:.3f}",
        "paid_dollars": f"{worked.paid:.3f}",
        "error": f"{worked.error:.4f}",
        "before_dollars": f"{worked.before:.3f}",
        "before_error": f"{worked.before / worked.paid - 1:.4f}",
        "late_dollars": f"{worked.late_dollars:.3f}",
        "starts": len(worked.queue.starts),
        "ended": sum(kept.state == "ended" for kept in worked.queue.jobs.values()),
        "load": load,
        "before_other_programs": is_first,
    }


def _slot_row(engine: str, seed: int, number: int, slot: Slot) -> dict[str, object]:
    dollars = {"predicted_dollars": f"{slot.predicted:.3f}", "paid_dollars": f"{slot.paid:.3f}"}
    return {"engine": engine, "queue": seed, "slot": number, "begin_seconds": f"{slot.begin_seconds:.1f}"} | dollars


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _replace(path: Path, engine: str, rows: list[dict[str, object]]) -> None:
    """The table with these rows for an engine, and those of the others as they were."""
    others = [row for row in _read(path) if row["engine"] != engine] if path.exists() else []
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(sorted([*others, *rows], key=lambda row: str(row["engine"])))


def write_page() -> None:
    """The tables of the page, from the files."""
    runs, slots = _read(RESULT), _read(SLOTS)
    lines = [
        "| queue | slots | predicted | paid | error | of a slot | of it lateness | first plan | starts | load |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    pairs = {(run["engine"], run["queue"]): list[tuple[float, float]]() for run in runs}
    for slot in slots:
        pairs[slot["engine"], slot["queue"]].append((float(slot["predicted_dollars"]), float(slot["paid_dollars"])))
    for run in runs:
        of = pairs[run["engine"], run["queue"]]
        off = mean(abs(told - paid) for told, paid in of) / mean(paid for _, paid in of)
        shown = f"{run['slots']} | ${float(run['predicted_dollars']):.2f} | ${float(run['paid_dollars']):.2f}"
        late = f"{float(run['error']):+.1%} | {off:.1%} | ${float(run['late_dollars']):.2f}"
        plan = f"{float(run['before_error']):+.1%} | {run['starts']} | {run['load']}"
        lines.append(f"| {run['engine']} {run['queue']} | {shown} | {late} | {plan} |")
    told, paid = (sum(float(run[key]) for run in runs) for key in ("predicted_dollars", "paid_dollars"))
    within = sum(abs(float(run["error"])) <= TOLERANCE for run in runs)
    text = "\n".join(lines) + (
        f"\n\nWithin 5 %: {within} of {len(runs)} queues; all together ${told:.2f} predicted and ${paid:.2f} paid, "
        f"{told / paid - 1:+.1%}.\n\nSlot by slot, dollars predicted / paid:\n\n"
    )
    for (engine, queue), of in pairs.items():
        text += f"- {engine} {queue}: {', '.join(f'{told:.2f}/{paid:.2f}' for told, paid in of)}\n"
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(page.split(BEGIN)[0] + BEGIN + text + END + page.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
