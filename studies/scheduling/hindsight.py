"""What is reachable where jobs keep what they have: a search that knows every job beforehand, which no policy does.

Jobs are placed one after another in an order, each with one choice, at the earliest time at which machines are free
for its whole run. The search begins with what the default did, moves jobs in the order and changes choices at random,
and keeps what is cheaper. Sizes of 1, 2 and 4 GPUs fill machines of four without gaps, so a device needs as many
machines as its GPUs make, rounded up.
"""

from collections.abc import Mapping, Sequence
from math import ceil
from pathlib import Path
from random import Random

from epochcast.schedule.lower_bound import keeping_bound_dollars
from epochcast.schedule.workload_file import read_workload
from epochcast.schedule.workload_jobs import GpuChoice, QueuedJob, QueueWorkload
from studies.scheduling.parts import Part, played

FILE = "n10_high_s0"
TRIES = 3000
MACHINE_GPUS = 4
# How far a job is moved in the order.
MOST_PLACES = 12

JobStay = tuple[float, float, GpuChoice]
"""From, to, with what."""


def hindsight(data: Path) -> Part:
    """The file on which keeping saves less than wanted."""
    workload = read_workload(data.parent / "workloads" / f"{FILE}.json")
    edf, ours = played(workload, "edf").dollars, played(workload, "atc_rollout", stops=False)
    found = searched(workload, {end.job: end.start_seconds for end in ours.ends}, {s.job: s.choice for s in ours.stays})
    bound = keeping_bound_dollars(workload) or 0.0
    late = sum(end.tardiness_seconds > 0 for end in ours.ends)
    part = Part("", [["hindsight", FILE, "search that knows every job", round(found, 2), round(edf, 2)]])
    part.text = (
        f"On {FILE}, where jobs keep what they have, the default pays {1 - ours.dollars / edf:.1%} less than edf. No "
        f"policy can save more than {1 - bound / edf:.1%}, and a search that knows every job beforehand finds "
        f"{1 - found / edf:.1%} (`studies/scheduling/hindsight.py`). All but {late} jobs end in time; these come "
        "within hours of each other when every GPU is taken.\n"
    )
    return part


def searched(workload: QueueWorkload, start: Mapping[str, float], choices: Mapping[str, GpuChoice]) -> float:
    """Dollars of the best that is found."""
    random = Random(0)
    jobs = {job.id: job for job in workload.jobs}
    order, chosen = sorted(jobs, key=lambda name: start[name]), dict(choices)
    best = dollars(workload, [jobs[name] for name in order], chosen, float("inf"))
    for _ in range(TRIES):
        other, with_choices = list(order), dict(chosen)
        for _ in range(random.choice((1, 1, 2))):
            place = random.randrange(len(other))
            if random.random() < 0.5:
                name = other.pop(place)
                other.insert(max(0, place + random.randint(-MOST_PLACES, MOST_PLACES)), name)
            else:
                with_choices[other[place]] = random.choice(sorted(jobs[other[place]].seconds))
        found = dollars(workload, [jobs[name] for name in other], with_choices, best)
        if found < best:
            best, order, chosen = found, other, with_choices
    return best


def dollars(
    workload: QueueWorkload, order: Sequence[QueuedJob], choices: Mapping[str, GpuChoice], limit: float
) -> float:
    """What a schedule costs; infinity where it is more than the limit."""
    stays: list[JobStay] = []
    total = 0.0
    for job in order:
        choice = choices[job.id]
        seconds = workload.run_seconds(job, choice)
        starts = sorted({job.submit_seconds, *(end for _, end, _ in stays if end > job.submit_seconds)})
        start = next(at for at in starts if _is_free(workload, stays, choice, at, at + seconds))
        stays.append((start, start + seconds, choice))
        rate = choice.gpus * workload.fleet.gpu_dollars_per_second(choice.device)
        late = max(0.0, start + seconds - job.deadline_seconds)
        total += rate * seconds + job.tardiness_dollars_per_second * late
        if total > limit:
            return float("inf")
    return total


def _is_free(workload: QueueWorkload, stays: Sequence[JobStay], choice: GpuChoice, begin: float, end: float) -> bool:
    moments = [begin, *(start for start, _, _ in stays if begin < start < end)]
    for moment in moments:
        used = dict.fromkeys(workload.fleet.by_device, 0)
        used[choice.device] += choice.gpus
        for start, until, other in stays:
            if start <= moment < until:
                used[other.device] += other.gpus
        if sum(ceil(gpus / MACHINE_GPUS) for gpus in used.values()) > workload.fleet.nodes:
            return False
    return True
