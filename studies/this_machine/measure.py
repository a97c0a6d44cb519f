"""The measurements of the study: the bench within its budget, networks trained in turns, single layers as in the report."""

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import nan
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from epochcast.bench import campaign, collectives, layers, models, ops
from epochcast.bench.fingerprint import machine, processor_ticks, steal_fraction
from epochcast.bench.measurements import Appender
from epochcast.bench.networks import find_network
from epochcast.bench.torch_step import TorchStep
from epochcast.capture.resolve import find_model
from epochcast.graph.recipe import Recipe
from studies.this_machine.cases import BENCHED, BENCHED_INPUTS, BENCHED_KERAS, Case

ROUNDS = 3
ROUND_SECONDS = 0.5
LEAST_STEPS, MOST_STEPS = 2, 12
LOW = 0.2
LAYER_SECONDS = 0.15


@dataclass(frozen=True)
class Shares:
    """How the seconds of the bench are shared out."""

    ops: float = 205.0
    steps: float = 60.0
    collectives: float = 20.0


@dataclass(frozen=True)
class Trained:
    """A network trained for real; `spread` is how far the medians of the rounds lie apart, of their mean."""

    model: str
    optimizer: str
    batch: int
    reference: str
    input_shape: tuple[int, ...] | None
    seconds: float
    spread: float
    steal_fraction: float


def bench(path: Path, shares: Shares, threads: int, say: Callable[[str], None]) -> None:
    """Ops, networks and collectives into one file, each within its share."""
    with Appender(path) as out:
        here = machine("cpu", threads)
        steps = [
            models.question_of(
                model, Recipe(batch), input_text=BENCHED_INPUTS.get(model, ""), limit_seconds=2.0, backend="torch"
            )
            for model, batches in BENCHED.items()
            for batch in batches
        ]
        compiled = [
            models.question_of(model, Recipe(batch), limit_seconds=2.0, backend="keras")
            for model, batches in BENCHED_KERAS.items()
            for batch in batches
        ]
        report = campaign.run(ops.questions("cpu"), out, here, budget_seconds=shares.ops)
        say(f"{report.measured} ops in {report.seconds:.0f} s")
        began = perf_counter()
        report = campaign.run(steps, out, here, budget_seconds=0.8 * shares.steps)
        say(f"{report.measured} steps in {report.seconds:.0f} s, {report.failed} failed")
        left = shares.steps - (perf_counter() - began)
        report = campaign.run(compiled, out, here, budget_seconds=max(10.0, left))
        say(f"{report.measured} Keras steps in {report.seconds:.0f} s, {report.failed} failed")
        with collectives.standing_groups():
            asked = collectives.questions(2, names=("all_reduce",), limit_seconds=1.0)
            report = campaign.run(asked, out, here, budget_seconds=shares.collectives)
        say(f"{report.measured} collectives in {report.seconds:.0f} s, {report.failed} failed")


# ---- networks -----------------------------------------------------------------------------------


def train(cases: Sequence[Case], make: Callable[[str, Recipe], Callable[[], object]]) -> list[Trained]:
    """Every network at every batch, a few steps of each in turn, several rounds; the low quantile counts."""
    steps: dict[tuple[str, str, int], Callable[[], object]] = {}
    for case in cases:
        for batch in case.batches:
            step = make(case.model, Recipe(batch, optimizer=case.optimizer))
            step()
            steps[case.model, case.optimizer, batch] = step
    rounds: dict[tuple[str, str, int], list[list[float]]] = {key: [] for key in steps}
    stolen: dict[tuple[str, str, int], list[float]] = {key: [] for key in steps}
    for _ in range(ROUNDS):
        for key, step in steps.items():
            ticks = processor_ticks()
            rounds[key].append(_in_a_row(step))
            stolen[key].append(steal_fraction(ticks, processor_ticks()) or 0.0)
    steps.clear()
    gc.collect()
    found = []
    for (model, optimizer, batch), taken in rounds.items():
        medians = [float(np.median(seconds)) for seconds in taken]
        network = find_network(model)
        found.append(
            Trained(
                model,
                optimizer,
                batch,
                network.reference,
                network.input_shape,
                float(np.quantile(np.concatenate(taken), LOW)),
                (max(medians) - min(medians)) / float(np.mean(medians)),
                float(np.mean(stolen[model, optimizer, batch])),
            )
        )
    return found


def _in_a_row(step: Callable[[], object]) -> list[float]:
    """Some steps, one after the other; the first warms the caches again and is dropped."""
    began = perf_counter()
    step()
    each = perf_counter() - began
    seconds = []
    for _ in range(max(LEAST_STEPS, min(MOST_STEPS, round(ROUND_SECONDS / each)))):
        began = perf_counter()
        step()
        seconds.append(perf_counter() - began)
    return seconds


def torch_step(model: str, recipe: Recipe) -> Callable[[], object]:
    """A step of PyTorch."""
    return TorchStep(find_network(model), recipe, "cpu")


def keras_step(model: str, recipe: Recipe) -> Callable[[], object]:
    """A step of Keras on TensorFlow."""
    from epochcast.bench.keras_step import KerasStep

    return KerasStep(model, recipe)


# ---- rivals -------------------------------------------------------------------------------------


def layer_sums(rows: Sequence[Trained]) -> dict[tuple[str, int], float]:
    """The sum of a network's layers, each timed alone as the source report timed them; NaN where it has none.

    The report knows convolutions over images and dense layers, with the activation behind each.
    """
    known: dict[Any, float] = {}
    sums = {}
    for row in rows:
        graph = find_model(row.reference, row.input_shape).graph(row.batch)
        total = 0.0
        for layer in layers.layers_of(graph, row.optimizer):
            if layer not in known:
                (question,) = layers.questions("cpu", "report", [layer])
                known[layer] = layers.measure(replace(question, limit_seconds=LAYER_SECONDS)).low_seconds or nan
            total += known[layer]
        sums[row.model, row.batch] = total or nan
    return sums
