"""Real training steps over two processes (or two devices of one) beside the same step alone.

Three steps of the same network and batch per process are measured in turns, round after round, so that whatever else
the machine does meets all of them:

    alone       one process trains, the others wait
    beside      every process trains for itself at the same time: memory, caches and clocks are shared, nothing is sent
    together    they train one network and exchange gradients

All with one thread per process: two processes on two cores stand beside one process on one core, never beside one
process that had both. `efficiency` is alone ÷ together at the same batch per process (weak scaling); of it beside ÷
together is the exchange, the rest is sharing the machine.

Every process is a child, so that TensorFlow and torch never meet in one.
"""

import json
import socket
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.serialization import recipe_to_json
from epochcast.errors import BadInput, MissingExtra, UnknownName
from epochcast.measure.bench.bench_children import ONE_THREAD, Children, loopback_name
from epochcast.measure.bench.machine_fingerprint import processor_ticks, steal_fraction
from epochcast.measure.bench.timing import Timing, summary

RANKS = 2
LEAST_ROUNDS = 3
# Steps in a row, of each kind, in a round of about this long. The first is dropped: the others are only beginning.
ROUND_SECONDS = 1.0
LEAST_STEPS, MOST_STEPS = 3, 25
LOOPBACK = "127.0.0.1"
# Starting a framework in every process, on a machine that does other things.
START_SECONDS = 240.0
PATIENCE_SECONDS = 240.0


@dataclass(frozen=True, slots=True)
class ScalingRun:
    """What one network took alone, beside and together; `efficiencies` are of the single rounds."""

    way: str
    model: str
    recipe: Recipe
    ranks: int
    gradient_bytes: int
    alone: Timing
    beside: Timing
    together: Timing
    efficiencies: tuple[float, ...]

    @property
    def efficiency(self) -> float:
        """alone ÷ together, the median over the rounds."""
        return median(self.efficiencies)

    @property
    def efficiency_spread(self) -> float:
        """(third quartile − first) / median over the rounds."""
        return summary(list(self.efficiencies)).spread

    @property
    def exchange_seconds(self) -> float:
        """Seconds of `together` beyond `beside`; zero where noise makes it less."""
        return max(0.0, self.together.seconds - self.beside.seconds)

    def as_dict(self) -> dict[str, Any]:
        """For JSON and tables."""

        def figures(timing: Timing) -> dict[str, float | None]:
            shown = ("seconds", "low_seconds", "spread", "processor_seconds")
            return {name: getattr(timing, name) for name in shown}

        return {
            "way": self.way,
            "model": self.model,
            "batch_per_process": self.recipe.batch,
            "optimizer": self.recipe.optimizer,
            "ranks": self.ranks,
            "threads_per_process": 1,
            "gradient_bytes": self.gradient_bytes,
            "alone": figures(self.alone),
            "beside": figures(self.beside),
            "together": figures(self.together),
            "efficiency": self.efficiency,
            "efficiency_spread": self.efficiency_spread,
            "exchange_seconds": self.exchange_seconds,
            "rounds": len(self.efficiencies),
            "repeats": self.together.repeats,
            "steal_fraction": self.together.steal_fraction,
        }


@dataclass(frozen=True, slots=True)
class Layout:
    """The processes of a strategy: the environment of each, and which take part in what."""

    environments: tuple[Mapping[str, str], ...]
    alone: tuple[int, ...]
    beside: tuple[int, ...]
    together: tuple[int, ...]


def measure_scaling(way: str, model: str, recipe: Recipe, limit_seconds: float = 20.0) -> ScalingRun:
    """Train `model` by one of `WAYS` for about so long, `recipe.batch` per process, after everything has started."""
    if way in ABSENT:
        raise BadInput(ABSENT[way])
    if way not in WAYS:
        raise UnknownName("way to train over processes", way, [*WAYS, *ABSENT])
    package, layout_of = WAYS[way]
    if find_spec(package) is None:
        raise MissingExtra(package)
    layout = layout_of()
    with tempfile.TemporaryDirectory() as folder, Children(_MODULE, layout.environments) as children:
        order = {"do": "start", "model": model, "recipe": recipe_to_json(recipe), "ranks": RANKS}
        started = children.ask(order | {"store": str(Path(folder) / "store")}, START_SECONDS)
        return _measured(way, model, recipe, int(started[-1]["gradient_bytes"]), children, layout, limit_seconds)


_MODULE = "studies.this_machine.distributed_rank"


def _measured(
    way: str, model: str, recipe: Recipe, size_bytes: int, children: Children, layout: Layout, limit_seconds: float
) -> ScalingRun:
    def steps(what: str, which: tuple[int, ...], count: int) -> tuple[list[float], float]:
        """Seconds of each step of each process, and of the processor per step and process."""
        order = {"do": "together" if what == "together" else "alone", "count": count + 1}
        answers = children.ask(order, PATIENCE_SECONDS, which)
        processor_seconds = sum(answer["processor_seconds"] for answer in answers) / len(answers)
        return [seconds for answer in answers for seconds in answer["seconds"][1:]], processor_seconds

    estimate = median(steps("together", layout.together, LEAST_STEPS)[0])
    count = max(LEAST_STEPS, min(MOST_STEPS, round(ROUND_SECONDS / 3 / estimate)))
    whos = {"alone": layout.alone, "beside": layout.beside, "together": layout.together}
    samples: dict[str, list[float]] = {what: [] for what in whos}
    processor: dict[str, list[float]] = {what: [] for what in whos}
    efficiencies: list[float] = []
    began, ticks = perf_counter(), processor_ticks()
    while len(efficiencies) < LEAST_ROUNDS or perf_counter() - began < limit_seconds:
        middles = {}
        for what, which in whos.items():
            seconds, processor_seconds = steps(what, which, count)
            samples[what] += seconds
            processor[what].append(processor_seconds)
            middles[what] = median(seconds)
        efficiencies.append(middles["alone"] / middles["together"])
    steal = steal_fraction(ticks, processor_ticks())
    _check_alike(children.ask({"do": "weights"}, PATIENCE_SECONDS, layout.together), way)
    alone, beside, together = (
        replace(summary(seconds), steal_fraction=steal, processor_seconds=median(processor[what]))
        for what, seconds in samples.items()
    )
    return ScalingRun(way, model, recipe, RANKS, size_bytes, alone, beside, together, tuple(efficiencies))


def _check_alike(answers: list[dict[str, Any]], way: str) -> None:
    """Every replica was fed other data; only exchange keeps their weights alike."""
    weights = [value for answer in answers for value in answer["weights"]]
    if len(weights) != RANKS or max(weights) - min(weights) > 1e-4 * max(weights):
        raise BadInput(f"{way}: the replicas do not have the same weights, gradients were not exchanged: {weights}")


# ---- who does what ------------------------------------------------------------------------------


def _environment(role: str, rank: int, more: Mapping[str, str] | None = None) -> dict[str, str]:
    keras = {"KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
    return {**ONE_THREAD, **keras, "ROLE": role, "RANK": str(rank), **(more or {})}


def _ddp() -> Layout:
    """Two processes have the network twice, with and without DistributedDataParallel."""
    loopback = {"GLOO_SOCKET_IFNAME": loopback_name()}
    both = tuple(range(RANKS))
    return Layout(tuple(_environment("ddp", rank, loopback) for rank in both), (0,), both, both)


def _mirrored() -> Layout:
    """Two processes alone, and one that has both replicas."""
    alone = tuple(_environment("keras_alone", rank) for rank in range(RANKS))
    return Layout((*alone, _environment("mirrored", 0)), (0,), tuple(range(RANKS)), (RANKS,))


def _multi_worker() -> Layout:
    """Two processes alone, and two workers."""
    alone = tuple(_environment("keras_alone", rank) for rank in range(RANKS))
    addresses = [f"{LOOPBACK}:{port}" for port in free_ports(RANKS)]
    workers = []
    for rank in range(RANKS):
        config = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": rank}}
        workers.append(_environment("multi_worker", rank, {"TF_CONFIG": json.dumps(config)}))
    return Layout((*alone, *workers), (0,), tuple(range(RANKS)), tuple(range(RANKS, 2 * RANKS)))


def free_ports(count: int) -> list[int]:
    """Free ports of the loopback."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind((LOOPBACK, 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


WAYS: Mapping[str, tuple[str, Callable[[], Layout]]] = {
    "ddp": ("torch", _ddp),
    "mirrored": ("tensorflow", _mirrored),
    "multi_worker_mirrored": ("tensorflow", _multi_worker),
}
"""The package each way needs, and its processes."""

ABSENT: Mapping[str, str] = {
    "horovod": "Horovod is not measured: its last release (0.28.1) is source only, compiled as C++14, "
    "and headers of today's torch need C++17 or later",
}
"""Ways that cannot be measured, and why."""
