"""A training step from single layers, with everything taken off that only the benchmark of a layer has.

    b_i    = what the benchmark of layer i shows: measured, or by the model of single layers
    k_i    = b_i − artefact_i − run − op · benchmark ops       its kernels, as far as they show
    step   = Σ k_i + pools + host(ops of the network)
    ratio  = Σ b_i / step                                      the "correction factor" of such sums

artefact_i is the loss over the whole output and the optimizer on input and target (`cost.single_layer`); run, op and
host are the stack's (`cost.stacks`). k_i is at least 0 and, where b_i is a forecast, at most the share of it that the
setup gives kernels. Nothing in the ratio is fitted to a network but the constant of a Keras step.

For networks of convolutions, dense layers, pools and activations, in float32; others are refused by name.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epochcast.cost.layer_terms import ARTEFACT_TERMS, KERNEL_TERMS
from epochcast.cost.layers_model import LayersModel, layers_model
from epochcast.cost.roofline import Analytic
from epochcast.cost.setting import TODAY
from epochcast.cost.single_layer import LayerRows
from epochcast.cost.stacks import Stack
from epochcast.errors import BadInput
from epochcast.graph.kinds import Conv, Copy, Elementwise, Loss, Matmul, Pool, Softmax, View
from epochcast.graph.op import Op, Phase
from epochcast.graph.trace import CLASSES, Trace
from epochcast.graph.work import OpClass
from epochcast.hardware.device import Device

Array = NDArray[np.float64]

# TensorFlow ops of one layer in one training run: product, bias, activation; two products, bias and activation back;
# two updates.
LAYER_OPS = 9
# Of the benchmark alone: ten for the loss and its gradient, an update of the input and one of the target.
ARTEFACT_OPS = 12
POOL_OPS = 2
VARIABLES_PER_LAYER = 2

_UNDERSTOOD = (Conv, Matmul, Pool, Elementwise, Softmax, View, Loss, Copy)


@dataclass(frozen=True)
class LayeredStep:
    """Seconds of a step and of the benchmarks of its layers, taken apart."""

    benchmark_seconds: Array
    artefact_seconds: Array
    kernel_seconds: Array
    pool_seconds: float
    host_seconds: float

    @property
    def seconds(self) -> float:
        """The step on one GPU."""
        return float(self.kernel_seconds.sum()) + self.pool_seconds + self.host_seconds

    @property
    def ratio(self) -> float:
        """Sum of single layers over the step."""
        return float(self.benchmark_seconds.sum()) / self.seconds


def layered_step(
    trace: Trace,
    device: Device,
    stack: Stack,
    *,
    benchmark_seconds: Array | None = None,
    model: LayersModel | None = None,
) -> LayeredStep:
    """The step of a plain network; `benchmark_seconds` are its layers' times in order where they were measured."""
    rows, pools = network_layers(trace)
    layers = model or layers_model()
    setup = layers.setup(rows.kind, device, stack.layers)
    speakers = (setup,) if setup is not None else layers.siblings(rows.kind, device)
    most = np.ones(len(rows))
    if benchmark_seconds is None:
        benchmark_seconds = layers.answer(rows, device, stack.layers).mid
        # Of a tiny layer the difference below would be the noise of two host times; the coefficients know how little
        # its kernels can be.
        shares = [s.part_seconds(rows, device, KERNEL_TERMS) / s.base_seconds(rows, device) for s in speakers]
        most = np.mean(shares, axis=0)
    elif len(benchmark_seconds) != len(rows):
        raise BadInput(f"{trace.name} has {len(rows)} layers with weights, got {len(benchmark_seconds)} times")
    artefact = np.mean([s.part_seconds(rows, device, ARTEFACT_TERMS) for s in speakers], axis=0)
    benchmark_host = stack.run_seconds + stack.op_seconds * (LAYER_OPS + ARTEFACT_OPS)
    kernels = np.clip(benchmark_seconds - artefact - benchmark_host, 0.0, most * benchmark_seconds)
    costs = Analytic().costs(trace.columns, device, TODAY)
    pool_seconds = float(costs.mid[trace.columns.op_class == CLASSES.index(OpClass.POOL)].sum())
    ops = LAYER_OPS * len(rows) + POOL_OPS * pools
    host = stack.host_seconds(ops, VARIABLES_PER_LAYER * len(rows), trace.recipe.optimizer)
    return LayeredStep(np.asarray(benchmark_seconds), artefact, kernels, pool_seconds, host)


def network_layers(trace: Trace) -> tuple[LayerRows, int]:
    """The layers with weights as rows of a single-layer table, in order, and how many pools there are."""
    forward = [op for op in trace.ops if op.phase is Phase.FORWARD]
    odd = sorted({op.kind.label for op in forward if not isinstance(op.kind, _UNDERSTOOD)})
    if odd:
        raise BadInput(
            f"{trace.name} is not made of convolutions, dense layers and pools alone: it has {', '.join(odd)}"
        )
    shapes = np.array([_shape(op) for op in forward if op.weights and isinstance(op.kind, Conv | Matmul)], dtype=float)
    if not len(shapes):
        raise BadInput(f"{trace.name} has no layer with weights")
    size = len(shapes)
    every = np.ones(size, dtype=np.bool_)
    batch, side, kernel, stride, is_same, into, out = shapes.T
    rows = LayerRows(
        "conv2d",
        batch,
        side,
        kernel,
        stride,
        is_same > 0,
        into,
        out,
        every,
        np.full(size, "relu"),
        np.full(size, trace.recipe.optimizer),
        every,
    )
    return rows, sum(isinstance(op.kind, Pool) for op in forward)


def _shape(op: Op) -> tuple[int, ...]:
    """(batch, side, kernel, stride, padded, in, out).

    A dense layer is a 1x1 convolution, as the report benchmarks it.
    """
    if isinstance(op.kind, Matmul):
        return op.inputs[0].shape[0], 1, 1, 1, 0, op.inputs[0].shape[-1], op.output.shape[-1]
    (batch, into, side, *_), kernel = op.inputs[0].shape, op.weights[0].shape[-1]
    stride, padding = op.kind.stride[0], op.kind.padding[0]  # type: ignore[attr-defined]  # a Conv
    return batch, side, kernel, stride, int(padding > 0), into, op.weights[0].shape[0]
