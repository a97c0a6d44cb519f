"""Runs made up for a first look (`epochcast serve --demo`): some at work, one drifting, one silent, some over; nothing
is measured.

Their paces are forecasts of ours times a made-up factor, with noise, validation and one change of pace. Those at work
go on reporting as long as the server runs.
"""

import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from sqlalchemy import insert, update

from epochcast import api
from epochcast.errors import EpochcastError
from epochcast.observe.runs.report import Report
from epochcast.observe.store.database_tables import queue_jobs, queue_machines, queue_starts, queues
from epochcast.observe.store.row_values import RunFilter
from epochcast.observe.store.store import Store
from epochcast.observe.store.store_opening import open_store
from epochcast.observe.store.store_rows import RunPlace, RunRow
from epochcast.predict.forecast.job import Job
from epochcast.schedule.queue_file import queue_of
from epochcast.schedule.queue_rows import RUNNING, STARTED
from epochcast.schedule.stored_queue import queue_row, save_queue

EVERY_STEPS = 50
# Past this many reports a run reports in larger steps.
MOST_REPORTS = 400
VALIDATION_FRACTION = 0.04


@dataclass(frozen=True, slots=True)
class Story:
    """One made-up run: its job and place, the part that is done, and how its pace differs from the forecast."""

    name: str
    job: Job
    device: str
    gpus: int
    done: float
    factor: float = 1.0
    drift_at: float | None = None
    state: str = "running"
    budget_dollars: float | None = None
    silent_seconds: float = 0.0
    reason: str | None = None


_IMAGENET: dict[str, Any] = {"precision": "amp", "dataset": "imagenet-1k"}
STORIES = (
    Story("imagenet-a100", Job("resnet50", batch=256, epochs=90, **_IMAGENET), "A100", 8, 0.37, 1.04),
    Story(
        "bert-finetune", Job("bert_base", batch=32, precision="amp", samples=400_000, epochs=3), "V100", 1, 0.81, 0.97
    ),
    Story(
        "vit-stalled",
        Job("vit_b_16", batch=128, epochs=30, **_IMAGENET),
        *("A100", 4, 0.52, 1.02),
        drift_at=0.3,
        budget_dollars=40.0,
    ),
    Story("gpt2-pretrain", Job("gpt2", batch=16, precision="amp_bf16", tokens=3_000_000_000), "H100", 8, 0.12, 1.08),
    Story("resnet18-old", Job("resnet18", batch=128, samples=100_000, epochs=30), "T4", 1, 1.0, 0.95, state="ended"),
    Story(
        "alexnet-broken",
        Job("alexnet", batch=256, samples=100_000, epochs=30),
        *("T4", 1, 0.4, 1.2),
        state="failed",
        reason="RuntimeError: CUDA error: an illegal memory access was encountered",
    ),
    Story(
        "resnet18-silent",
        Job("resnet18", batch=64, samples=100_000, epochs=30),
        *("T4", 1, 0.6),
        silent_seconds=3 * 86_400.0,
    ),
)

_MACHINES = {"NC6": ("K80", 1, 0.56), "NC12": ("K80", 2, 1.13), "NV6": ("M60", 1, 0.62)}
_QUEUED = {"segment": (2.0, 5.0), "bert": (3.0, 4.0), "detect": (1.5, 6.0), "speech": (4.0, 9.0), "rank": (0.8, 3.0)}
QUEUE_NAME, QUEUE_AGE_SECONDS = "night", 2_400.0
QUEUE: dict[str, Any] = {
    "nodes": 2,
    "node_types": [
        {"name": name, "device": device, "gpus": gpus, "dollars_per_hour": price}
        for name, (device, gpus, price) in _MACHINES.items()
    ],
    "jobs": [
        {
            "id": name,
            "submit_seconds": 0,
            "deadline_seconds": 3600 * by,
            "tardiness_dollars_per_second": 0.004,
            "run_seconds": {"K80": {"1": 3600 * hours, "2": 2000 * hours}, "M60": {"1": 2900 * hours}},
            "command": ["true"],
        }
        for name, (hours, by) in _QUEUED.items()
    ],
}
"""A made-up queue; its machines have the prices of the Politecnico talk."""


DRIFT = 1.35
"""By how much a run slows down where its pace changes."""
# Runs at work report so often.
REPORT_SECONDS = 10.0
AT_WORK = (
    *(story.name for story in STORIES if story.state == "running" and not story.silent_seconds),
    f"{QUEUE_NAME}/segment",
)


def fill(database: str) -> None:
    """Make a database with all stories in it."""
    with open_store(database) as store:
        for number, story in enumerate(reversed(STORIES)):
            _tell(store, story, Random(number))
        save_queue(store, QUEUE_NAME, queue_of(QUEUE, Path(database).parent), time.time() - QUEUE_AGE_SECONDS)
        _begin_job(store, "segment")


def _begin_job(store: Store, job: str) -> None:
    """A job of the queue is at work, on a machine and as a run of its own."""
    began = time.time() - QUEUE_AGE_SECONDS
    in_all = 2900 * _QUEUED[job][0]  # as the queue says of an M60
    done = QUEUE_AGE_SECONDS / in_all
    with store.writing() as connection:
        queue_id = queue_row(connection, QUEUE_NAME).id
        machine = {"number": 0, "node_type": "NV6", "node": "made-up", "rented_at_seconds": began}
        connection.execute(insert(queue_machines).values(queue_id=queue_id, **machine))
        start = {"job": job, "attempt": 1, "key": f"demo-{job}", "machine": 0, "device": "M60", "gpus": 1}
        times = {"is_alone": False, "state": STARTED, "asked_at_seconds": began}
        connection.execute(insert(queue_starts).values(queue_id=queue_id, **start, **times))
        columns = {"state": RUNNING, "left_fraction": 1 - done, "is_observed": True, "told_at_seconds": time.time()}
        of_job = (queue_jobs.c.queue_id == queue_id) & (queue_jobs.c.job == job)
        connection.execute(update(queue_jobs).where(of_job).values(**columns))
    steps, place = 10_000, RunPlace("M60", 1, 1, "made-up")
    run = store.open_run(f"{QUEUE_NAME}/{job}", job_name=job, place=place, started_at_seconds=began)
    pace = in_all / steps
    seen = range(100, round(done * steps) + 1, 100)
    store.record(
        run.id, [Report(step, clock_seconds=pace * step, step_seconds=pace, total_steps=steps) for step in seen]
    )
    store.note(run.id, total_steps=float(steps))


def keep_reporting(database: str) -> None:
    """Let the runs that are at work go on, in a thread that ends with the process."""
    threading.Thread(target=_report_on, args=(database, threading.Event()), daemon=True).start()


def _report_on(database: str, ended: threading.Event) -> None:
    with open_store(database) as store:
        chance = Random(0)
        while not ended.wait(REPORT_SECONDS):
            with suppress(EpochcastError):  # a locked database: the next report says as much
                report_once(store, time.time(), chance)


def report_once(store: Store, now_seconds: float, random: Random) -> None:
    """One report of every story at work: as many steps as its pace allows since the last."""
    for run in store.runs(RunFilter(states=("running",))):
        if run.name not in AT_WORK or not run.step or not run.step_seconds or not run.total_steps:
            continue
        each = _pace(run, run.step_seconds) * random.lognormvariate(0, 0.015)
        step = round(min(run.total_steps, run.step + (now_seconds - run.seen_at_seconds) / each))
        clock = now_seconds - (run.started_at_seconds or run.added_at_seconds)
        loss = _loss(step / run.total_steps, random)
        store.record(run.id, [Report(step, clock_seconds=clock, step_seconds=each, loss=loss)])
    with store.writing() as connection:  # as a scheduler does that looks after it
        connection.execute(update(queues).where(queues.c.name == QUEUE_NAME).values(seen_at_seconds=now_seconds))


def _pace(run: RunRow, seen_seconds: float) -> float:
    """That of its story; of a run without one, as it was seen."""
    story = next((story for story in STORIES if story.name == run.name), None)
    if story is None or run.forecast_step_seconds is None:
        return seen_seconds
    return run.forecast_step_seconds * story.factor * (1.0 if story.drift_at is None else DRIFT)


def _loss(done: float, random: Random) -> float:
    return 1.2 + 5.5 / (1 + 30 * done) + random.gauss(0, 0.03)


def _tell(store: Store, story: Story, random: Random) -> None:
    forecast = api.forecast(story.job, device=story.device, gpus=story.gpus, config=None)
    assert forecast.total_seconds is not None and forecast.steps_per_epoch is not None
    pace = forecast.step_seconds.mid * story.factor
    total = round(forecast.total_seconds.mid / forecast.step_seconds.mid)
    epoch = min(forecast.steps_per_epoch, total)
    rows = _rows(total, epoch, pace, story, random)
    elapsed = rows[-1].clock_seconds or 0.0
    began = time.time() - elapsed - story.silent_seconds - (0 if story.state == "running" else 7_200)
    details = {} if story.budget_dollars is None else {"budget_dollars": story.budget_dollars}
    place = RunPlace(story.device, story.gpus, 1, "made-up", details)
    run = store.open_run(story.name, job=story.job, job_name=story.name, place=place, started_at_seconds=began)
    store.add_forecast(forecast, run_id=run.id, job_id=run.job_id)
    store.record(run.id, rows)
    columns: dict[str, Any] = {"total_steps": float(total), "started_at_seconds": began}
    if story.state != "running":
        columns |= {"ended_at_seconds": began + elapsed, "elapsed_seconds": elapsed, "end_reason": story.reason}
        store.note(run.id, state=story.state, **columns)
    else:
        store.note(run.id, seen_at_seconds=began + elapsed, **columns)


def _rows(total: int, epoch: int, pace: float, story: Story, random: Random) -> list[Report]:
    every = max(EVERY_STEPS, round(total * story.done / MOST_REPORTS))
    clock, rows, validated = 8.0, [], 0
    for step in range(every, max(every + 1, round(total * story.done)) + 1, every):
        slow = DRIFT if story.drift_at is not None and step > total * story.drift_at else 1.0
        each = pace * slow * random.lognormvariate(0, 0.015)
        clock += each * every
        if step // epoch > validated:
            validated = step // epoch
            pause = epoch * pace * VALIDATION_FRACTION
            clock += pause
            rows.append(Report(step - 0.5, phase="validation", clock_seconds=clock - each * every))
        rows.append(
            Report(
                step, clock_seconds=clock, step_seconds=each, loss=_loss(step / total, random), total_steps=float(total)
            )
        )
    return rows
