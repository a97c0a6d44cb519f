"""Starts and stops jobs, each recorded in the store before the engine is asked, and records how they ended.

Where the engine does not know a recorded start (the scheduler died in between), it is asked again with the same key. A
stopped job continues later from its checkpoint. A job that failed is restarted up to its number of retries, a job that
was lost with its node up to `MOST_LOSSES` times.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from epochcast.base.record import Record, json_hidden
from epochcast.schedule.engines.executor import OVER as IS_OVER
from epochcast.schedule.engines.executor import EngineRefuses, Executor, StartOrder, StartState
from epochcast.schedule.log_watcher import LogProgress, LogWatch, note_end, watch
from epochcast.schedule.queue_changes import CANCELLED_REASON
from epochcast.schedule.queue_lease import HeldQueue
from epochcast.schedule.queue_rows import (
    ASKED,
    BROKE,
    CANCELLED,
    ENDED,
    FAILED,
    FINISHED,
    LOST,
    OVER,
    RUNNING,
    STARTED,
    STOPPED,
    STOPPING,
    WAITING,
    JobStart,
    StoredJob,
    StoredMachine,
    StoredQueue,
)
from epochcast.schedule.stored_queue import live_job

MOST_LOSSES = 20
_RUN_STATES = {WAITING: "queued", ENDED: "ended", FAILED: "failed", CANCELLED: "stopped"}
_ATTEMPT_STATES = {FINISHED: "ended", STOPPED: "stopped", BROKE: "failed", LOST: "failed"}


@dataclass(frozen=True, slots=True)
class SchedulerEvent(Record):
    """Something that happened, for whoever watches the scheduler. The keys of `details` are keys of its JSON."""

    at_seconds: float
    event: str
    line: str
    job: str | None = None
    details: Mapping[str, Any] = json_hidden(default_factory=dict)
    json_merged: ClassVar[tuple[str, ...]] = ("details",)


@dataclass(slots=True)
class JobLauncher:
    """Starts, stops and watches jobs of a held queue on an engine."""

    held: HeldQueue
    engine: Executor
    tell: Callable[[SchedulerEvent], None]
    watches: dict[str, LogWatch] = field(default_factory=dict)

    def order(self, queue: StoredQueue, start: JobStart) -> StartOrder:
        """A start as the engine is asked for it."""
        work = queue.jobs[start.job].work
        assert work is not None, start.job
        machine = next(machine for machine in queue.machines if machine.number == start.machine)
        env = {
            "EPOCHCAST_QUEUE": queue.name,
            "EPOCHCAST_JOB": start.job,
            "EPOCHCAST_ATTEMPT": str(start.attempt),
            "EPOCHCAST_START": start.key,
            "EPOCHCAST_GPUS": str(start.choice.gpus),
            "EPOCHCAST_DEVICE": start.choice.device,
            "EPOCHCAST_NODE_TYPE": machine.kind.name,
            "EPOCHCAST_CHECKPOINT_FOLDER": str(work.checkpoint_folder),
            **work.env,
        }
        return StartOrder(
            start.key, start.job, work.command, work.folder, work.log_of(start.attempt), start.choice,
            machine.kind.name, machine.node, env, work.grace_seconds, start.engine_id, work.has_ray_workers,
        )  # fmt: skip

    # ---- starting ------------------------------------------------------------------------------------

    def begin(self, queue: StoredQueue, start: JobStart, new: StoredMachine | None, now: float) -> None:
        """Start a job: recorded first, then asked for, then acknowledged."""
        stored = queue.jobs[start.job]
        owed = (stored.job.restart_seconds if start.attempt > 1 else 0.0) + (new.kind.boot_seconds if new else 0.0)
        self.held.put_start(start, new, state=RUNNING, told_at_seconds=now, owed_seconds=owed, reason=None)
        self.ask(self.held.read(), start, "started", now)

    def ask(self, queue: StoredQueue, start: JobStart, event: str, now: float) -> None:
        """Ask the engine for a recorded start."""
        order = self.order(queue, start)
        try:
            engine_id = self.engine.start(order)
        except EngineRefuses as error:
            self.over(queue, start, StartState("", IS_OVER, None, reason=str(error)), now)
            return
        self.held.change_start(start, {"state": STARTED, "engine_id": engine_id})
        attempt = "" if start.attempt == 1 else f", start {start.attempt}"
        details = {"attempt": start.attempt, "gpus": start.choice.gpus, "device": start.choice.device}
        details |= {"node_type": order.node_type, "node": order.node, "machine": start.machine, "engine_id": engine_id}
        where = f"{start.choice} of machine {start.machine} ({order.node or order.node_type}{attempt})"
        self.tell(SchedulerEvent(now, event, f"{start.job} {event} on {where}", start.job, details))

    # ---- stopping ------------------------------------------------------------------------------------

    def stop(self, queue: StoredQueue, start: JobStart, why: str, now: float) -> None:
        """Ask a job to save itself and end."""
        live = live_job(queue.jobs[start.job], start, now)
        stopping = self.held.change_start(
            start,
            {"state": STOPPING, "stop_at_seconds": now},
            told_at_seconds=now,
            left_fraction=live.left,
            served_gpu_seconds=live.served_gpu_seconds,
            owed_seconds=0.0,
        )
        self.engine.stop(self.order(queue, stopping))
        self.tell(SchedulerEvent(now, "stopping", f"{start.job} is asked to save itself and stop: {why}", start.job))

    def cancel(self, job: str, now: float) -> None:
        """Write down that a job that does not run was cancelled."""
        self.held.change_job(job, state=CANCELLED, ended_at_seconds=now, reason=CANCELLED_REASON)
        self.tell(SchedulerEvent(now, CANCELLED, f"{job} was cancelled", job, {"state": CANCELLED}))

    # ---- looking -------------------------------------------------------------------------------------

    def look(self, queue: StoredQueue, now: float) -> bool:
        """Compare the recorded starts with those of the engine; whether anything ended."""
        starts = queue.open_starts()
        orders = {job: self.order(queue, start) for job, start in starts.items()}
        states = self.engine.look(list(orders.values())) if orders else {}
        changed = False
        for job, start in starts.items():
            seen = states.get(start.key)
            if seen is None:
                changed |= self._unknown(queue, start, now)
            elif seen.state == IS_OVER:
                self.over(queue, start, seen, now)
                changed = True
            else:
                self._running(queue, start, orders[job], seen, now)
        return changed

    def _unknown(self, queue: StoredQueue, start: JobStart, now: float) -> bool:
        """The engine has never heard of it, or has forgotten it."""
        if start.state == ASKED:
            self.ask(queue, start, "started", now)
            return False
        lost = StartState("", IS_OVER, None, True, f"{self.engine.name} does not know it any more")
        self.over(queue, start, lost, now)
        return True

    def _running(self, queue: StoredQueue, start: JobStart, order: StartOrder, seen: StartState, now: float) -> None:
        stored = queue.jobs[start.job]
        if start.state == ASKED:
            start = self.held.change_start(start, {"state": STARTED, "engine_id": seen.engine_id})
            self.tell(SchedulerEvent(now, "adopted", f"{start.job} was started before and is adopted", start.job))
        if start.state == STOPPING:
            if now - (start.stop_at_seconds or now) > order.grace_seconds:
                self.engine.kill(order)
            return
        sight = self._watched(queue, start, order).look(stored, now)
        if sight is not None:
            served = stored.served_gpu_seconds + max(0.0, now - stored.told_at_seconds) * start.choice.gpus
            self.held.change_job(
                start.job,
                left_fraction=sight.left,
                pace=sight.pace,
                is_observed=stored.is_observed or sight.is_observed,
                told_at_seconds=now,
                owed_seconds=0.0,
                served_gpu_seconds=served,
            )

    def _watched(self, queue: StoredQueue, start: JobStart, order: StartOrder) -> LogWatch:
        self.engine.fetch_log(order)
        if start.key not in self.watches:
            stored = queue.jobs[start.job]
            self.watches[start.key] = watch(self.held.store, queue.name, stored, start, order.log, self.engine.name)
        return self.watches[start.key]

    # ---- ends ----------------------------------------------------------------------------------------

    def over(self, queue: StoredQueue, start: JobStart, seen: StartState, now: float) -> None:
        """A start is over: the job has ended, continues later, or has failed for good."""
        stored = queue.jobs[start.job]
        watched = self._watched(queue, start, self.order(queue, start))
        watched.look(stored, now)
        end = _end_of(start, seen, watched.last)
        failures = stored.failures + (end == BROKE)
        losses = sum(other.end == LOST for other in queue.starts if other.job == start.job) + (end == LOST)
        state, reason = _state_after(stored, end, failures, losses, seen)
        left = 0.0 if state == ENDED else self._left_after(stored, start, end, watched.last, now)
        lasted = max(0.0, now - stored.told_at_seconds)
        self.held.change_start(
            start,
            {
                "state": OVER,
                "ended_at_seconds": now,
                "exit_code": seen.exit_code,
                "end": end,
                "engine_id": seen.engine_id or start.engine_id,
            },
            state=state,
            left_fraction=left,
            pace=stored.pace if watched.last is None else watched.last.pace,
            is_observed=stored.is_observed or (watched.last is not None and watched.last.is_observed),
            failures=failures,
            told_at_seconds=now,
            owed_seconds=0.0,
            served_gpu_seconds=stored.served_gpu_seconds + lasted * start.choice.gpus,
            ended_at_seconds=now if state in (ENDED, FAILED, CANCELLED) else None,
            reason=reason,
        )
        note_end(self.held.store, watched, _ATTEMPT_STATES[end], _RUN_STATES[state], seen.exit_code, now)
        watched.close()
        self.watches.pop(start.key, None)
        details = {"attempt": start.attempt, "exit_code": seen.exit_code, "left_fraction": left, "state": state}
        self.tell(SchedulerEvent(now, end, _line(start.job, end, state, left, reason), start.job, details))

    def _left_after(self, stored: StoredJob, start: JobStart, end: str, sight: LogProgress | None, now: float) -> float:
        """The fraction left. A start that was not stopped by us lost half a checkpoint interval, on average."""
        left = live_job(stored, start, now).left if sight is None else sight.left
        if sight is None and start.engine_id is None:
            left = stored.left_fraction
        if end in (STOPPED, FINISHED):
            return left
        ran = max(0.0, now - start.asked_at_seconds)
        lost = min(ran, stored.job.checkpoint_seconds) / 2
        return min(1.0, left + lost / (stored.job.seconds[start.choice].mid * stored.pace))

    def close(self) -> None:
        """Close the logs and the engine; jobs keep running."""
        for watched in self.watches.values():
            watched.close()
        self.engine.close()


def _end_of(start: JobStart, seen: StartState, sight: LogProgress | None) -> str:
    """How a start ended. A job that saves itself may end with 0 as well: only its log says whether it was done."""
    if start.state == STOPPING:
        return FINISHED if seen.exit_code == 0 and sight is not None and sight.is_done else STOPPED
    if seen.exit_code == 0:
        return FINISHED
    return LOST if seen.is_lost else BROKE


def _state_after(stored: StoredJob, end: str, failures: int, losses: int, seen: StartState) -> tuple[str, str | None]:
    if end == FINISHED:
        return ENDED, None
    if stored.cancel_at_seconds is not None:
        return CANCELLED, CANCELLED_REASON
    if end == STOPPED:
        return WAITING, None
    reason = seen.reason if seen.exit_code is None else f"it ended with exit code {seen.exit_code}"
    retries = 0 if stored.work is None else stored.work.retries
    if end == BROKE and failures > retries:
        return FAILED, f"{reason}, and so it did {failures} times" if failures > 1 else reason
    if end == LOST and losses > MOST_LOSSES:
        return FAILED, f"{reason}, and so it was lost {losses} times"
    return WAITING, reason


def _line(job: str, end: str, state: str, left: float, reason: str | None) -> str:
    if state == ENDED:
        return f"{job} has ended"
    if state == FAILED:
        return f"{job} has failed for good: {reason}"
    if state == CANCELLED:
        return f"{job} was cancelled with {left:.0%} to go"
    if end == STOPPED:
        return f"{job} has stopped with {left:.0%} to go"
    return f"{job} was {'lost' if end == LOST else 'broken off'} ({reason}) and is started again"
