"""Trainings on this machine, each with its loader alone, its computation alone, and whole.

    python -m studies.history.loader_parts    some minutes on a machine that does nothing else; writes loader_parts.csv

Networks, batches, costs of a sample and loader workers are varied. A step is the mean of those that fit in
`SECONDS`, after the first ones.
"""

import csv
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

RESULT = Path(__file__).with_name("loader_parts.csv")
COLUMNS = ("model", "batch", "rounds", "workers", "loader_step_seconds", "compute_step_seconds", "step_seconds")
SECONDS, WARM, LEAST_STEPS = 0.6, 2, 5
SIZE = 32


class Pictures(Dataset[tuple[Tensor, int]]):
    """Random pictures that are blurred so many times: work of the processor for every sample."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds

    def __len__(self) -> int:
        return 100_000

    def __getitem__(self, place: int) -> tuple[Tensor, int]:
        picture = torch.rand(3, SIZE, SIZE)
        for _ in range(self.rounds):
            picture = (picture + picture.roll(1, 1) + picture.roll(1, 2)) / 3
        return picture, place % 10


def perceptron() -> nn.Module:
    """Two dense layers."""
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * SIZE * SIZE, 256), nn.ReLU(), nn.Linear(256, 10))


def convolutions() -> nn.Module:
    """Two convolutions."""
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.LazyLinear(10),
    )


def wide() -> nn.Module:
    """Two wide convolutions."""
    return nn.Sequential(
        nn.Conv2d(3, 48, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(48, 48, 3, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.LazyLinear(10),
    )


NETWORKS: dict[str, Callable[[], nn.Module]] = {"perceptron": perceptron, "convolutions": convolutions, "wide": wide}


@dataclass(frozen=True)
class Setting:
    """One training."""

    model: str
    batch: int
    rounds: int
    workers: int

    def batches(self) -> Iterator[Any]:
        """As a training reads them."""
        workers = {"num_workers": self.workers, "prefetch_factor": 2} if self.workers else {}
        return iter(DataLoader(Pictures(self.rounds), batch_size=self.batch, shuffle=True, **workers))  # type: ignore[arg-type]


def step_of(setting: Setting) -> Callable[[Tensor, Tensor], None]:
    """Forward, backward and update."""
    network = NETWORKS[setting.model]()
    network(torch.rand(2, 3, SIZE, SIZE))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)

    def step(pictures: Tensor, labels: Tensor) -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(pictures), labels).backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    return step


def step_seconds(one: Callable[[], object]) -> float:
    """The mean of as many as fit, without what is ten times the median: another process had the core."""
    for _ in range(WARM):
        one()
    taken: list[float] = []
    begin = time.perf_counter()
    while time.perf_counter() - begin < SECONDS or len(taken) < LEAST_STEPS:
        start = time.perf_counter()
        one()
        taken.append(time.perf_counter() - start)
    kept = [seconds for seconds in taken if len(taken) < 2 * LEAST_STEPS or seconds < 10 * median(taken)]
    return sum(kept) / len(kept)


def measured(setting: Setting) -> dict[str, Any]:
    """Loader alone, computation alone, both."""
    step = step_of(setting)
    given = next(setting.batches())
    loader = step_seconds(partial(next, setting.batches()))
    compute = step_seconds(partial(step, *given))
    whole = step_seconds(_together(step, setting.batches()))
    told = {"model": setting.model, "batch": setting.batch, "rounds": setting.rounds, "workers": setting.workers}
    seconds = {"loader_step_seconds": loader, "compute_step_seconds": compute, "step_seconds": whole}
    return {**told, **{name: f"{value:.6f}" for name, value in seconds.items()}}


def _together(step: Callable[[Tensor, Tensor], None], batches: Iterator[Any]) -> Callable[[], None]:
    return lambda: step(*next(batches))


def main() -> int:
    """Measure all."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    settings = [Setting(*each) for each in product(NETWORKS, (16, 64), (2, 12), (0, 1, 2))]
    with RESULT.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for setting in settings:
            row = measured(setting)
            writer.writerow(row)
            print(" ".join(map(str, row.values())), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
