"""Events of a queue on rented machines: arrivals, ends, ticks, failures. Ties go by kind, then by number.

At every event the policy sees the `QueueState` and decides who runs from now on; `renting` finds the machines. The
truth (what runs really take, `progress`) is kept apart from the state: a policy sees forecasts, and with `reestimate`
what the progress of running jobs shows of them. A policy that does not look at how far running jobs are says so
(`looks_at_running = False`): then an event costs little, however many jobs run.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from random import Random
from time import perf_counter

from epochcast.schedule.outcome import JobEnd, JobStay, Rental, SimulationOutcome
from epochcast.schedule.progress import TrueProgress, catch_up, tracker_error
from epochcast.schedule.queue_state import Decision, LiveJob, QueueState, RentedMachine, dollars_per_second, unchanged
from epochcast.schedule.renting import rent
from epochcast.schedule.workload_jobs import Incident, QueuedJob, QueueWorkload

# Seconds that count as none: rounding of sums of millions of seconds.
NO_SECONDS = 1e-6

_ARRIVAL, _FAILURE, _SLOWDOWN, _INTERRUPTION, _TICK, _WAKE = range(6)

Policy = Callable[[QueueState], Decision]


@dataclass(frozen=True, slots=True)
class SimulationRules:
    """How a simulation runs besides its workload.

    The policy decides when a job comes (`on_arrival`), when one ends (`on_completion`) and every so many seconds; when
    a machine fails, when it asked to be woken, and when nobody runs, it always does. With `reestimate` the progress of
    running jobs corrects their forecasts; `tracking_error` 1 errs there as trackers were measured to, 0 not at all.
    """

    every_seconds: float | None = None
    reestimate: bool = False
    seed: int = 0
    on_arrival: bool = True
    on_completion: bool = True
    tracking_error: float = 0.0


@dataclass(slots=True)
class Simulation:
    """A workload under a policy. `run` goes to the end; `state` is what the policy sees, after any `step`.

    It begins with nothing, or from a state (`begin`): then with a decision, and running jobs count as started there.
    """

    workload: QueueWorkload
    policy: Policy
    rules: SimulationRules = field(default_factory=SimulationRules)
    begin: QueueState | None = None
    state: QueueState = field(init=False)
    _truth: dict[str, TrueProgress] = field(default_factory=dict, init=False)
    _running: dict[str, LiveJob] = field(default_factory=dict, init=False)
    _held: dict[str, QueuedJob] = field(default_factory=dict, init=False)
    _ended: set[str] = field(default_factory=set, init=False)
    _events: list[tuple[float, int, int]] = field(default_factory=list, init=False)
    _ends: list[tuple[float, int, str]] = field(default_factory=list, init=False)
    _to_come: int = field(default=0, init=False)
    _submitted: int = field(default=0, init=False)
    _tick_at: float = field(default=inf, init=False)
    _wake_at: float = field(default=inf, init=False)
    _outcome: SimulationOutcome = field(default_factory=SimulationOutcome, init=False)
    _rented: dict[int, float] = field(default_factory=dict, init=False)
    _slow: dict[int, float] = field(default_factory=dict, init=False)
    _random: Random = field(init=False)

    def __post_init__(self) -> None:
        self.state = QueueState(self.workload.fleet)
        self._random = Random(self.rules.seed)
        if self.begin is not None:
            self._resume(self.begin)
        self._events += [
            (job.submit_seconds, _ARRIVAL, number)
            for number, job in enumerate(self.workload.jobs)
            if job.id not in self.state.live
        ]
        self._to_come = len(self._events)
        self._events += [(f.at_seconds, _FAILURE, number) for number, f in enumerate(self.workload.failures)]
        self._events += [(s.at_seconds, _SLOWDOWN, number) for number, s in enumerate(self.workload.stragglers)]
        heapq.heapify(self._events)

    def _resume(self, begin: QueueState) -> None:
        """Take over who waits and who runs where."""
        self.state, now = begin.copy(), begin.seconds
        self._wake_at = now
        self._rented = {machine.number: now for machine in begin.machines}
        for live in self.state.live.values():
            truth = self._new_truth(live.job)
            truth.left = live.left
            if live.choice is not None:
                truth.first_start_seconds, truth.starts, truth.stay_since = now, 1, now
                self._running[live.job.id] = live
                self._goes_on(live)

    def run(self) -> SimulationOutcome:
        """Until the last job has ended."""
        while self.state.live or self._held or self._to_come:
            self._step()
        self._catch_up()
        return self._outcome

    def step(self) -> None:
        """To the next event, and through all that happens at its moment; then one decision."""
        self._step()
        self._catch_up()

    def _step(self) -> None:
        at, ending = self._next()
        if at == inf:
            raise RuntimeError(f"{len(self.state.live)} jobs wait and nothing will happen: the policy starts none")
        seconds = max(0.0, at - self.state.seconds)
        self.state.seconds += seconds
        self._outcome.machine_dollars += seconds * dollars_per_second(self.state.machines)
        for live in ending:
            self._end(live)
        happened = self._happen()
        decides = (
            (self.rules.on_completion and bool(ending))
            or (self.rules.on_arrival and _ARRIVAL in happened)
            or bool(happened - {_ARRIVAL})
            or not self._running
        )
        self._decide(decides)

    def _next(self) -> tuple[float, list[LiveJob]]:
        """When the next event is, and who ends then."""
        now = self.state.seconds
        soonest = self._soonest_end()
        other = min(self._events[0][0] if self._events else inf, self._tick_at, self._wake_at)
        if other < soonest - NO_SECONDS:
            return max(now, other), []
        # A job that was moved and ends when it would have may be there twice.
        ending: dict[int, str] = {}
        while self._soonest_end() <= soonest + NO_SECONDS < inf:
            _, number, name = heapq.heappop(self._ends)
            ending[number] = name
        return max(now, soonest), [self._running[name] for _, name in sorted(ending.items())]

    def _soonest_end(self) -> float:
        """Of those that run; what is no longer true of a job is forgotten."""
        ends = self._ends
        while ends:
            at, _, name = ends[0]
            truth = self._truth.get(name)
            if truth is not None and truth.ends_at == at:
                return at
            heapq.heappop(ends)
        return inf

    def _goes_on(self, live: LiveJob) -> None:
        """A job runs from now on as its choice and its machine let it."""
        truth = self._truth[live.job.id]
        assert live.choice is not None and live.machine is not None
        run_seconds = self.workload.run_seconds(live.job, live.choice) * self._slow.get(live.machine, 1.0)
        heapq.heappush(self._ends, (truth.goes_on(live, self.state.seconds, run_seconds), truth.number, live.job.id))

    def _catch_up(self) -> None:
        """Bring what the state says of all running jobs up to now."""
        for name, live in self._running.items():
            catch_up(live, self._truth[name], self.state.seconds, self.rules.reestimate)

    def _happen(self) -> set[int]:
        """Arrivals, failures and ticks of this moment; which of these kinds there were."""
        now = self.state.seconds
        happened = set()
        while self._events and self._events[0][0] <= now + NO_SECONDS:
            _, kind, number = heapq.heappop(self._events)
            happened.add(kind)
            if kind == _ARRIVAL:
                self._to_come -= 1
                self._submit(self.workload.jobs[number])
            elif kind == _FAILURE:
                self._fail(self._hit(self.workload.failures[number]))
            elif kind == _INTERRUPTION:
                self._fail(next((machine for machine in self.state.machines if machine.number == number), None))
            else:
                self._slow_down(self._hit(self.workload.stragglers[number]), self.workload.stragglers[number].slowdown)
        if self._wake_at <= now + NO_SECONDS:
            self._wake_at = inf
            happened.add(_WAKE)
        if self._tick_at <= now + NO_SECONDS:
            self._tick_at = inf
            happened.add(_TICK)
        if self.rules.every_seconds is not None and self.state.live and self._tick_at == inf:
            self._tick_at = now + self.rules.every_seconds
        return happened

    def _new_truth(self, job: QueuedJob) -> TrueProgress:
        truth = TrueProgress(self._submitted)
        truth.tracker_error = tracker_error(self.rules.seed, job.id, self.rules.tracking_error)
        self._submitted += 1
        self._truth[job.id] = truth
        return truth

    def _hit(self, incident: Incident) -> RentedMachine | None:
        """The machine that something happens to."""
        among = [m for m in self.state.machines if incident.node_type in (None, m.kind.name)]
        return among[incident.machine % len(among)] if among else None

    def _submit(self, job: QueuedJob) -> None:
        """A job joins the queue, or is held back until those it comes after have ended."""
        if not self._ended.issuperset(job.after):
            self._held[job.id] = job
            return
        self.state.live[job.id] = LiveJob(job)
        self._new_truth(job)

    def _slow_down(self, machine: RentedMachine | None, slowdown: float) -> None:
        """A machine becomes slow, and those on it with it, until it is given back."""
        if machine is None:
            return
        self._outcome.stragglers += 1
        for name, _ in machine.residents:
            catch_up(self._running[name], self._truth[name], self.state.seconds, self.rules.reestimate)
        self._slow[machine.number] = slowdown
        for name, _ in machine.residents:
            self._goes_on(self._running[name])

    def _fail(self, dead: RentedMachine | None) -> None:
        """A machine dies: its jobs wait again, with what they had saved."""
        if dead is None:
            return
        self._outcome.failures += 1
        for name, _ in dead.residents:
            live, truth = self.state.live[name], self._truth[name]
            assert live.choice is not None
            catch_up(live, truth, self.state.seconds, self.rules.reestimate)
            saved_every = live.job.checkpoint_seconds
            if saved_every > 0:
                lost = truth.ran_seconds % saved_every / truth.run_seconds
                truth.left = min(1.0, truth.left + lost)
                live.left = truth.left
            self._leave(live)
        self.state.machines = tuple(machine for machine in self.state.machines if machine is not dead)
        self._return_machine(dead)

    def _end(self, live: LiveJob) -> None:
        now, job, truth = self.state.seconds, live.job, self._truth[live.job.id]
        catch_up(live, truth, now, self.rules.reestimate)
        self._empty(live)
        self._leave(live)
        del self.state.live[job.id], self._truth[job.id]
        late = now - job.deadline_seconds
        late = late if late > NO_SECONDS else 0.0
        self._outcome.tardiness_dollars += late * job.tardiness_dollars_per_second
        assert truth.first_start_seconds is not None
        self._outcome.ends.append(
            JobEnd(job.id, job.submit_seconds, truth.first_start_seconds, now, late, truth.starts - 1)
        )
        self._ended.add(job.id)
        for follower in [held for held in self._held.values() if self._ended.issuperset(held.after)]:
            del self._held[follower.id]
            self._submit(follower)

    def _empty(self, live: LiveJob) -> None:
        """Take a job off the list of its machine, which is still there for the next."""
        self.state.machines = tuple(
            machine.without(live.job.id) if machine.number == live.machine else machine
            for machine in self.state.machines
        )

    def _leave(self, live: LiveJob) -> None:
        """A job gives its GPUs back."""
        assert live.choice is not None and live.machine is not None
        truth, now = self._truth[live.job.id], self.state.seconds
        since = truth.stay_since
        catch_up(live, truth, now, self.rules.reestimate)
        truth.ends_at = inf
        del self._running[live.job.id]
        if now > since:
            self._outcome.stays.append(JobStay(live.job.id, live.machine, live.choice, since, now))
        live.choice = live.machine = None
        live.owed_seconds = 0.0

    def _decide(self, decides: bool) -> None:
        if decides and getattr(self.policy, "looks_at_running", True):
            self._catch_up()
        began = perf_counter()
        decision: Decision = {}
        if self.state.live:
            decision = self.policy(self.state) if decides else unchanged(self.state)
        if decides:
            self._wake()
            self._outcome.decision_seconds.append(perf_counter() - began)
        machines = rent(self.state, decision)
        before = {machine.number: machine for machine in self.state.machines}
        for machine in machines:
            if machine.number not in before:
                self._take_machine(machine)
        self._move(decision, machines, before)
        self._outcome.most_machines = max(self._outcome.most_machines, len(machines))
        now_rented = {machine.number for machine in machines}
        for number, machine in before.items():
            if number not in now_rented:
                self._return_machine(machine)
        self.state.machines = machines

    def _wake(self) -> None:
        """A policy may ask to be called again after some seconds (`wake_seconds`), though nothing else happens then."""
        seconds: float | None = getattr(self.policy, "wake_seconds", None)
        self._wake_at = inf
        if seconds is not None and self.state.live:
            self._wake_at = self.state.seconds + max(seconds, 1.0)

    def _move(self, decision: Decision, machines: tuple[RentedMachine, ...], before: dict[int, RentedMachine]) -> None:
        """Stop who is not named, start or move who is."""
        for live in [live for name, live in self._running.items() if name not in decision]:
            self._outcome.preemptions += 1
            self._leave(live)
        for machine in machines:
            if before.get(machine.number) is machine:
                continue
            for name, _ in machine.residents:
                live, placed = self.state.live[name], decision[name]
                if live.machine == machine.number and live.choice == placed.choice:
                    live.alone = placed.alone
                    continue
                self._start(live, machine, placed.choice != live.choice and live.choice is not None)
                live.choice = live.last_choice = placed.choice
                live.alone, live.machine = placed.alone, machine.number
                if machine.number not in before:
                    live.owed_seconds += machine.kind.boot_seconds
                self._running[name] = live
                self._goes_on(live)

    def _start(self, live: LiveJob, machine: RentedMachine, is_resized: bool) -> None:
        """Begin a stay on a machine, with what it owes for that."""
        truth, outcome, now = self._truth[live.job.id], self._outcome, self.state.seconds
        if live.choice is not None:
            outcome.resizes += is_resized
            outcome.moves += not is_resized
            owed = live.owed_seconds
            self._leave(live)
            # A job that is moved for nothing (no restart to pay) goes on owing what it owed.
            live.owed_seconds = owed if live.job.restart_seconds == 0 else 0.0
        if live.has_run:
            live.owed_seconds = max(live.owed_seconds, live.job.restart_seconds)
        if is_resized or truth.first_start_seconds is None or live.machine is None:
            truth.starts += 1
        truth.stay_since, truth.ran_seconds = now, 0.0
        if truth.first_start_seconds is None:
            truth.first_start_seconds = now
        live.has_run = True

    def _take_machine(self, machine: RentedMachine) -> None:
        self._rented[machine.number] = self.state.seconds
        self.state.next_machine_number = max(self.state.next_machine_number, machine.number + 1)
        kind = machine.kind
        if kind.interruptions_per_hour > 0:
            lasts = self._random.expovariate(kind.interruptions_per_hour / 3600)
            heapq.heappush(self._events, (self.state.seconds + lasts, _INTERRUPTION, machine.number))
        if kind.slow_fraction > 0 and self._random.random() < kind.slow_fraction:
            self._outcome.stragglers += 1
            self._slow[machine.number] = kind.slowdown

    def _return_machine(self, machine: RentedMachine) -> None:
        since, now = self._rented.pop(machine.number), self.state.seconds
        self._slow.pop(machine.number, None)
        if now > since:
            self._outcome.rentals.append(Rental(machine.number, machine.kind.name, since, now))


def simulate(
    workload: QueueWorkload, policy: Policy, rules: SimulationRules | None = None, begin: QueueState | None = None
) -> SimulationOutcome:
    """The whole workload under a policy; from a state on, where one is given."""
    return Simulation(workload, policy, rules or SimulationRules(), begin).run()
