"""Single layers, timed in isolation: as they run in a network, and as the source report timed them.

    network   forward; backward from a given output gradient to the input and the weights; the optimizer on the weights
    report    the input and a target of the output's size are trained, too: forward, mean squared error over the whole
              output, backward, the optimizer on weights, input and target (`predict/cost/single_layer.py` says what
              that adds)

A layer is {kind: conv2d | dense, batch, channels_in, channels_out, size, kernel, stride, padding, activation,
optimizer}; a dense layer has size, kernel and stride 1.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from random import Random
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from epochcast.describe.capture.torch.meta_steps import OPTIMIZERS
from epochcast.errors import UnknownName
from epochcast.measure.bench.campaign import BenchQuestion, CampaignOutcome, key_of, measurement_of
from epochcast.measure.bench.machine_fingerprint import machine
from epochcast.measure.bench.measurements import Measurement
from epochcast.measure.bench.ops_bench import limits_on
from epochcast.measure.bench.random_shapes import LARGEST_BATCH, OpLimits, log_uniform, width
from epochcast.measure.bench.timing import sample_on, time_executions

METHODS = ("network", "report")
LAYER_LIMIT_SECONDS = 0.8
DRAWS = 400
ACTIVATIONS: Mapping[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "none": lambda x: x,
    "relu": torch.relu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
}


@dataclass(frozen=True, slots=True)
class BenchLayer:
    """One layer and how it is trained."""

    kind: str
    batch: int
    channels_in: int
    channels_out: int
    size: int = 1
    kernel: int = 1
    stride: int = 1
    padding: int = 0
    activation: str = "relu"
    optimizer: str = "sgd"

    def __post_init__(self) -> None:
        for field, name, allowed in (
            ("kind of layer", self.kind, ("conv2d", "dense")),
            ("activation", self.activation, ACTIVATIONS),
            ("optimizer", self.optimizer, OPTIMIZERS),
        ):
            if name not in allowed:
                raise UnknownName(field, name, allowed)

    @property
    def output_size(self) -> int:
        """Pixels along each side of the output."""
        return (self.size + 2 * self.padding - self.kernel) // self.stride + 1

    @property
    def forward_flops(self) -> int:
        """2 · N · H'·W' · k² · C_in · C_out"""
        return 2 * self.batch * self.output_size**2 * self.kernel**2 * self.channels_in * self.channels_out

    @property
    def data_bytes(self) -> int:
        """Input and output in float32."""
        inputs, outputs = self.size**2 * self.channels_in, self.output_size**2 * self.channels_out
        return 4 * self.batch * (inputs + outputs)


def draw_layers(seed: int, count: int, limits: OpLimits) -> list[BenchLayer]:
    """Random layers in the ranges of Justus et al. (2018), within the limits."""
    random, layers = Random(seed), list[BenchLayer]()
    while len(layers) < count:
        batch, activation = log_uniform(random, 1, LARGEST_BATCH), random.choice(tuple(ACTIVATIONS))
        optimizer = random.choice(("sgd", "adam", "rmsprop"))
        if random.random() < 0.3:
            layer = BenchLayer(
                "dense", batch, width(random, 1, 4096), width(random, 1, 4096), activation=activation,
                optimizer=optimizer,
            )  # fmt: skip
        else:
            size, kernel = log_uniform(random, 4, 224), random.choice((1, 3, 3, 5, 7))
            layer = BenchLayer(
                "conv2d", batch, width(random, 1, 512), width(random, 8, 512), size, kernel,
                random.choice((1, 1, 2)), kernel // 2, activation, optimizer,
            )  # fmt: skip
        if 3 * layer.forward_flops <= limits.flops and 3 * layer.data_bytes <= limits.bytes:
            layers.append(layer)
    return layers


def questions(
    device: str, method: str, layers: Sequence[BenchLayer] | None = None, seed: int = 0
) -> list[BenchQuestion]:
    """Random layers, or the given ones, timed by one of the two methods."""
    if method not in METHODS:
        raise UnknownName("way to time a layer", method, METHODS)
    chosen = draw_layers(seed, DRAWS, limits_on(device)) if layers is None else layers
    by_key: dict[str, BenchQuestion] = {}
    for layer in chosen:
        ask = {"device": device, "way": method, "layer": asdict(layer)}
        question = BenchQuestion(
            "layer", key_of(("layer", method, layer.kind, layer.optimizer), ask), ask, LAYER_LIMIT_SECONDS
        )
        by_key.setdefault(question.key, question)
    return list(by_key.values())


def measure(question: BenchQuestion) -> Measurement:
    """Time one layer by the method of the question."""
    ask = question.ask
    device = str(ask["device"])

    def run() -> CampaignOutcome:
        layer = BenchLayer(**ask["layer"])
        step = {"network": _in_network, "report": _as_in_report}[str(ask["way"])](layer, device)
        return CampaignOutcome(time_executions(step, question.limit_seconds, sample_on(device)))

    return measurement_of(question, machine(device, torch.get_num_threads()), run)


def _module(layer: BenchLayer, device: str) -> tuple[nn.Module, torch.Tensor]:
    """The layer and an input for it."""
    if layer.kind == "dense":
        return nn.Linear(layer.channels_in, layer.channels_out).to(device), _random(
            (layer.batch, layer.channels_in), device
        )
    module = nn.Conv2d(layer.channels_in, layer.channels_out, layer.kernel, layer.stride, layer.padding)
    return module.to(device), _random((layer.batch, layer.channels_in, layer.size, layer.size), device)


def _random(shape: tuple[int, ...], device: str) -> torch.Tensor:
    return torch.randn(shape, device=device)


def _in_network(layer: BenchLayer, device: str) -> Callable[[], None]:
    module, x = _module(layer, device)
    activate = ACTIVATIONS[layer.activation]
    x.requires_grad_()  # the layer before it needs this gradient; the input is not updated
    with torch.no_grad():
        output_gradient = torch.randn_like(module(x))
    weights = list(module.parameters())
    update = OPTIMIZERS[layer.optimizer](weights)

    def step() -> None:
        output = activate(module(x))
        gradients = torch.autograd.grad(output, [x, *weights], output_gradient)
        for weight, gradient in zip(weights, gradients[1:], strict=True):
            weight.grad = gradient
        update.step()

    return step


def _as_in_report(layer: BenchLayer, device: str) -> Callable[[], None]:
    module, x = _module(layer, device)
    activate = ACTIVATIONS[layer.activation]
    trained_input: Any = nn.Parameter(x)
    with torch.no_grad():
        target: Any = nn.Parameter(torch.randn_like(module(trained_input)))
    update = OPTIMIZERS[layer.optimizer]([*module.parameters(), trained_input, target])

    def step() -> None:
        update.zero_grad(set_to_none=True)
        F.mse_loss(activate(module(trained_input)), target).backward()  # type: ignore[no-untyped-call]
        update.step()

    return step
