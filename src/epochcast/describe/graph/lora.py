"""LoRA as a rewrite of a forward graph (Hu et al. 2021): a frozen network with trained low-rank updates beside chosen
linear layers.

    y = W x + (α/r) · B A dropout(x)        A (r, in), B (out, r)

Only A and B are trained. Frozen parameters have neither gradients nor optimizer state, and layers before the first
update have no backward pass. Each update has its own dropout, unless that is 0. PEFT casts the input of an update to
its format (`View(ADAPTED)`) beside a layer that is not quantised.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from difflib import get_close_matches

from epochcast.describe.graph.half_precision import ADAPTED
from epochcast.describe.graph.language_model import vocabulary_size
from epochcast.describe.graph.op import Graph, Op, Parameter
from epochcast.describe.graph.op_kinds import Elementwise, Matmul, View
from epochcast.describe.graph.tensor import DType, Tensor
from epochcast.errors import BadInput

MOST_NAMES = 12
"""Of layers in a message; of more, only those near the one that was given."""

DEFAULT_TARGETS = ("q_proj", "v_proj", "query", "value", "q", "v", "c_attn", "query_key_value", "qkv_proj")
"""The attention projections of the usual families, which is where the paper puts the updates."""

ALL_LINEAR = "all-linear"
"""A target that stands for every linear layer but the one that scores a vocabulary, as in PEFT."""
FIRST = "lora_a"
"""The layer that multiplies by A, beside the layer it belongs to."""


def with_lora(graph: Graph, rank: int, targets: Sequence[str] = (), *, has_dropout: bool = True) -> Graph:
    """The graph frozen, with an update beside every linear layer whose last name is in `targets`.

    Every target that is given must be the name of a layer; of the default ones a model has those of its family.
    """
    linear = {op.layer.rpartition(".")[2]: op.output.shape[-1] for op in graph.ops if _is_linear(op)}
    vocabulary = vocabulary_size(graph) if ALL_LINEAR in targets else None
    target_names = matched(targets, sorted(linear), {name for name, size in linear.items() if size != vocabulary})
    frozen = tuple(replace(p, trainable=False) for p in graph.parameters)
    added: list[Parameter] = []
    ops: list[Op] = []
    for op in graph.ops:
        is_target = _is_linear(op) and op.layer.rpartition(".")[2] in target_names
        ops.extend(_adapted(op, rank, added, has_dropout=has_dropout) if is_target else (op,))
    return replace(graph, ops=tuple(ops), parameters=(*frozen, *added))


def linear_names(graph: Graph) -> list[str]:
    """The last names of the linear layers."""
    return sorted({op.layer.rpartition(".")[2] for op in graph.ops if _is_linear(op)})


def matched(targets: Sequence[str], linear: Sequence[str], without_head: set[str]) -> set[str]:
    """The target layers among those of a model; an error names a given one that it does not have, and near names.

    `without_head` is what `all-linear` stands for.
    """
    if ALL_LINEAR in targets:
        others = [name for name in targets if name != ALL_LINEAR]
        return without_head | (matched(others, linear, without_head) if others else set())
    absent = sorted(set(targets or DEFAULT_TARGETS) - set(linear))
    if not targets and len(absent) < len(DEFAULT_TARGETS):
        return set(DEFAULT_TARGETS) & set(linear)
    if not absent:
        return set(targets)
    near = sorted({name for target in absent for name in get_close_matches(target, linear, n=3, cutoff=0.5)})
    is_near = bool(near) and len(linear) > MOST_NAMES
    offer = f"near: {', '.join(near)}" if is_near else f"the model has: {', '.join(linear) or 'none'}"
    raise BadInput(f"no linear layer is called {', '.join(absent)}; {offer}")


def adapted_layers(parameters: Iterable[Parameter]) -> tuple[str, ...]:
    """The last names of the layers with an update, each once."""
    paths = (parameter.layer.split(".") for parameter in parameters)
    return tuple(dict.fromkeys(path[-2] for path in paths if path[-1] == FIRST and len(path) > 1))


def _is_linear(op: Op) -> bool:
    return isinstance(op.kind, Matmul) and bool(op.weights) and len(op.weights[0].shape) == 2


def _adapted(op: Op, rank: int, added: list[Parameter], *, has_dropout: bool) -> Iterator[Op]:
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
