"""The measurements of the study: the bench within its budget, networks trained in turns, layers as in the report."""

import gc
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from epochcast.describe.capture.resolve import find_model
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.op_kinds import Conv, Elementwise, Matmul
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.tensor import DType
from epochcast.measure.bench import campaign
from epochcast.measure.bench import collectives_bench as collectives
from epochcast.measure.bench import layers_bench as layers
from epochcast.measure.bench import models_bench as models
from epochcast.measure.bench import ops_bench as ops
from epochcast.measure.bench.bench_networks import find_network
from epochcast.measure.bench.machine_fingerprint import machine, processor_ticks, steal_fraction
from epochcast.measure.bench.measurements import Appender, Measurement, read
from epochcast.measure.bench.torch_step import TorchStep
from studies.this_machine.cases import BENCHED, BENCHED_INPUTS, BENCHED_KERAS, Case
from studies.this_machine.distributed import measure_scaling

ROUNDS = 3
ROUND_SECONDS = 0.5
LEAST_STEPS, MOST_STEPS = 2, 12
LOW = 0.2
LAYER_SECONDS = 0.15
SCALING_SECONDS = 6.0


@dataclass(frozen=True)
class Shares:
    """How the seconds of the bench are divided."""

    ops: float = 200.0
    steps: float = 55.0
    collectives: float = 20.0
    keras: float = 25.0


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
        report = campaign.run(ops.questions("cpu", dtypes=(DType.FLOAT32,)), out, here, budget_seconds=shares.ops)
        say(f"{report.measured} ops in {report.seconds:.0f} s")
        report = campaign.run(steps, out, here, budget_seconds=shares.steps)
        say(f"{report.measured} steps in {report.seconds:.0f} s, {report.failed} failed")
        with collectives.reused_groups():
            all_questions = collectives.questions(2, names=("all_reduce",), limit_seconds=1.0)
            report = campaign.run(all_questions, out, here, budget_seconds=shares.collectives)
        say(f"{report.measured} collectives in {report.seconds:.0f} s, {report.failed} failed")
    rows = keras_rows(BENCHED_KERAS, path, "2s", 1, shares.keras)
    say(f"{len(rows)} steps of Keras, {sum(row.failed is not None for row in rows)} failed")


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


def keras_rows(
    cases: Mapping[str, tuple[int, ...]], out: Path, each: str, repetitions: int, budget_seconds: float | None
) -> list[Measurement]:
    """Steps of Keras by `epochcast bench models`, in a process of its own: TensorFlow and torch do not get along."""
    runs = "".join(f"[[runs]]\nmodels = ['{model}']\nbatches = {list(sizes)}\n" for model, sizes in cases.items())
    with tempfile.TemporaryDirectory() as folder:
        campaign_file = Path(folder) / "keras.toml"
        campaign_file.write_text(f"backend = 'keras'\nseconds = '{each}'\nrepetitions = {repetitions}\n{runs}")
        command = [sys.executable, "-m", "epochcast", "bench", "models", str(campaign_file), "--out", str(out)]
        command += [] if budget_seconds is None else ["--budget", f"{budget_seconds:g}s"]
        subprocess.run(
            [*command, "--json"],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=Path(__file__).parents[2],
            env={**os.environ, "KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "3"},
        )
    return [row for row in read(out).of("model") if row.question["backend"] == "keras"]


def train_keras(cases: Sequence[Case], out: Path) -> list[Trained]:
    """Every network at every batch; repetitions of one lie apart."""
    rows = keras_rows({case.model: case.batches for case in cases}, out, "1s", ROUNDS, None)
    found = []
    for case in cases:
        for batch in case.batches:
            own = [r for r in rows if r.question["model"] == case.model and r.question["recipe"]["batch"] == batch]
            medians = [r.seconds for r in own if r.seconds is not None]
            if not medians:
                raise RuntimeError(f"{case.model} at {batch} was not trained: {own[0].failed if own else 'not asked'}")
            low_seconds = float(np.median([r.low_seconds for r in own if r.low_seconds is not None]))
            steal = float(np.mean([r.details.get("steal_fraction", 0.0) for r in own]))
            spread = (max(medians) - min(medians)) / float(np.mean(medians))
            found.append(Trained(case.model, case.optimizer, batch, case.model, None, low_seconds, spread, steal))
    return found


# ---- rivals -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LayerSum:
    """The layers of a network, each timed alone, added up; NaN where the report knew no such layers."""

    model: str
    batch: int
    seconds: float


def layer_sums(rows: Sequence[Trained]) -> list[LayerSum]:
    """The sum of each network's layers as the source report timed them: with trainable input and target.

    The report knows convolutions over images and dense layers, with the activation behind each.
    """
    layer_seconds: dict[layers.BenchLayer, float] = {}
    sums = []
    for row in rows:
        graph = find_model(row.reference, None if row.input_shape is None else tuple(row.input_shape)).graph(row.batch)
        total = 0.0
        if any(isinstance(op.kind, Conv) and len(op.kind.stride) > 2 for op in graph.ops):
            total = nan  # a sum that leaves out the convolutions would be a straw man
        for layer in layers_of(graph, row.optimizer):
            if layer not in layer_seconds:
                (question,) = layers.questions("cpu", "report", [layer])
                layer_seconds[layer] = layers.measure(replace(question, limit_seconds=LAYER_SECONDS)).low_seconds or nan
            total += layer_seconds[layer]
        sums.append(LayerSum(row.model, row.batch, total or nan))
    return sums


def layers_of(graph: Graph, optimizer: str = "sgd") -> list[layers.BenchLayer]:
    """The convolutions over square images and the dense layers of a network, each with the activation behind it."""
    found = []
    after = {op.inputs[0].name: op.kind.function for op in graph.ops if isinstance(op.kind, Elementwise) and op.inputs}
    for op in graph.ops:
        activation = after.get(op.output.name, "none")
        words: dict[str, Any] = {
            "activation": activation if activation in layers.ACTIVATIONS else "none",
            "optimizer": optimizer,
        }
        if isinstance(op.kind, Conv) and len(op.kind.stride) == 2 and op.kind.groups == 1 and not op.kind.transposed:
            given, out = op.inputs[0].shape, op.output.shape
            window = (op.weights[0].shape[2], op.kind.stride[0], op.kind.padding[0])
            found.append(layers.BenchLayer("conv2d", given[0], given[1], out[1], given[2], *window, **words))
        elif isinstance(op.kind, Matmul) and op.weights:
            rows = op.output.elements // op.output.shape[-1]
            found.append(layers.BenchLayer("dense", rows, op.inputs[0].shape[-1], op.output.shape[-1], **words))
    return found


# ---- two processes ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scaled:
    """One network over two processes (`distributed.py`): what it took alone, beside another, and together.

    Seconds are low quantiles, as everywhere in the study; `round_efficiency` is the median of alone ÷ together over
    single rounds, in which a neighbour's second meets one of the two.
    """

    way: str
    model: str
    reference: str
    batch: int
    optimizer: str
    ranks: int
    alone_seconds: float
    beside_seconds: float
    together_seconds: float
    round_efficiency: float
    spread: float

    @property
    def efficiency(self) -> float:
        """alone ÷ together, when nobody else uses the machine."""
        return self.alone_seconds / self.together_seconds


def scale(way: str, case: Case) -> Scaled:
    """Two processes for real."""
    batch = case.batches[0]
    run = measure_scaling(way, case.model, Recipe(batch, optimizer=case.optimizer), SCALING_SECONDS)
    lows = [timing.low_seconds for timing in (run.alone, run.beside, run.together)]
    reference = find_network(case.model).reference
    figures = (*lows, run.efficiency, run.efficiency_spread)
    return Scaled(way, case.model, reference, batch, case.optimizer, run.ranks, *figures)
