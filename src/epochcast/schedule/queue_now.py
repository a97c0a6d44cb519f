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
from typing import Any

from epochcast.errors import BadInput
from epochcast.interval import Interval
from epochcast.schedule import row_fields as fields
from epochcast.schedule.queue_state import LiveJob, QueueState, RentedMachine
from epochcast.schedule.workload_jobs import Fleet, GpuChoice, NodeType, QueuedJob, QueueWorkload

RUNNING_KEYS = ("node_type", "gpus", "machine", "done_fraction", "remaining_seconds", "since_seconds")
OBSERVED = Interval.around(1.0, 1.2)
"""What is left of a job whose pace is known, over the estimate: within a fifth in 90 % of cases (docs/track.md: the
90th percentile of errors is 19 % when a tenth is done)."""
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


def queue_now(workload: QueueWorkload, rows: Mapping[str, Mapping[str, Any]], now_seconds: float) -> QueueNow:
    """The state of a workload at a time, by the rows of its jobs. One running job that makes no sense refuses all."""
    state = QueueState(workload.fleet, now_seconds)
    since: dict[str, float] = {}
    errors: dict[str, Interval] = {}
    labels: dict[str, str] = {}
    for job in sorted(workload.jobs, key=lambda job: job.submit_seconds):
        told = rows.get(job.id, {}).get("running")
        if told is None:
            if job.submit_seconds <= now_seconds and not job.after:
                state.live[job.id] = _waiting(job, rows.get(job.id, {}))
            continue
        what = f"running of job {job.id!r}"
        if not isinstance(told, dict):
            raise BadInput(f"{what} is {told!r}; an object is needed")
        fields.check_keys(told, RUNNING_KEYS, what)
        if job.submit_seconds > now_seconds:
            raise BadInput(f"job {job.id!r} runs, but is only submitted later ({job.submit_seconds:g} s)")
        one, error = _running(job, told, what, workload.fleet)
        state.live[job.id] = one
        if error is not None:
            errors[job.id] = error
        labels[job.id] = str(told.get("machine", ""))
        if "since_seconds" in told:
            since[job.id] = fields.number(told, "since_seconds", what)
    kinds = {name: workload.fleet.by_name[str(rows[name]["running"]["node_type"])] for name in labels}
    state.machines = _machines(state, labels, kinds)
    state.machines_made = len(state.machines)
    return QueueNow(workload, state, since, errors)


def _waiting(job: QueuedJob, row: Mapping[str, Any]) -> LiveJob:
    done = _done(row, f"job {job.id!r}")
    return LiveJob(job, left=1 - (done or 0.0), has_run=done is not None)


def _done(row: Mapping[str, Any], what: str) -> float | None:
    done = fields.optional_number(row, "done_fraction", what)
    if done is not None and not 0 <= done < 1:
        raise BadInput(f"{what}: done_fraction is {done:g}; a number from 0 to less than 1 is needed")
    return done


def _running(job: QueuedJob, told: Mapping[str, Any], what: str, fleet: Fleet) -> tuple[LiveJob, Interval | None]:
    kind = fields.text(told, "node_type", what)
    if kind not in fleet.by_name:
        raise BadInput(f"{what}: no node type is called {kind!r}; known: {', '.join(fleet.by_name)}")
    choice = GpuChoice(fleet.by_name[kind].device, fields.count(told.get("gpus"), f"gpus of {what}"))
    if choice.gpus > fleet.by_name[kind].gpus:
        raise BadInput(f"{what}: it has {choice.gpus} GPUs, a {kind} has {fleet.by_name[kind].gpus}")
    if choice not in job.seconds:
        raise BadInput(f"{what}: nothing is known of its run on {choice}")
    one = LiveJob(job, choice=choice, last_choice=choice, has_run=True)
    done = _done(told, what)
    if "remaining_seconds" not in told:
        if done is None:
            raise BadInput(f"{what}: how far is it? Give done_fraction or remaining_seconds")
        one.left = 1 - done
        return one, None
    remaining = fields.interval(told["remaining_seconds"], f"remaining_seconds of {what}")
    if not (isfinite(remaining.mid) and remaining.low >= 0 and remaining.mid > 0):
        raise BadInput(f"{what}: remaining_seconds is {remaining.mid:g}; more than 0 is needed")
    forecast = job.seconds[choice].mid
    # Without a fraction the pace is the forecast's, as long as no more than the whole run is left.
    one.left = max(LEAST_LEFT, 1 - done if done is not None else min(1.0, remaining.mid / forecast))
    one.pace = remaining.mid / (one.left * forecast)
    one.is_observed = True
    ends = Interval(remaining.low / remaining.mid, 1.0, remaining.high / remaining.mid, remaining.coverage)
    return one, OBSERVED if remaining.low == remaining.high else ends


def _machines(state: QueueState, labels: Mapping[str, str], kinds: Mapping[str, NodeType]) -> tuple[RentedMachine, ...]:
    """The machines of running jobs: those of one name together, the rest on as few as hold them."""
    boxes: list[tuple[NodeType, str, list[tuple[str, int]]]] = []
    for name, label in labels.items():
        choice = state.live[name].choice
        assert choice is not None
        for kind, called, residents in boxes:
            used = sum(gpus for _, gpus in residents)
            if kind == kinds[name] and called == label and (label or used + choice.gpus <= kind.gpus):
                residents.append((name, choice.gpus))
                break
        else:
            boxes.append((kinds[name], label, [(name, choice.gpus)]))
    made = []
    for number, (kind, called, residents) in enumerate(boxes):
        used = sum(gpus for _, gpus in residents)
        if used > kind.gpus:
            raise BadInput(f"{used} GPUs run on machine {called!r}, a {kind.name} with {kind.gpus}")
        made.append(RentedMachine(number, kind, tuple(residents)))
        for name, _ in residents:
            state.live[name].machine = number
    if len(made) > state.fleet.nodes:
        raise BadInput(f"the running jobs are on {len(made)} machines; nodes is {state.fleet.nodes}")
    for kind in state.fleet.types:
        count = sum(machine.kind == kind for machine in made)
        if kind.quota is not None and count > kind.quota:
            raise BadInput(f"the running jobs are on {count} machines of type {kind.name!r}; there are {kind.quota}")
    return tuple(made)
