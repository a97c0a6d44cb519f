"""How long a decision takes, and how long a simulation of a hundred thousand jobs; seconds of the processor."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from time import process_time

from epochcast.schedule.generators import talk
from epochcast.schedule.policies.policy_table import policy_named
from epochcast.schedule.simulator import Simulation
from epochcast.schedule.workload_jobs import QueuedJob, QueueWorkload
from studies.scheduling.parts import Part, played, table

MANY = 100_000
MOST_SECONDS = 60.0
MOST_DECISION_SECONDS = 0.5


def decisions(data: Path) -> Part:
    """Decisions about 400 live jobs on 100 nodes."""
    seconds = sorted(_decisions())
    p99 = seconds[min(len(seconds) - 1, int(0.99 * len(seconds)))]
    part = Part("", [["latency", "100 nodes, 400 live jobs", "atc_rollout", round(p99, 3), MOST_DECISION_SECONDS]])
    part.text = (
        f"100 nodes, 400 live jobs: median {seconds[len(seconds) // 2]:.2f} s, 99th percentile {p99:.2f} s of one core "
        "(when the study ran, on a shared machine).\n"
    )
    if p99 > MOST_DECISION_SECONDS:
        part.failures.append(f"a decision takes {p99:.2f} s")
    return part


def _decisions() -> Iterator[float]:
    crowd = talk(100, "overload", 0, jobs=440)
    jobs = tuple(_at_once(job) for job in crowd.jobs[:400]) + crowd.jobs[400:]
    simulation = Simulation(QueueWorkload(crowd.fleet, jobs), policy_named("atc_rollout"))
    simulation.step()
    for _ in range(40):
        began = process_time()
        simulation.step()
        yield process_time() - began


def _at_once(job: QueuedJob) -> QueuedJob:
    return replace(job, submit_seconds=0.0, deadline_seconds=job.deadline_seconds - job.submit_seconds)


def many_jobs(data: Path) -> Part:
    """A hundred thousand jobs under quick policies."""
    part, lines = Part(""), []
    for name, nodes in (("fifo", 10), ("edf_shared", 10)):
        workload = talk(nodes, "high", 0, jobs=MANY)
        began = process_time()
        played(workload, name)
        seconds = process_time() - began
        lines.append([name, f"{nodes}", f"{seconds:.0f}"])
        part.rows.append(["100,000 jobs", f"{nodes} high", name, round(seconds, 1), MOST_SECONDS])
        if seconds > MOST_SECONDS:
            part.failures.append(f"{MANY} jobs under {name} on {nodes} nodes take {seconds:.0f} s")
    part.text = (
        "Seconds of one core for a whole simulation at high load, on a shared machine.\n\n"
        f"{table('policy | nodes | seconds', lines)}"
    )
    return part
