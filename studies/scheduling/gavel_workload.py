"""Jobs in the manner of Gavel: kinds of jobs are measured throughputs by device and number of GPUs.

How long a job takes on one GPU of the fastest device is drawn as Narayanan et al. (2020) do: 10^U(1.5, 3) minutes, for
a fifth of the jobs 10^U(3, 4).
"""

from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any

from epochcast.errors import BadInput
from epochcast.schedule.generators import poisson
from epochcast.schedule.workload_jobs import Fleet, GpuChoice, QueueWorkload

Kind = Mapping[GpuChoice, float]
"""Work per second of one kind of job, by choice."""


def measured_kinds(rows: Iterable[Mapping[str, Any]]) -> list[Kind]:
    """Kinds of jobs from measured runs: a network and batch per GPU, with its samples per second by device and GPUs.

    Rows have `model, batch_per_gpu, device, gpus, samples_per_second`. The fastest counts where one was measured twice.
    """
    kinds: dict[tuple[Any, Any], dict[GpuChoice, float]] = {}
    for row in rows:
        speed = row["samples_per_second"]
        if speed is None or not speed > 0:
            continue
        kind = kinds.setdefault((row["model"], row["batch_per_gpu"]), {})
        choice = GpuChoice(str(row["device"]), int(row["gpus"]))
        kind[choice] = max(kind.get(choice, 0.0), float(speed))
    return [kind for kind in kinds.values() if any(choice.gpus == 1 for choice in kind)]


def gavel(fleet: Fleet, kinds: Sequence[Kind], jobs: int, gap_seconds: float, seed: int) -> QueueWorkload:
    """Jobs of measured kinds; choices that the fleet does not have are left out."""
    possible = [{c: speed for c, speed in kind.items() if fleet.holds(c)} for kind in kinds]
    possible = [kind for kind in possible if kind]
    if not possible:
        raise BadInput("no kind of job runs on a machine of the list")

    def runs(random: Random) -> dict[GpuChoice, float]:
        kind = random.choice(possible)
        minutes = 10 ** (random.uniform(1.5, 3) if random.random() < 0.8 else random.uniform(3, 4))
        base = max((speed for c, speed in kind.items() if c.gpus == 1), default=max(kind.values()))
        return {choice: 60 * minutes * base / speed for choice, speed in kind.items()}

    return poisson(fleet, jobs, [gap_seconds], seed, runs)
