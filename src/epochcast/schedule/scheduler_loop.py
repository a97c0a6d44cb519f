"""The loop of `epochcast schedule run`: look, decide, do, again and again, until every job is over.

Everything that is known is in the store, so that the loop may be killed at any moment. A decision is made when a job
comes or ends, when nodes go or come, when the policy asked for it, and every so many seconds; in between it is carried
out as GPUs become free. Who leaves without being told otherwise leaves the jobs running.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from threading import Event as Flag

from epochcast.observe.store.store_errors import Unavailable
from epochcast.schedule.decisions import RunPlan, RunTarget, plan
from epochcast.schedule.engines.executor import EngineAway, EngineNode, Executor
from epochcast.schedule.job_launcher import JobLauncher, SchedulerEvent
from epochcast.schedule.queue_changes import CANCELLED_REASON
from epochcast.schedule.queue_lease import HeldQueue
from epochcast.schedule.queue_rows import CANCELLED, FAILED, STARTED, STOPPING, JobStart, KeptMachine, KeptQueue
from epochcast.schedule.simulator import Policy
from epochcast.schedule.stored_queue import state_of

# While a job is being stopped and another waits for its GPUs, looks are at least so frequent.
SOON_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class LoopOptions:
    """How often the loop looks and decides, and whether it stays when every job is over."""

    look_seconds: float = 2.0
    every_seconds: float = 30.0
    stays: bool = False


@dataclass(slots=True)
class Scheduler:
    """A held queue, worked off on an engine under a policy."""

    held: HeldQueue
    engine: Executor
    policy: Policy
    tell: Callable[[SchedulerEvent], None]
    manner: LoopOptions = field(default_factory=LoopOptions)
    leave: Flag = field(default_factory=Flag)
    hands: JobLauncher = field(init=False)
    _plan: RunPlan = field(default_factory=lambda: RunPlan({}))
    _numbers: dict[int, int] = field(default_factory=dict)
    _decide_at: float = 0.0
    _known: tuple[object, ...] = ()
    _trouble: str | None = None

    def __post_init__(self) -> None:
        self.hands = JobLauncher(self.held, self.engine, self.tell)

    def decided(self, now: float) -> RunPlan:
        """The last decision. Its `wake_seconds` are those from now until the next, if nothing happens before."""
        return replace(self._plan, wake_seconds=max(SOON_SECONDS, self._decide_at - now))

    def run(self) -> KeptQueue:
        """Until every job is over or somebody sets `leave`; the queue as it is then."""
        while not self.leave.is_set():
            queue = self._tick_or_wait()
            if queue is not None and not self.manner.stays and all(kept.is_over for kept in queue.jobs.values()):
                break
            busy = queue is None or any(start.state == STOPPING for start in queue.open_starts().values())
            self.leave.wait(min(SOON_SECONDS, self.manner.look_seconds) if busy else self.manner.look_seconds)
        return self.held.read()

    def _tick_or_wait(self) -> KeptQueue | None:
        """One round; None where the engine or the store is away, which is reported once and retried."""
        try:
            queue = self.tick()
        except (EngineAway, Unavailable) as error:
            if self._trouble is None:
                self.tell(
                    SchedulerEvent(
                        time.time(),
                        "away",
                        f"{error}. Jobs keep running; retrying every {self.manner.look_seconds:g} s",
                    )
                )
            self._trouble = str(error)
            self.leave.wait(self.manner.look_seconds)
            return None
        if self._trouble is not None:
            self.tell(SchedulerEvent(time.time(), "back", f"{self.engine.name} and the store answer again"))
        self._trouble = None
        return queue

    def tick(self) -> KeptQueue:
        """Look once, decide where there is reason to, and do what can be done now."""
        now = time.time()
        ended = self.hands.look(self.held.read(), now)
        queue = self._fail_followers(self._cancel(self.held.read(), now), now)
        nodes = self.engine.nodes(kind.name for kind in queue.fleet.types)
        state = state_of(queue, now)
        known = (tuple(state.live), queue.fleet, tuple(sorted(nodes or (), key=lambda node: node.name)))
        if ended or known != self._known or now >= self._decide_at:
            self._tell_nodes(nodes, now)
            started = {job: queue.seconds(start.asked_at_seconds) for job, start in queue.open_starts().items()}
            down = {node.name for node in nodes or () if not node.is_up}
            dead = frozenset(machine.number for machine in queue.machines if machine.node in down)
            self._plan = plan(state, self.policy, nodes, started, dead)
            self._numbers = {}
            self._known = known
            wake = self._plan.wake_seconds
            self._decide_at = now + min(self.manner.every_seconds, max(1.0, wake) if wake else float("inf"))
        self._stop_others(queue, now)
        queue = self._start_wanted(self.held.read(), nodes, now)
        self._return_idle(queue, now)
        return self.held.read()

    def _tell_nodes(self, nodes: Sequence[EngineNode] | None, now: float) -> None:
        before = {node.name: node for node in self._known[2]} if self._known else {}  # type: ignore[attr-defined]
        for node in nodes or ():
            was = before.get(node.name)
            if was is not None and was.is_up != node.is_up:
                word = "up again" if node.is_up else "down"
                line = f"node {node.name} ({node.node_type}) is {word}"
                self.tell(SchedulerEvent(now, "node", line, None, {"node": node.name, "is_up": node.is_up}))

    def _cancel(self, queue: KeptQueue, now: float) -> KeptQueue:
        """Cancel who is to be: at once who waits; who runs is asked to save itself and stop first."""
        starts, unwanted = queue.open_starts(), [name for name, kept in queue.jobs.items() if kept.is_unwanted]
        for name in unwanted:
            start = starts.get(name)
            if start is None:
                self.hands.cancel(name, now)
            elif start.state == STARTED:
                self.hands.stop(queue, start, CANCELLED_REASON, now)
        return self.held.read() if unwanted else queue

    def _fail_followers(self, queue: KeptQueue, now: float) -> KeptQueue:
        """A job that comes after one that has failed for good, or was cancelled, will never run."""
        changed = False
        for name, kept in queue.jobs.items():
            broken = [one for one in kept.job.after if queue.jobs[one].state in (FAILED, CANCELLED)]
            if broken and not kept.is_over:
                how = "failed" if queue.jobs[broken[0]].state == FAILED else "was cancelled"
                reason = f"it comes after {broken[0]!r}, which {how}"
                self.held.change_job(name, state=FAILED, ended_at_seconds=now, reason=reason)
                self.tell(SchedulerEvent(now, "failed", f"{name} will not run: {reason}", name, {"state": FAILED}))
                changed = True
        return self._fail_followers(self.held.read(), now) if changed else queue

    # ---- stops ---------------------------------------------------------------------------------------

    def _stop_others(self, queue: KeptQueue, now: float) -> None:
        """Stop who is to wait, or to run elsewhere."""
        for job, start in queue.open_starts().items():
            # What was only asked for is first found out about: the engine may still be about to start it.
            if start.state != STARTED or job in self._plan.homeless:
                continue
            target = self._plan.targets.get(job)
            if target is None:
                self.hands.stop(queue, start, "preempted", now)
            elif target.placed.choice != start.choice:
                self.hands.stop(queue, start, f"it goes on with {target.placed.choice}", now)
            elif self._number(target) != start.machine:
                self.hands.stop(queue, start, "moved to another machine", now)

    def _number(self, target: RunTarget) -> int:
        """The number of a target's machine: those of new machines are given when they are taken."""
        return self._numbers.get(target.machine.number, target.machine.number)

    # ---- starts --------------------------------------------------------------------------------------

    def _start_wanted(self, queue: KeptQueue, nodes: Sequence[EngineNode] | None, now: float) -> KeptQueue:
        """Start whoever is wanted and has its GPUs free."""
        for job, target in self._plan.targets.items():
            kept = queue.jobs[job]
            if job in queue.open_starts() or kept.is_over:
                continue
            place = self._place(queue, target, nodes, now)
            if place is None:
                continue
            machine, is_new = place
            last = queue.last_starts().get(job)
            attempt = 1 if last is None else last.attempt + 1
            key = f"ec-{self.held.key[:12]}-{kept.number}-{attempt}"
            start = JobStart(job, attempt, key, target.placed.choice, machine.number, now, target.placed.alone)
            self.hands.begin(queue, start, machine if is_new else None, now)
            queue = self.held.read()
        return queue

    def _place(
        self, queue: KeptQueue, target: RunTarget, nodes: Sequence[EngineNode] | None, now: float
    ) -> tuple[KeptMachine, bool] | None:
        """The machine for a target and whether it is a new one; None while there is no room."""
        rented = {one.number: one for one in queue.machines if one.returned_at_seconds is None}
        machine = rented.get(self._number(target))
        if machine is not None and machine.kind.name == target.machine.kind.name:
            here = [start for start in queue.open_starts().values() if start.machine == machine.number]
            free = machine.kind.gpus - sum(start.choice.gpus for start in here)
            alone = target.placed.alone or any(start.is_alone for start in here)
            fits = free >= target.placed.choice.gpus and not (alone and here)
            return (machine, False) if fits else None
        if len(rented) >= queue.fleet.nodes:
            return None
        node = None
        if nodes is not None:
            taken = {one.node for one in rented.values()}
            free_nodes = [one for one in nodes if one.is_up and one.node_type == target.machine.kind.name]
            node = next((one.name for one in free_nodes if one.name not in taken), None)
            if node is None:
                return None
        number, used = target.machine.number, {one.number for one in queue.machines}
        if number in used:  # returned since the decision
            number = 1 + max(
                used | {one.machine.number for one in self._plan.targets.values()} | set(self._numbers.values())
            )
            self._numbers[target.machine.number] = number
        return KeptMachine(number, queue.fleet.by_name[target.machine.kind.name], node, now), True

    def _return_idle(self, queue: KeptQueue, now: float) -> None:
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

    def stop_jobs(self) -> KeptQueue:
        """Ask all jobs to save themselves and stop, and wait until they have."""
        while True:
            now = time.time()
            queue = self.held.read()
            for start in queue.open_starts().values():
                if start.state == STARTED:
                    self.hands.stop(queue, start, "the scheduler ends", now)
            self.hands.look(self.held.read(), now)
            queue = self.held.read()
            if not queue.open_starts():
                self._plan = replace(self._plan, targets={})
                self._return_idle(queue, now)
                return self.held.read()
            time.sleep(min(SOON_SECONDS, self.manner.look_seconds))
