"""A training step from single layers, with everything taken off that only the benchmark of a layer has.

    b_i    = what the benchmark of layer i shows: measured, or by the model of single layers
    k_i    = b_i − artefact_i − run − op · benchmark ops       its kernels, as far as they show
    step   = Σ k_i + pools + host(ops of the network)
    ratio  = Σ b_i / step                                      the "correction factor" of such sums

artefact_i is the loss over the whole output and the optimizer on input and target (`predict.cost.single_layer`); run,
op and host are the stack's (`predict.cost.stacks`). k_i is at least 0 and, where b_i is a forecast, at most the share
of it that the setup gives kernels, and at least the time of its flops at WINOGRAD_RATE: the measured layers have few
channels, and beyond them the forecast of a layer would become faster than any was. Measured layers have odd numbers of
channels, which kernels pad and copy; those of networks are multiples of 32, and take no longer than Winograd's method
needs (`winograd.py`). The first layer of a network needs no gradient of its input, which its benchmark computes.
Nothing in the ratio is fitted to a network but the constant of
a Keras step.

For networks of convolutions, dense layers, pools and activations, in float32; others are refused by name.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from epochcast.describe.graph.op import Op, Phase
from epochcast.describe.graph.op_kinds import Conv, Copy, Elementwise, Loss, Matmul, Pool, Softmax, View
from epochcast.describe.graph.op_work import OpClass
from epochcast.describe.graph.trace import CLASSES, PHASES, Trace
from epochcast.errors import BadInput
from epochcast.hardware.device import Device
from epochcast.predict.cost.layer_terms import ARTEFACT_TERMS, KERNEL_TERMS, WEIGHT_TERMS
from epochcast.predict.cost.layers_model import LayersModel, layers_model
from epochcast.predict.cost.roofline import Analytic
from epochcast.predict.cost.single_layer import LayerRows
from epochcast.predict.cost.software_setting import TODAY
from epochcast.predict.cost.stacks import Stack
from epochcast.predict.cost.winograd import winograd_seconds

Array = NDArray[np.float64]

# TensorFlow ops of one layer in one training run: product, bias, activation; two products, bias and activation back;
# two updates.
LAYER_OPS = 9
# Of the benchmark alone: ten for the loss and its gradient, an update of the input and one of the target.
ARTEFACT_OPS = 12
POOL_OPS = 2
VARIABLES_PER_LAYER = 2

# How much faster than the peak of the multiply units 3x3 convolutions of stride 1 train at best, by Winograd's method.
# Those of VGG-16 in TensorFlow on a P100 (`tf_benchmarks_2017`, the other kernels of the step taken off at three
# quarters of the bandwidth) run at 1.45 of it at batch 32, 1.56 at 64; single layers of 128 channels and more at 1.3
# in the median, 1.6 at nine tenths.
WINOGRAD_RATE = 1.5
# TensorFlow pools by cuDNN: forward x → y; backward x, y, dy → dx.
POOL_PASSES = 3

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
    most, measured = np.ones(len(rows)), benchmark_seconds is not None
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
    if not measured:
        changed = np.maximum(kernels, least_seconds(rows, device))
        weights = np.mean([s.part_seconds(rows, device, WEIGHT_TERMS) for s in speakers], axis=0)
        changed = np.minimum(changed, winograd_seconds(rows, device) + weights)
        kernels, benchmark_seconds = changed, benchmark_seconds + changed - kernels
    kernels[0] *= 1 - np.mean([s.data_gradient_fraction(rows, device)[0] for s in speakers])
    pool_seconds = _pool_seconds(trace, device)
    ops = LAYER_OPS * len(rows) + POOL_OPS * pools
    host = stack.host_seconds(ops, VARIABLES_PER_LAYER * len(rows), trace.recipe.optimizer)
    return LayeredStep(np.asarray(benchmark_seconds), artefact, kernels, pool_seconds, host)


def least_seconds(rows: LayerRows, device: Device) -> Array:
    """Product and both gradients of 3x3 convolutions at the rate they reach at best; 0 for other layers."""
    is_winograd = (rows.kernel == 3) & (rows.stride == 1)
    return np.where(is_winograd, 3 * rows.product_flops / (WINOGRAD_RATE * device.peak("fp32")), 0.0)


def _pool_seconds(trace: Trace, device: Device) -> float:
    """All pools, forward and backward; TensorFlow keeps no places of maxima, it finds them again."""
    is_forward = (trace.columns.op_class == CLASSES.index(OpClass.POOL)) & trace.in_phase(PHASES.index(Phase.FORWARD))
    pools = [op for op in trace.ops if op.phase is Phase.FORWARD and isinstance(op.kind, Pool)]
    moved = np.array([POOL_PASSES * (op.inputs[0].bytes + op.output.bytes) for op in pools], dtype=float)
    columns = trace.columns.at(is_forward)
    # Windows side by side are read once, as any stream; the class of pools is that of windows that overlap.
    is_once = np.array([op.kind.window == op.kind.stride for op in pools], dtype=np.bool_)  # type: ignore[attr-defined]
    op_class = np.where(is_once, CLASSES.index(OpClass.ELEMENTWISE), columns.op_class)
    both = replace(columns, read_bytes=moved, written_bytes=0 * moved, launches=2 * columns.launches, op_class=op_class)
    return float(Analytic().costs(both, device, TODAY).mid.sum())


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
