from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epochcast.errors import BadInput
from epochcast.interval import Interval
from epochcast.schedule.generators import talk
from epochcast.schedule.policies.ordered_policies import SharedMachines, WholeMachines, deadline, submission
from epochcast.schedule.policies.policy_table import policy_named
from epochcast.schedule.progress import TrueProgress, catch_up, tracker_error
from epochcast.schedule.queue_state import Decision, LiveJob, QueueState, RentedMachine
from epochcast.schedule.simulator import Simulation, SimulationRules, simulate
from epochcast.schedule.workload_file import with_error
from epochcast.schedule.workload_jobs import Fleet, GpuChoice, MachineFailure, QueueWorkload, Straggler

from .conftest import FOUR, ONE, queued


# by hand: two machines, three jobs of 100 s; the third waits for the first
def test_three_jobs_on_two_machines_by_hand(fleet: Fleet) -> None:
    jobs = tuple(queued(name, 0.0, 150.0, {1: 100.0}) for name in "abc")
    outcome = simulate(QueueWorkload(fleet, jobs), WholeMachines(submission))
    assert [(end.job, end.start_seconds, end.end_seconds) for end in outcome.ends] == [
        ("a", 0, 100),
        ("b", 0, 100),
        ("c", 100, 200),
    ]
    assert outcome.machine_dollars == pytest.approx(300 * 0.001)
    assert outcome.tardiness_dollars == pytest.approx(50 * 0.01)
    assert outcome.deadline_misses == 1


def test_shared_machines_hold_several_jobs(fleet: Fleet) -> None:
    jobs = tuple(queued(name, 0.0, 150.0, {1: 100.0}) for name in "abcde")
    outcome = simulate(QueueWorkload(fleet, jobs), SharedMachines(submission))
    assert all(end.end_seconds == 100 for end in outcome.ends)
    assert outcome.most_machines == 2


def test_an_idle_time_costs_nothing(fleet: Fleet) -> None:
    jobs = (queued("a", 0.0, 500.0, {1: 100.0}), queued("b", 1000.0, 2000.0, {1: 100.0}))
    outcome = simulate(QueueWorkload(fleet, jobs), WholeMachines(submission))
    assert outcome.machine_dollars == pytest.approx(200 * 0.001)


def test_a_stopped_job_keeps_its_progress_and_pays_its_restart(fleet: Fleet) -> None:
    fleet = Fleet(1, (ONE,))
    jobs = (
        queued("long", 0.0, 1000.0, {1: 100.0}, restart_seconds=10.0),
        queued("urgent", 50.0, 100.0, {1: 20.0}),
    )
    outcome = simulate(QueueWorkload(fleet, jobs), SharedMachines(deadline, stops=True))
    assert [(end.job, end.end_seconds) for end in outcome.ends] == [("urgent", 70.0), ("long", 130.0)]
    assert outcome.preemptions == 1 and outcome.ends[1].restarts == 1


def test_booting_delays_the_first_job_and_is_paid() -> None:
    fleet = Fleet(1, (replace(ONE, boot_seconds=30.0),))
    jobs = (queued("a", 0.0, 500.0, {1: 100.0}), queued("b", 10.0, 500.0, {1: 100.0}))
    outcome = simulate(QueueWorkload(fleet, jobs), WholeMachines(submission))
    assert [end.end_seconds for end in outcome.ends] == [130.0, 230.0]  # the machine is warm for the second
    assert outcome.machine_dollars == pytest.approx(230 * 0.001)


def test_a_failure_costs_what_was_not_saved(fleet: Fleet) -> None:
    job = queued("a", 0.0, 1000.0, {1: 100.0}, checkpoint_seconds=40.0, restart_seconds=5.0)
    workload = QueueWorkload(fleet, (job,), failures=(MachineFailure(50.0),))
    outcome = simulate(workload, WholeMachines(submission))
    assert outcome.failures == 1
    assert outcome.ends[0].end_seconds == pytest.approx(50 + 5 + 60)  # ten seconds are lost


def test_spot_machines_are_taken_away_and_every_job_still_ends() -> None:
    fleet = Fleet(2, (replace(ONE, interruptions_per_hour=20.0),))
    jobs = tuple(queued(f"j{n}", 10.0 * n, 9000.0, {1: 600.0}, checkpoint_seconds=60.0) for n in range(6))
    first, again = (
        simulate(QueueWorkload(fleet, jobs), WholeMachines(submission), SimulationRules(seed=3)) for _ in range(2)
    )
    assert first.failures > 0 and len(first.ends) == 6
    assert first.ends == again.ends


def test_a_policy_sees_the_forecast_and_time_passes_by_the_truth(fleet: Fleet) -> None:
    job = queued("a", 0.0, 500.0, {1: 100.0})
    workload = QueueWorkload(fleet, (job,), true_seconds={"a": {GpuChoice("V100", 1): 140.0}})
    assert simulate(workload, WholeMachines(submission)).ends[0].end_seconds == 140.0


def test_progress_corrects_the_forecast_where_asked() -> None:
    fleet = Fleet(1, (ONE,))
    jobs = (queued("a", 0.0, 500.0, {1: 100.0}), queued("b", 50.0, 500.0, {1: 10.0}))
    workload = QueueWorkload(
        fleet, jobs, true_seconds={"a": {GpuChoice("V100", 1): 200.0}, "b": {GpuChoice("V100", 1): 10.0}}
    )
    for reestimate, pace in ((True, 2.0), (False, 1.0)):
        simulation = Simulation(workload, WholeMachines(submission), SimulationRules(reestimate=reestimate))
        simulation.step()
        simulation.step()
        assert simulation.state.seconds == 50.0
        assert simulation.state.live["a"].pace == pace


def test_injected_error_changes_what_is_seen_and_not_what_happens() -> None:
    plain = talk(3, "high", 0)
    noisy = with_error(plain, 0.3, seed=5)
    assert noisy == with_error(plain, 0.3, seed=5)
    for before, after in zip(plain.jobs, noisy.jobs, strict=True):
        ratios = {round(after.seconds[c].mid / before.seconds[c].mid, 9) for c in before.seconds}
        assert len(ratios) == 1 and ratios != {1.0}
        assert all(noisy.run_seconds(after, c) == before.seconds[c].mid for c in before.seconds)


# by hand: one machine; "a" is half done at 1000 s and owes 50 s more, "b" waits for it, "c" comes at 1060 s
def test_a_simulation_goes_on_from_a_state_by_hand() -> None:
    fleet = Fleet(1, (ONE,))
    a, b = queued("a", 0.0, 2000.0, {1: 100.0}), queued("b", 10.0, 2000.0, {1: 30.0})
    c = queued("c", 1060.0, 2000.0, {1: 10.0})
    state = QueueState(fleet, 1000.0, machines=(RentedMachine(0, ONE, (("a", 1),), True),), next_machine_number=1)
    state.live = {
        "a": LiveJob(a, 0.5, choice=GpuChoice("V100", 1), alone=True, machine=0, has_run=True),
        "b": LiveJob(b),
    }
    outcome = simulate(QueueWorkload(fleet, (a, b, c)), WholeMachines(submission), begin=state)
    assert [(end.job, end.start_seconds, end.end_seconds) for end in outcome.ends] == [
        ("a", 1000, 1050),
        ("b", 1050, 1080),
        ("c", 1080, 1090),
    ]
    assert outcome.machine_dollars == pytest.approx(90 * 0.001)
    assert state.live["a"].left == 0.5


def test_a_job_joins_the_queue_when_those_before_it_have_ended(fleet: Fleet) -> None:
    jobs = (
        queued("a", 0.0, 900.0, {1: 100.0}),
        queued("b", 0.0, 900.0, {1: 50.0}, after=("a", "c")),
        queued("c", 0.0, 900.0, {1: 20.0}, after=("a",)),
    )
    outcome = simulate(QueueWorkload(fleet, jobs), WholeMachines(submission))
    assert [(end.job, end.start_seconds) for end in outcome.ends] == [("a", 0), ("c", 100), ("b", 120)]


def test_jobs_after_one_another_in_a_circle_are_refused(fleet: Fleet) -> None:
    jobs = tuple(queued(name, 0.0, 9.0, {1: 5.0}, after=(other,)) for name, other in ("ab", "bc", "ca"))
    with pytest.raises(BadInput, match=r"job '.' comes after itself: '.' after '.' after '.' after '.'"):
        QueueWorkload(fleet, jobs)
    with pytest.raises(BadInput, match="job 'a' comes after 'b', which is not in the queue"):
        QueueWorkload(fleet, jobs[:1])


def test_a_policy_decides_only_when_it_is_asked_to(fleet: Fleet) -> None:
    fleet = Fleet(1, (FOUR,))
    jobs = (
        queued("a", 0.0, 900.0, {1: 100.0}),
        queued("b", 10.0, 900.0, {1: 20.0}),
        queued("c", 12.0, 900.0, {1: 20.0}),
    )
    starts = {}
    for name, rules in {
        "always": SimulationRules(),
        "completion": SimulationRules(on_arrival=False),
        "ticks": SimulationRules(on_arrival=False, on_completion=False, every_seconds=30.0),
    }.items():
        outcome = simulate(QueueWorkload(fleet, jobs), SharedMachines(submission), rules)
        starts[name] = sorted((end.job, end.start_seconds) for end in outcome.ends)
    assert starts == {
        "always": [("a", 0), ("b", 10), ("c", 12)],
        "completion": [("a", 0), ("b", 100), ("c", 100)],
        "ticks": [("a", 0), ("b", 30), ("c", 30)],
    }


def test_a_copy_of_the_state_can_be_changed_alone(fleet: Fleet) -> None:
    simulation = Simulation(QueueWorkload(fleet, (queued("a", 0.0, 9.0, {1: 5.0}),)), WholeMachines(submission))
    simulation.step()
    copy = simulation.state.copy()
    copy.live["a"].left = 0.25
    copy.live.pop("a")
    assert simulation.state.live["a"].left == 1.0


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), policy=st.sampled_from(["fifo", "edf_shared", "srtf", "greedy", "tiresias"]))
def test_no_gpu_second_is_lost(seed: int, policy: str) -> None:
    """Without restarts the work done is the work asked for, whatever was stopped and moved in between."""
    workload = talk(2, "overload", seed, jobs=8)
    outcome = simulate(workload, policy_named(policy))
    for job in workload.jobs:
        done = sum(
            (stay.end_seconds - stay.start_seconds) / workload.run_seconds(job, stay.choice)
            for stay in outcome.stays
            if stay.job == job.id
        )
        assert done == pytest.approx(1.0, abs=1e-6)


def test_a_machine_of_four_is_right_sized_when_jobs_leave() -> None:
    fleet = Fleet(1, (ONE, FOUR))
    jobs = (queued("a", 0.0, 900.0, {1: 100.0}), queued("b", 0.0, 900.0, {1: 200.0}))
    outcome = simulate(QueueWorkload(fleet, jobs), SharedMachines(submission))
    assert outcome.machine_dollars == pytest.approx(100 * 0.004 + 100 * 0.001)


def test_a_job_that_pays_for_moving_stays_on_the_large_machine() -> None:
    fleet = Fleet(1, (ONE, FOUR))
    jobs = (
        queued("a", 0.0, 900.0, {1: 100.0}),
        queued("b", 0.0, 900.0, {1: 200.0}, restart_seconds=50.0),
    )
    outcome = simulate(QueueWorkload(fleet, jobs), SharedMachines(submission))
    assert outcome.ends[-1].end_seconds == 200.0
    assert outcome.machine_dollars == pytest.approx(200 * 0.004)


def test_an_interval_of_a_forecast_needs_seconds_above_zero(fleet: Fleet) -> None:
    job = queued("a", 0.0, 9.0, {1: 5.0})
    with pytest.raises(ValueError, match="more than 0"):
        replace(job, seconds={GpuChoice("V100", 1): Interval(0.0, 1.0, 2.0)})


# by hand: half of the work is done after 50 s, the other half takes three times as long
def test_a_machine_that_becomes_slow_slows_its_job(fleet: Fleet) -> None:
    workload = QueueWorkload(fleet, (queued("a", 0.0, 500.0, {1: 100.0}),), stragglers=(Straggler(50.0, 3.0),))
    outcome = simulate(workload, WholeMachines(submission))
    assert outcome.ends[0].end_seconds == pytest.approx(50 + 150)
    assert outcome.stragglers == 1


def test_progress_shows_that_a_machine_is_slow(fleet: Fleet) -> None:
    jobs = (queued("a", 0.0, 500.0, {1: 100.0}), queued("b", 80.0, 500.0, {1: 10.0}))
    workload = QueueWorkload(fleet, jobs, stragglers=(Straggler(50.0, 3.0),))
    simulation = Simulation(workload, WholeMachines(submission), SimulationRules(reestimate=True))
    while simulation.state.seconds < 80:
        simulation.step()
    assert simulation.state.live["a"].pace == pytest.approx(3.0)
    assert simulation.state.live["a"].left == pytest.approx(0.4)


def test_some_of_the_machines_rented_are_slow() -> None:
    fleet = Fleet(2, (replace(ONE, slow_fraction=0.5, slowdown=2.0),))
    jobs = tuple(queued(f"j{n}", 1000.0 * n, 9e9, {1: 100.0}) for n in range(40))
    first, again = (
        simulate(QueueWorkload(fleet, jobs), WholeMachines(submission), SimulationRules(seed=3)) for _ in range(2)
    )
    took = [round(end.end_seconds - end.start_seconds, 6) for end in first.ends]
    assert set(took) == {100.0, 200.0}
    assert took.count(200.0) == first.stragglers and first.ends == again.ends


def test_trackers_err_as_measured_and_less_as_the_run_goes_on() -> None:
    errors = sorted(abs(tracker_error(0, f"j{n}", 1.0)) for n in range(4000))
    assert errors[2000] == pytest.approx(0.015, rel=0.15)
    assert errors[3600] == pytest.approx(0.20, rel=0.2)
    assert tracker_error(0, "a", 0.0) == 0.0
    one, truth = (
        LiveJob(queued("a", 0.0, 500.0, {1: 100.0}), choice=GpuChoice("V100", 1)),
        TrueProgress(0, tracker_error=0.5),
    )
    truth.goes_on(one, 0.0, 120.0)
    paces = []
    for now in (6.0, 60.0, 114.0):
        catch_up(one, truth, now, reestimate=True)
        paces.append(one.pace / 1.2 - 1)
    assert paces[0] > paces[1] > paces[2] > 0


@pytest.mark.parametrize("policy", ["fifo", "edf_shared", "priority"])
def test_a_policy_that_does_not_look_at_running_jobs_sees_the_same_queue(policy: str) -> None:
    workload, plain = talk(3, "high", 5), policy_named(policy)
    assert not plain.looks_at_running  # type: ignore[attr-defined]

    def looks(state: QueueState) -> Decision:
        return plain(state)

    first, second = simulate(workload, plain), simulate(workload, looks)
    assert [end.job for end in first.ends] == [end.job for end in second.ends]
    assert first.dollars == pytest.approx(second.dollars)


def test_rounding_makes_no_job_late() -> None:
    jobs = (queued("a", 0.0, 0.1, {1: 0.1}), queued("b", 0.0, 0.3, {1: 0.2}))
    outcome = simulate(QueueWorkload(Fleet(1, (ONE,)), jobs), policy_named("edf"))
    assert outcome.ends[1].end_seconds > 0.3  # 0.1 + 0.2
    assert (outcome.deadline_misses, outcome.tardiness_dollars) == (0, 0.0)
