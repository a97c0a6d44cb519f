"""From a queue now to its timetable: the policy decides on, over many draws of the true run times.

The plan itself is the policy with every forecast right. Around it the same policy plays the queue to its end for every
draw of the true run times (`runtime_draws`), sees the forecasts, and corrects them once a job runs. The k-th smallest
and the k-th largest of n draws leave 2k/(n+1) of truths outside, where truths are drawn by the same law: with 99 draws
the fifth of either side, for 90 %. An interval is widened to hold the plan's own time.

A policy that thinks long (roll-outs) decides the plan; in the draws of longer queues a quick one stands in for it.
Machines that may be taken back, or be slow, are so in the draws and not in the plan, and what progress tells errs in
the draws as trackers were measured to. What comes after the known jobs is not drawn.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

from epochcast.errors import BadInput
from epochcast.interval import COVERAGE, Interval
from epochcast.schedule.outcome import JobEnd, JobStay, SimulationOutcome
from epochcast.schedule.policies.policy_table import POLICIES, PolicyPermissions, policy_named
from epochcast.schedule.policies.stops_with_gain import StopsWithGain
from epochcast.schedule.queue_clock import QueueClock
from epochcast.schedule.queue_now import QueueNow
from epochcast.schedule.queue_state import QueueState
from epochcast.schedule.runtime_draws import RunTimeLaw, TrueSeconds, middle
from epochcast.schedule.schedule_request import DEFAULT_POLICY, ScheduleRequest
from epochcast.schedule.simulator import NO_SECONDS, Policy, SimulationRules, simulate
from epochcast.schedule.timetable import (
    RUNNING,
    STOPPED,
    TO_COME,
    WAITING,
    JobWait,
    MachineUse,
    PlannedStay,
    Timetable,
    TimetableRow,
)
from epochcast.schedule.workload_jobs import Fleet, QueuedJob

# Jobs up to which the policy itself decides in the draws, and up to which its quick variant does; then INDEX does.
FEW_JOBS = 8
SOME_JOBS = 24
INDEX = "atc"
MOST_TICKS = 100_000

COARSE = (
    f"In a queue of more than {SOME_JOBS} jobs a simpler policy decides in the simulated runs: in trials its 90 % "
    "intervals held about 70 % of starts and nearly 90 % of ends."
)
LAW = RunTimeLaw()

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class StandIn:
    """The policy that decides in the draws."""

    name: str
    make: Callable[[PolicyPermissions], Policy]


def stand_in(policy: str, jobs: int) -> StandIn:
    """Who decides in the draws of a queue of so many jobs: the policy itself, or a quicker one."""
    entry = POLICIES[policy]
    if jobs <= FEW_JOBS or entry.make_quick is None:
        return StandIn(policy, entry.make)
    if jobs <= SOME_JOBS:
        return StandIn(f"{policy} (fewer roll-outs)", entry.make_quick)
    return StandIn(INDEX, POLICIES[INDEX].make)


def project(
    queue: QueueNow,
    clock: QueueClock,
    request: ScheduleRequest,
    rules: SimulationRules,
    progress: Progress | None = None,
    *,
    law: RunTimeLaw = LAW,
    drawn_by: str | None = None,
    is_run: bool = False,
) -> Timetable:
    """The timetable of a queue; `rules` say when decisions are made, unless the request does.

    `law` draws run times. `drawn_by` is the policy that decides in the draws, by default a quick one for a slow one.
    A queue that `schedule run` runs (`is_run`) goes on as it does there: running jobs are stopped for a gain only.
    """
    policy = request.policy or DEFAULT_POLICY
    permissions = PolicyPermissions(request.preemption, request.preemption, request.seed)
    every_seconds = rules.every_seconds if request.every_seconds is None else request.every_seconds
    rules = replace(rules, every_seconds=every_seconds, reestimate=True, seed=request.seed)
    _check_pace(queue, rules)
    is_held = is_run and request.preemption and not POLICIES[policy].shares_time
    decides = StopsWithGain(policy_named(policy, permissions)) if is_held else policy_named(policy, permissions)
    planned = _played(_calm(queue), middle(queue), decides, rules)
    decider = stand_in(policy, len(queue.workload.jobs))
    if drawn_by is not None:
        decider = StandIn(drawn_by, POLICIES[drawn_by].make)
    drawn = []
    for number in range(request.draws):
        if progress is not None:
            progress(number, request.draws)
        truth = law.draw(queue, Random(f"draw {request.seed} {number}"))
        in_this = in_draws(rules, request.seed + number + 1)
        draws_on = decider.make(permissions)
        drawn.append(_played(queue, truth, StopsWithGain(draws_on) if is_held else draws_on, in_this))
    return Timetable(
        clock=clock,
        now_seconds=queue.state.seconds,
        policy=policy,
        lines=_lines(queue, clock, planned, drawn),
        machines=_machines(queue, planned),
        dollars_interval=spread(planned.dollars, [outcome.dollars for outcome in drawn]),
        machine_dollars=spread(planned.machine_dollars, [outcome.machine_dollars for outcome in drawn]),
        draws=request.draws,
        drawn_by=decider.name,
        workload=queue.workload,
        notes=(*((COARSE,) if decider.name == INDEX != policy else ()), *_stops_now(queue, decides)),
    )


def _stops_now(queue: QueueNow, policy: Policy) -> tuple[str, ...]:
    """Why the plan stops or moves running jobs at once, where it does."""
    if not isinstance(policy, StopsWithGain):
        return ()
    policy(queue.state.copy())
    return (f"Stopping or moving running jobs now pays: {policy.reason}.",) if policy.reason else ()


def _check_pace(queue: QueueNow, rules: SimulationRules) -> None:
    """Refuse to decide so often that a plan would never be done."""
    if rules.every_seconds is None:
        return
    boot = max(kind.boot_seconds for kind in queue.workload.fleet.types)
    work = sum(
        boot + job.restart_seconds + max(seconds.high for seconds in job.seconds.values())
        for job in queue.workload.jobs
    )
    if work / rules.every_seconds > MOST_TICKS:
        raise BadInput(
            f"a decision every {rules.every_seconds:g} seconds is too often for jobs of {work:.3g} seconds in all"
        )


def in_draws(rules: SimulationRules, seed: int) -> SimulationRules:
    """How a draw is played: progress corrects forecasts, as well as trackers can tell it."""
    return replace(rules, reestimate=True, tracking_error=1.0, seed=seed)


def spread(planned: float, drawn: Sequence[float]) -> Interval:
    """What 90 % of the draws stay within, and the plan."""
    ordered, n = sorted(drawn), len(drawn)
    outside = max(1, int((n + 1) * (1 - COVERAGE) / 2 + 1e-9))
    low, high = ordered[outside - 1], ordered[n - outside]
    # Of one draw, or two, nothing is within.
    coverage = max(1 / (n + 1), (n + 1 - 2 * outside) / (n + 1))
    return Interval(min(low, planned), planned, max(high, planned), coverage)


def _played(queue: QueueNow, truth: TrueSeconds, policy: Policy, rules: SimulationRules) -> SimulationOutcome:
    workload = replace(queue.workload, true_seconds=truth, failures=(), stragglers=())
    return simulate(workload, policy, rules, begin=queue.state)


def _calm(queue: QueueNow) -> QueueNow:
    """The same queue on machines that nobody takes back and that are never slow."""
    fleet = queue.workload.fleet
    if not any(kind.interruptions_per_hour or kind.slow_fraction for kind in fleet.types):
        return queue
    kinds = {kind.name: replace(kind, interruptions_per_hour=0.0, slow_fraction=0.0) for kind in fleet.types}
    calm = Fleet(fleet.nodes, tuple(kinds.values()))
    state = queue.state.copy()
    machines = tuple(replace(machine, kind=kinds[machine.kind.name]) for machine in state.machines)
    state = QueueState(calm, state.seconds, state.live, machines, state.next_machine_number)
    return replace(queue, workload=replace(queue.workload, fleet=calm), state=state)


def _lines(
    queue: QueueNow, clock: QueueClock, planned: SimulationOutcome, drawn: Sequence[SimulationOutcome]
) -> tuple[TimetableRow, ...]:
    """Who runs first, then by start."""
    now, live = queue.state.seconds, queue.state.live
    ends = {end.job: end for end in planned.ends}
    in_draws: dict[str, list[JobEnd]] = {job.id: [] for job in queue.workload.jobs}
    for outcome in drawn:
        for end in outcome.ends:
            in_draws[end.job].append(end)
    kinds = {rental.machine: rental.node_type for rental in planned.rentals}
    lines, waiting = [], 0
    for job in sorted(queue.workload.jobs, key=lambda job: (not _runs(queue, job), ends[job.id].start_seconds)):
        state = _state(queue, job)
        is_queued = state in (WAITING, STOPPED)
        waiting += is_queued
        stays = tuple(
            PlannedStay(kinds[stay.machine], stay.machine, stay.choice, stay.start_seconds, stay.end_seconds, clock)
            for stay in planned.stays
            if stay.job == job.id
        )
        others = in_draws[job.id]
        start = spread(ends[job.id].start_seconds, [end.start_seconds for end in others])
        if state == RUNNING:
            start = Interval.exact(queue.since.get(job.id, now))
        lines.append(
            TimetableRow(
                job=job.id,
                state=state,
                position=0 if state == RUNNING else waiting if is_queued else None,
                stays=tuple(sorted(stays, key=lambda stay: stay.start_seconds)),
                start=start,
                end=spread(ends[job.id].end_seconds, [end.end_seconds for end in others]),
                deadline_seconds=job.deadline_seconds,
                clock=clock,
                late_probability=sum(end.tardiness_seconds > 0 for end in others) / len(others),
                wait=None if job.id in live and _runs(queue, job) else _wait(queue, job, planned),
            )
        )
    return tuple(lines)


def _runs(queue: QueueNow, job: QueuedJob) -> bool:
    live = queue.state.live.get(job.id)
    return live is not None and live.is_running


def _state(queue: QueueNow, job: QueuedJob) -> str:
    live = queue.state.live.get(job.id)
    if live is None:
        return WAITING if job.submit_seconds <= queue.state.seconds else TO_COME
    return RUNNING if live.is_running else STOPPED if live.has_run else WAITING


def _wait(queue: QueueNow, job: QueuedJob, planned: SimulationOutcome) -> JobWait | None:
    """What a job waits for in the plan: jobs before it, its submission, GPUs that others give back, or its turn."""
    first = min((stay for stay in planned.stays if stay.job == job.id), key=lambda stay: stay.start_seconds)
    start = first.start_seconds
    if start <= queue.state.seconds + NO_SECONDS:
        return None
    ended = {end.job: end.end_seconds for end in planned.ends}
    before = tuple(other for other in job.after if ended[other] >= start - NO_SECONDS)
    if before:
        return JobWait("the end of a job before it", start, before)
    holders = _releasing_jobs(first, planned.stays)
    if holders:
        return JobWait(str(first.choice), start, holders)
    if job.submit_seconds >= start - NO_SECONDS:
        return JobWait("its submission", start)
    return JobWait("its turn: machines are free, and the policy starts it later", start)


def _releasing_jobs(first: JobStay, stays: Sequence[JobStay]) -> tuple[str, ...]:
    """Who lets go of GPUs when a job starts: on its machine, else of its device, else anywhere (a machine's place)."""
    others = [
        stay for stay in stays if abs(stay.end_seconds - first.start_seconds) <= NO_SECONDS and stay.job != first.job
    ]
    for near in (
        [stay for stay in others if stay.machine == first.machine],
        [stay for stay in others if stay.choice.device == first.choice.device],
        others,
    ):
        if near:
            return tuple(sorted({stay.job for stay in near}))
    return ()


def _machines(queue: QueueNow, planned: SimulationOutcome) -> tuple[MachineUse, ...]:
    """What is rented in the plan, type by type."""
    now, uses = queue.state.seconds, []
    for kind in queue.workload.fleet.types:
        rentals = [rental for rental in planned.rentals if rental.node_type == kind.name]
        if not rentals:
            continue
        seconds = sum(rental.end_seconds - rental.start_seconds for rental in rentals)
        at_once = [
            sum(other.start_seconds <= rental.start_seconds < other.end_seconds for other in rentals)
            for rental in rentals
        ]
        uses.append(
            MachineUse(
                node_type=kind.name,
                count=sum(rental.start_seconds <= now + NO_SECONDS for rental in rentals),
                most=max(at_once),
                machine_seconds=seconds,
                dollars=seconds * kind.dollars_per_second,
                is_in_house=kind.is_in_house,
            )
        )
    return tuple(uses)
