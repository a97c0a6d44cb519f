"""Random but realistic shapes of ops: those of common layers, log-uniform over the sizes that are used in practice.

A draw is a layer built with `describe.graph.build`, at a batch of 1 to 512. It is split into its forward op and the
backward ops of `describe.graph.backward`, each a question of its own, so that a measured row is the same `Op` that a
forecast costs. Ops that exceed the limits of memory or time are left out.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import exp, log
from random import Random

from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Op, Parameter
from epochcast.describe.graph.op_kinds import Elementwise, View
from epochcast.describe.graph.optimizer import update
from epochcast.describe.graph.tensor import DType, Tensor
from epochcast.describe.graph.training import with_loss

LARGEST_BATCH = 512
_ACTIVATIONS = ("relu", "relu", "gelu", "silu", "sigmoid", "tanh", "hardswish", "relu6")
_OPTIMIZERS = ("sgd", "momentum", "adam", "adamw", "rmsprop")


@dataclass(frozen=True, slots=True)
class OpLimits:
    """The largest op to measure."""

    flops: float
    bytes: float


def log_uniform(random: Random, low: float, high: float) -> int:
    """A whole number between low and high, uniform in its logarithm."""
    return round(exp(random.uniform(log(low), log(high))))


def width(random: Random, low: float, high: float) -> int:
    """Channels or features: three times in four a multiple of eight, as in most networks."""
    size = log_uniform(random, low, high)
    return max(1, size if size < 12 or random.random() < 0.25 else 8 * round(size / 8))


def draw(random: Random, limits: OpLimits, dtype: DType = DType.FLOAT32) -> tuple[Op, ...]:
    """The ops of one random layer that fit the limits: forward, then backward."""
    name = random.choices(tuple(LAYERS), [share for share, _ in LAYERS.values()])[0]
    builder = Builder(name, log_uniform(random, 1, LARGEST_BATCH))
    ops = tuple(LAYERS[name][1](random, builder))
    return tuple(_in_dtype(op, dtype) for op in ops if _fits(op, limits))


def _fits(op: Op, limits: OpLimits) -> bool:
    op_work = op.work
    return op_work.flops <= limits.flops and op_work.read_bytes + op_work.written_bytes <= limits.bytes


def _in_dtype(op: Op, dtype: DType) -> Op:
    """The op with another dtype for all that is float32."""

    def changed(tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return tuple(replace(t, dtype=dtype) if t.dtype is DType.FLOAT32 else t for t in tensors)

    if dtype is DType.FLOAT32:
        return op
    return replace(op, inputs=changed(op.inputs), outputs=changed(op.outputs), weights=changed(op.weights))


def forward_and_backward(ops: tuple[Op, ...]) -> Iterator[Op]:
    """Every op, then its backward ops, as if all layers before it were trained."""
    for op in ops:
        if isinstance(op.kind, View):
            continue
        yield op
        needs_gradient = frozenset(t.name for t in (*op.inputs, *op.weights) if t.dtype.is_float)
        for gradient_op in op.kind.gradients(op, needs_gradient):
            if not isinstance(gradient_op.kind, View):
                yield gradient_op


def _layer(make: Callable[[Random, Builder], object]) -> Callable[[Random, Builder], Iterator[Op]]:
    def ops(random: Random, builder: Builder) -> Iterator[Op]:
        make(random, builder)
        return forward_and_backward(tuple(builder.ops))

    return ops


# ---- layers -------------------------------------------------------------------------------------


def _image(random: Random, b: Builder, dims: int = 2, low: float = 8, high: float = 1024) -> Tensor:
    """An image with channels and sizes as in networks: the smaller, the more channels."""
    size = log_uniform(random, 4, {1: 4096, 2: 224, 3: 56}[dims])
    channels = min(
        high, max(low, 2 ** random.uniform(-2, 2) * 4096 / size if dims == 2 else log_uniform(random, 8, 256))
    )
    channels_in = 3 if random.random() < 0.08 and size >= 24 else width(random, channels, channels + 1)
    spatial = (size,) * dims if dims < 3 else (log_uniform(random, 1, 16), size, size)
    return b.input("x", (channels_in, *spatial))


def _conv(random: Random, b: Builder) -> None:
    """Mostly 3x3; sometimes 5x5, 7x7 and 1x7."""
    kernel: tuple[int, ...] = random.choice([(3, 3)] * 8 + [(5, 5), (7, 7), (1, 7), (2, 2)])
    x = _image(random, b)
    stride = random.choice([1, 1, 1, 2]) if x.shape[1] > 3 else random.choice([1, 2])
    kernel = tuple(min(k, n) for k, n in zip(kernel, x.shape[2:], strict=True))
    out = width(random, max(8, x.shape[1] / 2), min(2048, max(64, x.shape[1] * 2)))
    padding = tuple(k // 2 for k in kernel)
    b.conv(x, out, kernel, stride=stride, padding=padding, bias=random.random() < 0.4, name="conv")


def _pointwise(random: Random, b: Builder) -> None:
    x = _image(random, b)
    out = width(random, max(8, x.shape[1] / 6), min(2048, x.shape[1] * 6))
    b.conv(x, out, 1, stride=random.choice([1, 1, 1, 2]), bias=random.random() < 0.2, name="conv")


def _depthwise(random: Random, b: Builder) -> None:
    x = _image(random, b, low=16)
    kernel = min(random.choice([3, 3, 5, 7]), *x.shape[2:])
    stride, groups = random.choice([1, 1, 2]), x.shape[1]
    b.conv(x, groups, kernel, stride=stride, padding=kernel // 2, groups=groups, bias=False, name="conv")


def _grouped(random: Random, b: Builder) -> None:
    groups, size = random.choice([2, 4, 8, 32]), log_uniform(random, 7, 56)
    channels = groups * width(random, 4, 32)
    x = b.input("x", (channels, size, size))
    b.conv(x, channels, 3, stride=random.choice([1, 1, 2]), padding=1, groups=groups, bias=False, name="conv")


def _conv_1d(random: Random, b: Builder) -> None:
    x = _image(random, b, dims=1)
    b.conv(x, width(random, 8, 512), 3, padding=1, name="conv")


def _conv_3d(random: Random, b: Builder) -> None:
    x = _image(random, b, dims=3)
    b.conv(x, width(random, 16, 256), 3, padding=1, stride=random.choice([1, 1, 2]), bias=False, name="conv")


def _transposed(random: Random, b: Builder) -> None:
    x = _image(random, b, low=32)
    b.conv_transposed(x, max(8, x.shape[1] // 2), 2, stride=2, name="conv")


def _tokens(random: Random, b: Builder, high: float = 4096) -> Tensor:
    return b.input("x", (log_uniform(random, 1, 1024), width(random, 16, high)))


def _linear(random: Random, b: Builder) -> None:
    """Behind an image (N, features) or over tokens (N, length, features)."""
    x = b.input("x", (width(random, 16, 9216),)) if random.random() < 0.5 else _tokens(random, b)
    out = random.choice([10, 100, 1000]) if random.random() < 0.15 else width(random, 16, 8192)
    b.linear(x, out, bias=random.random() < 0.8, name="linear")


def _batched(random: Random, b: Builder) -> None:
    """Scores of attention written out: (N, H, L, D)·(N, H, S, D)ᵀ, and their product with the values."""
    heads, length, depth = log_uniform(random, 1, 16), log_uniform(random, 8, 512), random.choice([16, 32, 64, 128])
    q, k = (b.input(name, (heads, length, depth)) for name in "qk")
    if random.random() < 0.5:
        b.matmul(q, k, transpose_b=True, name="scores")
    else:
        b.matmul(b.input("p", (heads, length, length)), k, name="mix")


def _attention(random: Random, b: Builder) -> None:
    shape = (log_uniform(random, 1, 16), log_uniform(random, 16, 1024), random.choice([16, 32, 64, 64, 128]))
    q, k, v = (b.input(name, shape) for name in "qkv")
    b.attention(q, k, v, causal=random.random() < 0.5, name="attention")


def _recurrent(random: Random, b: Builder) -> None:
    x = b.input("x", (log_uniform(random, 4, 256), width(random, 16, 1024)))
    b.recurrent(x, width(random, 16, 1024), cell=random.choice(["lstm", "lstm", "gru"]), name="recurrent")


def _batch_norm(random: Random, b: Builder) -> None:
    b.batch_norm(_image(random, b, dims=random.choice([2, 2, 2, 2, 3])), name="norm")


def _layer_norm(random: Random, b: Builder) -> None:
    x = _tokens(random, b)
    if random.random() < 0.7:
        b.layer_norm(x, name="norm")
    else:
        b.rms_norm(x, name="norm")


def _group_norm(random: Random, b: Builder) -> None:
    x = _image(random, b, low=32)
    b.norm(x, "group", x.shape[1], name="norm")


def _pool(random: Random, b: Builder) -> None:
    x = _image(random, b)
    window, stride = random.choice([(2, 2), (2, 2), (3, 2), (3, 1)])
    if min(x.shape[2:]) < window or random.random() < 0.2:
        b.adaptive_average_pool(x, 1, name="pool")
    else:
        b.pool(
            x, random.choice(["max", "max", "average"]), window, stride, window // 2 if stride == 1 else 0, name="pool"
        )


def _softmax(random: Random, b: Builder) -> None:
    length = log_uniform(random, 8, 512)
    b.softmax(b.input("x", (log_uniform(random, 1, 16), length, length)), name="softmax")


def _loss(random: Random, b: Builder) -> Iterator[Op]:
    """Cross entropy of classes, or of the words at every position."""
    classes = random.choice([10, 100, 1000, 30522, 50257])
    shape = (classes,) if classes <= 1000 and random.random() < 0.6 else (log_uniform(random, 8, 512), classes)
    graph = b.finish(b.input("scores", shape), loss="cross_entropy" if random.random() < 0.8 else "mse")
    return forward_and_backward(with_loss(graph).ops)


def _elementwise(random: Random, b: Builder) -> Iterator[Op]:
    """Activations, sums, products and dropout; one in three is in place."""
    x = _image(random, b) if random.random() < 0.6 else _tokens(random, b)
    match random.choice(["activation"] * 3 + ["add", "add", "mul", "scaled", "dropout"]):
        case "activation":
            b.elementwise(random.choice(_ACTIVATIONS), x)
        case "dropout":
            b.dropout(x)
        case "scaled":
            gate = b.input("gate", (x.shape[1], *[1] * (len(x.shape) - 2)))
            b.mul(x, gate)
        case function:
            b.elementwise(function, x, b.input("y", x.shape[1:]))
    ops = tuple(b.ops)
    op = ops[0]
    assert isinstance(op.kind, Elementwise)
    if op.kind.function in ("relu", "add", "mul") and op.output.shape == x.shape and random.random() < 0.35:
        yield replace(op, outputs=(x,))
        return
    yield from forward_and_backward(ops)


def _reduce(random: Random, b: Builder) -> None:
    if random.random() < 0.5:
        b.reduce("mean", _image(random, b), (2, 3))
    else:
        b.reduce(random.choice(["mean", "sum"]), _tokens(random, b), (1,))


def _embedding(random: Random, b: Builder) -> None:
    ids = b.input("ids", (log_uniform(random, 1, 1024),), DType.INT64)
    b.embedding(ids, log_uniform(random, 100, 60_000), width(random, 16, 1024), name="embedding")


def _gather(random: Random, b: Builder) -> None:
    """Rows chosen by index: experts, masked positions."""
    x = b.input("x", (width(random, 16, 1024),))
    rows = log_uniform(random, 1, 4 * b.batch)
    index = b.constant("index", (rows,), DType.INT64)
    b.gather("index_select", x, (rows, x.shape[1]), index)


def _copy(random: Random, b: Builder) -> None:
    """Channels moved to the front, concatenations, padding, plain copies."""
    x = _image(random, b) if random.random() < 0.6 else _tokens(random, b)
    match random.choice(["contiguous", "contiguous", "concatenate", "concatenate", "pad", "copy", "cast"]):
        case "contiguous":
            b.copy("contiguous", x, (x.shape[0], x.shape[-1], *x.shape[1:-1]))
        case "concatenate":
            b.concatenate([x, b.input("y", (width(random, 16, 256), *x.shape[2:]))])
        case "pad":
            b.copy("pad", x, (*x.shape[:-1], x.shape[-1] + 2))
        case function:
            b.copy(function, x, x.shape)


def _update(random: Random, b: Builder) -> Iterator[Op]:
    """The passes of an optimizer over the tensors of a network: matrices, each with a vector."""
    largest = width(random, 32, 2048)
    parameters = []
    for index in range(log_uniform(random, 1, 80)):
        rows, columns = width(random, 16, largest), width(random, 16, largest)
        parameters.append(Parameter(Tensor((rows, columns), DType.FLOAT32, f"w{index}")))
        parameters.append(Parameter(Tensor((rows,), DType.FLOAT32, f"b{index}")))
    yield from update(parameters, random.choice(_OPTIMIZERS))


LAYERS: Mapping[str, tuple[float, Callable[[Random, Builder], Iterator[Op]]]] = {
    "conv": (8, _layer(_conv)),
    "pointwise": (6, _layer(_pointwise)),
    "depthwise": (3, _layer(_depthwise)),
    "grouped": (2, _layer(_grouped)),
    "conv_1d": (1, _layer(_conv_1d)),
    "conv_3d": (3, _layer(_conv_3d)),
    "transposed": (1, _layer(_transposed)),
    "linear": (8, _layer(_linear)),
    "batched": (3, _layer(_batched)),
    "attention": (3, _layer(_attention)),
    "recurrent": (3, _layer(_recurrent)),
    "batch_norm": (4, _layer(_batch_norm)),
    "layer_norm": (3, _layer(_layer_norm)),
    "group_norm": (1, _layer(_group_norm)),
    "pool": (3, _layer(_pool)),
    "softmax": (2, _layer(_softmax)),
    "loss": (2, _loss),
    "elementwise": (6, _elementwise),
    "reduce": (1, _layer(_reduce)),
    "embedding": (2, _layer(_embedding)),
    "gather": (1, _layer(_gather)),
    "copy": (3, _layer(_copy)),
    "update": (3, _update),
}
"""All layers that are drawn: the relative frequency, and the function that draws one."""
