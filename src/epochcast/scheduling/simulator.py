"""Events of a queue on rented machines: arrivals, ends, ticks, failures. Ties go by kind, then by number.

At every event the policy sees the `State` and decides who runs from now on; `renting` finds the machines. The truth
(what runs really take) is kept apart from the state: a policy sees forecasts, and with `reestimate` what the progress
of running jobs shows of them.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from random import Random
from time import perf_counter

from epochcast.scheduling.outcome import JobEnd, Outcome, Rental, Stay
from epochcast.scheduling.renting import rent
from epochcast.scheduling.state import Decision, LiveJob, Machine, State, dollars_per_second, kept
from epochcast.scheduling.workload import QueuedJob, Workload

# The share of a run after which its progress tells its pace: where `tracking` is within a few percent.
OBSERVED_AFTER = 0.01
# Seconds that count as none: rounding of sums of millions of seconds.
NO_SECONDS = 1e-6

_ARRIVAL, _FAILURE, _TICK, _WAKE = 0, 1, 2, 3

Policy = Callable[[State], Decision]


@dataclass(frozen=True, slots=True)
class Rules:
    """How a simulation runs besides its workload.

    The policy decides when a job comes (`on_arrival`), when one ends (`on_completion`) and every so many seconds; when
    a machine fails, when it asked to be woken, and when nobody runs, it always does.
    """

    every_seconds: float | None = None
    reestimate: bool = False
    seed: int = 0
    on_arrival: bool = True
    on_completion: bool = True


@dataclass(slots=True)
class _Truth:
    """What really happens to a job.

    The fraction left, and the seconds since it last started (for what a failure costs).
    """

    left: float = 1.0
    ran_seconds: float = 0.0
    first_start_seconds: float | None = None
    starts: int = 0
    stay_since: float = 0.0


@dataclass(slots=True)
class Simulation:
    """A workload under a policy. `run` goes to the end; `state` is what the policy sees, at any time.

    It begins with nothing, or from a state (`begin`): then with a decision, and running jobs count as started there.
    """

    workload: Workload
    policy: Policy
    rules: Rules = field(default_factory=Rules)
    begin: State | None = None
    state: State = field(init=False)
    _truth: dict[str, _Truth] = field(default_factory=dict, init=False)
    _held: dict[str, QueuedJob] = field(default_factory=dict, init=False)
    _ended: set[str] = field(default_factory=set, init=False)
    _events: list[tuple[float, int, int]] = field(default_factory=list, init=False)
    _outcome: Outcome = field(default_factory=Outcome, init=False)
    _rented: dict[int, float] = field(default_factory=dict, init=False)
    _random: Random = field(init=False)

    def __post_init__(self) -> None:
        self.state = State(self.workload.fleet)
        self._random = Random(self.rules.seed)
        if self.begin is not None:
            self._resume(self.begin)
        self._events += [
            (job.submit_seconds, _ARRIVAL, number)
            for number, job in enumerate(self.workload.jobs)
            if job.id not in self.state.live
        ]
        self._events += [(f.at_seconds, _FAILURE, number) for number, f in enumerate(self.workload.failures)]
        heapq.heapify(self._events)

    def _resume(self, begin: State) -> None:
        """Take over who waits and who runs where."""
        self.state, now = begin.copy(), begin.seconds
        self._events.append((now, _WAKE, 0))
        self._rented = {machine.number: now for machine in begin.machines}
        for one in begin.live.values():
            is_running = one.choice is not None
            self._truth[one.job.id] = _Truth(one.left, 0.0, now if is_running else None, int(is_running), now)

    def run(self) -> Outcome:
        """Until the last job has ended."""
        while self.state.live or self._held or any(kind == _ARRIVAL for _, kind, _ in self._events):
            self.step()
        return self._outcome

    def step(self) -> None:
        """To the next event, and through all that happens at its moment; then one decision."""
        at, ending = self._next()
        if at == inf:
            raise RuntimeError(f"{len(self.state.live)} jobs wait and nothing will happen: the policy starts none")
        self._advance(at - self.state.seconds)
        for one in ending:
            self._end(one)
        happened = self._happen()
        is_asked = (
            (self.rules.on_completion and bool(ending))
            or (self.rules.on_arrival and _ARRIVAL in happened)
            or bool(happened - {_ARRIVAL})
            or not self.state.running
        )
        self._decide(is_asked)

    def _next(self) -> tuple[float, list[LiveJob]]:
        """When the next event is, and who ends then."""
        now = self.state.seconds
        soonest, ending = inf, []
        for one in self.state.live.values():
            if one.choice is None:
                continue
            seconds = self._seconds_left(one)
            if seconds < soonest - NO_SECONDS:
                soonest, ending = seconds, [one]
            elif seconds <= soonest + NO_SECONDS:
                ending.append(one)
        at = now + soonest
        if self._events and self._events[0][0] < at - NO_SECONDS:
            return max(now, self._events[0][0]), []
        return at, ending

    def _seconds_left(self, one: LiveJob) -> float:
        assert one.choice is not None
        return one.owed_seconds + self._truth[one.job.id].left * self.workload.run_seconds(one.job, one.choice)

    def _advance(self, seconds: float) -> None:
        """Let time pass: bills grow, owed seconds go, jobs progress."""
        if seconds <= 0:
            return
        state = self.state
        state.seconds += seconds
        self._outcome.machine_dollars += seconds * dollars_per_second(state.machines)
        for one in state.live.values():
            if one.choice is None:
                continue
            one.served_gpu_seconds += seconds * one.choice.gpus
            worked = seconds - one.owed_seconds
            one.owed_seconds = max(0.0, -worked)
            if worked > 0:
                self._work(one, worked)

    def _work(self, one: LiveJob, seconds: float) -> None:
        assert one.choice is not None
        truth = self._truth[one.job.id]
        whole = self.workload.run_seconds(one.job, one.choice)
        truth.left = max(0.0, truth.left - seconds / whole)
        truth.ran_seconds += seconds
        if not self.rules.reestimate:
            # Who only believes the forecast counts down by it; a job that takes longer is always about to end.
            one.left = max(1e-3, one.left - seconds / one.whole_seconds(one.choice))
            return
        one.left = truth.left
        if not one.is_observed and 1 - truth.left >= OBSERVED_AFTER:
            one.pace = whole / one.job.seconds[one.choice].mid
            one.is_observed = True

    def _happen(self) -> set[int]:
        """Arrivals, failures and ticks of this moment; which of these kinds there were."""
        now = self.state.seconds
        happened = set()
        while self._events and self._events[0][0] <= now + NO_SECONDS:
            _, kind, number = heapq.heappop(self._events)
            happened.add(kind)
            if kind == _ARRIVAL:
                self._submit(self.workload.jobs[number])
            elif kind == _FAILURE:
                self._fail(number)
        every = self.rules.every_seconds
        if every is not None and self.state.live and not any(kind == _TICK for _, kind, _ in self._events):
            heapq.heappush(self._events, (now + every, _TICK, 0))
        return happened

    def _submit(self, job: QueuedJob) -> None:
        """A job joins the queue, or is held back until those it comes after have ended."""
        if not self._ended.issuperset(job.after):
            self._held[job.id] = job
            return
        self.state.live[job.id] = LiveJob(job)
        self._truth[job.id] = _Truth()

    def _fail(self, number: int) -> None:
        """A machine dies: its jobs wait again, with what they had saved. Numbers from the spot market are machines'."""
        machines = self.state.machines
        if number < 0:
            dead = next((machine for machine in machines if machine.number == -number - 1), None)
        else:
            failure = self.workload.failures[number]
            among = [m for m in machines if failure.node_type in (None, m.kind.name)]
            dead = among[failure.machine % len(among)] if among else None
        if dead is None:
            return
        self._outcome.failures += 1
        for name, _ in dead.residents:
            one, truth = self.state.live[name], self._truth[name]
            assert one.choice is not None
            saved_every = one.job.checkpoint_seconds
            if saved_every > 0:
                lost = truth.ran_seconds % saved_every / self.workload.run_seconds(one.job, one.choice)
                truth.left = min(1.0, truth.left + lost)
                one.left = truth.left
            self._leave(one)
        self.state.machines = tuple(machine for machine in machines if machine is not dead)
        self._return_machine(dead)

    def _end(self, one: LiveJob) -> None:
        now, job, truth = self.state.seconds, one.job, self._truth[one.job.id]
        self._empty(one)
        self._leave(one)
        del self.state.live[job.id], self._truth[job.id]
        late = max(0.0, now - job.deadline_seconds)
        self._outcome.tardiness_dollars += late * job.tardiness_dollars_per_second
        assert truth.first_start_seconds is not None
        self._outcome.ends.append(
            JobEnd(job.id, job.submit_seconds, truth.first_start_seconds, now, late, truth.starts - 1)
        )
        self._ended.add(job.id)
        for follower in [held for held in self._held.values() if self._ended.issuperset(held.after)]:
            del self._held[follower.id]
            self._submit(follower)

    def _empty(self, one: LiveJob) -> None:
        """Take a job off the list of its machine, which is still there for the next."""
        self.state.machines = tuple(
            machine.without(one.job.id) if machine.number == one.machine else machine for machine in self.state.machines
        )

    def _leave(self, one: LiveJob) -> None:
        """A job gives its GPUs back."""
        assert one.choice is not None and one.machine is not None
        since, now = self._truth[one.job.id].stay_since, self.state.seconds
        if now > since:
            self._outcome.stays.append(Stay(one.job.id, one.machine, one.choice, since, now))
        one.choice = one.machine = None
        one.owed_seconds = 0.0

    def _decide(self, is_asked: bool) -> None:
        began = perf_counter()
        decision: Decision = {}
        if self.state.live:
            decision = self.policy(self.state) if is_asked else kept(self.state)
        if is_asked:
            self._wake()
            self._outcome.decision_seconds.append(perf_counter() - began)
        machines = rent(self.state, decision)
        before = {machine.number: machine for machine in self.state.machines}
        self._move(decision, machines, before)
        self._outcome.most_machines = max(self._outcome.most_machines, len(machines))
        now_rented = {machine.number for machine in machines}
        for number, machine in before.items():
            if number not in now_rented:
                self._return_machine(machine)
        for machine in machines:
            if machine.number not in before:
                self._take_machine(machine)
        self.state.machines = machines

    def _wake(self) -> None:
        """A policy may ask to be called again after some seconds (`wake_seconds`), though nothing else happens then."""
        self._events = [event for event in self._events if event[1] != _WAKE]
        heapq.heapify(self._events)
        seconds = getattr(self.policy, "wake_seconds", None)
        if seconds is not None and self.state.live:
            heapq.heappush(self._events, (self.state.seconds + max(seconds, 1.0), _WAKE, 0))

    def _move(self, decision: Decision, machines: tuple[Machine, ...], before: dict[int, Machine]) -> None:
        """Stop who is not named, start or move who is."""
        where = {name: machine for machine in machines for name, _ in machine.residents}
        for name, one in self.state.live.items():
            placed = decision.get(name)
            if placed is None:
                if one.choice is not None:
                    self._outcome.preemptions += 1
                    self._leave(one)
                continue
            machine = where[name]
            if one.choice == placed.choice and one.machine == machine.number:
                one.alone = placed.alone
                continue
            self._start(one, machine, placed.choice != one.choice and one.choice is not None)
            one.choice = one.last_choice = placed.choice
            one.alone, one.machine = placed.alone, machine.number
            if machine.number not in before:
                one.owed_seconds += machine.kind.boot_seconds

    def _start(self, one: LiveJob, machine: Machine, is_resized: bool) -> None:
        """Begin a stay on a machine, with what it owes for that."""
        truth, outcome, now = self._truth[one.job.id], self._outcome, self.state.seconds
        if one.choice is not None:
            outcome.resizes += is_resized
            outcome.moves += not is_resized
            owed = one.owed_seconds
            self._leave(one)
            # A job that is moved for nothing (no restart to pay) goes on owing what it owed.
            one.owed_seconds = owed if one.job.restart_seconds == 0 else 0.0
        if one.has_run:
            one.owed_seconds = max(one.owed_seconds, one.job.restart_seconds)
        if is_resized or truth.first_start_seconds is None or one.machine is None:
            truth.starts += 1
        truth.stay_since, truth.ran_seconds = now, 0.0
        if truth.first_start_seconds is None:
            truth.first_start_seconds = now
        one.has_run = True

    def _take_machine(self, machine: Machine) -> None:
        self._rented[machine.number] = self.state.seconds
        self.state.machines_made = max(self.state.machines_made, machine.number + 1)
        often = machine.kind.interruptions_per_hour
        if often > 0:
            lasts = self._random.expovariate(often / 3600)
            heapq.heappush(self._events, (self.state.seconds + lasts, _FAILURE, -machine.number - 1))

    def _return_machine(self, machine: Machine) -> None:
        since, now = self._rented.pop(machine.number), self.state.seconds
        if now > since:
            self._outcome.rentals.append(Rental(machine.number, machine.kind.name, since, now))


def simulate(workload: Workload, policy: Policy, rules: Rules | None = None, begin: State | None = None) -> Outcome:
    """The whole workload under a policy; from a state on, where one is given."""
    return Simulation(workload, policy, rules or Rules(), begin).run()
