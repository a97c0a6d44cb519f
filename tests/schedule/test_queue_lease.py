"""A queue has one scheduler at a time, on SQLite and on PostgreSQL."""

import os
import subprocess
import sys

import pytest
from sqlalchemy import update
from tests.schedule.conftest import FOUR, TWO, queued
from tests.schedule.test_stored_queue import a_queue

from epochcast.errors import UnknownName
from epochcast.interval import Interval
from epochcast.observe.store.database_tables import queues
from epochcast.observe.store.store import Store
from epochcast.schedule.decisions import fleet_now, plan
from epochcast.schedule.engines.executor import EngineNode
from epochcast.schedule.queue_lease import QueueHeld, take_queue
from epochcast.schedule.queue_rows import JobStart, StoredMachine
from epochcast.schedule.queue_state import GpuGrant, LiveJob, QueueState, RentedMachine
from epochcast.schedule.stored_queue import load_queue, save_queue
from epochcast.schedule.workload_jobs import Fleet, GpuChoice, QueuedJob

V1, V2, V4 = (GpuChoice("V100", gpus) for gpus in (1, 2, 4))


def test_a_second_scheduler_is_refused_until_the_first_lets_go(store: Store) -> None:
    save_queue(store, "q", a_queue())
    first, before = take_queue(store, "q", "local", "fifo")
    assert before is None
    with pytest.raises(QueueHeld, match=rf"is run by process {os.getpid()} on "):
        take_queue(store, "q", "local", "fifo")
    first.release()
    take_queue(store, "q", "local", "fifo")


def test_a_scheduler_that_lost_its_queue_writes_nothing_any_more(store: Store) -> None:
    save_queue(store, "q", a_queue())
    first, _ = take_queue(store, "q", "local", "fifo", held_seconds=-1.0)
    second, _ = take_queue(store, "q", "local", "fifo")
    machine = StoredMachine(0, load_queue(store, "q").fleet.types[0], None, 5.0)
    start = JobStart("a", 1, "k", V2, 0, 5.0)
    with pytest.raises(QueueHeld, match="taken over by another scheduler; this one stops"):
        first.put_start(start, machine, state="running")
    assert load_queue(store, "q").starts == ()
    second.put_start(start, machine, state="running")
    assert load_queue(store, "q").starts == (start,)


def test_a_holder_that_died_on_this_machine_is_recognized_at_once(store: Store) -> None:
    save_queue(store, "q", a_queue())
    held, _ = take_queue(store, "q", "local", "fifo")
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    host, _, mark, rest = held.holder.split(":")
    with store.writing() as connection:
        connection.execute(update(queues).values(holder=f"{host}:{process.pid}:{mark}:{rest}"))
    take_queue(store, "q", "local", "fifo")


def test_jobs_that_run_on_one_engine_are_not_left_for_another(store: Store) -> None:
    save_queue(store, "q", a_queue())
    held, _ = take_queue(store, "q", "slurm", "fifo")
    held.put_start(
        JobStart("a", 1, "k", V2, 0, 5.0), StoredMachine(0, load_queue(store, "q").fleet.types[0], "n1", 5.0)
    )
    held.release()
    with pytest.raises(QueueHeld, match="jobs of the queue 'q' run on slurm; continue with --engine slurm"):
        take_queue(store, "q", "local", "fifo")


def test_an_unknown_queue_is_told(store: Store) -> None:
    with pytest.raises(UnknownName, match="no queue called 'q'"):
        take_queue(store, "q", "local", "fifo")


# ---- deciding on nodes that are there -----------------------------------------------------------------


def state(*jobs: QueuedJob, nodes: int = 2) -> QueueState:
    return QueueState(Fleet(nodes, (TWO, FOUR)), 0.0, {job.id: LiveJob(job) for job in jobs})


def test_nodes_that_are_down_are_not_there() -> None:
    fleet = Fleet(3, (TWO, FOUR))
    found = fleet_now(
        fleet, [EngineNode("n1", "two"), EngineNode("n2", "two", is_up=False), EngineNode("n3", "four", is_up=False)]
    )
    assert found is not None
    assert (found.nodes, [kind.quota for kind in found.types]) == (1, [1, 0])
    assert fleet_now(fleet, [EngineNode("n1", "two", is_up=False)]) is None
    assert fleet_now(fleet, None) == fleet


def test_a_job_that_fits_on_no_node_that_is_up_waits_and_the_others_run() -> None:
    both = state(queued("large", 0, 100, {4: 10}), queued("small", 0, 100, {2: 10}))
    found = plan(both, lambda seen: {name: GpuGrant(V2) for name in seen.live}, [EngineNode("n1", "two")])
    assert (list(found.targets), found.homeless) == (["small"], ("large",))
    assert plan(both, lambda seen: {}, []).homeless == ("large", "small")


def test_of_a_decision_that_does_not_fit_who_runs_already_stays() -> None:
    now = state(*(queued(name, 0, 100, {4: 10}) for name in "abc"))
    now.live["c"].choice, now.live["c"].machine = V4, 7
    found = plan(now, lambda seen: {name: GpuGrant(V4) for name in seen.live}, None)
    assert set(found.targets) == {"c", "a"}


def test_a_job_that_does_not_say_what_a_restart_costs_pays_for_one() -> None:
    def decides(seen: QueueState) -> dict[str, GpuGrant]:
        assert [one.job.restart_seconds for one in seen.live.values()] == [10.0, 2.0]
        return {}

    told = {V1: Interval.exact(5.0)}
    plan(state(QueuedJob("a", 0, 9, 0, told), QueuedJob("b", 0, 9, 0, told, restart_seconds=2.0)), decides, None)


def test_who_has_just_begun_is_not_stopped() -> None:
    now = state(queued("a", 0, 100, {2: 10}, restart_seconds=2.0))
    now.seconds, now.live["a"].choice, now.live["a"].machine = 50.0, V2, 0
    held = []

    def decides(seen: QueueState) -> dict[str, GpuGrant]:
        held.append(not seen.live["a"].job.is_preemptible)
        return {}

    for started in (29.0, 31.0):
        plan(now, decides, None, {"a": started})
    assert held == [False, True]


def test_jobs_on_a_dead_node_take_nobodys_place() -> None:
    now = state(queued("a", 0, 100, {2: 10, 4: 6}), queued("b", 0, 100, {2: 10}))
    now.live["a"].choice, now.live["a"].machine = V4, 0
    now.live["b"].choice, now.live["b"].machine = V2, 1
    now.machines = (RentedMachine(0, FOUR, (("a", 4),)), RentedMachine(1, TWO, (("b", 2),)))
    nodes = [EngineNode("n1", "four", is_up=False), EngineNode("n2", "two")]
    found = plan(now, lambda seen: {name: GpuGrant(V2) for name in seen.live}, nodes, dead=frozenset({0}))
    assert (list(found.targets), found.homeless) == (["b"], ("a",))
