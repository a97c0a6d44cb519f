"""LoRA as a rewrite of a forward graph (Hu et al. 2021): a frozen network with trained low-rank updates beside chosen
linear layers.

    y = W x + (α/r) · B A dropout(x)        A (r, in), B (out, r)

DoRA (Liu et al. 2024) as PEFT runs it: W + (α/r)·B A is worked out in every pass for the lengths of its rows (whose
gradient is not followed), and with dropout W multiplies once more. IA3 is a trained factor per channel.

Only A and B are trained. Frozen parameters have neither gradients nor optimizer state, and layers before the first
update have no backward pass. Each update has its own dropout, unless that is 0. PEFT casts the input of an update to
its format (`View(ADAPTED)`) beside a layer that is not quantised.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from epochcast.describe.graph.adapters import ALL_LINEAR, DORA, IA3, LABELS, LORA, is_scaled_before, matched
from epochcast.describe.graph.half_precision import ADAPTED
from epochcast.describe.graph.language_model import vocabulary_size
from epochcast.describe.graph.op import Graph, Op, Parameter
from epochcast.describe.graph.op_kinds import DETACHED, Copy, Elementwise, Matmul, Reduce, View
from epochcast.describe.graph.tensor import DType, Tensor
from epochcast.errors import BadInput

FIRST = "lora_a"
"""The layer that multiplies by A, beside the layer it belongs to."""


def with_lora(
    graph: Graph, rank: int, targets: Sequence[str] = (), *, has_dropout: bool = True, adapter: str = LORA
) -> Graph:
    """The graph frozen, with an update beside every linear layer that a target names."""
    if adapter not in _BESIDE:
        raise BadInput(
            f"{graph.name}: {LABELS[adapter]} needs a captured model: give its configuration, hf:config.json"
        )
    linear = {op.layer: op.output.shape[-1] for op in graph.ops if _is_linear(op)}
    vocabulary = vocabulary_size(graph) if ALL_LINEAR in targets else None
    without_head = {path for path, size in linear.items() if size != vocabulary}
    target_paths = matched(targets, linear, without_head, adapter)
    frozen = tuple(replace(p, trainable=False) for p in graph.parameters)
    added: list[Parameter] = []
    ops: list[Op] = []
    for op in graph.ops:
        is_target = _is_linear(op) and op.layer in target_paths
        ops.extend(_BESIDE[adapter](op, rank, added, has_dropout) if is_target else (op,))
    return replace(graph, ops=tuple(ops), parameters=(*frozen, *added))


def linear_names(graph: Graph) -> list[str]:
    """The last names of the linear layers."""
    return sorted({op.layer.rpartition(".")[2] for op in graph.ops if _is_linear(op)})


def _is_linear(op: Op) -> bool:
    return isinstance(op.kind, Matmul) and bool(op.weights) and len(op.weights[0].shape) == 2


def _with_update(op: Op, rank: int, added: list[Parameter], has_dropout: bool) -> Iterator[Op]:
    """The layer, dropout, A, B, the scale and the sum; the sum has the layer's name."""
    x, y = op.inputs[0], op.output
    base = replace(y, name=f"{y.name}|base")
    pieces = {FIRST: (rank, x.shape[-1]), "lora_b": (y.shape[-1], rank)}
    yield replace(op, outputs=(base,))
    update = replace(x, name=f"{op.layer}.lora_input")
    yield Op(update.name, View(ADAPTED), (x,), (update,), layer=op.layer)
    if has_dropout:
        source, update = update, replace(x, name=f"{op.layer}.lora_dropout/out")
        mask = replace(update, dtype=DType.BOOL, name=f"{update.name}:1")
        yield Op(update.name, Elementwise("dropout"), (source,), (update, mask), layer=f"{op.layer}.lora_dropout")
    for name, shape in pieces.items():
        layer = f"{op.layer}.{name}"
        weight = Parameter(Tensor(shape, DType.FLOAT32, f"{layer}.weight"), True, layer)
        added.append(weight)
        product = Tensor((*x.shape[:-1], shape[0]), y.dtype, f"{layer}/out")
        yield Op(f"{layer}/out", Matmul(transpose_b=True), (update,), (product,), (weight.tensor,), layer=layer)
        update = product
    scaled = replace(update, name=f"{op.layer}.lora_b/scaled")
    yield Op(scaled.name, Elementwise("scale"), (update,), (scaled,), layer=op.layer)
    yield Op(f"{op.name}.sum", Elementwise("add"), (base, scaled), (y,), layer=op.layer)


def _with_magnitude(op: Op, rank: int, added: list[Parameter], has_dropout: bool) -> Iterator[Op]:
    """DoRA: the update scaled row by row, and so much of the layer's own result as its rows changed their length."""
    *update, total = _with_update(op, rank, added, has_dropout)
    yield from update
    base, scaled = total.inputs
    x, y, weight = op.inputs[0], op.output, op.weights[0]
    into, out = x.shape[-1], y.shape[-1]
    first, second = (parameter.tensor for parameter in added[-2:])
    layer = f"{op.layer}.lora_magnitude_vector"

    def tensor(name: str, *shape: int) -> Tensor:
        return Tensor(shape, y.dtype, f"{layer}/{name}")

    eye, half, whole, summed = (
        tensor("eye", into, into),
        tensor("half", into, rank),
        tensor("w", into, out),
        tensor("s", into, out),
    )
    lengths, detached, factor = tensor("norm", out), tensor("norm/known", out), tensor("factor", out)
    magnitude = Parameter(Tensor((out,), DType.FLOAT32, f"{layer}.weight"), True, layer)
    added.append(magnitude)
    yield Op(eye.name, Copy("fill"), (), (eye,), layer=layer)
    yield Op(half.name, Matmul(transpose_b=True), (eye,), (half,), (first,), layer=layer)
    yield Op(whole.name, Matmul(transpose_b=True), (half,), (whole,), (second,), layer=layer)
    yield Op(f"{summed.name}.sum", Elementwise("add"), (whole,), (summed,), (weight,), layer=layer)
    yield Op(lengths.name, Reduce("norm"), (summed,), (lengths,), layer=layer)
    yield Op(detached.name, View(DETACHED), (lengths,), (detached,), layer=layer)
    yield Op(factor.name, Elementwise("div"), (detached,), (factor,), (magnitude.tensor,), layer=layer)
    own = base
    if has_dropout:
        own = tensor("again", *y.shape)
        dropped = next(piece.output for piece in update if piece.kind == Elementwise("dropout"))
        yield Op(own.name, op.kind, (dropped,), (own,), op.weights[:1], layer=layer)
    turned, stretched, change = tensor("b", *y.shape), tensor("a", *y.shape), tensor("sum", *y.shape)
    yield Op(stretched.name, Elementwise("mul"), (own, factor), (stretched,), layer=layer)
    yield Op(turned.name, Elementwise("mul"), (scaled, factor), (turned,), layer=layer)
    yield Op(change.name, Elementwise("add"), (stretched, turned), (change,), layer=layer)
    yield replace(total, inputs=(base, change))


def _with_factor(op: Op, _: int, added: list[Parameter], __: bool) -> Iterator[Op]:
    """IA3: a factor for each channel that a layer makes, or that the last layer of an MLP reads."""
    is_before = is_scaled_before(op.layer)
    tensor = op.inputs[0] if is_before else op.output
    layer = f"{op.layer}.ia3_l"
    factor = Parameter(Tensor((tensor.shape[-1],), DType.FLOAT32, f"{layer}.weight"), True, layer)
    added.append(factor)
    other = replace(tensor, name=f"{op.layer}.ia3_l/out")
    if is_before:
        yield Op(other.name, Elementwise("mul"), (tensor,), (other,), (factor.tensor,), layer=layer)
        yield replace(op, inputs=(other, *op.inputs[1:]))
    else:
        yield replace(op, outputs=(other,))
        yield Op(f"{op.name}.scaled", Elementwise("mul"), (other,), (tensor,), (factor.tensor,), layer=layer)


_Beside = Callable[[Op, int, list[Parameter], bool], Iterator[Op]]
_BESIDE: Mapping[str, _Beside] = {LORA: _with_update, DORA: _with_magnitude, IA3: _with_factor}
"""What each adapter puts beside a layer of a built graph."""
