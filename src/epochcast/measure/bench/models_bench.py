"""`epochcast bench models`: real training steps of named networks, one row per configuration.

A configuration is a network, a recipe (batch, optimizer, precision, mode), a backend and a source of data.
What a device or framework cannot run (out of memory, an unknown optimizer) is a row with the reason.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.serialization import recipe_from_json, recipe_to_json
from epochcast.errors import BadInput
from epochcast.measure.bench.campaign import BenchQuestion, CampaignOutcome, key_of, measurement_of
from epochcast.measure.bench.machine_fingerprint import machine, torch_threads
from epochcast.measure.bench.measurements import Measurement
from epochcast.measure.bench.timing import host_sample, sample_on, time_executions
from epochcast.units import parse_shape

BACKENDS = ("torch", "keras")
SYNTHETIC = "synthetic"
LOADER_MODE = "loader"
"""A further mode, in which only the loader runs."""

STEP_SECONDS = 10.0
# More precise than this the median of a step is not repeatable.
STEP_TOLERANCE = 0.03
MOST_STEPS = 50


def question_of(
    model: str,
    recipe: Recipe,
    *,
    device: str = "cpu",
    backend: str = "torch",
    input_text: str = "",
    data: str = SYNTHETIC,
    only_loader: bool = False,
    repetition: int = 0,
    limit_seconds: float = STEP_SECONDS,
) -> BenchQuestion:
    """The question for one configuration."""
    ask: dict[str, Any] = {
        "device": device,
        "backend": backend,
        "model": model,
        "input": input_text,
        "recipe": recipe_to_json(recipe),
        "data": data,
        "part": "loader" if only_loader else "step",
        "repetition": repetition,
    }
    mode = LOADER_MODE if only_loader else recipe.mode
    words = ("model", backend, model, f"b{recipe.batch}", recipe.optimizer, recipe.precision, mode)
    return BenchQuestion("model", key_of(words, ask), ask, limit_seconds)


def measure(question: BenchQuestion) -> Measurement:
    """Train the network of one question until the median of a step is stable."""
    ask = question.ask
    device = str(ask["device"])
    runs: Mapping[str, Callable[[BenchQuestion], CampaignOutcome]] = {"torch": _torch, "keras": _keras}
    run = _loader if ask["part"] == "loader" else runs[str(ask["backend"])]
    return measurement_of(question, machine(device, torch_threads()), lambda: run(question))


def reference_of(ask: Mapping[str, Any]) -> tuple[str, tuple[int, ...] | None]:
    """The model reference and input shape to forecast the same network with."""
    from epochcast.measure.bench.bench_networks import find_network

    network = find_network(str(ask["model"]), _shape(ask))
    return network.reference, network.input_shape


def _torch(question: BenchQuestion) -> CampaignOutcome:
    from epochcast.measure.bench.bench_networks import find_network
    from epochcast.measure.bench.torch_step import WARM_UP_STEPS, TorchStep

    ask = question.ask
    device = str(ask["device"])
    network = find_network(str(ask["model"]), _shape(ask))
    step = TorchStep(network, recipe_from_json(ask["recipe"]), device, _batches(str(ask["data"])))
    for _ in range(WARM_UP_STEPS):
        step()
    peak_bytes = step.peak_bytes()
    timing = time_executions(step, question.limit_seconds, sample_on(device), STEP_TOLERANCE, MOST_STEPS)
    shape = None if network.input_shape is None else list(network.input_shape)
    return CampaignOutcome(timing, peak_bytes, {"reference": network.reference, "input_shape": shape})


def _keras(question: BenchQuestion) -> CampaignOutcome:
    from epochcast.measure.bench.keras_step import KerasStep

    ask = question.ask
    if ask["data"] != SYNTHETIC:
        raise BadInput("the Keras backend measures with synthetic data only")
    step = KerasStep(str(ask["model"]), recipe_from_json(ask["recipe"]))
    timing = time_executions(step, question.limit_seconds, host_sample, STEP_TOLERANCE, MOST_STEPS)
    return CampaignOutcome(timing, details={"reference": str(ask["model"]), "tensorflow_threads": step.threads})


def _loader(question: BenchQuestion) -> CampaignOutcome:
    from epochcast.measure.bench.torch_step import repeated

    batches = _batches(str(question.ask["data"]))
    if batches is None:
        raise BadInput("a loader-only run needs data = 'file.py:make_loader'")
    stream = repeated(batches)
    timing = time_executions(lambda: next(stream), question.limit_seconds, host_sample, STEP_TOLERANCE, MOST_STEPS)
    return CampaignOutcome(timing)


def _batches(data: str) -> Iterable[Any] | None:
    """The loader of a factory, which gives (inputs, targets); None for synthetic data."""
    if data == SYNTHETIC:
        return None
    from epochcast.measure.bench.loader_bench import find_loader

    return cast(Iterable[Any], find_loader(data))


def _shape(ask: Mapping[str, Any]) -> tuple[int, ...] | None:
    return parse_shape(str(ask["input"])) if ask.get("input") else None
