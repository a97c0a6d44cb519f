from tests.schedule.conftest import ONE, queued

from epochcast.schedule.decisions import RunPlan, RunTarget
from epochcast.schedule.queue_state import Decision, GpuGrant, LiveJob, QueueState, RentedMachine
from epochcast.schedule.workload_jobs import Fleet, GpuChoice
from studies.prototype.bills import AsRun, bill


def test_what_the_scheduler_has_decided_holds_until_something_happens() -> None:
    jobs = [queued(name, 0.0, 99.0, {1: 10.0}) for name in "ab"]
    state = QueueState(Fleet(1, (ONE,)), 0.0, {job.id: LiveJob(job) for job in jobs})
    placed = GpuGrant(GpuChoice("V100", 1))

    def first(state: QueueState) -> Decision:
        return {next(iter(state.live)): placed}

    machine = RentedMachine(0, ONE, (("b", 1),))
    asked = AsRun(first, {}, RunPlan({"b": RunTarget(placed, machine), "gone": RunTarget(placed, machine)}, (), 7.0))
    assert (asked(state), asked.wake_seconds) == ({"b": placed}, 7.0)
    assert (asked(state), asked.wake_seconds) == ({"a": placed}, None)
    assert asked.started == {"a": 0.0, "b": 0.0}


# by hand: a machine from 5 to 30 at 2 dollars a second, a job that is late from 20 to 25 at 3
def test_a_slot_is_billed_for_what_falls_into_it() -> None:
    assert bill([(5.0, 30.0, 2.0)], [(20.0, 25.0, 3.0)], 10.0, 22.0) == 12 * 2 + 2 * 3
