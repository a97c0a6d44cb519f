"""The loop of `epochcast schedule run`: look, decide, start and stop jobs, until every job is over.

All state is in the store, so that the loop may be killed at any moment. A decision is made when a job comes or ends,
when nodes go or come, when the policy asked for it, and every so many seconds; in between it is carried out as GPUs
become free. A scheduler that stops leaves the jobs running unless `stop_jobs` is called.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Event as Flag

from epochcast.observe.store.store_errors import Unavailable
from epochcast.schedule.decisions import RunPlan, RunTarget, plan
from epochcast.schedule.engines.executor import EngineAway, EngineNode, Executor
from epochcast.schedule.job_launcher import JobLauncher, SchedulerEvent
from epochcast.schedule.queue_changes import CANCELLED_REASON
from epochcast.schedule.queue_lease import HeldQueue
from epochcast.schedule.queue_rows import CANCELLED, FAILED, STARTED, STOPPING, JobStart, StoredMachine, StoredQueue
from epochcast.schedule.schedule_request import RunQueueRequest
from epochcast.schedule.simulator import Policy
from epochcast.schedule.stored_queue import state_of

# While a job is being stopped and another waits for its GPUs, looks are at least so frequent.
SOON_SECONDS = 0.25


@dataclass(slots=True)
class Scheduler:
    """A held queue, run on an engine under a policy."""

    held: HeldQueue
    engine: Executor
    policy: Policy
    tell: Callable[[SchedulerEvent], None]
    options: RunQueueRequest = field(default_factory=RunQueueRequest)
    leave: Flag = field(default_factory=Flag)
    launcher: JobLauncher = field(init=False)
    _plan: RunPlan = field(default_factory=lambda: RunPlan({}))
    _numbers: dict[int, int] = field(default_factory=dict)
    _decide_at: float = 0.0
    _seen: tuple[object, ...] = ()
    _nodes: Mapping[str, EngineNode] = field(default_factory=dict)
    _trouble: str | None = None

    def __post_init__(self) -> None:
        self.launcher = JobLauncher(self.held, self.engine, self.tell)

    def decided(self, now: float) -> RunPlan:
        """The last decision. Its `wake_seconds` are those from now until the next, if nothing happens before."""
        return replace(self._plan, wake_seconds=max(SOON_SECONDS, self._decide_at - now))

    def run(self) -> StoredQueue:
        """Until every job is over or somebody sets `leave`; the queue as it is then."""
        while not self.leave.is_set():
            queue = self._tick_or_wait()
            if queue is not None and not self.options.stay and all(stored.is_over for stored in queue.jobs.values()):
                break
            busy = queue is None or any(start.state == STOPPING for start in queue.open_starts().values())
            self.leave.wait(min(SOON_SECONDS, self.options.look_seconds) if busy else self.options.look_seconds)
        return self.held.read()

    def _tick_or_wait(self) -> StoredQueue | None:
        """One round; None where the engine or the store is away, which is reported once and retried."""
        try:
            queue = self.tick()
        except (EngineAway, Unavailable) as error:
            if self._trouble is None:
                line = f"{error}. Jobs keep running; retrying every {self.options.look_seconds:g} s"
                self.tell(SchedulerEvent(time.time(), "away", line))
            self._trouble = str(error)
            self.leave.wait(self.options.look_seconds)
            return None
        if self._trouble is not None:
            self.tell(SchedulerEvent(time.time(), "back", f"{self.engine.name} and the store answer again"))
        self._trouble = None
        return queue

    def tick(self) -> StoredQueue:
        """Look once, decide where there is reason to, and do what can be done now."""
        now = time.time()
        ended = self.launcher.look(self.held.read(), now)
        queue = self._fail_followers(self._cancel(self.held.read(), now), now)
        nodes = self.engine.nodes(kind.name for kind in queue.fleet.types)
        state = state_of(queue, now)
        nodes_by_name = {node.name: node for node in nodes or ()}
        seen = (tuple(state.live), queue.fleet, nodes_by_name)
        if ended or seen != self._seen or now >= self._decide_at:
            self._tell_nodes(nodes_by_name, now)
            started = {job: queue.seconds(start.asked_at_seconds) for job, start in queue.open_starts().items()}
            down = {name for name, node in nodes_by_name.items() if not node.is_up}
            dead = frozenset(machine.number for machine in queue.machines if machine.node in down)
            self._plan = plan(state, self.policy, nodes, started, dead)
            self._numbers = {}
            self._seen = seen
            wake = self._plan.wake_seconds
            self._decide_at = now + min(self.options.every_seconds, max(1.0, wake) if wake else float("inf"))
        self._stop_others(queue, now)
        queue = self._start_wanted(self.held.read(), nodes, now)
        self._return_idle(queue, now)
        return self.held.read()

    def _tell_nodes(self, nodes: Mapping[str, EngineNode], now: float) -> None:
        for name, node in nodes.items():
            if name in self._nodes and self._nodes[name].is_up != node.is_up:
                line = f"node {name} ({node.node_type}) is {'up again' if node.is_up else 'down'}"
                self.tell(SchedulerEvent(now, "node", line, None, {"node": name, "is_up": node.is_up}))
        self._nodes = nodes

    def _cancel(self, queue: StoredQueue, now: float) -> StoredQueue:
        """Cancel who is to be: at once who waits; who runs is asked to save itself and stop first."""
        starts, unwanted = queue.open_starts(), [name for name, stored in queue.jobs.items() if stored.is_unwanted]
        for name in unwanted:
            start = starts.get(name)
            if start is None:
                self.launcher.cancel(name, now)
            elif start.state == STARTED:
                self.launcher.stop(queue, start, CANCELLED_REASON, now)
        return self.held.read() if unwanted else queue

    def _fail_followers(self, queue: StoredQueue, now: float) -> StoredQueue:
        """A job that comes after one that has failed for good, or was cancelled, will never run."""
        changed = False
        for name, stored in queue.jobs.items():
            broken = [before for before in stored.job.after if queue.jobs[before].state in (FAILED, CANCELLED)]
            if broken and not stored.is_over:
                how = "failed" if queue.jobs[broken[0]].state == FAILED else "was cancelled"
                reason = f"it comes after {broken[0]!r}, which {how}"
                self.held.change_job(name, state=FAILED, ended_at_seconds=now, reason=reason)
                self.tell(SchedulerEvent(now, "failed", f"{name} will not run: {reason}", name, {"state": FAILED}))
                changed = True
        return self._fail_followers(self.held.read(), now) if changed else queue

    # ---- stops ---------------------------------------------------------------------------------------

    def _stop_others(self, queue: StoredQueue, now: float) -> None:
        """Stop who is to wait, or to run elsewhere."""
        for job, start in queue.open_starts().items():
            # What was only asked for is first found out about: the engine may still be about to start it.
            if start.state != STARTED or job in self._plan.homeless:
                continue
            target = self._plan.targets.get(job)
            why = f" ({self._plan.reason})" if self._plan.reason else ""
            if target is None:
                self.launcher.stop(queue, start, f"preempted{why}", now)
            elif target.placed.choice != start.choice:
                self.launcher.stop(queue, start, f"resized to {target.placed.choice}{why}", now)
            elif self._number(target) != start.machine:
                self.launcher.stop(queue, start, f"moved to another machine{why}", now)

    def _number(self, target: RunTarget) -> int:
        """The number of a target's machine: those of new machines are given when they are taken."""
        return self._numbers.get(target.machine.number, target.machine.number)

    # ---- starts --------------------------------------------------------------------------------------

    def _start_wanted(self, queue: StoredQueue, nodes: Sequence[EngineNode] | None, now: float) -> StoredQueue:
        """Start whoever is wanted and has its GPUs free."""
        for job, target in self._plan.targets.items():
            stored = queue.jobs[job]
            if job in queue.open_starts() or stored.is_over:
                continue
            place = self._place(queue, target, nodes, now)
            if place is None:
                continue
            machine, is_new = place
            last = queue.last_starts().get(job)
            attempt = 1 if last is None else last.attempt + 1
            key = f"ec-{self.held.key[:12]}-{stored.number}-{attempt}"
            start = JobStart(job, attempt, key, target.placed.choice, machine.number, now, target.placed.alone)
            self.launcher.begin(queue, start, machine if is_new else None, now)
            queue = self.held.read()
        return queue

    def _place(
        self, queue: StoredQueue, target: RunTarget, nodes: Sequence[EngineNode] | None, now: float
    ) -> tuple[StoredMachine, bool] | None:
        """The machine for a target and whether it is a new one; None while there is no room."""
        rented = {machine.number: machine for machine in queue.machines if machine.returned_at_seconds is None}
        machine = rented.get(self._number(target))
        if machine is not None and machine.kind.name == target.machine.kind.name:
            residents = [start for start in queue.open_starts().values() if start.machine == machine.number]
            free = machine.kind.gpus - sum(start.choice.gpus for start in residents)
            alone = target.placed.alone or any(start.is_alone for start in residents)
            fits = free >= target.placed.choice.gpus and not (alone and residents)
            return (machine, False) if fits else None
        if len(rented) >= queue.fleet.nodes:
            return None
        node = None
        if nodes is not None:
            rented_nodes = {machine.node for machine in rented.values()}
            up = (node.name for node in nodes if node.is_up and node.node_type == target.machine.kind.name)
            node = next((name for name in up if name not in rented_nodes), None)
            if node is None:
                return None
        number, used = target.machine.number, {machine.number for machine in queue.machines}
        if number in used:  # returned since the decision
            planned = {each.machine.number for each in self._plan.targets.values()}
            number = 1 + max(used | planned | set(self._numbers.values()))
            self._numbers[target.machine.number] = number
        return StoredMachine(number, queue.fleet.by_name[target.machine.kind.name], node, now), True

    def _return_idle(self, queue: StoredQueue, now: float) -> None:
        """Give machines back that nobody is on and nobody waits for."""
        used = {start.machine for start in queue.open_starts().values()}
        waiting = {
            self._number(target)
            for job, target in self._plan.targets.items()
            if job not in queue.open_starts() and not queue.jobs[job].is_over
        }
        for machine in queue.machines:
            if machine.returned_at_seconds is None and machine.number not in used | waiting:
                self.held.return_machine(machine.number, now)

    # ---- the end -------------------------------------------------------------------------------------

    def stop_jobs(self) -> StoredQueue:
        """Ask all jobs to save themselves and stop, and wait until they have."""
        while True:
            now = time.time()
            queue = self.held.read()
            for start in queue.open_starts().values():
                if start.state == STARTED:
                    self.launcher.stop(queue, start, "the scheduler ends", now)
            self.launcher.look(self.held.read(), now)
            queue = self.held.read()
            if not queue.open_starts():
                self._plan = replace(self._plan, targets={})
                self._return_idle(queue, now)
                return self.held.read()
            time.sleep(min(SOON_SECONDS, self.options.look_seconds))
