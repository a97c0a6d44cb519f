"""What a single-layer benchmark measures: the work of the layer, and the work that exists only in the benchmark.

Justus et al. (2018), and Wattanasirichaigoon & Ranglani (2020) after them, time one layer as a network of its own, in
which *input and target are trainable variables*. One timed run is then

    forward                product + bias + activation                                       every run
    backward               activation gradient + data gradient + weight gradient             runs that train
    update_weights         the optimizer on the layer's weights                              runs that train
    loss                   mean squared error over the whole output, and its gradient        artefact
    update_input           the optimizer on the batch itself                                 artefact
    update_target          the optimizer on the target, as large as the output               artefact
    host                   one session run: feed, dispatch, wait                             per run, not per layer

In a real network the artefacts do not exist and one run serves all layers. Every part is given as columns of a trace
(one entry per row of the table, zero where the row has no such part), so that limits and cost models apply to it as
to any op.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epochcast.describe.graph.math_modes import op_math_index
from epochcast.describe.graph.op import Gradient, Phase
from epochcast.describe.graph.op_work import OpClass
from epochcast.describe.graph.trace import CLASSES, PHASES, Columns
from epochcast.errors import BadInput, UnknownName

Array = NDArray[np.float64]

ELEMENT_BYTES = 4.0

# Bytes per element of one update, written as expressions over whole arrays, each reading its operands and writing its
# result (tensorflow/core/kernels/training_ops_gpu.cu.cc). Later releases fuse Adam into one kernel of 28 bytes; the
# figure stays one for both stacks, and a setup's coefficient takes the difference, mixed over all optimizers.
UPDATE_BYTES: Mapping[str, float] = {
    "none": 0.0,
    "sgd": 12.0,  # var -= lr·g
    "momentum": 24.0,  # accum; var
    "adagrad": 28.0,  # accum; var from g and accum
    "rmsprop": 40.0,  # mean square; momentum from three; var
    "adam": 40.0,  # m; v; var from m and v
    "adadelta": 48.0,  # accum; var from three; accumulated update from three
}
ACTIVATIONS = ("none", "relu", "tanh", "sigmoid", "softmax")

# Array passes of mean(square(output − target)) and its gradient: subtract, square, mean; fill, divide, two
# multiplications, negate for the target. Counted by hand from the expression, not from a profile.
LOSS_PASSES = 12.0

PARTS = (
    "product",
    "pointwise",
    "data_gradient",
    "weight_gradient",
    "pointwise_gradient",
    "update_weights",
    "loss",
    "update_input",
    "update_target",
)


@dataclass(frozen=True)
class LayerRows:
    """Rows of a single-layer table, as arrays of one length. A dense layer is a 1x1 convolution of a 1x1 image."""

    kind: str
    batch: Array
    size: Array
    kernel: Array
    stride: Array
    is_same: NDArray[np.bool_]
    channels_in: Array
    channels_out: Array
    has_bias: NDArray[np.bool_]
    activation: NDArray[np.str_]
    optimizer: NDArray[np.str_]
    trains: NDArray[np.bool_]

    def __post_init__(self) -> None:
        if self.kind not in LAYER_KINDS:
            raise UnknownName("kind of single layer", self.kind, LAYER_KINDS)
        for name in sorted(set(self.optimizer) - set(UPDATE_BYTES)):
            raise UnknownName("optimizer of the single-layer benchmark", str(name), UPDATE_BYTES)
        for name in ("batch", "size", "kernel", "stride", "channels_in", "channels_out"):
            values = getattr(self, name)
            if len(values) != len(self.batch) or not (values >= 1).all():
                raise BadInput(f"a single layer needs {name} of at least 1 in every row")
        if not (self.output_size >= 1).all():
            raise BadInput("a single layer's window does not fit its image")

    def __len__(self) -> int:
        return len(self.batch)

    def at(self, where: NDArray[np.bool_] | NDArray[np.int64]) -> "LayerRows":
        """Some of the rows."""
        names = [name for name in self.__dataclass_fields__ if name != "kind"]
        return LayerRows(self.kind, **{name: getattr(self, name)[where] for name in names})

    @property
    def output_size(self) -> Array:
        """⌈size/stride⌉ with "same" padding, ⌊(size − kernel)/stride⌋ + 1 with "valid"."""
        valid = np.floor((self.size - self.kernel) / self.stride) + 1
        return np.where(self.is_same, np.ceil(self.size / self.stride), valid)

    @property
    def padding(self) -> Array:
        """Rows of zeros added above and below together; odd where the two differ and the image must be copied."""
        needed = (self.output_size - 1) * self.stride + self.kernel - self.size
        return np.where(self.is_same, np.maximum(needed, 0.0), 0.0)

    @property
    def input_elements(self) -> Array:
        """N·H·W·C_in"""
        return self.batch * self.size**2 * self.channels_in

    @property
    def output_elements(self) -> Array:
        """N·H'·W'·C_out"""
        return self.batch * self.output_size**2 * self.channels_out

    @property
    def weight_elements(self) -> Array:
        """k²·C_in·C_out"""
        return self.kernel**2 * self.channels_in * self.channels_out

    @property
    def product_flops(self) -> Array:
        """2 · output elements · k²·C_in"""
        return 2 * self.output_elements * self.kernel**2 * self.channels_in

    @property
    def update_bytes_per_element(self) -> Array:
        """What the row's optimizer moves per element it updates."""
        return np.array([UPDATE_BYTES[str(name)] for name in self.optimizer]) * self.trains

    @property
    def is_activated(self) -> NDArray[np.bool_]:
        """Whether an activation function follows."""
        return np.asarray(self.activation != "none")


LAYER_KINDS = ("conv2d", "dense")


def parts(rows: LayerRows) -> Mapping[str, Columns]:
    """The work of every part of `PARTS`, one entry per row."""
    x, y, w = (ELEMENT_BYTES * e for e in (rows.input_elements, rows.output_elements, rows.weight_elements))
    active, trains = rows.is_activated.astype(float), rows.trains.astype(float)
    bias = rows.has_bias.astype(float)
    per_element = rows.update_bytes_per_element / ELEMENT_BYTES / 2  # half is read, half written, in round numbers
    pixels_in, pixels_out = rows.batch * rows.size**2, rows.batch * rows.output_size**2
    window = rows.kernel**2
    always = np.ones(len(rows))
    products = {
        "product": (Gradient.NONE, always, x + w, y, (pixels_out, rows.channels_out, rows.channels_in * window)),
        "data_gradient": (Gradient.DATA, trains, y + w, x, (pixels_in, rows.channels_in, rows.channels_out * window)),
        "weight_gradient": (
            Gradient.WEIGHTS,
            trains,
            x + y,
            w,
            (rows.channels_out, rows.channels_in * window, pixels_out),
        ),
    }
    streams = {
        "pointwise": (OpClass.ELEMENTWISE, Phase.FORWARD, (bias + active) * y, (bias + active) * y),
        "pointwise_gradient": (
            OpClass.ELEMENTWISE,
            Phase.BACKWARD,
            trains * (2 * active + bias) * y,
            trains * active * y,
        ),
        "update_weights": (OpClass.UPDATE, Phase.UPDATE, per_element * w, per_element * w),
        "loss": (OpClass.LOSS, Phase.BACKWARD, trains * LOSS_PASSES / 2 * y, trains * LOSS_PASSES / 2 * y),
        "update_input": (OpClass.UPDATE, Phase.UPDATE, per_element * x, per_element * x),
        "update_target": (OpClass.UPDATE, Phase.UPDATE, per_element * y, per_element * y),
    }
    by_name = {name: _product(rows, *work) for name, work in products.items()}
    by_name |= {name: _stream(*work) for name, work in streams.items()}
    return {name: by_name[name] for name in PARTS}


def _product(
    rows: LayerRows, gradient: Gradient, share: Array, read: Array, written: Array, mnk: tuple[Array, ...]
) -> Columns:
    is_linear = rows.kind == "dense"
    kind = np.where(rows.kernel == 1, CLASSES.index(OpClass.CONV_POINTWISE), CLASSES.index(OpClass.CONV))
    if is_linear:
        kind = np.full(len(rows), CLASSES.index(OpClass.LINEAR))
    phase = Phase.FORWARD if gradient is Gradient.NONE else Phase.BACKWARD
    return _columns(
        len(rows),
        flops=share * rows.product_flops,
        read_bytes=share * read,
        written_bytes=share * written,
        m=mnk[0],
        n=mnk[1],
        k=mnk[2],
        op_class=kind,
        phase=phase,
        gradient=gradient,
        kernel=rows.kernel**2,
        stride=rows.stride**2,
        channels_in=rows.channels_in * (not is_linear),
        channels_out=rows.channels_out * (not is_linear),
    )


def _stream(op_class: OpClass, phase: Phase, read: Array, written: Array) -> Columns:
    elements = written / ELEMENT_BYTES
    return _columns(
        len(read),
        flops=elements,
        read_bytes=read,
        written_bytes=written,
        m=elements,
        op_class=np.full(len(read), CLASSES.index(op_class)),
        phase=phase,
    )


def _columns(
    size: int,
    *,
    op_class: NDArray[np.int64],
    phase: Phase,
    gradient: Gradient = Gradient.NONE,
    **values: Array,
) -> Columns:
    ones = np.ones(size)
    numbers: dict[str, Array] = {
        name: ones for name in ("m", "n", "k", "count", "launches", "kernel", "stride", "groups", "samples")
    }
    numbers |= {"channels_in": np.zeros(size), "channels_out": np.zeros(size)}
    numbers |= values
    is_matrix = np.array([kind.is_matrix for kind in CLASSES])
    return Columns(
        **numbers,
        op_class=op_class,
        phase=np.full(size, PHASES.index(phase)),
        math=np.full(size, op_math_index("fp32")),
        gradient=np.full(size, list(Gradient).index(gradient)),
        element_bytes=np.full(size, ELEMENT_BYTES),
        is_matrix=is_matrix[op_class],
    )
