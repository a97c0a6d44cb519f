"""A queue at a moment: who waits and who runs where, from the rows of a file.

A job that runs already says so:

    "running": {"node_type": "p3", "gpus": 1, "done_fraction": 0.4}

`done_fraction` or `remaining_seconds` (a number or [low, mid, high], as `epochcast track` tells it) is needed; with
both, the pace it shows corrects its forecast. `since_seconds` is when it started, `machine` a name that jobs on one
machine share; without one, running jobs of a type are put together on as few machines as hold them.

A job that was stopped and waits again has a `done_fraction` of its own, beside `id`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite

from epochcast.errors import BadInput
from epochcast.interval import Interval
from epochcast.schedule.queue_document import QueueJobRow, RunningRow
from epochcast.schedule.queue_state import LiveJob, QueueState, RentedMachine
from epochcast.schedule.workload_jobs import Fleet, GpuChoice, NodeType, QueuedJob, QueueWorkload

OBSERVED = Interval.around(1.0, 1.2)
"""What is left of a job whose pace is known, over the estimate: within a fifth in 90 % of cases
(docs/accuracy/track-accuracy.md: the 90th percentile of errors is 19 % when a tenth is done)."""
LEAST_LEFT = 1e-3


@dataclass(frozen=True)
class QueueNow:
    """A workload and its state now. `since` has starts of running jobs that are known, `errors` what is uncertain of
    the remaining time of those whose pace was seen, as a ratio.
    """

    workload: QueueWorkload
    state: QueueState
    since: Mapping[str, float] = field(default_factory=dict)
    errors: Mapping[str, Interval] = field(default_factory=dict)


def queue_now(workload: QueueWorkload, rows: Mapping[str, QueueJobRow], now_seconds: float) -> QueueNow:
    """The state of a workload at a time, by the rows of its jobs. One running job that makes no sense refuses all."""
    state = QueueState(workload.fleet, now_seconds)
    since: dict[str, float] = {}
    errors: dict[str, Interval] = {}
    running: dict[str, RunningRow] = {}
    for job in sorted(workload.jobs, key=lambda job: job.submit_seconds):
        row = rows.get(job.id)
        if row is None or row.running is None:
            if job.submit_seconds <= now_seconds and not job.after:
                done = None if row is None else row.done_fraction
                state.live[job.id] = LiveJob(job, left=1 - (done or 0.0), has_run=done is not None)
            continue
        if job.submit_seconds > now_seconds:
            raise BadInput(f"job {job.id!r} runs, but is only submitted later ({job.submit_seconds:g} s)")
        running[job.id] = row.running
        state.live[job.id], error = _running(job, row.running, workload.fleet)
        if error is not None:
            errors[job.id] = error
        if row.running.since_seconds is not None:
            since[job.id] = row.running.since_seconds
    state.machines = _machines(state, running)
    state.next_machine_number = len(state.machines)
    return QueueNow(workload, state, since, errors)


def _running(job: QueuedJob, row: RunningRow, fleet: Fleet) -> tuple[LiveJob, Interval | None]:
    label = f"job {job.id!r}: running"
    kind = fleet.by_name.get(row.node_type)
    if kind is None:
        raise BadInput(f"{label}: no node type is called {row.node_type!r}; known: {', '.join(fleet.by_name)}")
    choice = GpuChoice(kind.device, row.gpus)
    if choice.gpus > kind.gpus:
        raise BadInput(f"{label}: it has {choice.gpus} GPUs, a {kind.name} has {kind.gpus}")
    if choice not in job.seconds:
        raise BadInput(f"{label}: nothing is known of its run on {choice}")
    live = LiveJob(job, choice=choice, last_choice=choice, has_run=True)
    done, remaining = row.done_fraction, row.remaining_seconds
    if remaining is None:
        if done is None:
            raise BadInput(f"{label}: how far is it? Give done_fraction or remaining_seconds")
        live.left = 1 - done
        return live, None
    if not (isfinite(remaining.mid) and remaining.low >= 0 and remaining.mid > 0):
        raise BadInput(f"{label}: remaining_seconds must be above 0, got {remaining.mid:g}")
    forecast = job.seconds[choice].mid
    # Without a fraction the pace is the forecast's, as long as no more than the whole run is left.
    live.left = max(LEAST_LEFT, 1 - done if done is not None else min(1.0, remaining.mid / forecast))
    live.pace = remaining.mid / (live.left * forecast)
    live.is_observed = True
    ratio = Interval(remaining.low / remaining.mid, 1.0, remaining.high / remaining.mid, remaining.coverage)
    return live, OBSERVED if remaining.low == remaining.high else ratio


def _machines(state: QueueState, running: Mapping[str, RunningRow]) -> tuple[RentedMachine, ...]:
    """The machines of running jobs: those of one name together, the rest on as few as hold them."""
    boxes: list[tuple[NodeType, str, list[tuple[str, int]]]] = []
    for name, row in running.items():
        for kind, called, residents in boxes:
            used = sum(gpus for _, gpus in residents)
            has_room = row.machine or used + row.gpus <= kind.gpus
            if kind.name == row.node_type and called == row.machine and has_room:
                residents.append((name, row.gpus))
                break
        else:
            boxes.append((state.fleet.by_name[row.node_type], row.machine, [(name, row.gpus)]))
    machines = []
    for number, (kind, called, residents) in enumerate(boxes):
        used = sum(gpus for _, gpus in residents)
        if used > kind.gpus:
            raise BadInput(f"{used} GPUs run on machine {called!r}, a {kind.name} with {kind.gpus}")
        machines.append(RentedMachine(number, kind, tuple(residents)))
        for name, _ in residents:
            state.live[name].machine = number
    if len(machines) > state.fleet.nodes:
        raise BadInput(f"the running jobs are on {len(machines)} machines; nodes is {state.fleet.nodes}")
    for kind in state.fleet.types:
        count = sum(machine.kind == kind for machine in machines)
        if kind.quota is not None and count > kind.quota:
            raise BadInput(f"the running jobs are on {count} machines of type {kind.name!r}; there are {kind.quota}")
    return tuple(machines)
